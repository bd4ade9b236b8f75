"""Element and scalar types: one class for each dtype that DLPack knows, and TFloat32.

A dtype is a *class* (`Float32`), so that it can stand in an annotation, in `isinstance` and in
`Optional[...]`; its metaclass `DType` carries the facts (name, kind, bits, DLPack code).  An
*instance* (`Float32(4)`) is a host-side number that remembers its type.  `ferrule.language`
decides, not this module, what `Float32(x)` means for a run-time value in a kernel.

TFloat32 is the format in which tensor cores read a float32.  DLPack has no code for it: in memory
it is a float32.

Codes and names: DLPack 1.3 (`DLDataTypeCode`); names in messages come from this table alone.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Final, Literal, TypeVar, cast

from ferrule.specs import rounding

Kind = Literal["bool", "int", "uint", "float", "complex"]

# `DLDataTypeCode` of dlpack.h. 3 is an opaque handle, and 4 is bfloat16, which has a code alone.
_KIND_CODES: Final[dict[Kind, int]] = {"int": 0, "uint": 1, "float": 2, "complex": 5, "bool": 6}


class DType(type):
    """The type of a dtype.  `Float32` is an instance of `DType`.

    Attributes: `name` ("float32"), `kind`, `bits` (of one element), `code` (DLPack's type code).
    """

    name: str
    kind: Kind
    bits: int
    code: int

    def __new__(
        mcs,
        cls_name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        name: str = "",
        kind: Kind = "int",
        bits: int = 0,
        code: int | None = None,
    ) -> DType:
        cls = super().__new__(mcs, cls_name, bases, namespace)
        cls.name, cls.kind, cls.bits = name, kind, bits
        cls.code = _KIND_CODES[kind] if code is None else code
        return cls

    def __init__(cls, cls_name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any):
        super().__init__(cls_name, bases, namespace)

    def __repr__(cls) -> str:
        return cls.__name__

    @property
    def itemsize(cls) -> int:
        """Bytes that one element takes in memory, at least 1 (sub-byte types are packed)."""
        return max(1, cls.bits // 8)

    @property
    def width(cls) -> int:
        """The bits of one element, under CuTe DSL's name: `bits`."""
        return cls.bits

    @property
    def bytes(cls) -> int:
        """Bytes of one element, under CuTe DSL's name: those of its bits, rounded up."""
        # Rounds up: an element of 4 bits has a byte.
        return -(-cls.bits // 8)

    @property
    def mlir_type(cls) -> DType:
        """The dtype itself, which programs for CuTe DSL give as the type of a result."""
        return cls

    @property
    def dlpack(cls) -> int:
        """The 4 bytes of a DLDataType with one lane, read as a little-endian int32."""
        # `struct { uint8_t code; uint8_t bits; uint16_t lanes; }`.
        return cls.code | cls.bits << 8 | 1 << 16

    @property
    def is_narrow(cls) -> bool:
        """Whether this is a float of fewer than 16 bits; `narrow` has their formats."""
        return cls.kind == "float" and cls.bits < 16

    @property
    def has_values(cls) -> bool:
        """Whether a number of this type is one value in a kernel; a complex one is two floats, and
        integers of 4 bits are stored only.  Floats of 4 and 6 bits have a byte there."""
        return cls.kind != "complex" and (cls.bits >= 8 or cls.is_narrow)

    @property
    def part(cls) -> DType:
        """The dtype of the real part of a complex one.  Raises TypeError for other kinds."""
        if cls.kind != "complex":
            raise TypeError(f"{cls.name} has no parts")
        return Float32 if cls.bits == 64 else Float64

    @property
    def value_bits(cls) -> int:
        """The bits of a value in a kernel: 8 of a narrow float, the upper ones 0 if it has less."""
        return max(cls.bits, 8)

    @property
    def zero(cls) -> int | float:
        """Zero, as a Python number."""
        return 0.0 if cls.kind == "float" else 0

    @property
    def inf(cls) -> float:
        """Infinity, of floats from 16 bits on.  Raises AttributeError for other dtypes."""
        return cls._special("inf")

    @property
    def nan(cls) -> float:
        """Not a number, of floats from 16 bits on.  Raises AttributeError for other dtypes."""
        return cls._special("nan")

    def _special(cls, name: str) -> float:
        if cls.kind != "float" or cls.bits < 16:
            raise AttributeError(f"{cls.name} has no attribute {name!r}: a float of 16 bits has")
        return float(name)

    @property
    def is_integer(cls) -> bool:
        """Whether this is a signed or unsigned integer type (a bool is not)."""
        return cls.kind in ("int", "uint")

    @property
    def is_float(cls) -> bool:
        """Whether this is a floating-point type."""
        return cls.kind == "float"

    def is_same_kind(cls, other: DType) -> bool:
        """Whether both are integers, both floats, or of one other kind."""
        return cls.kind == other.kind or (cls.is_integer and other.is_integer)

    @property
    def range(cls) -> tuple[int, int]:
        """Smallest and largest value of an integer type.  Raises TypeError for other kinds."""
        match cls.kind:
            case "int":
                return -(1 << cls.bits - 1), (1 << cls.bits - 1) - 1
            case "uint":
                return 0, (1 << cls.bits) - 1
        raise TypeError(f"{cls.name} is not an integer type and has no integer range")


_N = TypeVar("_N", bound="Numeric")


class Numeric(metaclass=DType):
    """A number with a dtype, made by calling the dtype: `Int32(3)`.

    A Python float is rounded to the dtype.  Another Numeric is converted as compiled code converts
    it: an integer wraps to the width; a float becomes an integer by truncation, then saturation.

    Raises TypeError for a Python number of another kind, OverflowError for an int beyond the range.
    """

    __slots__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        if type(self) is Numeric:
            raise TypeError("Numeric is the base of all dtypes: call one of them, as in Int32(3)")
        self.value = _convert(type(self), value)

    def __repr__(self) -> str:
        of_float = isinstance(self.value, float)
        text = rounding.shortest(type(self), self.value) if of_float else repr(self.value)
        return f"{type(self).__name__}({text})"

    @property
    def dtype(self) -> DType:
        """The dtype of the number, its class."""
        return type(self)

    def to(self, dtype: type[_N], *, saturate: bool = False) -> _N:
        """The number in another dtype, as compiled code converts it.

        With `saturate`, for a float of 8 bits, what is beyond its largest number becomes that.
        Raises TypeError for anything but a dtype, and for `saturate` with another dtype.
        """
        if not isinstance(dtype, DType) or dtype is Numeric:
            raise TypeError(f"to takes a dtype such as Float32, but got {dtype!r}")
        if not saturate:
            return dtype(self)
        if not dtype.is_narrow:
            raise TypeError(f"saturate is for floats of 8 bits, but the dtype is {dtype.name}")
        _require_scalar(dtype)
        return dtype(float(rounding.converted(dtype, self.value, saturate=True)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Numeric):
            return type(self) is type(other) and self.value == other.value
        return bool(self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        if not isinstance(self.value, int):
            raise TypeError(f"{self!r} is no integer")
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)


def _convert(dtype: DType, value: Any) -> bool | int | float | complex:
    if dtype.kind == "complex":
        return _convert_complex(dtype, value)
    if isinstance(value, Numeric):
        _require_scalar(dtype)
        if isinstance(value.value, complex):
            raise TypeError(f"{value!r} is complex: {dtype.name} takes one part, z.real or z.imag")
        return rounding.converted(dtype, value.value)
    if getattr(value, "ndim", 0) != 0:
        raise TypeError(f"{dtype.name} takes a number, but got an array: {value!r}")
    match dtype.kind:
        case "bool":
            if value in (0, 1):
                return bool(value)
            raise TypeError(f"bool takes True, False, 0 or 1, but got {value!r}")
        case "int" | "uint":
            return _convert_int(dtype, value)
        case "float":
            return _convert_float(dtype, value)
    raise _no_scalars(dtype)


def _no_scalars(dtype: DType) -> TypeError:
    return TypeError(f"{dtype.name} is a storage type: it has no scalar values")


def _require_scalar(dtype: DType) -> None:
    if dtype.kind in ("complex", "float") and not dtype.has_values:
        raise _no_scalars(dtype)


def _convert_int(dtype: DType, value: Any) -> int:
    try:
        number = int(operator.index(value))
    except TypeError:
        raise TypeError(f"{dtype.name} takes an integer, but got {value!r}") from None
    low, high = dtype.range
    if not low <= number <= high:
        raise OverflowError(f"{number} is out of the range of {dtype.name}, [{low}, {high}]")
    return number


def _convert_float(dtype: DType, value: Any) -> float:
    _require_scalar(dtype)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{dtype.name} takes a number, but got {value!r}")
    try:
        number = rounding.nearest(dtype, value if isinstance(value, int) else float(value))
    except (TypeError, ValueError):
        raise TypeError(f"{dtype.name} takes a number, but got {value!r}") from None
    if dtype.is_narrow and not rounding.fits(dtype, value):
        raise OverflowError(f"{value!r} is out of the range of {dtype.name}, {_range_of(dtype)}")
    return number


def _convert_complex(dtype: DType, value: Any) -> complex:
    known = value.value if isinstance(value, Numeric) else value
    if isinstance(known, (str, bytes)) or getattr(known, "ndim", 0) != 0:
        raise TypeError(f"{dtype.name} takes a number, but got {value!r}")
    try:
        number = complex(known)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{dtype.name} takes a number, but got {value!r}") from None
    return complex(*(rounding.nearest(dtype.part, part) for part in (number.real, number.imag)))


def _range_of(dtype: DType) -> str:
    """The smallest and largest number of a narrow float, for messages."""
    from ferrule.specs import narrow

    form = narrow.format_of(dtype)
    return f"[{form.minimum:g}, {form.maximum:g}]"


class Boolean(Numeric, name="bool", kind="bool", bits=8):
    """True or False; one byte in memory."""


class Int4(Numeric, name="int4", kind="int", bits=4):
    """Signed 4-bit integer (storage)."""


class Int8(Numeric, name="int8", kind="int", bits=8):
    """Signed 8-bit integer."""


class Int16(Numeric, name="int16", kind="int", bits=16):
    """Signed 16-bit integer."""


class Int32(Numeric, name="int32", kind="int", bits=32):
    """Signed 32-bit integer."""


class Int64(Numeric, name="int64", kind="int", bits=64):
    """Signed 64-bit integer."""


class Uint4(Numeric, name="uint4", kind="uint", bits=4):
    """Unsigned 4-bit integer (storage)."""


class Uint8(Numeric, name="uint8", kind="uint", bits=8):
    """Unsigned 8-bit integer."""


class Uint16(Numeric, name="uint16", kind="uint", bits=16):
    """Unsigned 16-bit integer."""


class Uint32(Numeric, name="uint32", kind="uint", bits=32):
    """Unsigned 32-bit integer."""


class Uint64(Numeric, name="uint64", kind="uint", bits=64):
    """Unsigned 64-bit integer."""


class Float16(Numeric, name="float16", kind="float", bits=16):
    """IEEE 754 binary16."""


class BFloat16(Numeric, name="bfloat16", kind="float", bits=16, code=4):
    """The upper half of a binary32."""


class Float32(Numeric, name="float32", kind="float", bits=32):
    """IEEE 754 binary32."""


class TFloat32(Numeric, name="tfloat32", kind="float", bits=32):
    """A binary32 with the upper 10 bits of its mantissa, the lower 13 are zero; DLPack's float32.

    Source: NVIDIA, "PTX ISA", section "Alternate floating-point data formats".
    """


class Float64(Numeric, name="float64", kind="float", bits=64):
    """IEEE 754 binary64."""


class _OfTwo:
    """What complex numbers have: `Complex64(1.0, 2.0)`, `z.real`, `z.conjugate()`."""

    __slots__ = ()
    value: complex

    def __init__(self, real: Any, imag: Any = None) -> None:
        numeric: Any = super()
        if imag is None:
            numeric.__init__(real)
            return
        of_parts = cast("DType", type(self)).part
        parts = [of_parts(part).value for part in (real, imag)]
        numeric.__init__(complex(*parts))

    def __repr__(self) -> str:
        dtype = cast("DType", type(self))
        parts = (self.value.real, self.value.imag)
        texts = (rounding.shortest(dtype.part, part) for part in parts)
        return f"{dtype.__name__}({', '.join(texts)})"

    def __complex__(self) -> complex:
        return self.value

    @property
    def real(self) -> Any:
        """The real part, a typed number."""
        return cast("DType", type(self)).part(self.value.real)

    @property
    def imag(self) -> Any:
        """The imaginary part, a typed number."""
        return cast("DType", type(self)).part(self.value.imag)

    def conjugate(self) -> Any:
        """The number with the opposite imaginary part."""
        return type(self)(self.value.conjugate())


class Complex64(_OfTwo, Numeric, name="complex64", kind="complex", bits=64):
    """Two binary32."""

    __slots__ = ()


class Complex128(_OfTwo, Numeric, name="complex128", kind="complex", bits=128):
    """Two binary64."""

    __slots__ = ()


class Float8E3M4(Numeric, name="float8_e3m4", kind="float", bits=8, code=7):
    """8-bit float, 3 exponent and 4 mantissa bits."""


class Float8E4M3(Numeric, name="float8_e4m3", kind="float", bits=8, code=8):
    """8-bit float, 4 exponent and 3 mantissa bits."""


class Float8E4M3B11FNUZ(Numeric, name="float8_e4m3b11fnuz", kind="float", bits=8, code=9):
    """8-bit float e4m3 with bias 11, finite, one zero."""


class Float8E4M3FN(Numeric, name="float8_e4m3fn", kind="float", bits=8, code=10):
    """8-bit float e4m3, finite."""


class Float8E4M3FNUZ(Numeric, name="float8_e4m3fnuz", kind="float", bits=8, code=11):
    """8-bit float e4m3, finite, one zero."""


class Float8E5M2(Numeric, name="float8_e5m2", kind="float", bits=8, code=12):
    """8-bit float, 5 exponent and 2 mantissa bits."""


class Float8E5M2FNUZ(Numeric, name="float8_e5m2fnuz", kind="float", bits=8, code=13):
    """8-bit float e5m2, finite, one zero."""


class Float8E8M0FNU(Numeric, name="float8_e8m0fnu", kind="float", bits=8, code=14):
    """8-bit power of two."""


class Float6E2M3FN(Numeric, name="float6_e2m3fn", kind="float", bits=6, code=15):
    """6-bit float, 2 exponent and 3 mantissa bits."""


class Float6E3M2FN(Numeric, name="float6_e3m2fn", kind="float", bits=6, code=16):
    """6-bit float, 3 exponent and 2 mantissa bits."""


class Float4E2M1FN(Numeric, name="float4_e2m1fn", kind="float", bits=4, code=17):
    """4-bit float, 2 exponent bits and 1 mantissa bit."""


ALL_DTYPES: Final[tuple[DType, ...]] = tuple(Numeric.__subclasses__())
BY_NAME: Final[dict[str, DType]] = {dtype.name: dtype for dtype in ALL_DTYPES}
BY_DLPACK: Final[dict[int, DType]] = {
    dtype.dlpack: dtype for dtype in ALL_DTYPES if dtype is not TFloat32
}
"""The dtype of a tensor's memory."""


def as_dtype(value: DType | str | Any) -> DType:
    """The dtype with this name, the dtype itself, or that of NumPy, ml_dtypes or PyTorch:
    `np.float32`, `x.dtype`, `torch.bfloat16`.

    Raises ValueError for an unknown name, or a dtype in another byte order, and TypeError for
    anything else.
    """
    if isinstance(value, DType) and value is not Numeric:
        return value
    if isinstance(value, str):
        if value in BY_NAME:
            return BY_NAME[value]
        raise ValueError(f"{value!r} is no dtype; known are {', '.join(BY_NAME)}")
    name = _name_elsewhere(value)
    if name in BY_NAME:
        return BY_NAME[name]
    raise TypeError(f"expected a dtype such as Float32 or 'float32', but got {value!r}")


def _name_elsewhere(value: object) -> str | None:
    """The name of a dtype of a framework; which one it is, tells the module of its class.

    Nothing is imported: who has such an object has imported its module.
    """
    kind = value if isinstance(value, type) else type(value)
    module = kind.__module__.partition(".")[0]
    if module == "torch" and kind.__name__ == "dtype" and kind is not value:
        return str(value).removeprefix("torch.")
    if module not in ("numpy", "ml_dtypes"):
        return None
    numpy: Any = sys.modules["numpy"]
    if kind is value:
        # Of abstract classes such as np.floating older versions of NumPy make a dtype of another.
        if kind not in numpy.sctypeDict.values() and module == "numpy":
            return None
    elif not isinstance(value, numpy.dtype):
        return None
    found = numpy.dtype(value)
    if not found.isnative:
        raise ValueError(f"{value!r} is in another byte order than this machine's")
    return str(found.name)

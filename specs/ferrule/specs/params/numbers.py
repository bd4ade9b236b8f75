"""Numbers, tuples of sizes, and values that are known when a function is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, get_args

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import DType, as_dtype
from ferrule.specs.expr import Dim, NoSize, Sym, ValueOf
from ferrule.specs.params.base import REQUIRED, Required, check_name
from ferrule.specs.params.tensors import check_dims
from ferrule.specs.typeindex import BIG_INT, STRINGS, TypeIndex

TupleKind = Literal["Shape", "Stride", "Coord", "Tile", "IntTuple"]
SIGNED_KINDS: Final = ("Stride", "Coord", "IntTuple")

_INTEGERS: Final = frozenset({TypeIndex.INT, TypeIndex.BOOL, BIG_INT})
_CONSTANTS: Final[Mapping[type, frozenset[int]]] = {
    bool: frozenset({TypeIndex.BOOL}),
    int: _INTEGERS,
    float: frozenset({TypeIndex.FLOAT}),
    str: STRINGS,
}


@dataclass(frozen=True, slots=True, init=False)
class Scalar(NoSize):
    """A number: an int, float or bool at the call, in the range of its dtype."""

    name: str
    dtype: DType
    default: bool | int | float | Required

    def __init__(self, name: str, dtype: DType | str, default: Any = REQUIRED) -> None:
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "dtype", check_scalar_dtype(as_dtype(dtype)))
        put(self, "default", default if default is REQUIRED else self.dtype(default).value)

    @property
    def instead_of_size(self) -> str:
        """See `NoSize`."""
        kind = f"the parameter {self.name} ({self.dtype.name})"
        if self.dtype.kind == "float":
            return f"{kind}: specs.compare_float('lt', {self.name}, 0.5) compares it"
        return f"{kind}: {self.name}.value is its value as a size"

    @property
    def value(self) -> Sym:
        """The value of an integer as a size, for launch sizes and arguments of a calling
        convention.  Raises TypeError for another number."""
        if self.dtype.kind == "float":
            raise TypeError(f"{self.name} is {self.dtype.name}: only integers are sizes")
        return Sym(ValueOf(self.name), self.name, 64)

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return _INTEGERS | {TypeIndex.FLOAT} if self.dtype.kind == "float" else _INTEGERS


@dataclass(frozen=True, slots=True, init=False)
class Shape:
    """A flat tuple of integers: an ffi.Shape, or an Array or List of ints at the call.

    `dims` are checked and bound like the sizes of a tensor; the dims of a "Stride" or "Coord" may
    be negative.  A nested shape is a `Tuple` of shapes.
    """

    name: str
    dims: tuple[Dim, ...]
    kind: TupleKind
    default: tuple[int, ...] | Required
    indices: ClassVar[frozenset[int]] = frozenset(
        {TypeIndex.SHAPE, TypeIndex.ARRAY, TypeIndex.LIST}
    )

    def __init__(
        self,
        name: str,
        dims: Sequence[Dim],
        kind: TupleKind = "Shape",
        default: tuple[int, ...] | Required = REQUIRED,
    ) -> None:
        put = object.__setattr__
        if not isinstance(kind, str) or kind not in get_args(TupleKind):
            raise ValueError(f"kind must be one of {get_args(TupleKind)}, but got {kind!r}")
        put(self, "name", check_name(name))
        put(self, "dims", check_dims("dims", dims, signed=kind in SIGNED_KINDS))
        put(self, "kind", kind)
        put(self, "default", default)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that the argument must equal, and with the same type: bool, int, float or str.

    Floats are compared by their bits, so NaN equals NaN and 0.0 is not -0.0.
    """

    name: str
    value: bool | int | float | str
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.value, (bool, int, float, str)):
            raise TypeError(
                f"{self.name}: a constant is a bool, int, float or str, but got {self.value!r}"
            )
        if type(self.value) is int and not -(1 << 63) <= self.value < 1 << 63:
            raise ValueError(f"{self.name}: a constant int must fit 64 bits, got {self.value}")

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return _CONSTANTS[type(self.value)]


def check_scalar_dtype(dtype: DType) -> DType:
    """The dtype, if a scalar parameter can have it.  Raises ValueError for others."""
    if dtype.kind == "complex":
        raise ValueError(
            f"a scalar parameter cannot be {dtype.name}: take its parts, two {dtype.part.name}, "
            f"and make {dtype.__name__}(real, imag) of them"
        )
    if not dtype.has_values:
        raise ValueError(f"a scalar parameter cannot be {dtype.name}: that is a storage type")
    if dtype.is_narrow:
        raise ValueError(
            f"a scalar parameter cannot be {dtype.name}: take a float32, and convert it"
        )
    return dtype

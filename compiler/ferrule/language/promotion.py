"""The dtype of an operation on two run-time numbers, and the stores that convert implicitly.

Two run-time numbers promote like `torch.promote_types`.  If torch has no answer (Uint16, Uint32 and
Uint64 with other integers and bools), the result is the smallest integer that holds both; there is
none for Uint64 and a signed integer.  A float of 8 bits has a common dtype with Float32 and Float64
alone, as in `ml_dtypes`; torch has none.  A TFloat32 is computed as a Float32, as in tensor cores:
its products and sums are not TFloat32.  A Python number is weak: it gets the other operand's dtype
if that can hold its kind.
"""

from __future__ import annotations

from typing import Final

from ferrule.specs import (
    Boolean,
    Complex64,
    Complex128,
    DType,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    TFloat32,
    Uint4,
    Uint8,
)

_RANKS = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}
_SIGNED: dict[int, DType] = {8: Int8, 16: Int16, 32: Int32, 64: Int64}


class NoCommonType(Exception):
    """No dtype holds both of two dtypes; the caller formulates the error."""


def rank(dtype: DType) -> int:
    """0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return _RANKS[dtype.kind]


def computed(dtype: DType) -> DType:
    """The dtype in which operators compute for this one."""
    return Float32 if dtype is TFloat32 else dtype


def promote(left: DType, right: DType) -> DType:
    """The dtype of an operation on these two.  Raises NoCommonType if there is none."""
    left, right = computed(left), computed(right)
    if left is right:
        return left
    if left.is_narrow or right.is_narrow:
        return _promote_narrow(left, right)
    if "complex" in (left.kind, right.kind):
        return Complex128 if 128 in map(_complex_bits, (left, right)) else Complex64
    if rank(left) != rank(right):
        return left if rank(left) > rank(right) else right
    if left.kind == "float":
        return _promote_floats(left, right)
    if left.kind == right.kind:
        return left if left.bits >= right.bits else right
    return _promote_mixed_signs(left, right)


def _complex_bits(dtype: DType) -> int:
    """The bits of the complex number whose parts can hold this."""
    return 128 if dtype is Float64 else dtype.bits if dtype.kind == "complex" else 64


def _promote_narrow(left: DType, right: DType) -> DType:
    wide = right if left.is_narrow else left
    if wide in (Float32, Float64):
        return wide
    raise NoCommonType


def _promote_floats(left: DType, right: DType) -> DType:
    if left.bits == right.bits:  # float16 and bfloat16
        return Float32
    return left if left.bits > right.bits else right


def _promote_mixed_signs(left: DType, right: DType) -> DType:
    signed, unsigned = (left, right) if left.kind == "int" else (right, left)
    if signed.bits > unsigned.bits:
        return signed
    if unsigned.bits == 64:
        raise NoCommonType
    return _SIGNED[unsigned.bits * 2]


def weak(number: bool | int | float | complex, other: DType | None) -> DType:
    """The dtype of a Python number together with a run-time number (None: alone)."""
    if isinstance(number, complex):
        return Complex64 if other is None else promote(other, Complex64)
    if isinstance(number, bool):
        return other or Boolean
    if isinstance(number, int):
        return Int32 if other is None or other is Boolean else other
    return Float32 if other is None or rank(other) < 2 else other


_FLOATS: dict[int, DType] = {16: Float16, 32: Float32, 64: Float64}


def promote_as_cute(left: DType, right: DType) -> DType:
    """The dtype that CuTe DSL gives an operation on these two.  Raises NoCommonType.

    Of integers the wider one, of one width the unsigned one.  An integer and a float give a float
    that is as wide as the integer.  Float16 and BFloat16 give a Float16.
    """
    left, right = computed(left), computed(right)
    kinds = {left.kind, right.kind}
    if left.is_narrow or right.is_narrow or kinds & {"complex", "bool"}:
        return promote(left, right)
    if kinds == {"float"} and left.bits == right.bits:
        return left if left is right else Float16
    if kinds == {"int", "uint"} and left.bits == right.bits:
        return left if left.kind == "uint" else right
    if "float" in kinds and len(kinds) == 2:
        floating, integer = (left, right) if left.kind == "float" else (right, left)
        return floating if floating.bits > integer.bits else _FLOATS[integer.bits]
    return left if left.bits >= right.bits else right


def strong(number: bool | int | float, other: DType) -> DType:
    """The dtype of a Python number beside a run-time number in CuTe DSL: its own, whatever the
    other one is.  An int that no Int32 holds is as `weak` has it."""
    if isinstance(number, bool):
        return Boolean
    if isinstance(number, float):
        return Float32
    smallest, largest = Int32.range
    return Int32 if smallest <= number <= largest else weak(number, other)


def stores_implicitly(source: DType, target: DType) -> bool:
    """Whether a value of one dtype is stored in another without an explicit conversion.

    Yes within a kind and upwards (bool → integer → float), as in C; not from float to integer, nor
    from anything to bool.
    """
    return source is target or (target is not Boolean and rank(source) <= rank(target))


# ---- elements that share bytes; `tensors/packed` has the code for them ----

PACKED: Final[dict[DType, DType]] = {
    Int4: Int8,
    Uint4: Uint8,
    **dict.fromkeys((Float4E2M1FN, Float6E2M3FN, Float6E3M2FN), Float32),
}
"""Elements that share bytes, and the dtype of one that is read."""


def in_groups(dtype: DType) -> str:
    """The hint for elements that share bytes: how they are written together."""
    count, word = (2, "two") if dtype.bits == 4 else (4, "four")
    return f"fe.zipped_divide(a, ({count},))[None, i].store(v), with a vector v of {word} numbers"


def sharing(dtype: DType) -> str:
    """How many elements share bytes, in words."""
    return "two share one" if dtype.bits == 4 else "four share three"

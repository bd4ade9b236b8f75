"""Finds signatures that exclude each other: no call fits both, whatever its arguments.

True is certain; False means unknown.
"""

from __future__ import annotations

from ferrule.specs import ALSO_TAKEN, Compound, Dim, Int8, Param, Signature, Uint8
from ferrule.specs.intervals import interval
from ferrule.specs.params import (
    BIG_INT,
    AnyValue,
    Constant,
    Optional,
    Pointer,
    Shape,
    Stream,
    Tensor,
    Tuple,
    Union,
    type_indices,
)


def exclude_each_other(left: Signature, right: Signature) -> bool:
    """Whether no call fits both signatures."""
    if len(left.arguments) != len(right.arguments):
        return True
    return any(map(_exclude, left.arguments, right.arguments))


def _exclude(left: Param, right: Param) -> bool:
    """Whether no value fits both parameters."""
    for param, other in ((left, right), (right, left)):
        match param:
            case AnyValue():
                return False
            case Optional(item=item):
                return not _takes_none(other) and _exclude(item, other)
            case Union(members=members):
                return all(_exclude(member, other) for member in members)
    match left, right:
        case Tensor(), Tensor():
            return _tensors_exclude(left, right)
        case Tuple(items=items), Tuple(items=others):
            return len(items) != len(others) or any(map(_exclude, items, others))
        case Shape(dims=dims), Shape(dims=others):
            return len(dims) != len(others)
        case Constant(value=one), Constant(value=another) if type(one) is type(another):
            return one != another
    return _indices(left).isdisjoint(_indices(right))


def _takes_none(param: Param) -> bool:
    match param:
        case Optional() | AnyValue() | Pointer() | Stream():
            return True
        case Union(members=members):
            return any(map(_takes_none, members))
    return 0 in type_indices(param)


def _indices(param: Param) -> frozenset[int]:
    """All type indices that a parameter accepts, more than those that distinguish members of
    unions."""
    indices = type_indices(param)
    if isinstance(param, (Pointer, Stream)):
        indices |= {0, 1, BIG_INT}
    return indices


def _tensors_exclude(left: Tensor, right: Tensor) -> bool:
    if len(left.shape) != len(right.shape) or _devices(left).isdisjoint(_devices(right)):
        return True
    if left.packed != right.packed:
        return True
    loose = {left.dtype, right.dtype} == {Int8, Uint8} and not (left.exact and right.exact)
    if left.dtype is not right.dtype and not loose:
        return True
    if None not in (left.device_id, right.device_id) and left.device_id != right.device_id:
        return True
    return any(map(_sizes_exclude, left.shape, right.shape))


def _devices(param: Tensor) -> set[str | None]:
    """The device types of the tensors that a parameter takes."""
    return {param.device, *ALSO_TAKEN.get(param.device or "", ())}


def _sizes_exclude(left: Dim, right: Dim) -> bool:
    """Whether no size is both: they are different numbers, or beyond each other's bounds."""
    if isinstance(left, Compound) or isinstance(right, Compound):
        return False
    (low, high), (least, largest) = interval(left), interval(right)
    return high < least or largest < low

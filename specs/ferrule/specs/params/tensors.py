"""Tensors, and checks of sizes, strides and alignments."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import field
from typing import Final

from ferrule.specs.deferred import dataclass
from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, Float4E2M1FN, as_dtype
from ferrule.specs.expr import (
    Dim,
    NoSize,
    Sym,
    divisibility_of,
    is_dim,
    make,
    sym_int64,
    symbols_of,
)
from ferrule.specs.params.base import REQUIRED, Required, check_name
from ferrule.specs.typeindex import TypeIndex

_TENSORS: Final = frozenset({TypeIndex.DLTENSOR_PTR, TypeIndex.TENSOR})
PACKED_NAME: Final = "float4_e2m1fnx2"
"""The name of two 4-bit floats in a byte, DLPack's float4_e2m1fn with two lanes."""


@dataclass(frozen=True, slots=True)
class Data(NoSize):
    """The address of a tensor's first element, as an argument of a calling convention.

    `offset` is added to the address, in bytes.
    """

    tensor: Tensor
    offset: Dim = 0

    @property
    def instead_of_size(self) -> str:
        """See `NoSize`."""
        return (
            f"the address of {self.tensor.name}: conventions.Apart(x, y) refuses arrays that "
            f"overlap, specs.aligned(x.data, 16) asks for an alignment, x.data.byte_offset(4) is "
            f"what is 4 bytes behind"
        )

    def byte_offset(self, offset: Dim) -> Data:
        """This address plus `offset` bytes."""
        return Data(self.tensor, make("add", self.offset, offset))


@dataclass(frozen=True, slots=True, init=False)
class Tensor(NoSize):
    """A tensor: a DLTensor at the call, of type index 7 or 70.

    `shape` and `strides` hold ints and expressions, strides in elements; without strides the
    tensor is compact and row-major.  `device` is a name of `devices.DEVICE_CODES`, or None for the
    device of the target; `device_id` an index, or None for any.  `align` is in bytes, a power of
    two; by default it is the element size.  `packed`: the elements are 4-bit floats, and each
    element of the DLTensor holds two neighbours along the dim of stride 1; in the DLTensor this dim
    has half of the size given here.  `read_only`: the function does not write to the tensor, so it
    accepts read-only arrays.  `owning`: the argument must be a Tensor object (index 70), which can
    outlive the call.  `exact`: an int8 parameter refuses uint8 tensors, and vice versa.  `expected`
    is the text that messages show as the expected dtype.

    `exact_strides`: the dims whose strides have a meaning in every call, also where the size is 0
    or 1 and no element moves: a function is given the stride as a number.

    `capacity`, for a result that a call allocates: its first size is a symbol that only the call
    tells, and so many rows are allocated; until then the symbol has the value of the capacity.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    strides: tuple[Dim, ...]
    device: str | None
    align: int
    device_id: int | None
    packed: bool
    read_only: bool
    owning: bool
    exact: bool
    expected: str | None = field(compare=False)
    capacity: Dim | None
    exact_strides: tuple[int, ...]

    def __init__(
        self,
        name: str,
        shape: Sequence[Dim],
        dtype: DType | str,
        *,
        strides: Sequence[Dim] | None = None,
        contiguous: bool | None = None,
        device: str | None = None,
        device_id: int | None = None,
        align: int | None = None,
        read_only: bool = False,
        owning: bool = False,
        packed: bool | None = None,
        exact: bool = False,
        capacity: Dim | None = None,
        exact_strides: Sequence[int] = (),
    ) -> None:
        """Without strides, `contiguous=False` means any strides, and `True` compact ones."""
        put = object.__setattr__
        put(self, "name", check_name(name))
        put(self, "shape", check_dims("shape", shape))
        pairs = isinstance(dtype, str) and dtype == PACKED_NAME
        put(self, "packed", pairs if packed is None else packed)
        put(self, "dtype", Float4E2M1FN if pairs else as_dtype(dtype))
        put(self, "strides", _chosen_strides(self.shape, strides, contiguous))
        put(self, "device", None if device is None else as_device_type(device))
        put(self, "device_id", None if device_id is None else check_index(device_id))
        put(self, "align", check_alignment(self.dtype, align))
        put(self, "read_only", bool(read_only))
        put(self, "owning", bool(owning))
        put(self, "exact", bool(exact))
        put(self, "expected", None)
        put(self, "capacity", None if capacity is None else check_capacity(self, capacity))
        put(self, "exact_strides", check_axes(self, exact_strides))
        if self.packed:
            check_packed(self)

    @property
    def data(self) -> Data:
        """The address of the first element, for calling conventions."""
        return Data(self)

    def chosen(self, *, exact: bool, expected: str | None) -> Tensor:
        """The same tensor as one of several candidates that differ in their dtypes."""
        copied = copy(self)
        object.__setattr__(copied, "exact", exact)
        object.__setattr__(copied, "expected", expected)
        return copied

    @property
    def byte_strides(self) -> tuple[Dim, ...]:
        """The strides in bytes.  Raises ValueError for elements of less than a byte."""
        if self.dtype.bits % 8:
            raise ValueError(f"{self.name}: strides of {self.dtype.name} are no whole bytes")
        return tuple(make("mul", stride, self.dtype.itemsize) for stride in self.strides)

    @property
    def instead_of_size(self) -> str:
        """See `NoSize`."""
        return f"the tensor {self.name}: its sizes are its .shape, .numel and .nbytes"

    @property
    def numel(self) -> Dim:
        """The number of elements."""
        count: Dim = 1
        for size in self.shape:
            count = make("mul", count, size)
        return count

    @property
    def nbytes(self) -> Dim:
        """The bytes that the elements take in a compact tensor."""
        if self.dtype.bits % 8 == 0:
            return make("mul", self.numel, self.dtype.itemsize)
        return make("ceildiv", make("mul", self.numel, self.dtype.bits), 8)

    @property
    def default(self) -> Required:
        """A tensor has no default."""
        return REQUIRED

    @property
    def indices(self) -> frozenset[int]:
        """The type indices of the values that it takes."""
        return frozenset({TypeIndex.TENSOR} if self.owning else _TENSORS)


def check_dims(what: str, dims: Sequence[Dim], *, signed: bool = False) -> tuple[Dim, ...]:
    """Sizes or strides as a tuple.  TypeError for other types, ValueError for other numbers."""
    if isinstance(dims, (str, bytes)) or not isinstance(dims, Sequence):
        raise TypeError(f"{what} must be a tuple of ints and symbolic ints, but got {dims!r}")
    for i, dim in enumerate(dims):
        if not is_dim(dim):
            raise TypeError(f"{what}[{i}] must be an int or a symbolic int, but got {dim!r}")
        if isinstance(dim, int) and dim < 0 and not signed:
            raise ValueError(f"{what}[{i}] must not be negative, but got {dim}")
        if isinstance(dim, int) and not -(1 << 63) <= dim < 1 << 63:
            raise ValueError(f"{what}[{i}] must fit 64 bits, but got {dim}")
    return tuple(dims)


def check_axes(tensor: Tensor, axes: Sequence[int]) -> tuple[int, ...]:
    """Dims of a tensor, in order.  TypeError for what are no ints, ValueError for others."""
    rank = len(tensor.shape)
    if any(isinstance(axis, bool) or not isinstance(axis, int) for axis in axes):
        raise TypeError(f"{tensor.name}: exact_strides must be dims as ints, but got {axes!r}")
    if not all(0 <= axis < rank for axis in axes):
        raise ValueError(
            f"{tensor.name}: exact_strides must be dims from 0 to {rank - 1}, but got {axes!r}"
        )
    return tuple(sorted(set(axes)))


def check_alignment(dtype: DType, align: int | None) -> int:
    """An alignment in bytes.  Raises ValueError unless it is a power of two from 1 to 4096."""
    if align is None:
        return dtype.itemsize
    if isinstance(align, bool) or not isinstance(align, int):
        raise TypeError(f"alignment must be an int of bytes, but got {align!r}")
    if not 1 <= align <= 4096 or align & (align - 1):
        raise ValueError(f"alignment must be a power of two from 1 to 4096, but got {align}")
    return align


def check_capacity(tensor: Tensor, capacity: Dim) -> Dim:
    """A capacity.  TypeError for what is no size; ValueError for a negative one, and for a tensor
    whose first size is no symbol, or that is not compact and row-major."""
    name = tensor.name
    if not is_dim(capacity):
        raise TypeError(f"{name}: capacity must be an int or a symbolic int, but got {capacity!r}")
    if isinstance(capacity, int) and not 0 <= capacity < 1 << 63:
        raise ValueError(f"{name}: capacity must be from 0 to 2**63 - 1, but got {capacity}")
    first = tensor.shape[0] if tensor.shape else None
    if not isinstance(first, Sym):
        raise ValueError(
            f"{name}: a tensor with a capacity has a symbol as its first size, which the call "
            f"tells, but it is {'without dims' if first is None else first}"
        )
    if first in {*symbols_of(capacity), *(s for dim in tensor.shape[1:] for s in symbols_of(dim))}:
        raise ValueError(
            f"{name}: the size {first.name or 'that the call tells'} is known after the call, so "
            f"the capacity and the other sizes cannot be made of it"
        )
    if tensor.strides != row_major_strides(tensor.shape):
        raise ValueError(
            f"{name}: a tensor with a capacity is compact and row-major: only then its rows are "
            f"where they are whatever their number is"
        )
    return capacity


def check_index(index: int) -> int:
    """The index of a device.  Raises ValueError unless it is an int from 0 to 2**31 - 1."""
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < 1 << 31:
        raise ValueError(f"a device index must be an int of at least 0, but got {index!r}")
    return index


def _chosen_strides(
    shape: tuple[Dim, ...], strides: Sequence[Dim] | None, contiguous: bool | None
) -> tuple[Dim, ...]:
    if strides is None and contiguous is False:
        return tuple(sym_int64() for _ in shape)
    compact = row_major_strides(shape)
    if strides is None:
        return compact
    checked = check_dims("strides", strides, signed=True)
    if len(checked) != len(shape):
        raise ValueError(
            f"strides must have as many entries as shape, {len(shape)}, but got {len(checked)}"
        )
    if contiguous and checked != compact:
        raise ValueError("a contiguous tensor is compact and row-major: leave strides out")
    return checked


def check_packed(tensor: Tensor) -> None:
    """ValueError unless a packed tensor has a dim of stride 1, and all other strides and its size
    along that dim are known to be even."""
    if tensor.dtype is not Float4E2M1FN:
        raise ValueError(f"{tensor.name}: only 4-bit floats are packed, not {tensor.dtype.name}")
    unit = [axis for axis, stride in enumerate(tensor.strides) if stride == 1]
    if not unit:
        raise ValueError(f"{tensor.name}: a packed tensor needs a dim of stride 1")
    for axis, dim in enumerate((*tensor.shape, *tensor.strides)):
        if axis - len(tensor.shape) in unit or (axis < len(tensor.shape) and axis not in unit[:1]):
            continue
        if divisibility_of(dim) % 2:
            raise ValueError(
                f"{tensor.name}: two elements share a byte, so the size and strides "
                f"of a packed tensor must be even; give the symbol divisibility=2"
            )


def compact_strides(shape: Sequence[Dim], order: Sequence[int]) -> tuple[Dim, ...]:
    """Compact strides; `order[i]` is the rank of dim i, and the lowest rank varies fastest.

    For shape (2, 3, 4): order (0, 1, 2) gives (1, 2, 6), column-major; (2, 1, 0) gives (12, 4, 1).
    Raises ValueError for an order that is not a permutation of the dims, TypeError for other types.
    """
    check_dims("shape", shape)
    if not isinstance(order, Sequence) or not all(isinstance(rank, int) for rank in order):
        raise TypeError(f"stride_order must be a tuple of ints, but got {order!r}")
    if sorted(order) != list(range(len(shape))):
        raise ValueError(
            f"stride_order must be a permutation of {tuple(range(len(shape)))}, but got {order!r}"
        )
    strides: list[Dim] = [1] * len(shape)
    running: Dim = 1
    for axis in sorted(range(len(shape)), key=lambda axis: order[axis]):
        strides[axis] = running
        running = make("mul", running, shape[axis])
    return tuple(strides)


def row_major_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Compact strides of which the last dim's is 1, as in arrays of NumPy and PyTorch."""
    return compact_strides(shape, tuple(reversed(range(len(shape)))))

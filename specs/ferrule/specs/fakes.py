"""Makes fake tensors: example arguments with a dtype, shape, strides and alignment, without data.

The method `__ferrule_spec__(name) -> Param` turns an example into a spec.  `ferrule.compile`
accepts any object that has this method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, Float4E2M1FN, as_dtype
from ferrule.specs.expr import Dim
from ferrule.specs.faketensors import FakeTensor, FreeFakeTensor
from ferrule.specs.free_dtypes import DTypeSym, as_dtype_sym
from ferrule.specs.params import (
    PACKED_NAME,
    AddressSpace,
    Param,
    check_alignment,
    check_dims,
    compact_strides,
)


@runtime_checkable
class SupportsSpec(Protocol):
    """An example argument: an object that can describe its parameter."""

    def __ferrule_spec__(self, name: str) -> Param:
        """The spec of a parameter with this name."""
        ...


def make_fake_tensor(
    dtype: DType | str | DTypeSym | Sequence[DType | str],
    shape: Sequence[Dim],
    stride: Sequence[Dim],
    *,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    device: str | None = None,
    read_only: bool = False,
) -> FakeTensor:
    """A fake tensor with these strides, in elements.

    `dtype`: a dtype or its name.  "float4_e2m1fnx2" means 4-bit floats, two in a byte; shape and
    strides count the single floats.  A tuple of dtypes or a `sym_dtype` is a free dtype: the
    function is compiled for each of them, and the tensors of a call choose.
    `assumed_align`: the alignment of the data pointer in bytes, by default the element size.
    `device`: "cpu", "cuda", …; by default the target's device.
    `memspace`: gmem and generic both mean the memory of that device; other memory is refused.
    `use_32bit_stride`: accepted for compatibility with CuTe, without effect; the width of a
    symbolic stride is the width of its symbol.
    `read_only`: the function does not write to the tensor, so it accepts read-only arrays.

    Raises ValueError or TypeError for a value that a tensor cannot have.
    """
    free = as_dtype_sym(dtype) if isinstance(dtype, (DTypeSym, tuple, list)) else None
    packed = isinstance(dtype, str) and dtype == PACKED_NAME
    first: Any = free.dtypes[0] if free is not None else dtype
    checked = Float4E2M1FN if packed else as_dtype(first)
    sizes = check_dims("shape", shape)
    strides = check_dims("stride", stride, signed=True)
    if len(strides) != len(sizes):
        raise ValueError(
            f"make_fake_tensor: stride must have as many entries as shape, {len(sizes)}, "
            f"but got {len(strides)}"
        )
    _check_memspace(memspace)
    place = None if device is None else as_device_type(device)
    align = check_alignment(checked, assumed_align)
    fake = FakeTensor(checked, sizes, strides, align, place, packed, read_only)
    fake.__ferrule_spec__("tensor")
    if free is not None:
        return FreeFakeTensor.of(fake, free, assumed_align)
    return fake


def make_fake_compact_tensor(
    dtype: DType | str | DTypeSym | Sequence[DType | str],
    shape: Sequence[Dim],
    *,
    stride_order: Sequence[int] | None = None,
    memspace: AddressSpace = AddressSpace.gmem,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    device: str | None = None,
    read_only: bool = False,
) -> FakeTensor:
    """A fake tensor without gaps, **column-major by default**, as in CuTe.

    `stride_order[i]` is the rank of dim i; the dim with the lowest rank varies fastest.  For shape
    (2, 3, 4), order (0, 1, 2) gives strides (1, 2, 6); row-major is
    `tuple(reversed(range(len(shape))))`.

    Raises ValueError for an order that is not a permutation, and the errors of `make_fake_tensor`.
    """
    sizes = check_dims("shape", shape)
    order = tuple(range(len(sizes))) if stride_order is None else stride_order
    return make_fake_tensor(
        dtype,
        sizes,
        compact_strides(sizes, order),
        memspace=memspace,
        assumed_align=assumed_align,
        device=device,
        read_only=read_only,
    )


def row_major(
    shape: Sequence[Dim],
    dtype: DType | str | DTypeSym | Sequence[DType | str],
    **facts: Any,
) -> FakeTensor:
    """A fake tensor without gaps, row-major, as arrays of NumPy and PyTorch are: `fe.row_major((m,
    n), "float32")`, or `fe.row_major((m, n), x.dtype)`.

    `facts` are the keywords of `make_fake_compact_tensor`, without `stride_order`; so are its
    errors.
    """
    if "stride_order" in facts:
        raise TypeError("row_major: the order is row-major; make_fake_compact_tensor takes others")
    sizes = check_dims("shape", shape)
    order = tuple(reversed(range(len(sizes))))
    return make_fake_compact_tensor(dtype, sizes, stride_order=order, **facts)


def _check_memspace(memspace: AddressSpace) -> None:
    if not isinstance(memspace, AddressSpace):
        raise TypeError(f"memspace must be an AddressSpace, but got {memspace!r}")
    if memspace not in (AddressSpace.gmem, AddressSpace.generic):
        raise ValueError(
            f"memspace must be gmem or generic: no argument of a call is in {memspace.value}"
        )

"""Makes fake tensors: example arguments with a dtype, shape, strides and alignment, without data.

The method `__ferrule_spec__(name) -> Param` turns an example into a spec.  `ferrule.compile`
accepts any object that has this method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, fields
from typing import Any, NoReturn, Protocol, runtime_checkable

from ferrule.specs.deferred import dataclass
from ferrule.specs.devices import as_device_type
from ferrule.specs.dtypes import DType, Float4E2M1FN, Int8, Uint8, as_dtype
from ferrule.specs.expr import Dim
from ferrule.specs.free_dtypes import DTypeSym, as_dtype_sym
from ferrule.specs.params import (
    PACKED_NAME,
    AddressSpace,
    Param,
    Tensor,
    check_alignment,
    check_dims,
    compact_strides,
)


@dataclass(frozen=True, slots=True)
class FakeTensor:
    """A tensor without data, made by `make_fake_tensor` and `make_fake_compact_tensor`.

    `device` is a name of a device type, or None for the target's device.  `packed`: two elements
    share a byte, and `shape` counts elements.  To read or write elements is a TypeError.
    """

    dtype: DType
    shape: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    assumed_align: int
    device: str | None = None
    packed: bool = False
    read_only: bool = False

    @property
    def element_type(self) -> DType:
        """The dtype, under CuTe's name."""
        return self.dtype

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def memspace(self) -> AddressSpace:
        """Where the elements are: generic for a tensor of the CPU, else global memory."""
        return AddressSpace.generic if self.device == "cpu" else AddressSpace.gmem

    @property
    def leading_dim(self) -> int | None:
        """The dim with stride 1 and a size other than 1; None if there is none."""
        pairs = enumerate(zip(self.shape, self.stride, strict=True))
        return next((i for i, (size, step) in pairs if step == 1 and size != 1), None)

    def __ferrule_spec__(self, name: str) -> Tensor:
        return Tensor(
            name,
            self.shape,
            self.dtype,
            strides=self.stride,
            device=self.device,
            align=self.assumed_align,
            read_only=self.read_only,
            packed=self.packed,
        )

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"a fake tensor has no data: it cannot be {what}. It stands for a tensor while "
            f"compiling; give the compiled function a real one"
        )

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse("indexed")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        self._refuse("written")

    def __iter__(self) -> NoReturn:
        self._refuse("iterated")

    def __len__(self) -> NoReturn:
        self._refuse("measured with len(); its sizes are in .shape")

    def __bool__(self) -> NoReturn:
        self._refuse("used as a truth value")

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("made into an array")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("exchanged through DLPack")

    def __dlpack_device__(self) -> NoReturn:
        self._refuse("exchanged through DLPack")

    def data_ptr(self) -> NoReturn:
        """A TypeError: there is no data to point to."""
        self._refuse("asked for its data pointer")


@dataclass(frozen=True, slots=True)
class FreeFakeTensor(FakeTensor):
    """A fake tensor whose dtype is free; `dtype` is the first one of the list.

    `given_align` is the alignment that the user gave; None means the element size.
    """

    symbol: DTypeSym = field(kw_only=True)
    given_align: int | None = field(kw_only=True, default=None)

    @classmethod
    def of(cls, fake: FakeTensor, symbol: DTypeSym, align: int | None) -> FreeFakeTensor:
        """Make a fake tensor's dtype free; `align` is the alignment that the user gave, or None."""
        same = {each.name: getattr(fake, each.name) for each in fields(FakeTensor)}
        return cls(**same, symbol=symbol, given_align=align)

    def with_dtype(self, dtype: DType, expected: str | None = None) -> FakeTensor:
        """The tensor with one of its dtypes; messages show `expected` instead of this dtype."""
        align = dtype.itemsize if self.given_align is None else self.given_align
        return ChosenFakeTensor(
            dtype,
            self.shape,
            self.stride,
            align,
            self.device,
            self.packed,
            self.read_only,
            exact={Int8, Uint8} <= set(self.symbol.dtypes),
            expected=expected,
        )

    def __ferrule_spec__(self, name: str) -> Tensor:
        raise ValueError(
            "its dtype is free, which stands for several: only ferrule.compile takes it, as an "
            "argument or inside of a tuple or dataclass"
        )


@dataclass(frozen=True, slots=True)
class ChosenFakeTensor(FakeTensor):
    """A fake tensor after the choice of its dtype; see `params.Tensor` for the fields."""

    exact: bool = field(kw_only=True, default=False)
    expected: str | None = field(kw_only=True, default=None)

    def __ferrule_spec__(self, name: str) -> Tensor:
        spec = FakeTensor.__ferrule_spec__(self, name)
        return spec.chosen(exact=self.exact, expected=self.expected)


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

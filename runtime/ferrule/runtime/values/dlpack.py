"""Real tensors as examples of arguments: `tensor_spec` and `from_dlpack`.

`tensor_spec` makes a parameter with the shape, strides, dtype and device of this tensor.
`from_dlpack` wraps a tensor; methods of the wrapper make sizes dynamic, so that they can vary from
call to call. Both accept each object that supports DLPack, and read-only arrays. No data is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import tvm_ffi

from ferrule import specs
from ferrule.runtime.values.foreign import is_fake
from ferrule.runtime.values.views import OBJECT_HEADER, DLTensor, View, fake_view, view_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.params import AddressSpace, check_alignment
from ferrule.specs.text import kind_text

_INT32_MAX: Final = (1 << 31) - 1


def tensor_spec(name: str, tensor: Any) -> specs.Tensor:
    """The parameter for exactly the shape, strides, dtype and device type of this tensor.

    It is read-only if the tensor is read-only. TypeError for a tensor that DLPack does not export;
    ValueError for data that is not aligned to its element size.
    """
    view = view_of(tensor.tensor if isinstance(tensor, DLPackTensor) else tensor)
    view.check_align(view.dtype.itemsize)
    return view.spec(name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DLPackTensor:
    """A tensor and the fixed parts of its layout; made by `from_dlpack`, changed by its methods.

    It replaces the tensor as an example and as an argument. `order`: the dims from the outermost to
    the innermost, if a caller gave an order.
    """

    tensor: Any
    view: View
    element_type: specs.DType
    shape: tuple[specs.Dim, ...]
    stride: tuple[specs.Dim, ...]
    assumed_align: int
    use_32bit_stride: bool = False
    order: tuple[int, ...] | None = None

    @property
    def leading_dim(self) -> int | None:
        """The dim with stride 1: the only one, or the only one whose size is not 1; None without
        one.  ValueError if it is ambiguous."""
        return self._leading(None)

    def with_element_type(self, element_type: specs.DType) -> DLPackTensor:
        """The same memory with elements of another dtype of the same size: of floats of 8 bits
        that are stored as bytes.  TypeError for a dtype of another size."""
        if element_type is self.element_type:
            return self
        if element_type.bits != self.element_type.bits:
            raise TypeError(
                f"expected a dtype of {self.element_type.bits} bits for elements of "
                f"{self.element_type.name}, but got {element_type.name}"
            )
        held = _recast(self.view.tensor, element_type)
        view = replace(self.view, tensor=held, dtype=element_type)
        return replace(self, tensor=held, view=view, element_type=element_type)

    @property
    def memspace(self) -> AddressSpace:
        """Generic on the CPU, global memory elsewhere."""
        return AddressSpace.generic if self.view.device == "cpu" else AddressSpace.gmem

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> DLPackTensor:
        """A copy with symbols for all sizes and strides; strides of 0 and the leading stride stay.

        The leading dim has the constant stride 1. By default it is the only dim with stride 1, or
        the only one among the dims whose size is not 1. If no dim has stride 1, every stride is a
        symbol. ValueError if the leading dim is ambiguous, or if `leading_dim` has another stride.
        """
        self._check_32bit()
        leading = self._leading(leading_dim)
        even = 2 if self.view.packed else 1
        width = 32 if self.use_32bit_stride else 64
        sizes = [
            _size_symbol(size, even if axis == leading else 1)
            for axis, size in enumerate(self.view.shape)
        ]
        strides: list[specs.Dim] = [
            stride if stride == 0 or axis == leading else specs.sym_int(width, divisibility=even)
            for axis, stride in enumerate(self.view.strides)
        ]
        return replace(self, shape=tuple(sizes), stride=tuple(strides))

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1
    ) -> DLPackTensor:
        """A copy with a symbol for the size of the dim `mode`; strides are computed from the sizes.

        `stride_order`: the dims from the outermost to the innermost, like torch's `dim_order()`; by
        default the dims by descending strides. ValueError for a tensor that is not compact, an
        order that contradicts the strides or is ambiguous, and a size that `divisibility` does not
        divide.
        """
        self._check_32bit()
        ndim = len(self.shape)
        if isinstance(mode, bool) or not isinstance(mode, int) or not 0 <= mode < ndim:
            raise ValueError(f"mode must be in [0, {ndim}), but got {mode!r}")
        order = self._given_order(stride_order) or _deduced_order(self.view, mode)
        _check_compact(self.view, order)
        symbol = _size_symbol(self.view.shape[mode], divisibility)
        if self.view.shape[mode] % divisibility:
            raise ValueError(
                f"the size {self.view.shape[mode]} of mode {mode} is not divisible by "
                f"{divisibility}"
            )
        sizes = tuple(symbol if axis == mode else dim for axis, dim in enumerate(self.shape))
        strides = specs.compact_strides(sizes, _ranks(order))
        kept = self.order if stride_order is None else order
        made = replace(self, shape=sizes, stride=strides, order=kept)
        made.__ferrule_spec__("tensor")
        return made

    def __ferrule_spec__(self, name: str) -> specs.Tensor:
        return specs.Tensor(
            name,
            self.shape,
            self.element_type,
            strides=self.stride,
            device=self.view.device,
            align=self.assumed_align,
            read_only=self.view.read_only,
            packed=self.view.packed,
        )

    def __tvm_ffi_object__(self) -> Any:
        if self.view.read_only:
            raise BufferError("the tensor is an array that cannot be written")
        return self.view.tensor

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()

    def __repr__(self) -> str:
        text = kind_text(self.__ferrule_spec__("tensor"), {}, full=True)
        return f"<ferrule.runtime.DLPackTensor {text} at {self.view.address:#x}>"

    def _check_32bit(self) -> None:
        reach = sum(
            (n - 1) * abs(s) for n, s in zip(self.view.shape, self.view.strides, strict=True)
        )
        if self.use_32bit_stride and reach > _INT32_MAX:
            raise ValueError(
                f"a tensor with shape {self.view.shape} and strides {self.view.strides} can "
                f"overflow 32 bits: leave use_32bit_stride out"
            )

    def _leading(self, wanted: int | None) -> int | None:
        shape, strides = self.view.shape, self.view.strides
        if wanted is not None:
            return _checked_leading(wanted, strides)
        unit = [axis for axis, stride in enumerate(strides) if stride == 1]
        if len(unit) > 1:
            unit = [axis for axis in unit if shape[axis] > 1]
            if len(unit) != 1:
                raise ValueError(
                    f"the leading dim cannot be told from shape {shape} and strides {strides}: "
                    f"give leading_dim"
                )
        return unit[0] if unit else None

    def _given_order(self, given: Sequence[int] | None) -> tuple[int, ...] | None:
        if given is None:
            return self.order
        if not isinstance(given, Sequence) or not all(isinstance(rank, int) for rank in given):
            raise TypeError(f"stride_order must be a tuple of ints, but got {given!r}")
        order = tuple(given)
        if sorted(order) != list(range(len(self.shape))):
            raise ValueError(
                f"stride_order must be a permutation of {tuple(range(len(self.shape)))}, "
                f"but got {order}"
            )
        if self.order not in (None, order):
            raise ValueError(f"stride_order was {self.order} before, but is {order} now")
        return order


def _recast(tensor: Any, dtype: specs.DType) -> Any:
    """Another tensor of tvm-ffi on the same memory, whose elements are said to be of this dtype."""
    held = tvm_ffi.from_dlpack(tensor)
    DLTensor.from_address(held.__chandle__() + OBJECT_HEADER).dtype = dtype.dlpack
    return held


def _size_symbol(size: int, divisibility: int) -> specs.Sym:
    return specs.sym_int(32 if size <= _INT32_MAX else 64, divisibility=divisibility)


def _checked_leading(leading: int, strides: tuple[int, ...]) -> int:
    ndim = len(strides)
    if isinstance(leading, bool) or not isinstance(leading, int) or not -ndim <= leading < ndim:
        raise ValueError(f"leading_dim must be in [{-ndim}, {ndim}), but got {leading!r}")
    if strides[leading] != 1:
        raise ValueError(
            f"strides[leading_dim] must be 1, but strides[{leading}] of {strides} is "
            f"{strides[leading]}"
        )
    return leading % ndim


def _deduced_order(view: View, mode: int) -> tuple[int, ...]:
    """The dims by descending strides; ValueError if the position of `mode` is ambiguous."""
    strides = view.strides
    if strides.count(1) > 1 or strides.count(strides[mode]) > 1:
        raise ValueError(
            f"the order of the dims cannot be told from shape {view.shape} and strides "
            f"{strides}: give stride_order"
        )
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def _ranks(order: tuple[int, ...]) -> tuple[int, ...]:
    """The rank of each dim: the number of dims inside it."""
    return tuple(len(order) - 1 - order.index(axis) for axis in range(len(order)))


def _check_compact(view: View, order: tuple[int, ...]) -> None:
    wanted = specs.compact_strides(view.shape, _ranks(order))
    pairs = zip(view.shape, view.strides, wanted, strict=True)
    if 0 in view.shape or all(size == 1 or stride == want for size, stride, want in pairs):
        return
    raise ValueError(
        f"a tensor with shape {view.shape} and strides {view.strides} is not compact in the "
        f"order {order}, that is with strides {wanted}"
    )


def from_dlpack(
    tensor: Any,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    *,
    enable_tvm_ffi: bool = False,
    force_tf32: bool = False,
) -> DLPackTensor:
    """A tensor as an example with a fixed layout; methods of the result make sizes dynamic.

    `assumed_align`: the alignment of each call's data in bytes, by default the element size.
    `use_32bit_stride`: symbols of strides have 32 bits. `enable_tvm_ffi` has no effect, it is there
    for compatibility with CuTe: every compiled function is a TVM-FFI function. `force_tf32`: the
    elements are TFloat32. A fake tensor of torch is an example, too, and no argument.

    TypeError for a tensor that DLPack does not export; ValueError for data that is not aligned, and
    for `force_tf32` with elements that are not float32.
    """
    view = fake_view(tensor) if is_fake(tensor) else view_of(tensor)
    align = check_alignment(view.dtype, assumed_align)
    view.check_align(align)
    dtype = _as_tf32(view.dtype) if force_tf32 else view.dtype
    return DLPackTensor(tensor, view, dtype, view.shape, view.strides, align, use_32bit_stride)


def _as_tf32(dtype: specs.DType) -> specs.DType:
    if dtype is not specs.Float32:
        raise ValueError(f"force_tf32 takes a float32 tensor, but the elements are {dtype.name}")
    return as_dtype("tfloat32")

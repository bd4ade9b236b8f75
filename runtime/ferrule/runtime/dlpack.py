"""Real tensors as examples: what DLPack tells of a tensor, and `from_dlpack`, which holds one.

`tensor_spec` says what parameter stands for exactly this tensor: its shape, strides, dtype and
device. `from_dlpack` does the same and can be told which sizes vary from call to call. Both take
whatever speaks DLPack, arrays that cannot be written too; no data is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ferrule import specs
from ferrule.runtime.views import View, view_of
from ferrule.specs.dtypes import as_dtype
from ferrule.specs.params import AddressSpace, check_alignment
from ferrule.specs.text import kind_text

_INT32_MAX: Final = (1 << 31) - 1


def tensor_spec(name: str, tensor: Any) -> specs.Tensor:
    """The parameter that takes exactly this tensor: its shape, strides, dtype and device type.

    It is read-only where the tensor is an array that cannot be written. TypeError for what DLPack
    does not give out; ValueError for data that is not aligned to its element size.
    """
    view = view_of(tensor.tensor if isinstance(tensor, DLPackTensor) else tensor)
    view.check_align(view.dtype.itemsize)
    return view.spec(name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DLPackTensor:
    """A tensor and what of its layout is fixed; made by `from_dlpack`, changed by its methods.

    It can stand wherever a tensor can, as an example and in a call. `order`: the dims from the
    outermost to the innermost, where somebody has said so.
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
    def memspace(self) -> AddressSpace:
        """Generic on the CPU, global memory elsewhere."""
        return AddressSpace.generic if self.view.device == "cpu" else AddressSpace.gmem

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> DLPackTensor:
        """The same with symbols for all sizes and strides, but for those that are 0 or leading.

        The stride of the leading dim is 1 and stays so. It is found where one dim alone has the
        stride 1, or one alone of those whose size is not 1; where no dim has it, every stride is a
        symbol. ValueError where it cannot be told, or `leading_dim` has another stride.
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
        """The same with a symbol for the size of the dim `mode`; strides follow from the sizes.

        `stride_order`: the dims from the outermost to the innermost, as torch's `dim_order()`
        gives them; strides in descending order by default. ValueError for a tensor with gaps, an
        order that its strides contradict or do not tell, and a size that is no multiple.
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
    """The dims by descending strides; ValueError where that leaves open where `mode` stands."""
    strides = view.strides
    if strides.count(1) > 1 or strides.count(strides[mode]) > 1:
        raise ValueError(
            f"the order of the dims cannot be told from shape {view.shape} and strides "
            f"{strides}: give stride_order"
        )
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


def _ranks(order: tuple[int, ...]) -> tuple[int, ...]:
    """Of each dim how many are inside it."""
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
    """A tensor as an example whose layout is fixed, until a method of the result says otherwise.

    `assumed_align`: bytes that every call's data is a multiple of, the element size by default.
    `use_32bit_stride`: symbols of strides have 32 bits. `enable_tvm_ffi` is taken for CuTe's sake:
    every compiled function is a TVM-FFI function. `force_tf32`: elements are TFloat32.

    TypeError for what DLPack does not give out; ValueError for data that is not aligned, and for
    `force_tf32` with elements that are no float32.
    """
    view = view_of(tensor)
    align = check_alignment(view.dtype, assumed_align)
    view.check_align(align)
    dtype = _as_tf32(view.dtype) if force_tf32 else view.dtype
    return DLPackTensor(tensor, view, dtype, view.shape, view.strides, align, use_32bit_stride)


def _as_tf32(dtype: specs.DType) -> specs.DType:
    if dtype is not specs.Float32:
        raise ValueError(f"force_tf32 takes a float32 tensor, but the elements are {dtype.name}")
    return as_dtype("tfloat32")

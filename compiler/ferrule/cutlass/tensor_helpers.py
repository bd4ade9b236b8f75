"""`cutlass.utils.tensor_helpers` of CuTe DSL's programs: tensors of PyTorch with 8-bit floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ferrule.cutlass import names
from ferrule.cutlass.torch import dtype as torch_dtype
from ferrule.cutlass.utils import is_fp8_dtype as is_fp8_dtype
from ferrule.specs import DType

if TYPE_CHECKING:
    import torch


def create_cute_tensor_for_fp8(
    storage_tensor: torch.Tensor,
    dtype: DType,
    leading_dim: int,
    source_f32_tensor: torch.Tensor | None = None,
) -> Any:
    """The tensor as an argument whose sizes and strides can change but for the leading stride, 1.

    Elements of a float of 8 bits are the bytes of `storage_tensor`; the numbers of
    `source_f32_tensor` are converted into them.
    """
    from ferrule.cutlass.cute.runtime import from_dlpack

    kind: Any = torch_dtype(dtype)
    if is_fp8_dtype(dtype):
        storage_tensor = storage_tensor.view(kind)
        if source_f32_tensor is not None:
            storage_tensor.copy_(source_f32_tensor)
    elif storage_tensor.dtype != kind:
        raise TypeError(
            f"create_cute_tensor_for_fp8: the tensor has elements of {storage_tensor.dtype}, "
            f"expected {kind} for {dtype.__name__}"
        )
    return from_dlpack(storage_tensor, assumed_align=16).mark_layout_dynamic(leading_dim)


__getattr__ = names.resolver("cutlass.utils.tensor_helpers")

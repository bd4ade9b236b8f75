"""`cutlass.cute.runtime` of CuTe DSL's programs: fake tensors, tensors, modules.

A fake tensor of Float4E2M1FN stands for PyTorch's, which have two numbers in an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ferrule import runtime, specs
from ferrule.cutlass import names
from ferrule.runtime.values.dlpack import DLPackTensor
from ferrule.specs.params.tensors import PACKED_NAME


def _packed(dtype: Any) -> Any:
    return PACKED_NAME if dtype is specs.Float4E2M1FN else dtype


def make_fake_tensor(dtype: Any, shape: Sequence[Any], stride: Sequence[Any], **more: Any) -> Any:
    """`fe.make_fake_tensor`."""
    return specs.make_fake_tensor(_packed(dtype), shape, stride, **more)


def make_fake_compact_tensor(dtype: Any, shape: Sequence[Any], **more: Any) -> Any:
    """`fe.make_fake_compact_tensor`."""
    return specs.make_fake_compact_tensor(_packed(dtype), shape, **more)


class MarkedTensor(DLPackTensor):
    """A tensor as an example: its methods change it, and return it."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "element_type":
            raise AttributeError(
                f"{name} of a tensor cannot be assigned; element_type can, and "
                "mark_layout_dynamic() makes sizes dynamic"
            )
        self._become(self.with_element_type(value))

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> MarkedTensor:
        """Makes all sizes and strides symbols, but for strides of 0 and the leading stride."""
        return self._become(DLPackTensor.mark_layout_dynamic(self, leading_dim))

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1
    ) -> MarkedTensor:
        """Makes the size of a dim a symbol; strides are computed from the sizes."""
        return self._become(
            DLPackTensor.mark_compact_shape_dynamic(self, mode, stride_order, divisibility)
        )

    def _become(self, other: DLPackTensor) -> MarkedTensor:
        for field in fields(DLPackTensor):
            object.__setattr__(self, field.name, getattr(other, field.name))
        return self


def from_dlpack(tensor: Any, *args: Any, **options: Any) -> MarkedTensor:
    """`fe.from_dlpack`, of which a later call of a method changes the tensor itself."""
    made = runtime.from_dlpack(tensor, *args, **options)
    return MarkedTensor(*(getattr(made, field.name) for field in fields(DLPackTensor)))


__getattr__ = names.resolver("cutlass.cute.runtime")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cute.runtime")

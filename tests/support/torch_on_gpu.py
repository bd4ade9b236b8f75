"""Tensors of PyTorch on an emulated GPU: the same dtype, strides and offset, and back again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from cuda_device import data_ptr, forged_at

import ferrule as fe

DLPACK_CODES = {torch.bfloat16: 4, torch.float16: 2, torch.float32: 2, torch.float64: 2}
DLPACK_CODES |= {
    torch.int64: 0,
    torch.int32: 0,
    torch.int8: 0,
    torch.uint8: 1,
    torch.float8_e4m3fn: 10,
}
"""The kinds of dtypes, as DLPack numbers them."""


@dataclass(frozen=True)
class OnGpu:
    """A tensor of the CPU and its copy on the GPU; `view` is what a compiled function takes."""

    host: torch.Tensor
    memory: Any
    view: Any

    @classmethod
    def of(cls, host: torch.Tensor) -> OnGpu:
        """The whole storage is copied, so that what is around the tensor can be looked at."""
        flat = torch.empty(0, dtype=host.dtype).set_(host.untyped_storage())
        memory = fe.cuda.array(flat if len(flat) else torch.full((1,), 7, dtype=host.dtype))
        size = host.element_size()
        kind = DLPACK_CODES[host.dtype] | 8 * size << 8 | 1 << 16
        address = data_ptr(memory) + size * host.storage_offset()
        view = forged_at(address, tuple(host.shape), tuple(host.stride()), kind)
        return cls(host, memory, view)

    def back(self) -> torch.Tensor:
        """What is in it now, in a tensor of the CPU."""
        flat = torch.empty(tuple(self.memory.shape), dtype=self.host.dtype)
        fe.cuda.copy(flat, self.memory)
        sizes, strides = self.host.shape, self.host.stride()
        return flat.as_strided(sizes, strides, self.host.storage_offset())

    def around(self) -> torch.Tensor:
        """The elements of the storage that are not the tensor's."""
        flat = torch.empty(tuple(self.memory.shape), dtype=self.host.dtype)
        fe.cuda.copy(flat, self.memory)
        inside = torch.zeros(flat.shape, dtype=torch.bool)
        sizes, strides = self.host.shape, self.host.stride()
        inside.as_strided(sizes, strides, self.host.storage_offset())[:] = True
        return flat[~inside]


def call(function: Any, *arguments: Any) -> None:
    """A call with the views of tensors, and everything else as it is."""
    function(*(each.view if isinstance(each, OnGpu) else each for each in arguments))


errors: list[float] = []
"""The largest error of each comparison since the list was cleared, in units in the last place."""


def near(found: torch.Tensor, wanted: torch.Tensor, ulps: float = 1.0, around: float = 0.1) -> bool:
    """Whether two tensors are equal but for rounding; NaN is equal to NaN.

    `wanted` is exact or nearly so, of float64; the bound is so many units in the last place of
    the dtype that was found, and for float32, where sums have an order, 1e-5 beside that. Numbers
    whose absolute value is below `around` are as far from what is wanted as that.
    """
    unit = torch.finfo(found.dtype).eps
    exact = wanted.double()
    slack = (1e-5 if found.dtype == torch.float32 else 0.0) + ulps * unit
    apart = (found.double() - exact).abs() / (exact.abs().clamp(min=around) * unit)
    errors.append(_largest(apart))
    return torch.allclose(found.double(), exact, rtol=slack, atol=slack * around, equal_nan=True)


def _largest(numbers: torch.Tensor) -> float:
    """Of the finite ones; 0 without any."""
    finite = numbers[numbers.isfinite()]
    return finite.max().item() if len(finite) else 0.0

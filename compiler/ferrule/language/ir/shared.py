"""Shared memory of kernels: the offsets of its static parts, and its size."""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType

_UNBOUNDED: Final = 1 << 32
"""More than any shared memory: `get_dyn_smem` has a size that is never reached."""
LEAST_ALIGN: Final = 128
"""The least alignment of shared memory on a CPU: two cache lines, so that blocks share none."""


def size_of(type_: TensorType) -> int:
    """The bytes from the first element to the end of the last, of constant sizes."""
    count = 1
    for size, stride in zip(type_.shape, type_.strides, strict=True):
        assert isinstance(size, int) and isinstance(stride, int), "a Shared has constant sizes"
        count += (size - 1) * stride
    return count * type_.dtype.itemsize


def offsets(kernel: ops.Function) -> tuple[dict[ops.Value, int], int]:
    """The offset of each `Shared` of a kernel that is not extra, in the order of the text, and the
    end of the last one."""
    found: dict[ops.Value, int] = {}
    end = 0
    for shared in kernel.facts.each(ops.Shared):
        if shared.extra:
            continue
        type_ = shared.result.tensor
        found[shared.result] = after(end, type_.align)
        end = found[shared.result] + size_of(type_)
    return found, end


def alignment(kernel: ops.Function) -> int:
    """The alignment of a kernel's shared memory as one block of memory on a CPU."""
    if uses_dynamic(kernel):
        return ops.MAX_SHARED_ALIGN
    aligns = (op.result.tensor.align for op in kernel.facts.each(ops.Shared))
    return max((LEAST_ALIGN, *aligns))


def places(kernel: ops.Function) -> tuple[dict[ops.Value, int], int]:
    """The offset of each tensor in shared memory as one block of memory on a CPU, and the size of
    the static part; the dynamic part follows, aligned as the block is."""
    found: dict[ops.Value, int] = {}
    dynamic: dict[ops.Value, int] = {}
    size = 0
    for op in kernel.facts.ops:
        match op:
            case ops.Shared(result):
                size = after(size, max(16, result.tensor.align))
                found[result] = size
                size += _span(result.tensor)
            case ops.DynamicShared(result, offset):
                dynamic[result] = offset
    size = after(size, alignment(kernel))
    return found | {tensor: size + offset for tensor, offset in dynamic.items()}, size


def _span(type_: TensorType) -> int:
    """The number of bytes that a tensor of constant sizes spans; 0 if it has no elements."""
    return 0 if 0 in type_.shape else size_of(type_)


def after(end: int, align: int) -> int:
    """The first multiple of an alignment from `end` on."""
    return -(-end // align) * align


def uses_dynamic(kernel: ops.Function) -> bool:
    """Whether a kernel uses dynamic shared memory."""
    return kernel.facts.has(ops.DynamicShared)


def dynamic_bytes(kernel: ops.Function) -> int | None:
    """The dynamic shared memory that a kernel needs; None if only the launch knows it."""
    needed = 0
    for op in kernel.facts.each(ops.DynamicShared):
        if not all(isinstance(size, int) for size in op.result.tensor.shape):
            return None
        needed = max(needed, op.offset + size_of(op.result.tensor))
    return needed if needed < _UNBOUNDED else None


def cooperates(kernel: ops.Function) -> bool:
    """Whether the threads of a kernel wait for each other, or share memory."""
    return kernel.facts.has(ops.Shared, ops.DynamicShared, ops.Synchronising)

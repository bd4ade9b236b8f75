"""Addresses and sizes in bytes, as ops of the kernel IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ferrule.language.checks.memory import span
from ferrule.language.checks.shadow import WORDS
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.walk import all_ops
from ferrule.specs import Int64
from ferrule.specs.expr import INT64_MAX

UNKNOWN: Final = 1 << 60
"""Bytes around what is known to be in memory of which no more is known."""


def address(
    b: Builder, tensor: ops.Value, indices: tuple[ops.Value, ...] | None = None
) -> ops.Value:
    """The address of an element, Int64; of the first one without indices."""
    if indices:
        type_ = replace(tensor.tensor, shape=(), strides=(), align=1)
        tensor = b.view(tensor, type_, indices)
    result = ops.Value(Int64, "address")
    b.append(ops.Address(result, tensor))
    return result


def bytes_of(b: Builder, root: ops.Value) -> ops.Value | None:
    """The bytes from the first element of a tensor to the end of its last, if that is known."""
    type_ = root.type
    if not isinstance(type_, TensorType) or type_.shape == (INT64_MAX,):
        return None
    known = span(type_)
    if known is not None:
        return b.constant(Int64, known)
    if any(isinstance(stride, int) and stride < 0 for stride in type_.strides):
        return None
    one, zero = b.constant(Int64, 1), b.constant(Int64, 0)
    count, least = one, one
    for dim, stride in zip(type_.shape, type_.strides, strict=True):
        size = b.size(Int64, dim)
        least = b.binary("min", least, size)
        step = b.binary("mul", b.binary("sub", size, one), b.size(Int64, stride))
        count = b.binary("add", count, step)
    count = b.select(b.compare("gt", least, zero), count, zero)
    return b.binary("mul", count, b.constant(Int64, type_.dtype.itemsize))


# ---- shadows ----


def granule_of(kernel: ops.Function) -> int:
    """The bytes of the smallest element that a kernel has in shared memory."""
    sizes = [
        op.result.type.dtype.itemsize
        for op in all_ops(kernel.body)
        if isinstance(op, (ops.View, ops.Shared, ops.DynamicShared))
        and isinstance(op.result.type, TensorType)
        and op.result.type.is_shared
    ]
    return min(sizes, default=1)


def shadow_start(b: Builder, size: ops.Value) -> ops.Value:
    """Where the shadow of so many bytes of dynamic shared memory begins, behind it."""
    more = b.binary("add", size, b.constant(Int64, 15))
    return b.binary("and", more, b.constant(Int64, -16))


def with_shadow(b: Builder, size: ops.Value, granule: int) -> ops.Value:
    """The bytes of dynamic shared memory and its shadow."""
    granules = b.binary("add", b.binary("floordiv", size, b.constant(Int64, granule)), one(b))
    words = b.binary("mul", granules, b.constant(Int64, 8 * WORDS))
    return b.binary("add", shadow_start(b, size), words)


def one(b: Builder) -> ops.Value:
    """The number 1."""
    return b.constant(Int64, 1)

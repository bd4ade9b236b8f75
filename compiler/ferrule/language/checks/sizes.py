"""Addresses and sizes in bytes, as ops of the kernel IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ferrule.language.checks.memory import reach
from ferrule.language.checks.shadow import WORDS
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import Dim, Int64, Sym
from ferrule.specs.expr import INT64_MAX, Compound

UNKNOWN: Final = 1 << 60
"""The assumed bytes around a known address if the size of its memory is unknown."""


def address(
    b: Builder, tensor: ops.Value, indices: tuple[ops.Value, ...] | None = None
) -> ops.Value:
    """The address of an element, Int64; without indices that of the first one."""
    if indices:
        type_ = replace(tensor.tensor, shape=(), strides=(), align=1)
        tensor = b.view(tensor, type_, indices)
    result = ops.Value(Int64, "address")
    b.append(ops.Address(result, tensor))
    return result


def memory_of(b: Builder, root: ops.Value) -> tuple[ops.Value, ops.Value] | None:
    """The lowest address of a tensor's elements, and the bytes to the end of the highest.

    None if unknown.  If a stride is negative, elements are before the first one.
    """
    type_ = root.type
    if not isinstance(type_, TensorType) or type_.shape == (INT64_MAX,):
        return None
    known = reach(type_)
    if known is None:
        before, size = _reach(b, type_)
    else:
        before = b.constant(Int64, known.before) if known.before else None
        size = b.constant(Int64, known.before + known.behind)
    first = address(b, root)
    return (first if before is None else b.binary("sub", first, before)), size


def _reach(b: Builder, type_: TensorType) -> tuple[ops.Value | None, ops.Value]:
    """The bytes before the first element, if there may be any, and those of all elements."""
    one, zero = b.constant(Int64, 1), b.constant(Int64, 0)
    count, least, before = one, one, None
    for dim, stride in zip(type_.shape, type_.strides, strict=True):
        size = b.size(Int64, dim)
        least = b.binary("min", least, size)
        step = b.binary("mul", b.binary("sub", size, one), b.size(Int64, stride))
        if not _is_forward(stride, type_.shape):
            back = b.binary("max", b.binary("sub", zero, step), zero)
            before = back if before is None else b.binary("add", before, back)
            step = b.binary("max", step, b.binary("sub", zero, step))
        count = b.binary("add", count, step)
    some = b.compare("gt", least, zero)
    itemsize = b.constant(Int64, type_.dtype.itemsize)
    if before is not None:
        before = b.binary("mul", b.select(some, before, zero), itemsize)
    return before, b.binary("mul", b.select(some, count, zero), itemsize)


def _is_forward(stride: Dim, shape: Sequence[Dim]) -> bool:
    """Whether a stride is known to be non-negative: a product of sizes, as in compact tensors."""
    match stride:
        case int():
            return stride >= 0
        case Sym():
            return stride in shape
        case Compound("add" | "mul", lhs, rhs):
            return _is_forward(lhs, shape) and _is_forward(rhs, shape)
    return False


# ---- shadows ----


def granule_of(kernel: ops.Function) -> int:
    """The bytes of a kernel's smallest element in shared memory."""
    sizes = [
        op.result.type.dtype.itemsize
        for op in kernel.facts.ops
        if isinstance(op, (ops.View, ops.Shared, ops.DynamicShared))
        and isinstance(op.result.type, TensorType)
        and op.result.type.is_shared
    ]
    return min(sizes, default=1)


def shadow_start(b: Builder, size: ops.Value) -> ops.Value:
    """The start of the shadow, after this number of bytes of dynamic shared memory."""
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

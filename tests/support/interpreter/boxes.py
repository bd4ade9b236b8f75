"""Copies of boxes of tensors, in the reference interpreter: element by element, by definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ferrule.compiler.cuda.tilings import OobFill, Swizzle
from ferrule.language.ir import ops
from ferrule.specs import Int32, Int64
from interpreter import declared, scalars
from interpreter.mbarriers import Barriers
from interpreter.memory import Memory

_SWIZZLED = {Swizzle.NONE: 0, Swizzle.B32: 1, Swizzle.B64: 3, Swizzle.B128: 7}
"""Which of the bits 7 to 9 of an offset change its bits 4 to 6."""


def run(
    op: ops.TensorCopy,
    values: Mapping[ops.Value, Any],
    shape: Sequence[int],
    strides: Sequence[int],
    barriers: Barriers,
) -> None:
    """Copies a box; nothing for what is fetched ahead, or meant for other blocks."""
    declared.seen("orders")
    if op.descriptor is not None:
        declared.seen("reads", memory=values[op.descriptor])
    meant = op.mask is None or values[op.mask] & 1
    if op.shared is None or not meant:
        return
    tiling, dtype = op.boxes.tiling, op.tensor.tensor.dtype
    begin = [values[each] for each in op.coordinates]
    steps = (1, *tiling.steps[1:])
    counts = [-(-size // step) for size, step in zip(tiling.box, steps, strict=True)]
    for number, outer_first in enumerate(product(*map(range, reversed(counts)))):
        at = list(begin)
        for dim, index in enumerate(reversed(outer_first)):
            at[op.boxes.order[dim]] += index * steps[dim]
        inside = all(0 <= i < n for i, n in zip(at, shape, strict=True))
        place = sum(i * s for i, s in zip(at, strides, strict=True)) * dtype.itemsize
        tensor, shared = values[op.tensor], values[op.shared]
        _element(op, tensor, shared, place if inside else None, number * dtype.itemsize)
    if op.barrier is not None:
        declared.seen("writes", memory=values[op.barrier])
        barriers.at(values[op.barrier]).come(0, tiling.bytes)


def run_map(op: ops.MapOp, values: Mapping[ops.Value, Any]) -> None:
    """Writes or changes a tensor map, 16 Int64: the address, then sizes and strides by dim.

    What a `TensorCopy` moves is known from its own tensor; so what the words are does not matter
    here, only which are read and written.
    """
    if isinstance(op, ops.MapCopy):
        declared.seen("reads")  # the map is a parameter of the kernel
        lane = values[op.lane]
        values[op.target].write(Int32, 4 * lane, lane)
    elif op.kind in ("publish", "acquire"):
        source = values[op.place if op.value is None else op.value]
        words = [source.read(Int64, 8 * at) for at in range(16)]
        if op.kind == "publish":
            for at, word in enumerate(words):
                values[op.place].write(Int64, 8 * at, word)
    else:
        assert op.value is not None, "a field has a value"
        first = {"address": 0, "dim": 1, "stride": 6}[op.kind]
        values[op.place].write(Int64, 8 * (first + op.dim), values[op.value])


def _element(
    op: ops.TensorCopy, tensor: Memory, shared: Memory, place: int | None, offset: int
) -> None:
    """Copies one; `place` is its offset in the tensor, None outside of it."""
    tiling, dtype = op.boxes.tiling, op.tensor.tensor.dtype
    offset ^= (offset >> 7 & _SWIZZLED[tiling.swizzle]) << 4
    if op.kind == "load":
        fill = float("nan") if tiling.oob_fill is OobFill.NAN else 0
        outside = scalars.number(dtype, fill)
        shared.write(dtype, offset, outside if place is None else tensor.read(dtype, place))
    elif place is not None:
        tensor.write(dtype, place, shared.read(dtype, offset))

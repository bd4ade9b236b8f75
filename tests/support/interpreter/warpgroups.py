"""Products of warpgroups in the reference interpreter: elements, by the definition of their place.

A lane brings its fragment of A; A and B in shared memory are read where the figures of PTX's manual
have them, from an allocation that begins at a multiple of 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpgroup_matrices import Layout

from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import ops, tensor_cores
from ferrule.specs import DType, Float32
from interpreter import scalars
from interpreter.memory import Memory


def product(
    op: ops.WarpgroupMma,
    number: int,
    values: Mapping[ops.Value, Any],
    parts: Mapping[int, tuple[Any, ...]],
) -> list[Any]:
    """The elements of D of the thread with this number; `parts` are those of its warp's lanes."""
    warp, lane = divmod(number % 128, 32)
    group, rest = divmod(lane, 4)
    dtype: DType = op.d.tensor.dtype
    found = []
    for position in range(op.columns // 2):
        half, column = position // 2 % 2, 8 * (position // 4) + 2 * rest + position % 2
        row = [_left(op, values, parts, (16 * warp, group, half), k) for k in range(op.depth)]
        of_b = (_shared(op.of_b, op.b, values, column, k) for k in range(op.depth))
        first = values[op.d].read(dtype, position * dtype.itemsize) if values[op.accumulate] else 0
        found.append(_sum(op, first, zip(row, of_b, strict=True)))
    return found


def brought(op: ops.WarpgroupMma, values: Mapping[ops.Value, Any]) -> tuple[Any, ...]:
    """A lane's elements of A, if that is in registers."""
    if op.of_a is not None:
        return ()
    dtype = op.a.tensor.dtype
    count = tensor_cores.fragment_size(op.a)
    return tuple(values[op.a].read(dtype, at * dtype.itemsize) for at in range(count))


def _left(
    op: ops.WarpgroupMma,
    values: Mapping[ops.Value, Any],
    parts: Mapping[int, tuple[Any, ...]],
    place: tuple[int, int, int],
    k: int,
) -> Any:
    start, group, half = place
    if op.of_a is not None:
        return _shared(op.of_a, op.a, values, start + group + 8 * half, k)
    w = tensor_cores.words(op.a)
    quarter, j = divmod(k, 4 * w)
    return parts[4 * group + j // w][(2 * quarter + half) * w + j % w]


def _shared(
    of: SharedMatrix, pointer: ops.Value, values: Mapping[ops.Value, Any], mn: int, k: int
) -> Any:
    memory: Memory = values[pointer]
    dtype = pointer.tensor.dtype
    layout = Layout(memory.first, of.major == "mn", of.swizzle, of.leading, of.stride)
    return memory.read(dtype, layout.place(mn, k, dtype.itemsize) - memory.first)


def _sum(op: ops.WarpgroupMma, first: Any, pairs: Any) -> Any:
    """Floats rounded to float32 at each step, in the order of k; integers wrap."""
    dtype: DType = op.d.tensor.dtype
    sums: DType = Float32 if dtype.kind == "float" else dtype
    total = scalars.cast(dtype, sums, first)
    for left, right in pairs:
        factors = (scalars.cast(f.tensor.dtype, sums, x) for f, x in ((op.a, left), (op.b, right)))
        total = scalars.binary("add", sums, total, scalars.binary("mul", sums, *factors))
    return scalars.cast(sums, dtype, total)

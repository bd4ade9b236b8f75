"""Products of warpgroups in the reference interpreter: elements, by the definition of their place.

A lane brings its fragment of A; A and B in shared memory are read where the figures of PTX's manual
have them, from an allocation that begins at a multiple of 1024 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
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
    depth, sums = range(op.depth), Float32 if dtype.kind == "float" else dtype
    of_a, of_b = (partial(scalars.cast, each.tensor.dtype, sums) for each in (op.a, op.b))

    @cache
    def row(half: int) -> list[Any]:
        return [of_a(_left(op, values, parts, (16 * warp, group, half), k)) for k in depth]

    @cache
    def of_column(column: int) -> list[Any]:
        return [of_b(_shared(op.of_b, op.b, values, column, k)) for k in depth]

    found = []
    for position in range(op.columns // 2):
        half, column = position // 2 % 2, 8 * (position // 4) + 2 * rest + position % 2
        first = values[op.d].read(dtype, position * dtype.itemsize) if values[op.accumulate] else 0
        pairs = zip(row(half), of_column(column), strict=True)
        found.append(_sum(dtype, sums, first, pairs))
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


def _sum(dtype: DType, sums: DType, first: Any, pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Floats rounded to float32 at each step, in the order of k; integers wrap."""
    add, multiply = (scalars.operator_of(name, sums) for name in ("add", "mul"))
    total = scalars.cast(dtype, sums, first)
    for pair in pairs:
        total = add(total, multiply(*pair))
    return scalars.cast(sums, dtype, total)

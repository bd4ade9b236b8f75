"""Matrices that a warp multiplies, in the reference interpreter: whole matrices, by definition.

The elements of all lanes are put where `ferrule.language.ir.tensor_cores` says; then each lane gets
its elements of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from ferrule.language.ir import ops, tensor_cores
from ferrule.specs import DType, Float32
from interpreter import scalars
from interpreter.memory import Memory
from interpreter.stops import Undefined

MatrixOp = ops.Mma | ops.LoadMatrix | ops.StoreMatrix
KINDS: Final = (ops.Mma, ops.LoadMatrix, ops.StoreMatrix)
Matrix = np.ndarray[Any, np.dtype[Any]]


def brought(op: MatrixOp, lane: int, values: Mapping[ops.Value, Any]) -> tuple[Any, ...]:
    """What a lane brings: its elements of A, B and C; or the row that its pointer is to."""
    match op:
        case ops.Mma(_, a, b, c):
            return tuple(_elements(f, values[f], tensor_cores.fragment_size(f)) for f in (a, b, c))
        case ops.LoadMatrix(_, source):
            if lane >= 8 * op.count:
                return ()
            count = tensor_cores.ROW_BYTES // source.tensor.dtype.itemsize
            return tuple(_elements(source, values[source], count))
        case ops.StoreMatrix(_, source):
            count = tensor_cores.fragment_size(source)
            return tuple(_elements(source, values[source], count))


def _elements(tensor: ops.Value, memory: Memory, count: int) -> list[Any]:
    dtype = tensor.tensor.dtype
    return [memory.read(dtype, at * dtype.itemsize) for at in range(count)]


def given(op: MatrixOp, parts: Mapping[int, tuple[Any, ...]]) -> Callable[[int], list[Any]]:
    """The elements that each lane gets, by its number."""
    if len(parts) != ops.WARP_SIZE:
        raise Undefined(f"{len(parts)} lanes take part where matrices need {ops.WARP_SIZE}")
    match op:
        case ops.Mma():
            return partial(_multiplied, op, _whole(op, parts))
        case ops.StoreMatrix():
            return lambda lane: _stored(op, lane, parts)
        case ops.LoadMatrix():
            return lambda lane: _loaded(op, lane, parts)


def _multiplied(op: ops.Mma, whole: tuple[Matrix, Matrix, Matrix], lane: int) -> list[Any]:
    """The elements of the product that a lane has."""
    (a, b, c), (group, rest) = whole, divmod(lane, 4)
    places = [(group + 8 * (i // 2), 2 * rest + i % 2) for i in range(4)]
    return [_sum(op, c[place], a[place[0]], b[:, place[1]]) for place in places]


def _loaded(op: ops.LoadMatrix, lane: int, parts: Mapping[int, tuple[Any, ...]]) -> list[Any]:
    """The elements of the rows of all lanes that a lane gets."""
    (group, rest), w = divmod(lane, 4), tensor_cores.words(op.target)
    found = []
    for matrix in range(op.count):
        rows = [parts[8 * matrix + row] for row in range(8)]
        for at in range(rest * w, rest * w + w):
            found.append(rows[at][group] if op.transposed else rows[group][at])
    return found


def _stored(op: ops.StoreMatrix, lane: int, parts: Mapping[int, tuple[Any, ...]]) -> list[Any]:
    """The row that a lane points to."""
    matrix, row = divmod(lane, 8)
    if matrix >= op.count:
        return []
    w = tensor_cores.words(op.source)
    found = []
    for column in range(tensor_cores.ROW_BYTES // op.source.tensor.dtype.itemsize):
        first, second = (column, row) if op.transposed else (row, column)
        found.append(parts[4 * first + second // w][matrix * w + second % w])
    return found


def _whole(op: ops.Mma, parts: Mapping[int, tuple[Any, ...]]) -> tuple[Matrix, Matrix, Matrix]:
    """A, B and C, where the elements of A and B are of the dtype of the sums."""
    sums = _sums(op)
    of_a, of_b = (partial(scalars.cast, each.tensor.dtype, sums) for each in (op.a, op.b))
    w, depth = tensor_cores.words(op.a), tensor_cores.depth(op)
    a, b, c = (np.zeros(shape, object) for shape in ((16, depth), (depth, 8), (16, 8)))
    for lane, (left, right, added) in parts.items():
        g, t = divmod(lane, 4)
        for i, value in enumerate(left):
            r, j = divmod(i, w)
            a[g + 8 * (r % 2), 4 * w * (r // 2) + t * w + j] = of_a(value)
        for i, value in enumerate(right):
            r, j = divmod(i, w)
            b[4 * w * r + t * w + j, g] = of_b(value)
        for i, value in enumerate(added):
            c[g + 8 * (i // 2), 2 * t + i % 2] = value
    return a, b, c


def _sum(op: ops.Mma, first: Any, row: Sequence[Any], column: Sequence[Any]) -> Any:
    """An element: of floats the sum is rounded at each step, in the order of the targets that
    compute it so; of integers it wraps."""
    dtype, sums = op.d.tensor.dtype, _sums(op)
    add, multiply = (scalars.operator_of(name, sums) for name in ("add", "mul"))
    w = tensor_cores.words(op.a)
    # One lane after the other, each with its elements of the row.
    order = [k for t in range(4) for k in range(len(row)) if k // w % 4 == t]
    total = scalars.cast(dtype, sums, first)
    for k in order:
        total = add(total, multiply(row[k], column[k]))
    return scalars.cast(sums, dtype, total)


def _sums(op: ops.Mma) -> DType:
    """The dtype in which a product is summed up."""
    dtype = op.d.tensor.dtype
    return Float32 if dtype.kind == "float" else dtype

"""Matrices that are distributed over a warp, in simple ops of the kernel IR.

As in the exchanges of `warps`, every thread of the block has stored its part in a shared place, and
then each loads the parts that it needs.  The part is a row of a tensor `given`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.cpu.cooperate.warps import Warp
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.language.mathlib import expand_op
from ferrule.specs import DType, Float32, Int32

_LANES: Final = 4
"""Lanes that share a row of a matrix."""
_ROWS: Final = 8


def given_dtype(op: ops.MatrixOp) -> DType:
    """The dtype of a thread's part."""
    match op:
        case ops.Mma(a=a):
            return Float32 if a.tensor.dtype.kind == "float" else Int32
        case ops.LoadMatrix(target=target):
            return target.tensor.dtype


def given_count(op: ops.MatrixOp) -> int:
    """The number of elements in a thread's part."""
    match op:
        case ops.Mma(a=a, b=b):
            return tensor_cores.fragment_size(a) + tensor_cores.fragment_size(b)
        case ops.LoadMatrix(target=target):
            return tensor_cores.ROW_BYTES // target.tensor.dtype.itemsize


def given_type(op: ops.MatrixOp) -> TensorType:
    """The type of the tensor with all threads' parts."""
    dtype, count = given_dtype(op), given_count(op)
    return TensorType(dtype, (MAX_THREADS, count), (count, 1), dtype.itemsize)


def room(ops_: Iterable[ops.Op | ops.Synchronising]) -> int:
    """The bytes that a thread needs for its part in one of these ops at a time."""
    found = (op for op in ops_ if isinstance(op, ops.MatrixOp))
    return max((given_count(op) * given_dtype(op).itemsize for op in found), default=0)


def give(b: Builder, op: ops.MatrixOp, warp: Warp, given: ops.Value) -> None:
    """Emits the stores of the running thread's part."""
    match op:
        case ops.Mma(a=a, b=right):
            first = tensor_cores.fragment_size(a)
            _copy(b, a, given, warp.thread, 0, first)
            _copy(b, right, given, warp.thread, first, tensor_cores.fragment_size(right))
        case ops.LoadMatrix(source=source):
            rows = _number(b, _ROWS * op.count)
            with b.region() as then:
                _copy(b, source, given, warp.thread, 0, given_count(op))
            # Of one or two matrices the instruction reads the addresses of the first 8 or 16 lanes
            # alone. Those of the others need not be valid.
            b.if_(b.compare("lt", warp.lane, rows), then.freeze(), ops.Region(), ())


def _copy(
    b: Builder, source: ops.Value, given: ops.Value, thread: ops.Value, first: int, count: int
) -> None:
    for position in range(count):
        value = b.load(source, (_number(b, position),))
        value = _converted(b, given.tensor.dtype, value)
        b.store(given, (thread, _number(b, first + position)), value)


def _converted(b: Builder, dtype: DType, value: ops.Value) -> ops.Value:
    """The value in a dtype.  Conversions of floats of 8 bits are expanded here, since the pass that
    expands them has run."""
    if value.type is dtype:
        return value
    cast = ops.Cast(ops.Value(dtype, "wide"), value)
    for op in expand_op(b, cast) or (cast,):
        b.append(op)
    return cast.result


def take(b: Builder, op: ops.MatrixOp, warp: Warp, given: ops.Value) -> None:
    """Emits the running thread's part of the result, from the parts of all threads."""
    four = _number(b, _LANES)
    group, rest = b.binary("floordiv", warp.lane, four), b.binary("mod", warp.lane, four)
    match op:
        case ops.Mma():
            _multiply(b, op, _Given(b, given, warp.first), group, rest)
        case ops.LoadMatrix():
            _rows(b, op, _Given(b, given, warp.first), group, rest)


class _Given:
    """The parts of the lanes of the running thread's warp."""

    def __init__(self, b: Builder, given: ops.Value, first: ops.Value) -> None:
        self.b, self.given, self.first = b, given, first

    def of(self, lane: ops.Value, position: ops.Value) -> ops.Value:
        """The element of a lane's part."""
        return self.b.load(self.given, (self.b.binary("add", self.first, lane), position))


def _rows(b: Builder, op: ops.LoadMatrix, given: _Given, group: ops.Value, rest: ops.Value) -> None:
    w = tensor_cores.words(op.target)
    for position in range(tensor_cores.fragment_size(op.target)):
        matrix, j = divmod(position, w)
        place = _plus(b, _times(b, rest, w), j)
        row, column = (place, group) if op.transposed else (group, place)
        value = given.of(_plus(b, row, _ROWS * matrix), column)
        b.store(op.target, (_number(b, position),), value)


def _multiply(b: Builder, op: ops.Mma, given: _Given, group: ops.Value, rest: ops.Value) -> None:
    """Sums over the four lanes that share a row of A; those that share a column of B are loaded
    along."""
    dtype = given.given.tensor.dtype
    initial = [b.cast(dtype, b.load(op.c, (_number(b, position),))) for position in range(4)]
    index = ops.Value(Int32, "quarter")
    carried = tuple(ops.Value(dtype, "sum") for _ in initial)
    results = tuple(ops.Value(dtype, "sum") for _ in initial)
    with b.region() as body:
        sums = _quarter(b, op, given, group, rest, index, carried)
    bounds = (_number(b, 0), _number(b, _LANES), _number(b, 1))
    # There are many such loops, as in `warps.gathered`.
    hints = ops.LoopHints(unroll=1, vectorize=False)
    loop = ops.For(results, index, *bounds, tuple(initial), carried, body.freeze(*sums), hints)
    b.append(loop)
    for position, total in enumerate(results):
        b.store(op.d, (_number(b, position),), b.cast(op.d.tensor.dtype, total))


def _quarter(
    b: Builder,
    op: ops.Mma,
    given: _Given,
    group: ops.Value,
    rest: ops.Value,
    index: ops.Value,
    sums: tuple[ops.Value, ...],
) -> list[ops.Value]:
    """The sums with the products of one lane's elements for each row and column."""
    w, first = tensor_cores.words(op.a), tensor_cores.fragment_size(op.a)
    lane = b.binary("add", _times(b, group, _LANES), index)
    a = [given.of(lane, _number(b, position)) for position in range(first)]
    columns = []
    for half in (0, 1):
        column = _plus(b, _times(b, rest, 2), half)
        lane = b.binary("add", _times(b, column, _LANES), index)
        count = tensor_cores.fragment_size(op.b)
        columns.append([given.of(lane, _number(b, first + k)) for k in range(count)])
    found = list(sums)
    for position in range(4):
        row, column_at = divmod(position, 2)
        for k, right in enumerate(columns[column_at]):
            word, j = divmod(k, w)
            # PTX's layout of A: its registers are of the rows `group` and `group + 8` in turn, and
            # then of the next columns. A register of B has the same columns as such a pair.
            product = b.binary("mul", a[(2 * word + row) * w + j], right)
            found[position] = b.binary("add", found[position], product)
    return found


def _number(b: Builder, value: int) -> ops.Value:
    return b.constant(Int32, value)


def _plus(b: Builder, value: ops.Value, more: int) -> ops.Value:
    return b.binary("add", value, _number(b, more)) if more else value


def _times(b: Builder, value: ops.Value, by: int) -> ops.Value:
    return b.binary("mul", value, _number(b, by))

"""Loops in which the threads of a block access memory side by side.

    for thread:                           for base in range(0, n, step):
        for i in range(thread, n, step):      for thread: if thread < n - base:
            total += a[i]                         totals[thread] += a[base + thread]

On the left each thread goes through memory in strides, on the right the threads of an iteration
read neighbours, and the inner loop becomes vectors.  Each thread does the same operations in the
same order.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.facts.uniform import Uniform
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.specs import DType, Int32, Int64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Strided:
    """A loop of this form; `start` is that of thread 0.

    `base` is the start of an iteration, and `begin` the ops of an iteration that run once for the
    block.  The thread takes part if `runs` holds, which `own` computes; `index` defines the loop's
    index.
    """

    start: ops.Value
    first: tuple[ops.Op, ...]
    base: ops.Value
    begin: tuple[ops.Op, ...]
    own: tuple[ops.Op, ...]
    runs: ops.Value
    index: ops.Op


def find(op: ops.For, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> Strided | None:
    """The parts of a loop of this form."""
    start = _start(op.start, uniform, makers)
    if start is None or op.stop not in uniform or not _is_positive(op.step, makers):
        return None
    if not _goes_side_by_side(op):
        return None
    assert isinstance(op.index.type, DType)
    b, dtype = Builder(), op.index.type
    base = ops.Value(dtype, "base")
    with b.region() as first:
        zero = b.constant(dtype, 0)
    with b.region() as begin:
        left = b.binary("sub", b.cast(Int64, op.stop), b.cast(Int64, base))
        room = b.cast(Int32, b.binary("min", left, b.constant(Int64, MAX_THREADS)))
    with b.region() as own:
        thread = b.special("thread_idx", 0)
        runs = b.compare("lt", thread, room)
        step = b.cast(dtype, thread)
    return Strided(
        zero if start is op.start else start,
        tuple(first.ops),
        base,
        tuple(begin.ops),
        tuple(own.ops),
        runs,
        ops.Binary(op.index, "add", base, step),
    )


def _start(
    start: ops.Value, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]
) -> ops.Value | None:
    """The value that is added to the thread's x; the value itself if it is the x."""
    match makers.get(start):
        case ops.Special(_, "thread_idx", 0):
            return start
        case ops.Binary(_, "add", lhs, rhs):
            for thread, other in ((lhs, rhs), (rhs, lhs)):
                if other in uniform and _start(thread, uniform, makers) is thread:
                    return other
    return None


def _is_positive(step: ops.Value, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether a step is uniform and positive: products of block sizes and numbers."""
    match makers.get(step):
        case ops.Constant(_, value):
            return value > 0
        case ops.Special(_, "block_dim"):
            return True
        case ops.Binary(_, "mul", lhs, rhs):
            sides = (makers.get(lhs), makers.get(rhs))
            return all(isinstance(side, ops.Special) and _is_size(side) for side in sides)
    return False


def _is_size(op: ops.Special) -> bool:
    return op.register == "block_dim"


def _goes_side_by_side(op: ops.For) -> bool:
    """Whether neighbouring indices access neighbouring elements, at least once, and nothing
    else."""
    degrees: dict[ops.Value, int | None] = {op.index: 1, **dict.fromkeys(op.carried)}
    found = []
    for inner in all_ops(op.body):
        match inner:
            case ops.For() | ops.While() | ops.Atomic() | ops.Check() | ops.Print():
                return False
            case ops.Load(_, tensor, indices) | ops.Store(tensor, indices):
                strides = tensor.tensor.strides
                moving = [
                    (degrees[index], stride)
                    for index, stride in zip(indices, strides, strict=True)
                    if index in degrees
                ]
                if tensor in degrees or tensor.tensor.is_own or moving not in ([], [(1, 1)]):
                    return False
                found.append(bool(moving))
        for result in inner.results if isinstance(inner, ops.If) else _result(inner):
            degree = _degree(inner, degrees)
            if degree != 0:
                degrees[result] = degree
    return any(found)


def _result(op: ops.Op) -> tuple[ops.Value, ...]:
    return (op.result,) if isinstance(op, ops.SimpleOp) else ()


def _degree(op: ops.Op, degrees: Mapping[ops.Value, int | None]) -> int | None:
    """The dependence of a result on the loop's index: 0 none, 1 if it is the index plus
    something."""
    operands = [degrees.get(value, 0) for value in op.operands]
    match op, operands:
        case ops.Binary(_, "add"), [0, 1] | [1, 0]:
            return 1
        case ops.Binary(_, "sub"), [1, 0]:
            return 1
        case ops.Cast(result), [1]:
            return 1 if result.type in (Int32, Int64) else None
        case ops.If(), _:
            return None
    return None if any(degree != 0 for degree in operands) else 0

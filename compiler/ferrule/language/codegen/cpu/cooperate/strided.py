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
from typing import Final

from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.language.codegen.cpu.divergent import is_maskable
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
    index.  The step is positive only if `goes_up` holds, which `first` computes; it is None if the
    step always is.
    """

    start: ops.Value
    first: tuple[ops.Op, ...]
    base: ops.Value
    begin: tuple[ops.Op, ...]
    own: tuple[ops.Op, ...]
    runs: ops.Value
    index: ops.Op
    goes_up: ops.Value | None = None


def find(op: ops.For, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> Strided | None:
    """The parts of a loop of this form."""
    return parts(op, uniform, makers) if _goes_side_by_side(op) else None


def parts(op: ops.For, uniform: Uniform, makers: Mapping[ops.Value, ops.Op]) -> Strided | None:
    """The parts of a loop with such bounds, whatever is in it."""
    start = _start(op.start, uniform, makers)
    if start is None or op.stop not in uniform or op.step not in uniform:
        return None
    assert isinstance(op.index.type, DType)
    b, dtype = Builder(), op.index.type
    base = ops.Value(dtype, "base")
    if isinstance(step := makers.get(op.step), ops.Constant) and step.value <= 0:
        return None
    with b.region() as first:
        zero = b.constant(dtype, 0)
        goes_up = None if _is_positive(op.step, makers) else b.compare("gt", op.step, zero)
    with b.region() as begin:
        # In 64 bits, since the difference may not fit into the dtype of the index.  A block has at
        # most MAX_THREADS threads, so what is cut there fits 32 bits and decides the same.
        left = b.binary("sub", b.cast(Int64, op.stop), b.cast(Int64, base))
        room = b.cast(Int32, b.binary("min", left, b.constant(Int64, MAX_THREADS)))
    with b.region() as own:
        thread = b.special("thread_idx", 0)
        runs = b.compare("lt", thread, room)
        distance = b.cast(dtype, thread)
    return Strided(
        zero if start is op.start else start,
        tuple(first.ops),
        base,
        tuple(begin.ops),
        tuple(own.ops),
        runs,
        ops.Binary(op.index, "add", base, distance),
        goes_up,
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
    """Whether a step is always positive: products of block sizes, and numbers."""
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


_NEAR: Final = 2
"""The degree of a value that is mostly near that of the neighbouring index: a remainder, a small
multiple."""

_SAME: Final = 3
"""The degree of a quotient: it is mostly that of the neighbouring index."""

_SMALL: Final = 16
"""A multiple up to this is small."""


def _goes_side_by_side(op: ops.For) -> bool:
    """Whether neighbouring indices access elements near each other, at least once.

    From one iteration of a thread to its next, the index makes a whole step.  So other accesses are
    no further apart among neighbouring threads than they are in one thread.
    """
    degrees: dict[ops.Value, int | None] = {op.index: 1, **dict.fromkeys(op.carried)}
    makers = {result: each for each in all_ops(op.body) for result in each.defined}
    found = False
    for inner in all_ops(op.body):
        match inner:
            case ops.While() if is_maskable(inner):
                degrees.update(dict.fromkeys((*inner.carried, *inner.results)))
            case ops.For() | ops.While() | ops.Check() | ops.Print():
                return False
            case ops.Load(_, tensor, indices) | ops.Store(tensor, indices):
                if tensor in degrees or tensor.tensor.is_own:
                    return False
                strides = tensor.tensor.strides
                found |= any(
                    degrees.get(index) is not None and stride == 1
                    for index, stride in zip(indices, strides, strict=True)
                )
        for result in inner.results if isinstance(inner, ops.If) else _result(inner):
            degree = _degree(inner, degrees, makers)
            if degree != 0:
                degrees[result] = degree
    return found


def _result(op: ops.Op) -> tuple[ops.Value, ...]:
    return (op.result,) if isinstance(op, ops.SimpleOp) else ()


def _degree(
    op: ops.Op, degrees: Mapping[ops.Value, int | None], makers: Mapping[ops.Value, ops.Op]
) -> int | None:
    """The dependence of a result on the loop's index: 0 none, 1 if it is the index plus something,
    `_NEAR`, `_SAME`, or None for any other."""
    operands = [degrees.get(value, 0) for value in op.operands]
    match op, operands:
        case ops.If(), _:
            return None
        case ops.Binary(_, "add"), [0, 1] | [1, 0]:
            return 1
        case ops.Binary(_, "sub"), [1, 0]:
            return 1
        case ops.Cast(result), [int(degree)] if degree:
            return degree if result.type in (Int32, Int64) else None
        case ops.Binary(_, "add" | "sub"), [int(), int()] if any(operands):
            return _NEAR
        case ops.Binary(_, "floordiv" | "mod" as name), [int(degree), 0] if degree:
            return _SAME if name == "floordiv" else _NEAR
        case ops.Binary(_, "mul"), [0, 3] | [3, 0]:
            return _SAME
        case ops.Binary(_, "mul", lhs, rhs), [0, int()] | [int(), 0] if any(operands):
            sides = makers.get(lhs), makers.get(rhs)
            small = (isinstance(e, ops.Constant) and 0 < e.value <= _SMALL for e in sides)
            return _NEAR if any(small) else None
    return None if any(degree != 0 for degree in operands) else 0

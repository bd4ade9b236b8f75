"""Going through nested regions without Python's recursion, however deep a program nests.

A handler of a region is a generator that yields the handlers of the regions inside it, each at the
place where its work is due; `drive` runs them with a stack of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from operator import attrgetter
from typing import Any, Final, TypeAlias, TypeGuard, get_args

from ferrule.language.ir import ops

Work: TypeAlias = "Generator[Work, None, None]"


_NESTING: Final = frozenset(get_args(ops.RegionOp))
"""The ops that have regions: see `regions_of`."""

PlainOp: TypeAlias = "ops.Constant | ops.Arithmetic | ops.Load"

_PLAIN: Final = frozenset((ops.Constant, *get_args(ops.Arithmetic), ops.Load))


def is_plain(op: ops.Op) -> TypeGuard[PlainOp]:
    """Whether an op only computes a result of its operands, as most ops of a program do.

    A `match` asks for one class after the other; this asks for all of these at once.
    """
    return type(op) in _PLAIN


def drive(work: Work) -> None:
    """Runs a handler and all that it yields, innermost first."""
    stack = [work]
    while stack:
        try:
            stack.append(next(stack[-1]))
        except StopIteration:
            stack.pop()


def regions_of(op: ops.Op) -> tuple[ops.Region, ...]:
    """The regions of an op, in the order of its text."""
    if type(op) not in _NESTING:
        return ()
    match op:
        case ops.If(_, _, then, otherwise):
            return then, otherwise
        case ops.For(body=body) | ops.Parallel(body=body):
            return (body,)
        case ops.While(test=test, body=body):
            return test, body
        case _:
            return ()


def all_ops(region: ops.Region) -> Iterator[ops.Op]:
    """Every op of a region and of those inside it, in the order of the text."""
    stack = [iter(region.ops)]
    while stack:
        for op in stack[-1]:
            yield op
            if type(op) in _NESTING:
                stack.extend(iter(inner.ops) for inner in reversed(regions_of(op)))
                break
        else:
            stack.pop()


def merged_by(op: ops.Op) -> Iterator[tuple[ops.Value, ops.Value]]:
    """Which values become which others where the ways through an op meet."""
    match op:
        case ops.If(results, _, then, otherwise):
            for side in (then, otherwise):
                yield from zip(side.yields, results, strict=True)
        case ops.For() | ops.While():
            for each in (op.initial, op.body.yields):
                yield from zip(each, op.carried, strict=True)
            yield from zip(op.carried, op.results, strict=True)


def operands_of(op: ops.Op) -> tuple[ops.Value, ...]:
    """The values that an op itself reads; those that its regions yield are not among them."""
    known = _OPERANDS.get(type(op))
    return _operands_of(op) if known is None else known(op)


_OPERANDS: Final[dict[type[ops.Op], Callable[[Any], tuple[ops.Value, ...]]]] = {
    ops.Constant: lambda op: (),
    ops.Size: lambda op: (),
    ops.Special: lambda op: (),
    ops.Unary: lambda op: (op.operand,),
    ops.Binary: attrgetter("lhs", "rhs"),
    ops.Fma: attrgetter("x", "y", "z"),
    ops.Compare: attrgetter("lhs", "rhs"),
    ops.Cast: lambda op: (op.operand,),
    ops.Bitcast: lambda op: (op.operand,),
    ops.Select: attrgetter("condition", "on_true", "on_false"),
    ops.Load: lambda op: (op.tensor, *op.indices),
    ops.View: lambda op: (op.tensor, *op.indices),
    ops.Store: lambda op: (op.tensor, *op.indices, op.value),
}
"""The operands of the ops that programs are full of."""


def _operands_of(op: ops.Op) -> tuple[ops.Value, ...]:
    """Those of all other ops."""
    match op:
        case ops.Text() | ops.Fragment():
            return ()
        case ops.Check(condition, _, values):
            return condition, *values
        case ops.If(condition=condition):
            return (condition,)
        case ops.For(start=start, stop=stop, step=step, initial=initial):
            return start, stop, step, *initial
        case ops.Alloc(sizes=sizes):
            return sizes
        case ops.Return(values=values):
            return values
        case ops.Address(operand=operand):
            return (operand,)
        case ops.Call(_, callee, _, arguments):
            return (callee, *arguments) if isinstance(callee, ops.Value) else arguments
        case ops.CallBody(arguments=arguments):
            return arguments
        case ops.Receive(_, value):
            return (value,)
        case ops.Received(_, parts, _, owner):
            return (parts,) if owner is None else (parts, owner)
        case ops.Item(_, container, index):
            return container, index
        case ops.Field(object=of):
            return (of,)
        case ops.Peek(source=source) | ops.IsInstance(source=source):
            return (source,)
        case ops.CallDevice():
            return ()
        case ops.Shared() | ops.DynamicShared() | ops.Fence():
            return ()
        case ops.Barrier(number, count):
            return tuple(value for value in (number, count) if value is not None)
        case ops.WarpBarrier(mask):
            return (mask,)
        case ops.Shuffle(_, _, value, lane, mask, clamp):
            return value, lane, mask, clamp
        case ops.Mma(d, a, b, c, mask):
            return d, a, b, c, mask
        case ops.LoadMatrix(target, source, _, mask):
            return target, source, mask
        case ops.AsyncCopy(target, source, holds=holds):
            return target, source, *(() if holds is None else (holds,))
        case ops.Control():
            return ()
        case ops.MBarrier(_, barrier, amount, peer):
            return barrier, *(value for value in (amount, peer) if value is not None)
        case ops.MBarrierWait(barrier, phase) | ops.MBarrierTry(_, barrier, phase):
            return barrier, phase
        case ops.BulkCopy(target, source, size, barrier):
            return target, source, size, barrier
        case ops.BulkStore(target, source, size):
            return target, source, size
        case ops.TensorCopy(_, tensor, _, coordinates, shared, barrier, mask):
            more = (value for value in (shared, barrier, mask) if value is not None)
            return tensor, *coordinates, *more
        case ops.StoreMatrix(target, source, _, mask):
            return target, source, mask
        case ops.PeerLoad(_, source, peer):
            return source, peer
        case ops.PeerStore(target, value, peer):
            return target, value, peer
        case ops.BarrierArrive(number, count):
            return number, count
        case ops.Vote(_, _, value, mask) | ops.Match(_, _, value, mask):
            return value, mask
        case ops.Atomic(_, _, tensor, indices, value, compare):
            return tensor, *indices, value, *(() if compare is None else (compare,))
        case ops.Print(values=values):
            return values
        case ops.Launch(_, grid, block, arguments, stream, smem):
            given = (*grid, *block, *arguments, *op.cluster)
            events = (op.completion_event, op.programmatic_event)
            optional = (stream, smem, op.priority, *events)
            return *given, *(value for value in optional if value is not None)
        case ops.While(initial=initial):
            return initial
        case ops.Parallel(extents=extents):
            return extents
        case ops.Constant() | ops.Size() | ops.Special() | ops.Load() | ops.View() | ops.Store():
            return _OPERANDS[type(op)](op)
        case ops.Unary() | ops.Binary() | ops.Fma() | ops.Compare() | ops.Cast() | ops.Bitcast():
            return _OPERANDS[type(op)](op)
        case ops.Select():
            return _OPERANDS[type(op)](op)

"""Removes ops whose results nobody uses.

The lowering of the language is eager (all three coordinates of a thread, every size that is
read); what a program shows and a target compiles is only what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferrule.language.ir import ops



def remove_unused(program: ops.Program) -> ops.Program:
    """The program without unused pure ops.  Effects (stores, checks, launches, loops) stay."""
    return replace(
        program,
        kernels=tuple(_function(kernel) for kernel in program.kernels),
        host=_function(program.host),
    )


def _function(function: ops.Function) -> ops.Function:
    return replace(function, body=_region(function.body, set()))


def _region(region: ops.Region, used: set[ops.Value]) -> ops.Region:
    """The region without unused ops; `used` gains what its ops use."""
    used |= set(region.yields)
    kept: list[ops.Op] = []
    for op in reversed(region.ops):
        if isinstance(op, (ops.If, ops.For, ops.While, ops.Parallel)):
            kept.append(_structured(op, used))
        elif isinstance(op, (ops.Store, ops.Check, ops.Launch)):
            kept.append(op)
            used |= set(operands(op))
        elif op.result in used or (isinstance(op, ops.Size) and op.fault is not None):
            kept.append(op)
            used |= set(operands(op))
    return ops.Region(tuple(reversed(kept)), region.yields)


def _structured(op: ops.RegionOp, used: set[ops.Value]) -> ops.RegionOp:
    match op:
        case ops.If(then=then, otherwise=otherwise):
            op = replace(op, then=_region(then, used), otherwise=_region(otherwise, used))
        case ops.While(test=test, body=body):
            body = _region(body, used)
            op = replace(op, test=_region(test, used), body=body)
        case ops.For(body=body) | ops.Parallel(body=body):
            op = replace(op, body=_region(body, used))
    used |= set(operands(op))
    return op


def operands(op: ops.Op) -> Iterable[ops.Value]:
    """The values that an op itself uses, without those of its regions."""
    match op:
        case ops.Constant() | ops.Size() | ops.Special():
            return ()
        case ops.Unary(operand=operand) | ops.Cast(operand=operand):
            return (operand,)
        case ops.Binary(lhs=lhs, rhs=rhs) | ops.Compare(lhs=lhs, rhs=rhs):
            return (lhs, rhs)
        case ops.Select(condition=condition, on_true=on_true, on_false=on_false):
            return (condition, on_true, on_false)
        case ops.Load(tensor=tensor, indices=indices):
            return (tensor, *indices)
        case ops.Store(tensor=tensor, indices=indices, value=value):
            return (tensor, *indices, value)
        case ops.Check(condition=condition, values=values):
            return (condition, *values)
        case ops.Launch(grid=grid, block=block, arguments=arguments):
            return (*grid, *block, *arguments)
        case ops.If(condition=condition):
            return (condition,)
        case ops.For(start=start, stop=stop, step=step, initial=initial):
            return (start, stop, step, *initial)
        case ops.While(initial=initial):
            return initial
        case ops.Parallel(extents=extents):
            return extents

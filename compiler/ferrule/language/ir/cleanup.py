"""Removes ops whose results nobody uses.

The lowering of the language is eager (all three coordinates of a thread, every size that is
read); what a program shows and a target compiles is only what it needs.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.language.ir import ops
from ferrule.language.ir.walk import operands_of


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
            used |= set(operands_of(op))
        elif op.result in used or (isinstance(op, ops.Size) and op.fault is not None):
            kept.append(op)
            used |= set(operands_of(op))
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
    used |= set(operands_of(op))
    return op

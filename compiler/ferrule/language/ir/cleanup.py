"""Removes ops whose results nobody uses.

The lowering of the language is eager (all three coordinates of a thread, every size that is
read); what a program shows and a target compiles is only what it needs.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.language.ir import ops
from ferrule.language.ir.rewrite import with_regions
from ferrule.language.ir.walk import Work, drive, is_plain


def remove_unused(program: ops.Program) -> ops.Program:
    """The program without unused pure ops and results of branches.  Effects and loops stay."""
    return replace(
        program,
        kernels=tuple(_function(kernel) for kernel in program.kernels),
        host=_function(program.host),
    )


def _function(function: ops.Function) -> ops.Function:
    done: list[ops.Region] = []
    drive(_region(function.body, set(), done))
    return replace(function, body=done.pop())


def _region(region: ops.Region, used: set[ops.Value], done: list[ops.Region]) -> Work:
    """Puts the region without unused ops at the end of `done`; `used` gains what its ops use."""
    used |= set(region.yields)
    kept: list[ops.Op] = []
    for op in reversed(region.ops):
        if is_plain(op):
            if op.result in used:
                kept.append(op)
                used.update(op.operands)
            continue
        if not _is_needed(op, used):
            continue
        if isinstance(op, ops.If):
            op = _without_results(op, used)
        before = len(done)
        for inner in reversed(op.regions):
            yield _region(inner, used, done)
        op = with_regions(op, done[before:][::-1])
        del done[before:]
        if not isinstance(op, ops.If) or op.results or op.then.ops or op.otherwise.ops:
            kept.append(op)
            used.update(op.operands)
    done.append(ops.Region(tuple(reversed(kept)), region.yields))


def _without_results(op: ops.If, used: set[ops.Value]) -> ops.If:
    """A branch without the results that nothing uses."""
    wanted = [i for i, result in enumerate(op.results) if result in used]
    if len(wanted) == len(op.results):
        return op
    then, otherwise = (
        replace(side, yields=tuple(side.yields[i] for i in wanted))
        for side in (op.then, op.otherwise)
    )
    results = tuple(op.results[i] for i in wanted)
    return replace(op, results=results, then=then, otherwise=otherwise)


def _is_needed(op: ops.Op, used: set[ops.Value]) -> bool:
    """Whether somebody sees that an op ran, or its result has a use."""
    return bool(op.regions) or op.is_seen or not used.isdisjoint(op.defined)

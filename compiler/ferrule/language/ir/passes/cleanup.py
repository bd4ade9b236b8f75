"""Removes ops whose results are unused.

The lowering of the language is eager (all three coordinates of a thread, every size that is read);
this pass reduces a program to the ops that it needs.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.language.ir import ops
from ferrule.language.ir.rewrite import with_regions
from ferrule.language.ir.walk import Work, drive, is_plain, symbols_read
from ferrule.specs import Sym


def remove_unused(program: ops.Program) -> ops.Program:
    """The program without unused pure ops and results of branches.  Effects and loops stay.

    An op that gives symbols their values stays if anything left reads one of them.  That is known
    when everything else is gone: so such programs are gone through twice.
    """
    kernels = tuple(_function(kernel, set()) for kernel in program.kernels)  # these define none
    host = _function(program.host, set(program.made))
    if program.made:
        host = _function(
            host, {symbol for each in (*kernels, host) for symbol in symbols_read(each)}
        )
    return replace(program, kernels=kernels, host=host)


def _function(function: ops.Function, symbols: set[Sym]) -> ops.Function:
    done: list[ops.Region] = []
    drive(_region(function.body, {*symbols}, done))
    return replace(function, body=done.pop())


def _region(region: ops.Region, used: set[ops.Value | Sym], done: list[ops.Region]) -> Work:
    """Appends the region without unused ops to `done`; `used` gains the operands of its ops."""
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


def _without_results(op: ops.If, used: set[ops.Value | Sym]) -> ops.If:
    """A branch without unused results."""
    wanted = [i for i, result in enumerate(op.results) if result in used]
    if len(wanted) == len(op.results):
        return op
    then, otherwise = (
        replace(side, yields=tuple(side.yields[i] for i in wanted))
        for side in (op.then, op.otherwise)
    )
    results = tuple(op.results[i] for i in wanted)
    return replace(op, results=results, then=then, otherwise=otherwise)


def _is_needed(op: ops.Op, used: set[ops.Value | Sym]) -> bool:
    """Whether an op has a visible effect, or its result or a symbol that it defines is used."""
    return bool(op.regions) or op.is_seen or not used.isdisjoint((*op.defined, *op.symbols))

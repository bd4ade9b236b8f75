"""Loops over `range(thread, n, block)` with loops in them, as loops that all threads make together.

    for i in range(thread, n, block):        for base in range(0, n, block):
        for k in range(m):                       if base + thread < n:
            total += a[k, i]                         for k in range(m): total += a[k, base + thread]

On the right both loops are the same for all threads: an iteration of the outer one is a phase, in
which `strips` makes lanes of threads, or an iteration of the inner one is (`frames`).  Each thread
does the same operations in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from ferrule.language.codegen.cpu.cooperate import strided
from ferrule.language.codegen.cpu.cooperate.frames import Frames
from ferrule.language.codegen.facts.uniform import Divergent, Uniform
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import rewrite

_OTHERS: Final = (ops.While, ops.Atomic, ops.Check, ops.Print)
"""What a loop of this form must not have in it."""

_Forms = Mapping[ops.Value, strided.Strided]
"""The parts of loops, by their indices."""


def opened(kernel: ops.Function) -> ops.Function:
    """The kernel with such loops in the form on the right, where that makes lanes of threads."""
    forms = _forms(kernel)
    if not forms:
        return kernel
    found = replace(kernel, body=rewrite(kernel.body, partial(_open, forms)))
    try:
        also = Frames.of(found).uniform(found).also
    except Divergent:
        return kernel
    bases = {form.base for form in forms.values()}
    return found if any(isinstance(op, ops.For) and op.index in bases for op in also) else kernel


def _forms(kernel: ops.Function) -> _Forms:
    loops = [op for op in kernel.facts.each(ops.For) if _may_be(op)]
    if not loops:
        return {}
    try:
        uniform = Uniform.of(kernel)
    except Divergent:
        return {}
    makers = {result: op for op in kernel.facts.ops for result in op.defined}
    found = {op.index: strided.parts(op, uniform, makers) for op in loops}
    # A step that the call decides needs the loop in two forms, see `strided`.
    return {
        index: form for index, form in found.items() if form is not None and form.goes_up is None
    }


def _may_be(op: ops.For) -> bool:
    """Whether a loop has loops in it, and nothing that has an order."""
    inside = list(all_ops(op.body))
    loops = any(isinstance(each, ops.For) for each in inside)
    return loops and not any(isinstance(each, _OTHERS) for each in inside)


def _open(forms: _Forms, b: Builder, op: ops.Op) -> None:
    form = forms.get(op.index) if isinstance(op, ops.For) else None
    if form is None or not isinstance(op, ops.For):
        b.append(op)
        return
    for each in form.first:
        b.append(each)
    with b.region() as region:
        for each in (*form.begin, *form.own):
            b.append(each)
        results = tuple(ops.Value(value.type, value.hint) for value in op.carried)
        inside = ops.Region((form.index, *op.body.ops), op.body.yields)
        b.append(ops.If(results, form.runs, inside, ops.Region((), op.carried)))
    bounds = form.start, op.stop, op.step
    body = region.freeze(*results)
    b.append(ops.For(op.results, form.base, *bounds, op.initial, op.carried, body))

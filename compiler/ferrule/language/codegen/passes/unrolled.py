"""Unrolls loops over the elements of fragments, in kernels with products of a warpgroup.

What a product writes has to be in registers: it runs in the background, and what is in memory would
have to wait for it.  LLVM puts a fragment into registers if all of its elements have numbers known
while compiling.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import rewrite

MOST: Final = 16384
"""The most ops that a loop is unrolled to."""


def unrolled(program: ops.Program) -> ops.Program:
    """The program with hints for these loops, which have none."""
    return replace(program, kernels=tuple(map(_kernel, program.kernels)))


def fragments_of(kernel: ops.Function) -> tuple[ops.Value, ...]:
    """The fragments that products of a kernel read and write."""
    views = {op.result: op.tensor for op in kernel.facts.each(ops.View)}
    found: dict[ops.Value, None] = {}
    for op in kernel.facts.each(ops.WarpgroupMma):
        for fragment in (op.d, *((op.a,) if op.of_a is None else ())):
            while fragment in views:
                fragment = views[fragment]
            found[fragment] = None
    return tuple(found)


def _kernel(kernel: ops.Function) -> ops.Function:
    if not fragments_of(kernel):
        return kernel
    inside = {op.result for op in kernel.facts.each(ops.Fragment)}
    for op in kernel.facts.each(ops.View):  # in the order of the text: a view of a view is later
        if op.tensor in inside:
            inside.add(op.result)
    constants = {op.result: op.value for op in kernel.facts.each(ops.Constant)}

    def rule(b: Builder, op: ops.Op) -> None:
        b.append(_hinted(op, inside, constants) if isinstance(op, ops.For) else op)

    return replace(kernel, body=rewrite(kernel.body, rule))


def _hinted(
    op: ops.For, inside: Collection[ops.Value], constants: dict[ops.Value, bool | int | float]
) -> ops.For:
    bounds = [constants.get(each) for each in (op.start, op.stop, op.step)]
    if op.hints is not None or not all(isinstance(each, int) for each in bounds):
        return op
    start, stop, step = (int(each or 0) for each in bounds)
    body = list(all_ops(op.body))
    count = len(range(start, stop, step)) if step else 0
    if count * len(body) > MOST or not any(_moves(each, inside, constants) for each in body):
        return op
    return replace(op, hints=ops.LoopHints(unroll="full"))


def _moves(op: ops.Op, inside: Collection[ops.Value], constants: Collection[ops.Value]) -> bool:
    """Whether the op goes to an element whose number is not a constant."""
    if not isinstance(op, (ops.Load, ops.Store, ops.View)) or op.tensor not in inside:
        return False
    return not all(index in constants for index in op.indices)

"""Copies of tensors by one thread: loads and stores, as wide as both layouts allow, predicated."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.tensors import access
from ferrule.language.lowering.tensors.runs import Readable, Runs, count_of
from ferrule.language.values import Number, SwizzledView, TensorView
from ferrule.specs import Boolean


def readable(low: Lowering, name: str, value: Any, node: ast.AST) -> Readable:
    if isinstance(value, (TensorView, SwizzledView)):
        access.require_reachable(low, value, node)
        low.require_inside(value, node)
        access.require_element(low, value.type.dtype, node)
        return value
    low.fail(node, f"the {name} of copy is {describe(value)}", expected="a tensor")


def predicates(low: Lowering, pred: Any, atoms: int, node: ast.AST) -> Callable[[int], Any]:
    """A function from the number of an atom to its predicate."""
    if pred is None:
        return lambda _: None
    if not isinstance(pred, TensorView) or pred.type.dtype is not Boolean:
        low.fail(node, f"the pred of copy is {describe(pred)}", expected="a tensor of Boolean")
    count = count_of(low, pred, "the pred of copy", node)
    if count != atoms:
        low.fail(
            node,
            f"the pred of copy has the layout {pred.layout}, of {count} elements, for {atoms} "
            "atoms",
            expected="one predicate for each atom: (repetitions of the atom, tiles, ...)",
        )
    runs = Runs(low, pred, node)

    def one(number: int) -> Number:
        return runs.load(runs.view(number, 1), 0)

    return one


def guarded(low: Lowering, condition: Any, emit: Callable[[], None]) -> None:
    """Emits code that runs if a predicate holds; None always does."""
    if condition is None:
        emit()
        return
    with low.builder.region() as then:
        emit()
    with low.builder.region() as otherwise:
        pass
    low.builder.if_(condition.value, then.freeze(), otherwise.freeze(), ())


def move(source: Runs, target: Runs, first: int, count: int) -> Callable[[], None]:
    """What reads neighbours and writes them; their addresses are computed here, once for all."""
    read, write = parts(source, first, count), parts(target, first, count)

    def emit() -> None:
        values = [source.load(run, at).value for run, at in read]
        for (run, at), value in zip(write, values, strict=True):
            target.store(run, at, value)

    return emit


def parts(runs: Runs, first: int, count: int) -> list[tuple[ops.Value, int]]:
    """A run for each element and its place in it: one run where they are side by side."""
    if runs.side_by_side(first, count) and runs.whole(first, count):
        run = runs.view(first, count)
        return [(run, position) for position in range(count)]
    return [(runs.view(first + position, 1), 0) for position in range(count)]


def vectorised(source: Runs, target: Runs, count: int) -> None:
    """Copies in runs as long as both sides allow."""
    first = 0
    while first < count:
        width = min(source.width(first, count - first), target.width(first, count - first))
        move(source, target, first, width)()
        first += width


def autovec(low: Lowering, source: Any, target: Any, pred: Any, node: ast.AST) -> None:
    """Copies elements one after the other, together where both layouts allow."""
    one, two = (readable(low, name, t, node) for name, t in (("src", source), ("dst", target)))
    if one.type.dtype is not two.type.dtype:
        low.fail(
            node,
            f"a copy of {one.type.dtype.name} to {two.name}, whose elements are "
            f"{two.type.dtype.name}",
            expected="one dtype",
        )
    counts = [count_of(low, each, "a copied tensor", node) for each in (one, two)]
    if counts[0] != counts[1]:
        low.fail(
            node,
            f"a copy of {counts[0]} elements of {one.name}, of layout {one.layout}, to {counts[1]} "
            f"of {two.name}, of layout {two.layout}",
            expected="as many elements",
        )
    low.state.writes += 1
    runs = Runs(low, one, node), Runs(low, two, node)
    if pred is None:
        vectorised(*runs, counts[0])
        return
    holds = predicates(low, pred, counts[0], node)
    for number in range(counts[0]):
        guarded(low, holds(number), move(*runs, number, 1))

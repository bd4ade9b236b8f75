"""Comprehensions over compile-time items, with a frame of their own, as in Python; generators.

A list comprehension, or a generator, is evaluated at once, as a list; but the generator of `any(…)`
and `all(…)` is evaluated only until the result is decided.

The items of a generator function are computed at once, like those of a generator expression.  Their
number is known at compile time, so a `yield` is not under a run-time condition.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ferrule.language.lowering.closures import visible_from
from ferrule.language.lowering.context import MAX_UNROLL, Lowering
from ferrule.language.lowering.control import branches, exits
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, typed_constants
from ferrule.language.lowering.python import assignment, operators
from ferrule.language.values import Generated, Number, is_run_time
from ferrule.specs import Boolean
from ferrule.specs.deferred import dataclass

Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


def value(low: Lowering, node: Comprehension | ast.Yield | ast.YieldFrom) -> Any:
    """The value of a comprehension, or of a `yield`."""
    match node:
        case ast.ListComp():
            return _as_list(low, node)
        case ast.DictComp():
            return _as_dict(low, node)
        case ast.GeneratorExp():
            return Generated(_as_list(low, node))
        case ast.Yield() | ast.YieldFrom():
            return _give(low, node)


def _as_list(low: Lowering, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    """`[f(x) for x in items if …]`; a generator becomes a list."""
    result: list[Any] = []

    def take() -> bool:
        result.append(low.evaluate(node.elt))
        return True

    _go_through(low, node, take)
    return result


def _as_dict(low: Lowering, node: ast.DictComp) -> dict[Any, Any]:
    """`{k: f(k) for k in items if …}`, with keys that are known at compile time."""
    result: dict[Any, Any] = {}

    def take() -> bool:
        key = low.evaluate(node.key)
        if is_run_time(key):
            low.fail(node.key, f"{describe(key)} cannot be the key of a dict")
        value = low.evaluate(node.value)
        coercion.at_compile_time(low, node.key, lambda: result.__setitem__(key, value))
        return True

    _go_through(low, node, take)
    return result


def truth_of(low: Lowering, node: ast.GeneratorExp, *, is_any: bool) -> Any:
    """`any(f(x) for x in items)`, `all(…)`: the following items are evaluated only if the result is
    not decided."""
    truth = _Truth(low, node, is_any, known=not is_any)
    _go_through(low, node, truth.take, lambda: truth.number is not None)
    return truth.result


@dataclass(slots=True)
class _Truth:
    """The truth of the items so far: `known` at compile time, or a run-time Boolean."""

    low: Lowering
    node: ast.GeneratorExp
    is_any: bool
    known: bool | None
    number: Number | None = None
    is_typed: bool = False

    @property
    def result(self) -> Any:
        if self.known is None:
            return self.number
        return Boolean(self.known) if self.is_typed and self.number is None else self.known

    def take(self) -> bool:
        """Take one more item; returns whether more are needed."""
        found: list[Any] = []
        evaluate = partial(self._evaluate, found)
        if self.number is None:
            evaluate()
            together = found[0]
        else:
            is_and = not self.is_any
            together = branches.short_circuit(
                self.low, self.number, evaluate, self.node.elt, is_and
            )
        (truth,) = found
        if isinstance(truth, Number):
            self.known, self.number = None, together
        elif truth is self.is_any:
            self.known = truth
        return self.known is not self.is_any

    def _evaluate(self, found: list[Any]) -> Any:
        value = self.low.evaluate(self.node.elt)
        self.is_typed = self.is_typed or typed_constants.are_typed(value)
        found.append(operators.truth(self.low, value, self.node))
        return found[0]


def _go_through(
    low: Lowering,
    node: Comprehension,
    take: Callable[[], bool],
    may_leave: Callable[[], bool] = lambda: False,
) -> None:
    """Calls `take` for each item, with the names bound, until it returns False."""
    count = 0

    def visit(depth: int) -> bool:
        nonlocal count
        if depth == len(node.generators):
            count += 1
            if count > MAX_UNROLL:
                low.fail(node, f"a comprehension of more than {MAX_UNROLL} items")
            return take()
        generator = node.generators[depth]
        value = low.evaluate(generator.iter)
        for item in branches.compile_time_items(low, value, generator.iter, may_leave):
            assignment.bind(low, generator.target, item)
            if all(_is_true(low, test) for test in generator.ifs) and not visit(depth + 1):
                return False
        return True

    frame = low.frame
    inner = replace(frame, source=replace(frame.source, outer=visible_from(frame)), names={})
    with low.entered(inner):
        visit(0)


def _is_true(low: Lowering, test: ast.expr) -> bool:
    value = low.decide(test)
    if isinstance(value, bool):
        return value
    low.fail(test, "the condition of a comprehension must be known at compile time")


# ---- generator functions ----


def items_of(low: Lowering, node: ast.FunctionDef) -> Generated:
    """The items of the generator function that the current frame has entered.

    A generator that writes is refused: in Python its writes come between those of its caller.  So
    is one with a run-time loop, which may write.
    """
    items: list[Any] = []
    low.frame.yielded = items
    writes = low.state.writes
    low.execute(node.body)
    if low.state.writes != writes and items:
        low.fail(
            node,
            f"the generator {node.name} writes or has a run-time loop, but its items are computed "
            "before the first is used",
            hint="yield values, and let the caller write them",
        )
    exits.result(low, node, node.name)
    return Generated(items)


def _give(low: Lowering, node: ast.Yield | ast.YieldFrom) -> None:
    """`yield x`, `yield from xs`: more items of the generator; the value is None, as of a generator
    in a loop."""
    items = low.frame.yielded
    if items is None:
        low.fail(node, "yield is not supported in a compiled function")
    if low.frame.depth_of_regions():
        low.fail(
            node,
            "yield is under a run-time condition or in a run-time loop, so the number of items is "
            "not known at compile time",
            hint="yield x if c else y, or loop over fe.range_constexpr",
        )
    if isinstance(node, ast.Yield):
        items.append(None if node.value is None else low.evaluate(node.value))
    else:
        items += branches.compile_time_items(low, low.evaluate(node.value), node.value)

"""Branches on run-time values: regions, and the names that they change.

A branch runs both sides on copies of the names; a name whose values differ afterwards becomes a
result of the `If`.  If one side leaves (returns, breaks, continues), the code after the branch is
moved into the other side; if a side may leave, the code after it runs under a condition.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import islice
from typing import Any, Final

from ferrule.language.ir.builder import OpenRegion
from ferrule.language.lowering.context import MAX_UNROLL, MAX_UNROLLED, Lowering
from ferrule.language.lowering.control import exits
from ferrule.language.lowering.control.joins import NOTHING, Clash, Sides, choices, join, same
from ferrule.language.lowering.control.mutation import require_own, require_seen, unchanged
from ferrule.language.lowering.control.narrowing import narrow
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import RUN_TIME, ConstantTable, Number, Undefined
from ferrule.specs import Boolean
from ferrule.specs.deferred import dataclass

Step = Callable[["Sequence[Step]"], bool]
"""A statement: runs it, given the following ones; returns whether it has run these too."""

# What follows an early exit lies one region deeper.  Beyond this depth each statement tests whether
# control has left, so that many exits need no deep nesting.
_MAX_NESTED: Final = 16


def compile_time_items(
    low: Lowering, value: Any, node: ast.AST, may_leave: Callable[[], bool] = lambda: False
) -> Iterator[Any]:
    """The items over which a loop is unrolled, each evaluated when the loop reaches it.

    `may_leave` tells whether a run-time condition may have left the loop by now, besides its
    `break` and `return`.
    """
    if isinstance(value, ConstantTable):
        from ferrule.language.lowering.numbers import constant_tables

        value = constant_tables.items(low, value, node)
    if isinstance(value, RUN_TIME):
        low.fail(
            node,
            f"{describe(value)} cannot be iterated",
            hint="count with range(...) and read elements",
        )
    low.state.witness.add_special(value, "__iter__", "__len__", "__getitem__")
    iterator = coercion.at_compile_time(low, node, lambda: iter(value))
    low.state.witness.add_special(iterator, "__next__")
    require_seen(low, (value, iterator), node)
    known = coercion.at_compile_time(low, node, lambda: operator.length_hint(iterator))
    _count_unrolled(low, known, known, node)
    count, leaving = 0, False
    while (gone := exits.gone(low.names)) is not True:
        if not leaving and (gone is not False or may_leave()):
            leaving = True
            require_own(low, value, iterator, node)
        item = coercion.at_compile_time(low, node, lambda: next(iterator, _END))
        if item is _END:
            return
        count += 1
        low.state.unrolled += 1
        _count_unrolled(low, count, 0, node)
        yield item


_END: Final = object()


def _count_unrolled(low: Lowering, count: int, more: int, node: ast.AST) -> None:
    """Refuses a loop with too many iterations, or too many iterations of all loops."""
    if count > MAX_UNROLL:
        low.fail(node, f"the loop unrolls more than {MAX_UNROLL} times", hint="use range(...)")
    if low.state.unrolled + more > MAX_UNROLLED:
        low.fail(
            node,
            f"the loops of this program unroll more than {MAX_UNROLLED} times altogether",
            hint="use range(...) for some of them",
        )


# ---- statements in order ----


def run(low: Lowering, steps: Sequence[Step], node: ast.AST) -> None:
    """Runs statements in order; after one that may have left, the others run under a condition."""
    for at, step in enumerate(steps):
        rest = _Rest(steps, at + 1)
        if step(rest):
            return
        gone = exits.gone(low.names)
        if gone is False:
            continue
        if gone is True:
            return
        if isinstance(gone, Number) and rest:
            _run_rest(low, rest, node)
            return


class _Rest(Sequence[Step]):
    """The steps after a step, without a copy: in long code each step has a long rest."""

    __slots__ = ("_start", "_steps")
    _steps: Sequence[Step]
    _start: int

    def __init__(self, steps: Sequence[Step], start: int) -> None:
        if isinstance(steps, _Rest):
            start += steps._start
            steps = steps._steps
        self._steps, self._start = steps, start

    def __len__(self) -> int:
        return len(self._steps) - self._start

    def __iter__(self) -> Iterator[Step]:
        return islice(self._steps, self._start, None)

    def __getitem__(self, at: Any) -> Any:
        return self._steps[self._start :][at]


def _run_rest(low: Lowering, rest: Sequence[Step], node: ast.AST) -> None:
    """Runs the rest under the condition that control has not left; at a large depth, statement by
    statement."""
    if low.frame.depth_of_regions() < _MAX_NESTED:
        unless_gone(low, lambda: run(low, rest, node), node)
        return
    for step in rest:
        unless_gone(low, lambda step=step: step(()), node)  # type: ignore[misc]


def unless_gone(low: Lowering, work: Callable[[], object], node: ast.AST) -> None:
    """Runs something if control has not left."""
    gone = exits.gone(low.names)
    if gone is True:
        return
    if gone is False:
        work()
        return
    spread(low)
    left = {**exits.START, **low.names}
    # On this side the flag is true, and so is every other flag with the same value.
    left.update({flag: True for flag in exits.FLAGS if left[flag] is gone})
    with low.builder.region() as nothing:
        pass
    live = _run_side(low, work, {**left, **exits.RUNNING}, {}, node, alone=exits.dead(left))
    old = {flag: gone if left[flag] is True else left[flag] for flag in exits.FLAGS}
    _merge(low, gone, _Side(nothing, left), live, node)
    # Each flag implies the condition: a flag that is false on the other side keeps its old value.
    low.names.update({flag: old[flag] for flag in exits.FLAGS if live.names[flag] is False})
    store(low)


# ---- objects of values, which most programs have not ----


def spread(low: Lowering) -> None:
    """See `value_objects`."""
    if low.state.has_objects:
        from ferrule.language.lowering.control import value_objects

        value_objects.spread(low)


def store(low: Lowering) -> None:
    """See `value_objects`."""
    if low.state.has_objects:
        from ferrule.language.lowering.control import value_objects

        value_objects.store(low)


@contextmanager
def inside(low: Lowering) -> Iterator[Any]:
    """Code with copies of them; yields these."""
    if not low.state.has_objects:
        yield {}
        return
    from ferrule.language.lowering.control import value_objects

    copies = value_objects.enter(low)
    yield copies
    value_objects.leave(low, copies)


# ---- branches ----


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a run-time condition: its open region, and the names after it.

    `known` are the names that the condition narrows there.
    """

    region: OpenRegion
    names: dict[str, Any]
    known: dict[str, Any] = field(default_factory=dict)


def branch(low: Lowering, condition: Number, node: ast.If, rest: Sequence[Step]) -> bool:
    """`if` on a run-time condition; returns whether the following code was run too, in one of the
    sides."""
    spread(low)
    before = {**exits.START, **low.names}
    known = narrow(low, node.test)
    then = _run_side(low, lambda: low.execute(node.body), before, known.true, node)
    otherwise = _run_side(low, lambda: low.execute(node.orelse), before, known.false, node)
    left = [exits.gone(side.names) is True for side in (then, otherwise)]
    taken = all(left)
    if any(left) and not taken and rest and low.frame.depth_of_regions() < _MAX_NESTED:
        if left[0]:
            otherwise = _go_on(low, otherwise, rest, node, alone=exits.dead(then.names))
        else:
            then = _go_on(low, then, rest, node, alone=exits.dead(otherwise.names))
        taken = True
    sides = [_widened(side, before) for side in (then, otherwise)]
    replace_names(low, before)
    _merge(low, condition, sides[0], sides[1], node)
    store(low)
    return taken


@contextmanager
def _under_condition(
    low: Lowering,
    names: dict[str, Any],
    node: ast.AST,
    again: OpenRegion | None = None,
    *,
    alone: bool = False,
) -> Iterator[OpenRegion]:
    """Runs the code inside on these names, in a region of its own.

    `alone`: no code of this function runs on the other side, so objects may change.
    """
    replace_names(low, dict(names))
    with low.builder.region(again) as region:
        if alone and low.frame is low.root:
            with low.in_tail():
                yield region
                spread(low)
        else:
            with low.in_region(), unchanged(low, node), inside(low):
                yield region


def _run_side(
    low: Lowering,
    work: Callable[[], object],
    before: dict[str, Any],
    known: dict[str, Any],
    node: ast.AST,
    *,
    alone: bool = False,
) -> _Side:
    with _under_condition(low, {**before, **known}, node, alone=alone) as region:
        work()
    return _Side(region, dict(low.names), known)


def _go_on(
    low: Lowering, side: _Side, rest: Sequence[Step], node: ast.AST, *, alone: bool
) -> _Side:
    """Runs the code after a branch at the end of the only side that has not left."""
    with _under_condition(low, side.names, node, side.region, alone=alone):
        unless_gone(low, lambda: run(low, rest, node), node)
    return _Side(side.region, dict(low.names), side.known)


def _widened(side: _Side, before: dict[str, Any]) -> _Side:
    """A side in which names that were only narrowed have their earlier values."""
    names = dict(side.names)
    for name, narrowed in side.known.items():
        if names.get(name) is narrowed and name in before:
            names[name] = before[name]
        elif names.get(name) is narrowed:
            del names[name]
    return _Side(side.region, names)


def _merge(low: Lowering, condition: Number, then: _Side, otherwise: _Side, node: ast.AST) -> None:
    """Emits the `If` of two sides, and sets every name to its value after it."""
    chosen: dict[str, Sides] = {}
    for name in dict.fromkeys([*then.names, *otherwise.names]):
        sides = _of_name(name, then.names, otherwise.names)
        if name == exits.VALUE:
            sides = _of_one_kind(low, sides)
        if sides.kept():
            low.names[name] = sides.one
        elif not _is_condition(low, name, condition, sides):
            undefined = _undefined(low, name, sides, node)
            if undefined is None:
                chosen[name] = sides
            else:
                low.names[name] = undefined
    alike = _flags_alike(chosen)
    for flag in alike:
        del chosen[flag]
    regions = (then.region, otherwise.region)
    values = join(low, condition, regions, list(chosen.values()), node)
    low.names.update(zip(chosen, values, strict=True))
    low.names.update(dict.fromkeys(alike, low.names[exits.CONTINUE]))


_MISSING: Final = Undefined("")


def _is_condition(low: Lowering, name: str, condition: Number, sides: Sides) -> bool:
    """Sets a flag of `exits` that is true exactly if the condition holds to the condition; returns
    whether it did."""
    if name not in exits.FLAGS or sides.left is not True or sides.right is not False:
        return False
    low.names[name] = condition
    return True


def _flags_alike(chosen: dict[str, Sides]) -> list[str]:
    """The flags that have the same values on both sides as the iteration's flag, so that they share
    one result."""
    wanted = chosen.get(exits.CONTINUE)
    return [
        flag
        for flag in (exits.RETURN, exits.BREAK)
        if wanted is not None
        and flag in chosen
        and chosen[flag].left is wanted.left
        and chosen[flag].right is wanted.right
    ]


def _of_name(name: str, then: dict[str, Any], otherwise: dict[str, Any]) -> Sides:
    """A name's values after both branches; a branch that returned contributes only its return
    value."""
    matters = name in exits.FLAGS or name == exits.VALUE
    left, right = then.get(name, _MISSING), otherwise.get(name, _MISSING)
    if left is not right and not matters:
        left = NOTHING if exits.dead(then) else left
        right = NOTHING if exits.dead(otherwise) else right
    hint = "returned" if name == exits.VALUE else name
    return Sides(hint, exits.LABELS.get(name, repr(name)), left, right, name)


def _of_one_kind(low: Lowering, sides: Sides) -> Sides:
    """The returned values, of one kind if they are tensors of different sizes, or tuples of
    these."""
    if not (isinstance(sides.left, tuple) and isinstance(sides.right, tuple)):
        return sides
    from ferrule.language.lowering.control.returned_tensors import unified  # few programs need it

    left, right = unified(low, sides.left, sides.right)
    return replace(sides, left=left, right=right)


def _undefined(low: Lowering, name: str, sides: Sides, node: ast.AST) -> Undefined | None:
    """The `Undefined` for a name whose values cannot be joined; None if they can."""
    for side in (sides.left, sides.right):
        if side is _MISSING:
            line = low.location(node).line
            return Undefined(f"it is assigned on only one side of the condition in line {line}")
        if isinstance(side, Undefined):
            return side
    try:
        choices(low, sides, node)
    except Clash as clash:
        reason = f"it is two things after line {low.location(node).line}"
        return Undefined(reason, clash.error)
    return None


def replace_names(low: Lowering, names: dict[str, Any]) -> None:
    """Replaces the names of the frame in place."""
    low.names.clear()
    low.names.update(names)


# ---- expressions ----


def choose(low: Lowering, condition: Number, node: ast.IfExp) -> Any:
    """`a if c else b` on a run-time condition."""
    known = narrow(low, node.test)
    then, left = _evaluate_side(low, node.body, known.true, node)
    otherwise, right = _evaluate_side(low, node.orelse, known.false, node)
    if same(left, right) and all(op.is_speculative for op in (*then.ops, *otherwise.ops)):
        return left
    sides = [Sides("value", "this value", left, right)]
    try:
        return join(low, condition, (then, otherwise), sides, node)[0]
    except Clash as clash:
        raise clash.error from None


def _evaluate_side(
    low: Lowering, side: ast.expr, known: dict[str, Any], node: ast.AST
) -> tuple[OpenRegion, Any]:
    """One side of a conditional expression: its open region, and its value."""
    saved = dict(low.names)
    low.names.update(known)
    with low.builder.region() as region, low.in_region(), unchanged(low, node):
        value = low.evaluate(side)
    replace_names(low, saved)
    return region, value


def short_circuit(
    low: Lowering, left: Number, evaluate_right: Callable[[], Any], right: ast.expr, is_and: bool
) -> Number:
    """`left and right`, `left or right`: right runs under a condition, unless it is speculative."""
    with low.builder.region() as region, low.in_region(), unchanged(low, right):
        value = low.truth(evaluate_right(), right)
        number = coercion.as_number(low, value, right, Boolean)
    if all(op.is_speculative for op in region.ops):
        for op in region.ops:
            low.builder.append(op)
        return Number(low.builder.binary("and" if is_and else "or", left.value, number.value))
    with low.builder.region() as decided:
        constant = low.builder.constant(Boolean, not is_and)
    then, otherwise = region.freeze(number.value), decided.freeze(constant)
    if not is_and:
        then, otherwise = otherwise, then
    hint = "and" if is_and else "or"
    (result,) = low.builder.if_(left.value, then, otherwise, (hint,))
    return Number(result)

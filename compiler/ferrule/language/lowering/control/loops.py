"""Loops on run-time values: a loop carries the names that it assigns and that had a value before.

A loop without early exits is a `For` or a `While`.  With a `break` or a `return` it is a `While`
whose test also checks whether the loop is over; a counted loop then counts its iterations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import branches, exits, ranges, templates
from ferrule.language.lowering.control.assumptions import Assumed, Retry, active
from ferrule.language.lowering.control.joins import NOTHING, Sides, choices, joined, one_side
from ferrule.language.lowering.control.loop_variables import Carried, carry, yielded
from ferrule.language.lowering.control.mutation import unchanged
from ferrule.language.lowering.control.narrowing import narrow
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number, Undefined
from ferrule.specs import Boolean, DType
from ferrule.specs.deferred import dataclass

# Where the type of a name changes in a loop, the loop is lowered again with the new type; types
# that never settle end here.
_MAX_ATTEMPTS: Final = 100


def assigned_names(body: Iterable[ast.AST]) -> list[str]:
    """Names that these statements assign, in order of first appearance, without nested
    functions."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.GeneratorExp)):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id)
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in body:
        visit(statement)
    return list(found)


@dataclass(slots=True)
class _Attempt:
    """A loop that is being lowered: its carried values, and its early exits.

    `copies` are the objects of values in an iteration, `begins` what their attributes had at its
    begin.  `over` tells inside the test whether the loop is over.  The loop carries it and the
    return value after the names; no other code in the loop reads these.
    """

    low: Lowering
    node: ast.For | ast.While
    ways: set[str]
    carried: Carried
    assumed: Assumed
    begins: dict[str, Any] = field(default_factory=dict)
    copies: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    over: ops.Value = field(default_factory=lambda: ops.Value(Boolean, "over"))
    flags: dict[str, Any] = field(default_factory=dict)
    results: list[ops.Value] = field(default_factory=list)

    def run_body(self, before: Callable[[], None]) -> list[ops.Value]:
        """Runs an iteration, and returns the next carried values."""
        low = self.low
        low.names.update(exits.START)
        before()
        low.execute(self.node.body)
        if self.copies:
            from ferrule.language.lowering.control import value_objects

            carries = self.carried.names
            value_objects.require_carried(low, self.copies, self.begins, carries, self.assumed)
            value_objects.leave(low, self.copies)
            value_objects.settle(low, self.roots())
        names = {**exits.START, **low.names}
        self.flags = {flag: names[flag] for flag in (exits.BREAK, exits.RETURN, exits.VALUE)}
        return yielded(low, self.carried, self.assumed, self.node)

    def roots(self) -> list[str]:
        """The names that the loop carries, without those of attributes."""
        return [name for name in self.carried.names if "." not in name]

    def leaving(self) -> list[ops.Value]:
        """The values from which the next test, and the code after the loop, know how the body was
        left."""
        if not self.ways:
            return []
        numbers: list[Any] = [self.flags[exits.BREAK]]
        if exits.RETURN in self.ways:
            numbers += [self.flags[exits.RETURN]]
        values = [coercion.as_number(self.low, x, self.node, Boolean).value for x in numbers]
        if exits.RETURN in self.ways:
            for choice in choices(self.low, self._value(), self.node):
                values += one_side(self.low, choice, choice[0].left, self.node)
        return values

    def _value(self) -> Sides:
        """The return value in the loop, if there is one."""
        return Sides("returned", "the returned value", self.flags[exits.VALUE], NOTHING)

    def emit_while(
        self,
        test: ops.Region,
        body: Callable[..., ops.Region],
        yields: list[ops.Value],
        counters: Sequence[tuple[ops.Value, ops.Value]] = (),
    ) -> None:
        """Emits a `While`.  `counters` are further carried values: initial and in an iteration."""
        leaving = yields[len(self.carried.initial) + len(counters) :]
        insides = [self.over, *(ops.Value(v.type, "returned") for v in leaving[1:])]
        insides = insides if leaving else []
        initial = [templates.zero(self.low, value.type) for value in leaving]
        begin = (*self.carried.initial, *(first for first, _ in counters), *initial)
        inside = (*self.carried.inside, *(each for _, each in counters), *insides)
        results = tuple(ops.Value(value.type, value.hint) for value in inside)
        self.low.builder.append(ops.While(results, begin, inside, test, body(*yields)))
        count = len(self.carried.initial)
        self.results = [*results[:count], *results[count + len(counters) :]]

    def after(self) -> dict[str, Any]:
        """The names after the loop, including the flags of the enclosing code.

        `BREAK` tells whether the loop ended early.
        """
        results = iter(self.results)
        names = self.carried.after(results)
        names |= exits.START
        if self.ways:
            names[exits.BREAK] = Number(next(results))
        if exits.RETURN in self.ways:
            names[exits.RETURN] = Number(next(results))
            found = iter(choices(self.low, self._value(), self.node))
            names[exits.VALUE] = joined(self.low, self._value(), found, results, self.node)
        return names


def _dtype(value: ops.Value) -> DType:
    assert isinstance(value.type, DType)
    return value.type


# ---- counted loops ----


def for_range(
    low: Lowering,
    node: ast.For,
    bounds: Sequence[Any],
    hints: ops.LoopHints | None = None,
    bind: Callable[[Number], None] | None = None,
    flags: tuple[str, ...] = (),
) -> None:
    """`for i in range(...)`: a run-time loop; `bind` assigns the target from an index; `flags` are
    the fast-math flags of its body."""
    if bind is None:
        name = _target(low, node)
        bind = partial(low.names.__setitem__, name)
    else:
        name = "i"
    named = bind
    limits = ranges.bounds(low, bounds, node)
    index = ops.Value(limits.start.type, name)

    def counted(loop: _Attempt) -> None:
        with low.builder.region() as region, low.in_region(), low.builder.relaxed(flags):
            yields = loop.run_body(lambda: named(Number(index)))
        results = tuple(ops.Value(v.type, v.hint) for v in loop.carried.inside)
        initial, inside = loop.carried.initial, loop.carried.inside
        body = region.freeze(*yields)
        three = (limits.start, limits.stop, limits.step)
        low.builder.append(ops.For(results, index, *three, initial, inside, body, hints))
        loop.results = list(results)

    def until_over(loop: _Attempt) -> None:
        count = ranges.count(low, limits)
        at = ops.Value(count.type, "trip")
        with low.builder.region() as test:
            more = low.builder.compare("lt", at, count)
            runs = low.builder.binary("and", low.builder.unary("not", loop.over), more)
        with low.builder.region() as region, low.in_region():
            here = Number(ranges.at(low, limits, at, name))
            with low.builder.relaxed(flags):
                yields = loop.run_body(lambda: named(here))
            following = low.builder.binary("add", at, low.builder.constant(_dtype(at), 1))
            yields += [following, *loop.leaving()]
        first = low.builder.constant(_dtype(at), 0)
        loop.emit_while(test.freeze(runs), region.freeze, yields, [(first, at)])

    ways = exits.ways_out(node.body)
    _loop(low, node, ways, until_over if ways else counted)


def _target(low: Lowering, node: ast.For) -> str:
    if not isinstance(node.target, ast.Name):
        low.fail(node.target, "the target of a loop over range must be a name")
    return node.target.id


# ---- while ----


def while_loop(low: Lowering, node: ast.While) -> None:
    """`while` on a run-time condition, or a constant one that its body ends."""
    ways = exits.ways_out(node.body)
    forever = False

    def condition(loop: _Attempt) -> Number:
        nonlocal forever

        def decide() -> Any:
            nonlocal forever
            decided = low.decide(node.test)
            forever = decided is True
            if isinstance(decided, bool) and not (decided and ways):
                if decided:  # only up to the first iteration: the body may change its kind
                    with low.builder.region(), low.in_region():
                        loop.run_body(lambda: None)
                low.fail(
                    node.test,
                    f"the condition of this loop is always {decided}",
                    expected="a condition that the loop changes, or a break",
                )
            return decided

        if not ways:
            return decide()  # type: ignore[no-any-return]
        runs = Number(low.builder.unary("not", loop.over))
        return branches.short_circuit(low, runs, decide, node.test, is_and=True)

    def emit(loop: _Attempt) -> None:
        with low.builder.region() as test, low.in_region():
            runs = condition(loop)
        with low.builder.region() as region, low.in_region():
            yields = loop.run_body(lambda: low.names.update(narrow(low, node.test).true))
            yields += loop.leaving()
        loop.emit_while(test.freeze(runs.value), region.freeze, yields)

    _loop(low, node, ways, emit)
    if forever and exits.BREAK not in ways:
        exits.leave(low, exits.RETURN)


# ---- common parts ----


def _loop(
    low: Lowering, node: ast.For | ast.While, ways: set[str], emit: Callable[[_Attempt], None]
) -> None:
    """Emits a loop, repeatedly if its names turn out to need other assumptions; then its else."""
    branches.spread(low)
    before = dict(low.names)
    target = [node.target] if isinstance(node, ast.For) else []
    names = assigned_names([*target, *node.body])
    assumed = Assumed()
    for _ in range(_MAX_ATTEMPTS):
        branches.replace_names(low, before)
        low.state.writes += 1
        with low.builder.region() as region:
            changing = _changing(low, names, assumed)
            carried = carry(low, [*(n for n in names if n in before), *changing], assumed, node)
            loop = _Attempt(low, node, ways, carried, assumed)
            _renew(low, loop)
            loop.begins = dict(low.names)
            kernels = low.state.undone_by(Retry)
            try:
                with unchanged(low, node, assumed), active(low, assumed, carried.leaves), kernels:
                    loop.copies = _copied(low)
                    emit(loop)
            except Retry as retry:
                if retry.owner is not assumed:
                    raise
                assumed.add(retry.found)
                continue
        for op in region.ops:
            low.builder.append(op)
        break
    else:
        low.fail(node, f"the types of {', '.join(assumed.dtypes)} change with every iteration")
    line = low.location(node).line
    reason = f"it is assigned only in the loop in line {line}"
    fresh = {name: Undefined(reason) for name in names if name not in before}
    clashed = {name: assumed.undefined(name, line) for name in assumed.clashes}
    branches.replace_names(low, {**before, **fresh, **clashed, **loop.after()})
    _renew(low, loop)
    branches.store(low)
    end_loop(low, node)


def _changing(low: Lowering, names: list[str], assumed: Assumed) -> list[str]:
    """The attributes of objects of values that a loop carries."""
    if not low.state.has_objects:
        return []
    from ferrule.language.lowering.control import value_objects

    return value_objects.carried(low, names, assumed)


def _renew(low: Lowering, loop: _Attempt) -> None:
    """Names for the attributes of the objects that the loop carries, which it has made anew."""
    if low.state.has_objects:
        from ferrule.language.lowering.control import value_objects

        value_objects.renew(low, loop.roots())


def _copied(low: Lowering) -> dict[str, tuple[Any, Any]]:
    """The objects of values that an iteration has copies of."""
    if not low.state.has_objects:
        return {}
    from ferrule.language.lowering.control import value_objects

    return value_objects.enter(low)


def end_loop(low: Lowering, node: ast.For | ast.While) -> None:
    """Runs the else of a loop unless it ended by `break`, and leaves the loop.

    `BREAK` tells whether it did.  After the loop a `return` counts, and exits of its else from the
    enclosing loop.
    """
    broken = low.names.get(exits.BREAK, False)
    if node.orelse:
        low.names[exits.CONTINUE] = broken
        branches.unless_gone(low, lambda: low.execute(node.orelse), node)
    over = low.names.get(exits.RETURN, False)
    around = {exits.BREAK: over, exits.CONTINUE: over}
    if exits.leaves_around(node.orelse):
        around = {flag: _by_else(low, low.names[flag], broken, over) for flag in around}
    low.names.update(around)


def _by_else(
    low: Lowering, flag: bool | Number, broken: bool | Number, over: bool | Number
) -> bool | Number:
    """Whether a flag is true after a loop: by a return, or by the else, without `broken`."""
    build = low.builder
    if flag is False or broken is True:
        return over
    if isinstance(broken, Number):
        ran = Number(build.unary("not", broken.value))
        flag = Number(build.binary("and", flag.value, ran.value)) if flag is not True else ran
    if flag is True or over is False:
        return flag
    return over if over is True else Number(build.binary("or", flag.value, over.value))


def unrolled(
    low: Lowering, node: ast.For, items: Iterable[Any], bind: Callable[[Any], None]
) -> None:
    """A loop over compile-time items: runs the iterations in order, until one has left."""

    def iteration(item: Any) -> None:
        low.names.update(exits.RUNNING)
        bind(item)
        low.execute(node.body)
        low.names[exits.CONTINUE] = low.names.get(exits.BREAK, False)

    for item in items:
        branches.unless_gone(low, lambda item=item: iteration(item), node)  # type: ignore[misc]
    end_loop(low, node)

"""Loops on run-time values: a loop carries the names that it assigns and that had a value before.

What is carried are numbers, or tuples of them, of one dtype in every iteration.  A Python number
that begins a loop takes the dtype that an iteration gives it: the loop is lowered again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.lowering import operators
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import rebuild, replace_names, same
from ferrule.language.lowering.objects import unchanged
from ferrule.language.promotion import weak
from ferrule.language.values import Number, Undefined
from ferrule.specs import DType, Int32, Int64, Numeric, Uint32

_MAX_ATTEMPTS: Final = 100


def assigned_names(body: Iterable[ast.AST]) -> list[str]:
    """Names that these statements assign, in order of first appearance; nested functions' not."""
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


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A number that a loop carries: where it is, what it begins with and is in an iteration.

    `number` is the Python number that it begins with, if it is one.
    """

    path: str
    initial: ops.Value
    inside: ops.Value
    number: Any

    @property
    def dtype(self) -> DType:
        """The dtype of the number."""
        assert isinstance(self.inside.type, DType)
        return self.inside.type


@dataclass(frozen=True, slots=True)
class _Carried:
    """The names that a loop carries, and their numbers; `fixed` are those it must not change."""

    names: tuple[str, ...]
    leaves: tuple[_Leaf, ...]
    fixed: dict[str, Any]

    @property
    def initial(self) -> tuple[ops.Value, ...]:
        """What the carried numbers begin with."""
        return tuple(leaf.initial for leaf in self.leaves)

    @property
    def values(self) -> tuple[ops.Value, ...]:
        """The carried numbers in an iteration."""
        return tuple(leaf.inside for leaf in self.leaves)


class _Retry(Exception):
    """A carried name needs another dtype than was assumed."""

    def __init__(self, dtypes: dict[str, DType]) -> None:
        self.dtypes = dtypes


def for_range(low: Lowering, node: ast.For, bounds: Sequence[Any]) -> None:
    """`for i in range(...)`: a run-time loop."""
    start, stop, step = _bounds(low, bounds, node)

    def emit(carried: _Carried) -> tuple[ops.Value, ...]:
        index = ops.Value(start.type, _target_hint(node.target))
        with low.builder.region() as region, low.in_region():
            low.execute([*_assign_index(low, node, index), *node.body])
            yields = _yields(low, carried, node)
        results = tuple(ops.Value(v.type, v.hint) for v in carried.values)
        low.builder.append(
            ops.For(
                results,
                index,
                start,
                stop,
                step,
                carried.initial,
                carried.values,
                region.freeze(*yields),
            )
        )
        return results

    _loop(low, node, [node.target, *node.body], emit)


def _target_hint(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else "i"


def _assign_index(low: Lowering, node: ast.For, index: ops.Value) -> list[ast.stmt]:
    if not isinstance(node.target, ast.Name):
        low.fail(node.target, "the target of a loop over range must be a name")
    low.names[node.target.id] = Number(index)
    return []


def _bounds(
    low: Lowering, bounds: Sequence[Any], node: ast.For
) -> tuple[ops.Value, ops.Value, ops.Value]:
    """Start, stop and step in one integer dtype."""
    if not 1 <= len(bounds) <= 3:
        low.fail(node.iter, f"range takes 1 to 3 arguments, but got {len(bounds)}")
    full = [operators.plain(v) for v in ((0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3])]
    if not isinstance(full[2], Number) and full[2] == 0:
        low.fail(node.iter, "the step of range must not be 0")
    dtype = Int64 if any(map(_is_wide, full)) else Int32
    values = []
    for value in full:
        number = operators.as_number(low, value, node.iter, dtype)
        if not number.dtype.is_integer:
            low.fail(node.iter, f"range takes integers, but got {operators.describe(value)}")
        values.append(operators.convert(low, number, dtype).value)
    if isinstance(full[2], Number) and low.kind == "host":
        _check_step(low, values[2], node)
    return values[0], values[1], values[2]


def _is_wide(value: Any) -> bool:
    """Whether 32 signed bits may not hold a bound."""
    if isinstance(value, Number):
        return value.dtype.bits > 32 or value.dtype is Uint32
    number = value.value if isinstance(value, Numeric) else value
    return isinstance(number, int) and not -(1 << 31) <= number < 1 << 31


def _check_step(low: Lowering, step: ops.Value, node: ast.For) -> None:
    assert isinstance(step.type, DType)
    zero = low.builder.constant(step.type, 0)
    fault = Fault("ValueError", "range() arg 3 must not be zero", low.location(node.iter))
    low.builder.check(low.builder.compare("ne", step, zero), fault)


def while_loop(low: Lowering, node: ast.While) -> None:
    """`while` on a run-time condition."""

    def emit(carried: _Carried) -> tuple[ops.Value, ...]:
        with low.builder.region() as test, low.in_region():
            condition = low.decide(node.test)
            if isinstance(condition, bool):
                low.fail(
                    node.test,
                    f"the condition of this loop is always {condition}",
                    expected="a condition that the loop changes",
                )
        with low.builder.region() as region, low.in_region():
            low.execute(node.body)
            yields = _yields(low, carried, node)
        results = tuple(ops.Value(v.type, v.hint) for v in carried.values)
        low.builder.append(
            ops.While(
                results,
                carried.initial,
                carried.values,
                test.freeze(condition.value),
                region.freeze(*yields),
            )
        )
        return results

    _loop(low, node, node.body, emit)


def _loop(
    low: Lowering,
    node: ast.For | ast.While,
    assigned: Sequence[ast.AST],
    emit: Callable[[_Carried], tuple[ops.Value, ...]],
) -> None:
    """Emits a loop; a Python number that turns out to carry another dtype starts it again."""
    before = dict(low.names)
    names = assigned_names(assigned)
    dtypes: dict[str, DType] = {}
    for _ in range(_MAX_ATTEMPTS):
        replace_names(low, before)
        low.state.writes += 1
        with low.builder.region() as attempt, unchanged(low, node):
            carried = _carry(low, [n for n in names if n in before], dtypes, node)
            try:
                results = emit(carried)
            except _Retry as retry:
                dtypes |= retry.dtypes
                continue
        for op in attempt.ops:
            low.builder.append(op)
        break
    else:
        low.fail(node, f"the types of {', '.join(dtypes)} change with every iteration of this loop")
    remaining = iter(results)
    after = {name: rebuild(before[name], remaining) for name in carried.names}
    reason = f"it is assigned only in the loop in line {low.location(node).line}"
    fresh = {name: Undefined(reason) for name in names if name not in before}
    replace_names(low, {**before, **fresh, **after})


def _carry(low: Lowering, names: list[str], dtypes: dict[str, DType], node: ast.AST) -> _Carried:
    """Gives the names that a loop assigns the values of an iteration."""
    leaves: list[_Leaf] = []
    carried: list[str] = []

    def enter(path: str, hint: str, value: Any) -> Any:
        if isinstance(value, tuple):
            items = [enter(f"{path}[{i}]", hint, item) for i, item in enumerate(value)]
            return tuple.__new__(type(value), items)
        number = operators.as_number(low, value, node, dtypes.get(path))
        begins = None if isinstance(value, (Number, Numeric)) else operators.plain(value)
        leaves.append(_Leaf(path, number.value, ops.Value(number.dtype, hint), begins))
        return Number(leaves[-1].inside)

    for name in names:
        if _can_carry(low.names[name]):
            carried.append(name)
            low.names[name] = enter(name, name, low.names[name])
    fixed = {name: low.names[name] for name in names if name not in carried}
    return _Carried(tuple(carried), tuple(leaves), fixed)


def _can_carry(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(_can_carry(item) for item in value)
    return isinstance(value, Number) or operators.is_python_number(value)


def _yields(low: Lowering, carried: _Carried, node: ast.AST) -> list[ops.Value]:
    """The carried names' values at the end of an iteration."""
    for name, value in carried.fixed.items():
        if not isinstance(value, Undefined) and not same(value, low.names[name]):
            _fail_changed(low, repr(name), operators.describe(value), low.names[name], node)
    after = [leaf for name in carried.names for leaf in _leaves(name, low.names[name])]
    if [path for path, _ in after] != [leaf.path for leaf in carried.leaves]:
        low.fail(node, f"the tuples {', '.join(carried.names)} change their length in this loop")
    result: list[ops.Value] = []
    retry: dict[str, DType] = {}
    for leaf, (path, value) in zip(carried.leaves, after, strict=True):
        if not isinstance(value, Number) and not operators.is_python_number(value):
            _fail_changed(low, repr(path), leaf.dtype.name, value, node)
        number = operators.as_number(low, value, node, leaf.dtype)
        if number.dtype is not leaf.dtype:
            _check_retry(low, leaf, number.dtype, node)
            retry[path] = number.dtype
        result.append(number.value)
    if retry:
        raise _Retry(retry)
    return result


def _fail_changed(low: Lowering, label: str, before: str, after: Any, node: ast.AST) -> NoReturn:
    low.fail(
        node,
        f"{label} is {before} before this loop and {operators.describe(after)} after an iteration",
        expected="numbers, or tuples of numbers, where a loop changes a name",
        hint="give what the loop assigns another name, if it is not needed after an iteration",
    )


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _leaves(f"{path}[{i}]", item)
    else:
        yield path, value


def _check_retry(low: Lowering, leaf: _Leaf, dtype: DType, node: ast.AST) -> None:
    """A Python number can begin with another dtype if that holds it; else the type changes."""
    if leaf.number is None or weak(leaf.number, dtype) is not dtype:
        low.fail(
            node,
            f"{leaf.path!r} changes its type in this loop: it is {leaf.dtype.name} before it "
            f"and {dtype.name} after an iteration",
            hint=f"start with fe.{dtype.__name__}(...), or convert in the loop",
        )

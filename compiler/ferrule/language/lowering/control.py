"""Branches and loops on run-time values: regions, and the names that they change.

A branch runs both sides on copies of the names; a name whose value differs afterwards becomes a
result of the `If`.  A loop carries the names that it assigns and that had a value before.  What a
region changes must be numbers, or tuples of them, of one dtype on every way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.lowering import operators
from ferrule.language.lowering.context import MAX_UNROLL, Lowering
from ferrule.language.lowering.narrowing import narrow
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.language.values import RUN_TIME, Number, Undefined
from ferrule.specs import DType, Int32, Int64, Numeric

_PURE = (
    ops.Constant,
    ops.Special,
    ops.Unary,
    ops.Compare,
    ops.Cast,
    ops.Select,
    ops.Binary,
)


def is_pure(op: ops.Op) -> bool:
    """Whether an op may run although its result is not wanted: no memory, no fault, no region."""
    return isinstance(op, _PURE) or (isinstance(op, ops.Size) and op.fault is None)


def compile_time_items(low: Lowering, value: Any, node: ast.AST) -> list[Any]:
    """The items of something that a loop unrolls over."""
    if isinstance(value, RUN_TIME):
        low.fail(
            node,
            f"{operators.describe(value)} cannot be iterated",
            hint="count with range(...) and read elements",
        )
    items: list[Any] = []
    for item in operators.at_compile_time(low, node, lambda: iter(value)):
        if len(items) == MAX_UNROLL:
            low.fail(node, f"the loop unrolls more than {MAX_UNROLL} times", hint="use range(...)")
        items.append(item)
    return items


@dataclass(frozen=True, slots=True)
class _Branch:
    """One side of a run-time condition: its region, still open, and the names after it."""

    region: OpenRegion
    names: dict[str, Any]


@contextmanager
def _unchanged_objects(low: Lowering, node: ast.AST) -> Iterator[None]:
    """Refuses code that changes a list, dict or set under a run-time condition."""
    before = {
        name: (value, type(value)(value))
        for name, value in low.names.items()
        if type(value) in (list, dict, set)
    }
    yield
    for name, (value, copy) in before.items():
        if len(value) != len(copy) or any(a is not b for a, b in zip(value, copy, strict=True)):
            low.fail(
                node,
                f"the {type(value).__name__} {name!r} is changed inside a run-time branch or loop",
                expected="changes that happen at compile time, outside of it",
            )


def branch(low: Lowering, condition: Number, node: ast.If) -> None:
    """`if` on a run-time condition."""
    before = dict(low.names)
    known = narrow(low, node.test)
    then = _run_branch(low, node.body, before, known.true, node)
    otherwise = _run_branch(low, node.orelse, before, known.false, node)
    _replace_names(low, before)
    merged = [
        name
        for name in {**then.names, **otherwise.names}
        if not _same(then.names.get(name), otherwise.names.get(name))
    ]
    yields: list[tuple[str, Any, Any]] = []
    for name in merged:
        if name not in then.names or name not in otherwise.names:
            low.names[name] = Undefined(
                f"it is assigned on only one side of the condition in line "
                f"{low.location(node).line}"
            )
            continue
        left, right = then.names[name], otherwise.names[name]
        if isinstance(left, Undefined) or isinstance(right, Undefined):
            low.names[name] = left if isinstance(left, Undefined) else right
        else:
            yields.append((name, left, right))
    _join(low, condition, then.region, otherwise.region, yields, node)


def _run_branch(
    low: Lowering,
    body: list[ast.stmt],
    names: dict[str, Any],
    known: dict[str, Any],
    node: ast.AST,
) -> _Branch:
    """Runs one side; `known` are the names that the condition tells more about there."""
    _replace_names(low, {**names, **known})
    with low.builder.region() as region, low.in_region(), _unchanged_objects(low, node):
        low.execute(body)
    for name, narrowed in known.items():
        if low.names.get(name) is narrowed:
            low.names[name] = names[name]
    return _Branch(region, dict(low.names))


def _replace_names(low: Lowering, names: dict[str, Any]) -> None:
    low.names.clear()
    low.names.update(names)


def _same(left: Any, right: Any) -> bool:
    """Whether a name holds the same on both sides, so that nothing needs to be chosen."""
    if left is right:
        return True
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(_same(a, b) for a, b in zip(left, right, strict=True))
    known = (bool, int, float, str, type(None), Numeric)
    return isinstance(left, known) and type(left) is type(right) and bool(left == right)


def _join(
    low: Lowering,
    condition: Number,
    then: OpenRegion,
    otherwise: OpenRegion,
    merged: list[tuple[str, Any, Any]],
    node: ast.AST,
) -> None:
    """Emits the `If` and gives the names their results."""
    leaves = [
        leaf for name, left, right in merged for leaf in _pair_leaves(low, name, left, right, node)
    ]
    dtypes = [_common_dtype(low, name, a, b, node) for name, a, b in leaves]
    pairs = list(zip(leaves, dtypes, strict=True))
    with low.builder.region(then):
        left_values = [operators.as_number(low, a, node, d).value for (_, a, _), d in pairs]
    with low.builder.region(otherwise):
        right_values = [operators.as_number(low, b, node, d).value for (_, _, b), d in pairs]
    hints = tuple(_hint(name) for name, _, _ in leaves)
    results = iter(
        low.builder.if_(
            condition.value, then.freeze(*left_values), otherwise.freeze(*right_values), hints
        )
    )
    for name, left, _ in merged:
        low.names[name] = _rebuild(left, results)


def _hint(name: str) -> str:
    return name.split("[")[0]


def _pair_leaves(
    low: Lowering, name: str, left: Any, right: Any, node: ast.AST
) -> list[tuple[str, Any, Any]]:
    """Both values of a name, tuples taken apart."""
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        items = enumerate(zip(left, right, strict=True))
        return [x for i, (a, b) in items for x in _pair_leaves(low, f"{name}[{i}]", a, b, node)]
    return [(name, left, right)]


def _rebuild(template: Any, results: Iterator[ops.Value]) -> Any:
    if isinstance(template, tuple):
        return tuple(_rebuild(item, results) for item in template)
    return Number(next(results))


def _common_dtype(low: Lowering, name: str, left: Any, right: Any, node: ast.AST) -> DType:
    """The one dtype that a name has on both ways.  A CompileError where it changes."""
    left, right = operators.plain(left), operators.plain(right)
    for value in (left, right):
        if not isinstance(value, Number) and not operators.is_python_number(value):
            low.fail(
                node,
                f"{name!r} is {operators.describe(left)} on one way and "
                f"{operators.describe(right)} on the other",
                expected="numbers, or tuples of numbers, where a run-time condition decides",
            )
    lhs, rhs = _dtype(left, right), _dtype(right, left)
    if lhs is not rhs:
        low.fail(
            node,
            f"{name!r} changes its type: it is {lhs.name} on one way and {rhs.name} on the other",
            hint=f"convert one of them, such as fe.{_wider(lhs, rhs).__name__}(...)",
        )
    return lhs


def _wider(left: DType, right: DType) -> DType:
    try:
        return promote(left, right)
    except NoCommonType:
        return right


def _dtype(value: Any, other: Any) -> DType:
    """The dtype of a value; a Python number takes the other side's where that can hold it."""
    if isinstance(value, Number):
        return value.dtype
    if isinstance(value, Numeric):
        return type(value)
    if isinstance(other, Number):
        return weak(value, other.dtype)
    if isinstance(other, Numeric):
        return weak(value, type(other))
    if isinstance(other, float) and not isinstance(value, bool):
        return weak(float(value), None)
    return weak(value, None)


def choose(low: Lowering, condition: Number, node: ast.IfExp) -> Any:
    """`a if c else b` on a run-time condition."""
    saved = dict(low.names)
    known = narrow(low, node.test)
    with low.builder.region() as then, low.in_region():
        _replace_names(low, {**saved, **known.true})
        left = low.evaluate(node.body)
    with low.builder.region() as otherwise, low.in_region():
        _replace_names(low, {**saved, **known.false})
        right = low.evaluate(node.orelse)
    _replace_names(low, saved)
    if _same(left, right):
        return left
    _join(low, condition, then, otherwise, [("value", left, right)], node)
    result = low.names["value"]
    _replace_names(low, saved)
    return result


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
class _Carried:
    """The names that a loop carries, with the values that they have in an iteration."""

    names: tuple[str, ...]
    initial: tuple[ops.Value, ...]
    values: tuple[ops.Value, ...]


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
    full = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if operators.plain(full[2]) == 0 and not isinstance(full[2], Number):
        low.fail(node.iter, "the step of range must not be 0")
    wide = any(isinstance(v, Number) and v.dtype.bits > 32 for v in full) or any(
        isinstance(v, int) and not -(1 << 31) <= v < 1 << 31 for v in full
    )
    values = []
    for value in full:
        number = operators.as_number(low, value, node.iter, Int64 if wide else Int32)
        if not number.dtype.is_integer:
            low.fail(node.iter, f"range takes integers, but got {operators.describe(value)}")
        values.append(operators.convert(low, number, Int64 if wide else Int32).value)
    if isinstance(full[2], Number) and low.kind == "host":
        _check_step(low, values[2], node)
    return values[0], values[1], values[2]


def _check_step(low: Lowering, step: ops.Value, node: ast.For) -> None:
    assert isinstance(step.type, DType)
    zero = low.builder.constant(step.type, 0)
    fault = Fault("ValueError", "range() arg 3 must not be zero", low.location(node.iter))
    low.builder.check(low.builder.compare("ne", step, zero), fault)


def while_loop(low: Lowering, node: ast.While) -> None:
    """`while` on a run-time condition."""

    def emit(carried: _Carried) -> tuple[ops.Value, ...]:
        with low.builder.region() as test, low.in_region():
            condition = operators.truth(low, low.evaluate(node.test), node.test)
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
    for _ in range(len(names) + 1):
        _replace_names(low, before)
        with low.builder.region() as attempt, _unchanged_objects(low, node):
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
        raise AssertionError("the dtypes of a loop's carried names did not settle")
    remaining = iter(results)
    after = {name: _rebuild(before[name], remaining) for name in carried.names}
    reason = f"it is assigned only in the loop in line {low.location(node).line}"
    fresh = {name: Undefined(reason) for name in names if name not in before}
    _replace_names(low, {**before, **fresh, **after})


def _carry(low: Lowering, names: list[str], dtypes: dict[str, DType], node: ast.AST) -> _Carried:
    """Gives the names that a loop assigns the values of an iteration."""
    initial: list[ops.Value] = []
    values: list[ops.Value] = []
    carried: list[str] = []

    def enter(path: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(enter(f"{path}[{i}]", item) for i, item in enumerate(value))
        number = operators.as_number(low, value, node, dtypes.get(path))
        initial.append(number.value)
        values.append(ops.Value(number.dtype, _hint(path)))
        return Number(values[-1])

    for name in names:
        if _can_carry(low.names[name]):
            carried.append(name)
            low.names[name] = enter(name, low.names[name])
    return _Carried(tuple(carried), tuple(initial), tuple(values))


def _can_carry(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(_can_carry(item) for item in value)
    return isinstance(value, Number) or operators.is_python_number(value)


def _yields(low: Lowering, carried: _Carried, node: ast.AST) -> list[ops.Value]:
    """The carried names' values at the end of an iteration."""
    leaves = [leaf for name in carried.names for leaf in _leaves(name, low.names[name])]
    if len(leaves) != len(carried.values):
        low.fail(node, f"the tuples {', '.join(carried.names)} change their length in this loop")
    result, retry = [], {}
    pairs = zip(leaves, carried.values, carried.initial, strict=True)
    for (path, value), inside, _ in pairs:
        assert isinstance(inside.type, DType)
        if not isinstance(value, Number) and not operators.is_python_number(value):
            low.fail(
                node,
                f"{path!r} is {inside.type.name} before this loop and "
                f"{operators.describe(value)} after an iteration",
            )
        number = operators.as_number(low, value, node, inside.type)
        if number.dtype is not inside.type:
            retry[path] = number.dtype
        result.append(number.value)
    if retry:
        _retry_or_fail(low, retry, carried, leaves, node)
    return result


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from _leaves(f"{path}[{i}]", item)
    else:
        yield path, value


def _retry_or_fail(
    low: Lowering,
    retry: dict[str, DType],
    carried: _Carried,
    leaves: list[tuple[str, Any]],
    node: ast.AST,
) -> None:
    """Starts again where Python numbers began the loop; otherwise the type changes: an error."""
    for (path, _), inside, initial in zip(leaves, carried.values, carried.initial, strict=True):
        if path in retry and initial.hint != "c":
            assert isinstance(inside.type, DType)
            low.fail(
                node,
                f"{path!r} changes its type in this loop: it is {inside.type.name} before it "
                f"and {retry[path].name} after an iteration",
                hint=f"start with fe.{retry[path].__name__}(...), or convert in the loop",
            )
    raise _Retry(retry)

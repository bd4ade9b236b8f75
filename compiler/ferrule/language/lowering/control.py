"""Branches on run-time values: regions, and the names that they change.

A branch runs both sides on copies of the names; a name whose value differs afterwards becomes a
result of the `If`.  What it changes must be numbers, or tuples of them, of one dtype on both ways.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.lowering import operators
from ferrule.language.lowering.context import MAX_UNROLL, MAX_UNROLLED, Lowering
from ferrule.language.lowering.narrowing import narrow
from ferrule.language.lowering.objects import unchanged
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.language.values import RUN_TIME, Number, Undefined
from ferrule.specs import DType, Numeric

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
    iterator = operators.at_compile_time(low, node, lambda: iter(value))
    items: list[Any] = operators.at_compile_time(
        low, node, lambda: list(islice(iterator, MAX_UNROLL + 1))
    )
    if len(items) > MAX_UNROLL:
        low.fail(node, f"the loop unrolls more than {MAX_UNROLL} times", hint="use range(...)")
    low.state.unrolled += len(items)
    if low.state.unrolled > MAX_UNROLLED:
        low.fail(
            node,
            f"the loops of this program unroll more than {MAX_UNROLLED} times altogether",
            hint="use range(...) for some of them",
        )
    return items


@dataclass(frozen=True, slots=True)
class _Branch:
    """One side of a run-time condition: its region, still open, and the names after it."""

    region: OpenRegion
    names: dict[str, Any]


def branch(low: Lowering, condition: Number, node: ast.If) -> None:
    """`if` on a run-time condition."""
    before = dict(low.names)
    known = narrow(low, node.test)
    then = _run_branch(low, node.body, before, known.true, node)
    otherwise = _run_branch(low, node.orelse, before, known.false, node)
    replace_names(low, before)
    merged = [
        name
        for name in {**then.names, **otherwise.names}
        if not same(then.names.get(name), otherwise.names.get(name))
    ]
    chosen: dict[str, tuple[Any, Any]] = {}
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
            chosen[name] = (left, right)
    sides = [Sides(name, repr(name), *pair) for name, pair in chosen.items()]
    values = _join(low, condition, then.region, otherwise.region, sides, node)
    low.names.update(zip(chosen, values, strict=True))


def _run_branch(
    low: Lowering,
    body: list[ast.stmt],
    names: dict[str, Any],
    known: dict[str, Any],
    node: ast.AST,
) -> _Branch:
    """Runs one side; `known` are the names that the condition tells more about there."""
    replace_names(low, {**names, **known})
    with low.builder.region() as region, low.in_region(), unchanged(low, node):
        low.execute(body)
    for name, narrowed in known.items():
        if low.names.get(name) is narrowed:
            low.names[name] = names[name]
    return _Branch(region, dict(low.names))


def replace_names(low: Lowering, names: dict[str, Any]) -> None:
    """Puts these names in place of the frame's, in the same dict."""
    low.names.clear()
    low.names.update(names)


def same(left: Any, right: Any) -> bool:
    """Whether a name holds the same on both ways, so that nothing needs to be chosen."""
    if left is right:
        return True
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return type(left) is type(right) and all(map(same, left, right))
    known = (bool, int, float, str, type(None), Numeric)
    # By their text, which tells 0.0 from -0.0.
    return isinstance(left, known) and type(left) is type(right) and repr(left) == repr(right)


@dataclass(frozen=True, slots=True)
class Sides:
    """What a name has on both sides of a condition; `label` is what messages call it."""

    hint: str
    label: str
    left: Any
    right: Any

    def leaves(self) -> Iterator[Sides]:
        """The numbers in it: tuples taken apart."""
        left, right = self.left, self.right
        if not (isinstance(left, tuple) and type(left) is type(right) and len(left) == len(right)):
            yield self
            return
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            yield from Sides(self.hint, f"{self.label}[{i}]", a, b).leaves()


def _join(
    low: Lowering,
    condition: Number,
    then: OpenRegion,
    otherwise: OpenRegion,
    sides: list[Sides],
    node: ast.AST,
) -> list[Any]:
    """Emits the `If` and gives what it chooses, for each of the sides."""
    leaves = [leaf for each in sides for leaf in each.leaves()]
    pairs = [(leaf, _common_dtype(low, leaf, node)) for leaf in leaves]
    with low.builder.region(then):
        lefts = [operators.as_number(low, leaf.left, node, d).value for leaf, d in pairs]
    with low.builder.region(otherwise):
        rights = [operators.as_number(low, leaf.right, node, d).value for leaf, d in pairs]
    hints = tuple(leaf.hint for leaf in leaves)
    results = iter(
        low.builder.if_(condition.value, then.freeze(*lefts), otherwise.freeze(*rights), hints)
    )
    return [rebuild(each.left, results) for each in sides]


def rebuild(template: Any, results: Iterator[ops.Value]) -> Any:
    """A number or a tuple like the template, made of the next results."""
    if isinstance(template, tuple):
        return tuple.__new__(type(template), [rebuild(item, results) for item in template])
    return Number(next(results))


def _common_dtype(low: Lowering, sides: Sides, node: ast.AST) -> DType:
    """The one dtype that a name has on both ways.  A CompileError where it changes."""
    left, right = operators.plain(sides.left), operators.plain(sides.right)
    for value in (left, right):
        if not isinstance(value, Number) and not operators.is_python_number(value):
            low.fail(
                node,
                f"{sides.label} is {operators.describe(left)} on one way and "
                f"{operators.describe(right)} on the other",
                expected="numbers, or tuples of numbers, where a run-time condition decides",
            )
    lhs, rhs = _dtype(left, right), _dtype(right, left)
    if lhs is not rhs:
        low.fail(
            node,
            f"{sides.label} changes its type: it is {lhs.name} on one way and {rhs.name} on the "
            f"other",
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
    known = narrow(low, node.test)
    then, left = _run_side(low, node.body, known.true, node)
    otherwise, right = _run_side(low, node.orelse, known.false, node)
    if not same(left, right):
        sides = [Sides("value", "this value", left, right)]
        return _join(low, condition, then, otherwise, sides, node)[0]
    if not all(is_pure(op) for op in (*then.ops, *otherwise.ops)):
        _join(low, condition, then, otherwise, [], node)
    return left


def _run_side(
    low: Lowering, side: ast.expr, known: dict[str, Any], node: ast.AST
) -> tuple[OpenRegion, Any]:
    """One side of a conditional expression: its region, still open, and its value."""
    saved = dict(low.names)
    low.names.update(known)
    with low.builder.region() as region, low.in_region(), unchanged(low, node):
        value = low.evaluate(side)
    replace_names(low, saved)
    return region, value

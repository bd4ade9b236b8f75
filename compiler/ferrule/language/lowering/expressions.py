"""Expressions: computed now where all parts are known at compile time, else turned into ops."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, Final

from ferrule.language.lowering import attributes, calls, control, elements, operators
from ferrule.language.lowering.closures import Closure
from ferrule.language.lowering.context import MAX_UNROLL, Lowering
from ferrule.language.lowering.narrowing import narrow
from ferrule.language.values import RUN_TIME, Number, TensorView, is_run_time
from ferrule.specs import Boolean


def evaluate(low: Lowering, node: ast.expr) -> Any:
    """The value of an expression: a compile-time object, or a run-time one of `values`."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return low.lookup(name, node)
        case ast.BinOp(left=left, op=op, right=right):
            return operators.binary(low, op, low.evaluate(left), low.evaluate(right), node)
        case ast.UnaryOp(op=op, operand=operand):
            return operators.unary(low, op, low.evaluate(operand), node)
        case ast.Compare():
            return _compare(low, node)
        case ast.BoolOp():
            return _bool_op(low, node)
        case ast.IfExp():
            return _conditional(low, node)
        case ast.Attribute(value=value, attr=attr):
            return attributes.get(low, low.evaluate(value), attr, node)
        case ast.Subscript():
            return _subscript(low, node)
        case ast.Call():
            return calls.call(low, node)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            items = _items(low, elts)
            return tuple(items) if isinstance(node, ast.Tuple) else items
        case ast.Lambda():
            return Closure(low.frame.source.nested(node, _visible(low)))
        case ast.ListComp() | ast.GeneratorExp():
            return _comprehension(low, node)
        case ast.Starred() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.NamedExpr():
            low.fail(node, f"{_NAMES[type(node)]} is not supported in a compiled function")
    return _as_python(low, node)


_NAMES: Final[dict[type[ast.expr], str]] = {
    ast.Starred: "a starred expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield from",
    ast.NamedExpr: "an assignment expression (:=)",
}


def _visible(low: Lowering) -> dict[str, Any]:
    return {**low.frame.source.outer, **low.names}


def _items(low: Lowering, nodes: Iterable[ast.expr]) -> list[Any]:
    items: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items += control.compile_time_items(low, low.evaluate(node.value), node)
        else:
            items.append(low.evaluate(node))
    return items


def _as_python(low: Lowering, node: ast.expr) -> Any:
    """Any other expression is ordinary Python, if it uses no run-time value."""
    visible = _visible(low)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and is_run_time(visible.get(inner.id)):
            low.fail(
                inner,
                f"the run-time value {inner.id!r} cannot be used in this kind of expression",
                expected="values known at compile time only",
            )
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<expression>", "eval")
    return operators.at_compile_time(low, node, lambda: eval(code, visible))


def _compare(low: Lowering, node: ast.Compare) -> Any:
    """A comparison, chained ones as `and` of their parts."""
    left = low.evaluate(node.left)
    result: Any = None
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = low.evaluate(right_node)
        part = operators.compare(low, op, left, right, node)
        result = part if result is None else _both(low, result, part, node)
        left = right
    return result


def _both(low: Lowering, left: Any, right: Any, node: ast.AST) -> Any:
    if isinstance(left, Number) or isinstance(right, Number):
        lhs, rhs = (operators.as_number(low, v, node, Boolean) for v in (left, right))
        return Number(low.builder.binary("and", lhs.value, rhs.value))
    return left and right


def _bool_op(low: Lowering, node: ast.BoolOp) -> Any:
    """`and` and `or`: the right side is evaluated only where the left one does not decide."""
    is_and = isinstance(node.op, ast.And)
    result = low.evaluate(node.values[0])
    for i, right in enumerate(node.values[1:]):
        left_truth = operators.truth(low, result, node.values[i])
        if isinstance(left_truth, bool):
            if left_truth is not is_and:
                return result
            result = low.evaluate(right)
        else:
            done = node.values[: i + 1]
            left = done[0] if len(done) == 1 else ast.BoolOp(node.op, done)
            result = _short_circuit(low, left_truth, left, right, is_and)
    return result


def _short_circuit(
    low: Lowering, left: Number, left_node: ast.expr, right: ast.expr, is_and: bool
) -> Number:
    known = narrow(low, left_node)
    saved = dict(low.names)
    low.names.update(known.true if is_and else known.false)
    with low.builder.region() as region, low.in_region():
        value = operators.truth(low, low.evaluate(right), right)
        number = operators.as_number(low, value, right, Boolean)
    low.names.update(saved)
    if all(control.is_pure(op) for op in region.ops):
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


def _conditional(low: Lowering, node: ast.IfExp) -> Any:
    """`a if c else b`."""
    condition = operators.truth(low, low.evaluate(node.test), node.test)
    if isinstance(condition, bool):
        return low.evaluate(node.body if condition else node.orelse)
    return control.choose(low, condition, node)


def _subscript(low: Lowering, node: ast.Subscript) -> Any:
    base = low.evaluate(node.value)
    if isinstance(base, TensorView):
        return elements.read(low, base, elements.index(low, node.slice), node)
    if isinstance(base, RUN_TIME):
        low.fail(
            node,
            f"{operators.describe(base)} cannot be indexed",
            hint=operators.usage_hint(base),
        )
    index = operators.plain(low.evaluate(node.slice))
    if is_run_time(index):
        low.fail(
            node.slice,
            f"{type(base).__name__}s are indexed while compiling, "
            f"but this index is {operators.describe(index)}",
            hint="loop over it with range_constexpr, or keep the values in a tensor",
        )
    return operators.at_compile_time(low, node, lambda: base[index])


def _comprehension(low: Lowering, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    """`[f(x) for x in items if …]` over items known at compile time; a generator becomes a list."""
    saved = dict(low.names)
    result: list[Any] = []

    def visit(depth: int) -> None:
        if depth == len(node.generators):
            if len(result) >= MAX_UNROLL:
                low.fail(node, f"a comprehension of more than {MAX_UNROLL} items")
            result.append(low.evaluate(node.elt))
            return
        generator = node.generators[depth]
        for item in control.compile_time_items(low, low.evaluate(generator.iter), generator.iter):
            elements.bind(low, generator.target, item)
            if all(_is_true(low, test) for test in generator.ifs):
                visit(depth + 1)

    visit(0)
    low.names.clear()
    low.names.update(saved)
    return result


def _is_true(low: Lowering, test: ast.expr) -> bool:
    value = operators.truth(low, low.evaluate(test), test)
    if isinstance(value, bool):
        return value
    low.fail(test, "the condition of a comprehension must be known at compile time")

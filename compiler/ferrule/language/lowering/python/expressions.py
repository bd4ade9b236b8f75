"""Expressions: evaluated at once if all parts are compile-time values, else lowered to ops."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from ferrule.language.lowering import structures
from ferrule.language.lowering.closures import close
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import branches
from ferrule.language.lowering.control.narrowing import narrow
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.handles import is_container
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import is_number_tensor
from ferrule.language.lowering.python import calls, operators, records
from ferrule.language.lowering.tensors import access, coordinates, elements
from ferrule.language.marks import KernelFunction
from ferrule.language.values import (
    RUN_TIME,
    ConstantTable,
    CoordinateView,
    Fielded,
    Number,
    PointerView,
    SwizzledView,
    TensorView,
    Vector,
    is_run_time,
)
from ferrule.specs import Boolean, Numeric
from ferrule.specs.dtypes import as_dtype


def evaluate(low: Lowering, node: ast.expr) -> Any:
    """The value of an expression: a compile-time object, or a run-time one of `values`."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return low.lookup(name, node)
        case ast.BinOp(left=left, op=op, right=right):
            return records.binary(low, op, low.evaluate(left), low.evaluate(right), node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operators.negate(low, _operand(low, operand, decides=True), node)
        case ast.UnaryOp(op=op, operand=operand):
            return records.unary(low, op, low.evaluate(operand), node)
        case ast.Compare():
            return _compare(low, node)
        case ast.BoolOp():
            return _bool_op(low, node, decides=False)
        case ast.IfExp():
            return _conditional(low, node)
        case ast.Attribute(value=value, attr=attr):
            return records.attribute(low, low.evaluate(value), attr, node)
        case ast.Subscript():
            return _subscript(low, node)
        case ast.Call():
            return calls.call(low, node)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            items = _items(low, elts)
            return tuple(items) if isinstance(node, ast.Tuple) else items
        case ast.Dict(keys=keys, values=values):
            return _dict(low, keys, values)
        case ast.Lambda():
            return close(low, node)
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp() | ast.Yield() | ast.YieldFrom():
            from ferrule.language.lowering.python import comprehensions

            return comprehensions.value(low, node)
        case ast.JoinedStr():
            from ferrule.language.lowering.objects import shown

            return shown.f_string(low, node)
        case ast.Starred() | ast.Await() | ast.NamedExpr():
            low.fail(node, f"{_NAMES[type(node)]} is not supported in a compiled function")
    return _as_python(low, node)


_NAMES: Final[dict[type[ast.expr], str]] = {
    ast.Starred: "a starred expression",
    ast.Await: "await",
    ast.NamedExpr: "an assignment expression (:=)",
}


def _visible(low: Lowering, node: ast.AST) -> dict[str, Any]:
    """The values of the names in an expression, as far as they are known."""
    outer, names = low.frame.source.outer, low.names
    used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    known = {name: outer[name] for name in sorted(used - names.keys()) if name in outer}
    return known | {name: names[name] for name in used if name in names}


def _items(low: Lowering, nodes: Iterable[ast.expr]) -> list[Any]:
    items: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            items += branches.compile_time_items(low, low.evaluate(node.value), node)
        else:
            items.append(low.evaluate(node))
    return items


def _dict(low: Lowering, keys: list[ast.expr | None], values: list[ast.expr]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, node in zip(keys, values, strict=True):
        name = None if key is None else low.evaluate(key)
        value = low.evaluate(node)
        if key is None:
            result |= coercion.at_compile_time(low, node, partial(dict, value))
        elif is_run_time(name):
            low.fail(key, f"{describe(name)} cannot be the key of a dict")
        else:
            coercion.at_compile_time(low, key, partial(result.__setitem__, name, value))
    return result


def _as_python(low: Lowering, node: ast.expr) -> Any:
    """Any other expression is ordinary Python if it uses no run-time value."""
    visible = _visible(low, node)
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    own = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    for inner in names:
        if inner.id not in own and is_run_time(visible.get(inner.id)):
            low.fail(
                inner,
                f"the run-time value {inner.id!r} cannot be used in {_kind_of(node)}",
                expected="values known at compile time only",
            )
    if low.state.region is not None:
        for name in visible:
            low.lookup(name, node)
        low.state.region.runs(*visible.values())
    code = compile(ast.fix_missing_locations(ast.Expression(node)), "<expression>", "eval")
    return coercion.at_compile_time(low, node, lambda: eval(code, visible))


def _kind_of(node: ast.expr) -> str:
    return "a set" if isinstance(node, (ast.Set, ast.SetComp)) else "this kind of expression"


def decide(low: Lowering, node: ast.expr) -> Any:
    """The truth of a condition: a bool, or a run-time Boolean."""
    if isinstance(node, ast.BoolOp):
        return operators.truth(low, _bool_op(low, node, decides=True), node)
    return operators.truth(low, low.evaluate(node), node)


def _compare(low: Lowering, node: ast.Compare) -> Any:
    """A comparison; a chained one is the `and` of its parts, with each operand evaluated once."""

    def chain(at: int, left: Any) -> Any:
        right = low.evaluate(node.comparators[at])
        part = records.compare(low, node.ops[at], left, right, node)
        if at == len(node.ops) - 1:
            return part
        truth = operators.truth(low, part, node)
        if isinstance(truth, bool):
            return chain(at + 1, right) if truth else part
        return branches.short_circuit(low, truth, lambda: chain(at + 1, right), node, is_and=True)

    return chain(0, low.evaluate(node.left))


def _bool_op(low: Lowering, node: ast.BoolOp, *, decides: bool) -> Any:
    """`and` and `or`: the right side is evaluated only if the left one does not decide.

    At run time the result is a Boolean, so if more than the truth is used, the operands must be
    Booleans.
    """
    is_and = isinstance(node.op, ast.And)
    result = _operand(low, node.values[0], decides)
    for i, right in enumerate(node.values[1:]):
        left_truth = operators.truth(low, result, node.values[i])
        if isinstance(left_truth, bool):
            if left_truth is not is_and:
                return result
            result = _operand(low, right, decides)
            continue
        if not decides:
            _require_truth(low, result, node.values[i], node)
        done = node.values[: i + 1]
        known = narrow(low, done[0] if len(done) == 1 else ast.BoolOp(node.op, done))
        saved = dict(low.names)
        low.names.update(known.true if is_and else known.false)
        result = branches.short_circuit(
            low, left_truth, partial(_right, low, right, node, decides), right, is_and
        )
        branches.replace_names(low, saved)
    return result


def _operand(low: Lowering, node: ast.expr, decides: bool) -> Any:
    """The value, or its truth in a condition: a Boolean also for a typed constant."""
    if decides and isinstance(node, ast.BoolOp):
        return _bool_op(low, node, decides=True)
    value = low.evaluate(node)
    known = operators.truth(low, value, node) if decides else value
    return Boolean(known) if decides and isinstance(value, Numeric) else known


def _right(low: Lowering, node: ast.expr, whole: ast.BoolOp, decides: bool) -> Any:
    value = _operand(low, node, decides)
    if not decides:
        _require_truth(low, value, node, whole)
    return value


def _require_truth(low: Lowering, value: Any, node: ast.expr, whole: ast.BoolOp) -> None:
    """In Python `x or 1` is x or 1; a run-time choice requires truth values."""
    if isinstance(value, (bool, Boolean)):
        return
    if isinstance(value, RUN_TIME) and not isinstance(value, Number):
        return
    if not isinstance(value, Number) or value.dtype is not Boolean:
        sign = "and" if isinstance(whole.op, ast.And) else "or"
        low.fail(
            node,
            f"{describe(value)} is an operand of {sign}, whose result is used as a value",
            expected="conditions",
            hint="compare it, x != 0, or choose a value with x if x != 0 else y",
        )


def _conditional(low: Lowering, node: ast.IfExp) -> Any:
    """`a if c else b`."""
    condition = low.decide(node.test)
    if isinstance(condition, bool):
        return low.evaluate(node.body if condition else node.orelse)
    return branches.choose(low, condition, node)


def _subscript(low: Lowering, node: ast.Subscript) -> Any:
    base = structures.memory_of(low.evaluate(node.value))
    if is_number_tensor(base):
        pointer, at = coordinates.number_element(low, base, node)
        return elements.read(low, pointer, (at,), node)
    if isinstance(base, (TensorView, PointerView)):
        return elements.read(low, base, coordinates.subscript(low, node.slice), node)
    if isinstance(base, (SwizzledView, CoordinateView)):
        from ferrule.language.lowering.tensors import arranged

        return arranged.read(low, base, coordinates.subscript(low, node.slice), node)
    if isinstance(base, Fielded):
        from ferrule.language.lowering.tensors import fields

        return fields.read(low, base, coordinates.subscript(low, node.slice), node)
    if isinstance(base, Vector):
        from ferrule.language.lowering.tensors import vectors

        return vectors.item(low, base, coordinates.subscript(low, node.slice), node)
    if isinstance(base, ConstantTable):
        from ferrule.language.lowering.numbers import constant_tables

        return constant_tables.item(low, base, coercion.plain(low.evaluate(node.slice)), node)
    if is_container(base):
        from ferrule.language.lowering.objects import containers

        return containers.item(low, base, low.evaluate(node.slice), node)
    if isinstance(base, RUN_TIME):
        low.fail(
            node,
            f"{describe(base)} cannot be indexed",
            hint=usage_hint(base),
        )
    if isinstance(base, KernelFunction):
        low.fail(
            node, "a kernel cannot be indexed", hint="kernel(a, b).launch(grid=..., block=...)"
        )
    index = coercion.plain(low.evaluate(node.slice))
    if is_run_time(index):
        if isinstance(base, (list, tuple, np.ndarray)) and not is_run_time(base):
            return _from_table(low, base, index, node)
        low.fail(
            node.slice,
            f"{type(base).__name__}s are indexed while compiling, "
            f"but this index is {describe(index)}",
            hint="loop over it with range_constexpr, or keep the values in a tensor",
        )
    if isinstance(base, tuple) and isinstance(index, int):
        _check_position(low, base, index, node)
    low.state.witness.add_special(base, "__getitem__")
    return coercion.at_compile_time(low, node, lambda: base[index])


def _from_table(low: Lowering, base: Any, index: Any, node: ast.Subscript) -> Any:
    """An item of a list or an array at a run-time index."""
    from ferrule.language.lowering.numbers import constant_tables

    if isinstance(base, np.ndarray):
        dtype = coercion.at_compile_time(low, node, partial(as_dtype, base.dtype))
        access.require_kept(low, dtype, node)
    return constant_tables.chosen(low, base, index, node)


def _check_position(low: Lowering, base: tuple[Any, ...], index: int, node: ast.Subscript) -> None:
    """A CompileError for an index beyond the items of a tuple, such as a shape."""
    if -len(base) <= index < len(base):
        return
    of_tensor = isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "stride")
    count = f"{len(base)} item{'s' * (len(base) != 1)}"
    low.fail(
        node,
        f"{ast.unparse(node.value)} has {count}, but item {index} is asked for",
        expected=f"an index from {-len(base)} to {len(base) - 1}" if base else None,
        hint="a tensor of 0 dims has one element, a[()]" if of_tensor and not base else None,
    )

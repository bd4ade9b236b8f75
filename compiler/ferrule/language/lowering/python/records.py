"""Dataclasses and named tuples with run-time values: construction, replacement, and methods.

Their constructors are not called: Python code could not read the values.  A class with its own
constructor cannot hold run-time values.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import types
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.python import (
    attributes,
    conversions,
    inlining,
    operators,
)
from ferrule.language.values import RUN_TIME, Number, is_of_program, is_record, is_run_time
from ferrule.specs import DType, Numeric

_OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
}
_UNARY: Final[dict[type[ast.AST], str]] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARISONS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Eq: ("eq", "eq"),
    ast.NotEq: ("ne", "ne"),
    ast.Lt: ("lt", "gt"),
    ast.LtE: ("le", "ge"),
    ast.Gt: ("gt", "lt"),
    ast.GtE: ("ge", "le"),
}


def is_record_class(callee: Any) -> bool:
    """Whether this is a user's class that is a dataclass or a named tuple."""
    if not isinstance(callee, type) or not is_of_program(callee):
        return False
    return dataclasses.is_dataclass(callee) or _is_named_tuple(callee)


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_named_tuple_method(callee: Any, name: str) -> bool:
    """Whether this is the bound method of a named tuple that `namedtuple` generated."""
    if not isinstance(callee, types.MethodType) or callee.__name__ != name:
        return False
    return _is_named_tuple(type(callee.__self__)) and callee.__module__ == "collections"


def construct(
    low: Lowering, cls: type, args: list[Any], kwargs: dict[str, Any], node: ast.AST
) -> Any:
    """`cls(...)` with run-time values among its arguments."""
    _require_plain(low, cls, node)
    try:
        bound = inspect.signature(cls).bind(*args, **kwargs)
    except TypeError as error:
        low.fail(node, f"{cls.__name__}(): {error}")
    annotations = structures.hints(cls)
    given = {
        name: conversions.annotated(low, value, annotations.get(name), node, name)
        for name, value in bound.arguments.items()
    }
    if _is_named_tuple(cls):
        names: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
        defaults: dict[str, Any] = cls._field_defaults  # type: ignore[attr-defined]
        return tuple.__new__(cls, [given.get(name, defaults.get(name)) for name in names])
    made = structures.fill(cls, {**_defaults(low, cls, given, node), **given}.items())
    low.state.witness.add_member(cls, "__init__")
    low.state.witness.add_member(cls, "__post_init__")
    post = getattr(cls, "__post_init__", None)
    if isinstance(post, types.FunctionType):
        inlining.inline(low, inlining.source_of(low, post, node), [made], {}, node)
    return made


def _require_plain(low: Lowering, cls: type, node: ast.AST) -> None:
    """Requires a dataclass's constructor to be the generated one, which takes only its fields."""
    if _is_named_tuple(cls):
        return
    code = getattr(cls.__init__, "__code__", None)  # type: ignore[misc]
    if code is None or code.co_filename != "<string>":
        low.fail(
            node,
            f"{cls.__name__} has a constructor of its own, which cannot read run-time values",
            hint="leave __init__ to @dataclass, and compute in a function that makes the object",
        )
    extra = set(inspect.signature(cls).parameters) - {f.name for f in dataclasses.fields(cls)}
    if extra:
        low.fail(node, f"{cls.__name__} takes {min(extra)!r}, which is none of its fields")


def _defaults(low: Lowering, cls: type, given: dict[str, Any], node: ast.AST) -> dict[str, Any]:
    """The defaults of the fields that a call omits."""
    values = {}
    for field in dataclasses.fields(cls):
        if field.name in given:
            continue
        if field.default is not dataclasses.MISSING:
            values[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            values[field.name] = coercion.at_compile_time(low, node, field.default_factory)
    return values


def has_numbers(value: Any) -> bool:
    """Whether this is an object with a field annotated with a dtype: it holds numbers of that
    dtype."""
    if isinstance(value, (type, *RUN_TIME)) or not is_record_class(type(value)):
        return False
    return any(isinstance(hint, DType) for hint in structures.hints(type(value)).values())


def replace(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`dataclasses.replace(record, field=value)`."""
    if len(args) != 1 or not is_record(args[0]):
        low.fail(node, "replace takes an object of a dataclass, and keywords")
    old = args[0]
    fields = {f.name: getattr(old, f.name, None) for f in dataclasses.fields(old)}
    if not is_run_time(list(fields.values())) and not is_run_time(kwargs):
        return coercion.at_compile_time(low, node, lambda: dataclasses.replace(old, **kwargs))
    return construct(low, type(old), [], {**fields, **kwargs}, node)


def replace_items(
    low: Lowering, old: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`old._replace(field=value)` of a named tuple."""
    if args:
        low.fail(node, "_replace takes keywords alone")
    unknown = [name for name in kwargs if name not in old._fields]
    if unknown:
        low.fail(node, f"{type(old).__name__} has no field {unknown[0]!r}")
    return construct(low, type(old), [], {**old._asdict(), **kwargs}, node)


def attribute(low: Lowering, value: Any, name: str, node: ast.AST) -> Any:
    """`value.name`, a number in the dtype of its field.

    A property of an object with run-time values or such numbers is inlined.
    """
    found = inspect.getattr_static(type(value), name, None)
    if not isinstance(value, RUN_TIME) and isinstance(found, property):
        if is_run_time(value) or has_numbers(value):
            low.state.witness.add_member(type(value), name)
            source = inlining.source_of(low, found.fget, node)
            return inlining.inline(low, source, [value], {}, node)
    got = attributes.get(low, value, name, node)
    if not coercion.is_python_number(got) or not has_numbers(value):
        return got
    return conversions.annotated(low, got, structures.hints(type(value)).get(name), node, name)


def binary(low: Lowering, op: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right`."""
    if not (type(left) in operators.SCALARS and type(right) in operators.SCALARS):
        defined = _operator(low, op, (left, right), node)
        if defined is not None:
            return defined[0]
        note_operator(low, op, left, right)
    if isinstance(op, ast.Pow) and (
        isinstance(left, RUN_TIME)
        or isinstance(right, RUN_TIME)
        or scalars.are_typed_numbers(left, right)
    ):
        from ferrule.language.lowering.python import powers  # few programs need it

        return powers.power(low, left, right, node)
    if isinstance(op, ast.Mult):
        _require_known_length(low, left, right, node)
    return operators.binary(low, op, left, right, node)


def augmented(low: Lowering, left: Any, right: Any, node: ast.AugAssign) -> Any:
    """The result of `left op= right`: as in Python a list, and any object whose class has the
    method, is changed in place."""
    op = node.op
    name = f"__i{_OPERATORS[type(op)]}__"
    if isinstance(left, (*RUN_TIME, Numeric)):
        return binary(low, op, left, right, node)
    low.state.witness.add_member(type(left), name)
    method = getattr(type(left), name, None)
    if method is None:
        return binary(low, op, left, right, node)
    if isinstance(op, ast.Mult):
        _require_known_length(low, left, right, node)
    if not isinstance(method, types.FunctionType):
        right = scalars.untyped(left, right)[1]
    call = ast.copy_location(ast.Call(node.target, [node.value], []), node)
    result = low.call(method.__get__(left), [right], {}, call)
    return binary(low, op, left, right, node) if result is NotImplemented else result


def _require_known_length(low: Lowering, left: Any, right: Any, node: ast.AST) -> None:
    """Requires the count in `[0.0] * n` to be a compile-time value."""
    for value, count in ((left, right), (right, left)):
        if isinstance(value, (list, tuple, str)) and isinstance(count, Number):
            low.fail(
                node,
                f"a {type(value).__name__} is repeated {describe(count)} times",
                expected="a length known at compile time",
                hint="keep the values in a tensor that the caller passes",
            )


def unary(low: Lowering, op: ast.unaryop, value: Any, node: ast.AST) -> Any:
    """`op value`."""
    defined = _operator(low, op, (value,), node)
    if defined is not None:
        return defined[0]
    note_operator(low, op, value)
    return operators.unary(low, op, value, node)


def compare(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`left op right`, for one comparison."""
    defined = _operator(low, op, (left, right), node)
    if defined is not None:
        return defined[0]
    note_operator(low, op, left, right)
    if isinstance(op, (ast.In, ast.NotIn)):
        low.state.witness.add_special(right, "__contains__", "__iter__")
    from ferrule.language.lowering.python import comparisons

    return comparisons.compare(low, op, left, right, node)


def _operator(
    low: Lowering, op: ast.AST, operands: tuple[Any, ...], node: ast.AST
) -> tuple[Any] | None:
    """A class's operator, applied to objects with run-time values; None for others.

    As in Python, that of the left operand comes first, then the reflected one of the right.
    """
    if not any(map(_defines_operators, operands)):
        return None
    if not is_run_time(operands) and not any(map(has_numbers, operands)):
        return None
    for method, arguments in _methods(low, op, operands):
        source = inlining.source_of(low, method, node)
        result = inlining.inline(low, source, list(arguments), {}, node)
        if result is not NotImplemented:
            return (result,)
    return None


def _defines_operators(value: Any) -> bool:
    return is_record(value) or (isinstance(value, tuple) and type(value) is not tuple)


def _names(op: ast.AST, operands: int) -> tuple[str, ...]:
    """The special methods for an operator: of the left operand, and of the right one."""
    if operands == 1:
        names: tuple[str | None, ...] = (_UNARY.get(type(op)),)
    elif type(op) in _COMPARISONS:
        names = _COMPARISONS[type(op)]
    else:
        name = _OPERATORS.get(type(op))
        names = (name, name and f"r{name}")
    return tuple(f"__{name}__" for name in names if name is not None)


def note_operator(low: Lowering, op: ast.AST, *operands: Any) -> None:
    """Records the methods that Python uses for an operator on compile-time values."""
    names = _names(op, len(operands))
    for value, name in zip(operands, names, strict=False):
        low.state.witness.add_special(value, name)


def _methods(
    low: Lowering, op: ast.AST, operands: tuple[Any, ...]
) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The methods of the classes for an operator, in Python's order, with their arguments."""
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for name, arguments in zip(_names(op, len(operands)), (operands, operands[::-1]), strict=False):
        method = getattr(type(arguments[0]), name, None)
        low.state.witness.add_member(type(arguments[0]), name)
        # Methods that dataclass and namedtuple generate have no source.
        if isinstance(method, types.FunctionType) and method.__code__.co_filename != "<string>":
            if _defines_operators(arguments[0]):
                found.append((method, arguments))
    return found

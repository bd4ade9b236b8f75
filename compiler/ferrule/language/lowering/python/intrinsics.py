"""The meaning of faces: tables from the object that a user writes to its emitter.

What few kernels use has its table in a module of its own, imported when a kernel first names one of
its faces.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import operator
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, Final

from ferrule.language import layouts
from ferrule.language.faces import maths
from ferrule.language.faces.base import Pointer, Tensor, range_constexpr
from ferrule.language.faces.vectors import TensorSSA
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import is_container, is_open, is_text
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.numbers.sizes import size_number
from ferrule.language.lowering.objects.parameters import is_kind
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.values import (
    RUN_TIME,
    ComplexNumber,
    ConstantTable,
    Handle,
    Number,
    OneOf,
    PointerView,
    TensorView,
    Vector,
    is_run_time,
)
from ferrule.specs import Boolean, Int32, Numeric

_LOWERING: Final = "ferrule.language.lowering"
_FACES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "language.faces.arch": ("device.arch_numbers",),
        "language.faces.asynchronous": (
            *("device.asynchronous", "device.shared_memory", "device.tensor_maps"),
        ),
        "builtins": ("python.folds",),
        "language.faces.base": (
            *("python.assertions", "objects.printing", "objects.new_containers"),
        ),
        "language.faces.calls": ("objects.foreign_calls", "python.assertions"),
        "language.faces.collectives": ("device.collectives", "device.shared_memory"),
        "language.faces.containers": ("objects.new_containers",),
        "language.faces.cute": ("objects.value_parts",),
        "language.faces.inline": ("device.inline",),
        "language.faces.maths": ("python.mathematics", "python.formulas"),
        "language.faces.mbarriers": ("device.mbarriers",),
        "language.faces.printing": ("objects.printing",),
        "language.faces.reductions": ("tensors.reductions",),
        "language.faces.tensor_cores": ("device.tensor_cores", "device.warpgroups"),
        "language.faces.pipelines.divisors": ("numbers.divisors",),
        "language.faces.pipelines.tensor_map_edits": ("device.tensor_map_edits",),
        "language.faces.tensors": (
            *("tensors.layout_functions", "tensors.allocation", "tensors.vector_functions"),
        ),
        "language.faces.threads": ("device.threads", "device.shared_memory", "device.atomics"),
        "language.faces.tuples": ("tensors.tuple_functions", "tensors.layout_functions"),
        "language.atoms.copies": ("device.copying",),
        "language.atoms.mmas": ("device.copying",),
        "language.faces.tiles": ("device.copying", "device.multiplying", "device.tma_atoms"),
        "language.faces.vectors": (*("tensors.vector_functions", "tensors.fragments"),),
        "language.layouts": ("tensors.layout_functions",),
        "specs.pointers": ("objects.made_pointers",),
        "specs.expr": ("tensors.layout_functions",),
    }
)
"""For each module or package of faces the modules of the lowering whose `TABLE` has them."""


_NAMED: Final = (FunctionType, BuiltinFunctionType, type)
"""What knows the module that it is from."""


def find(callee: Any) -> Intrinsic | None:
    """The emitter of a callee, if it is one of the faces."""
    try:
        found = _TABLE.get(callee)
    except TypeError:  # unhashable, so not one of ours
        return None
    if found is not None or not isinstance(callee, _NAMED):
        return found
    tables = (table for table in _tables(callee.__module__) if callee in table)
    return next((table[callee] for table in tables), None)


def _tables(module: object) -> Iterator[Mapping[Any, Intrinsic]]:
    """The tables that may have a face of a module: one is imported if those before have it not."""
    name = str(module).removeprefix("ferrule.")
    for part in _FACES.get(name) or _FACES.get(name.rpartition(".")[0], ()):
        table: Mapping[Any, Intrinsic] = importlib.import_module(f"{_LOWERING}.{part}").TABLE
        yield table


def _require(
    low: Lowering, args: list[Any], kwargs: dict[str, Any], count: int, name: str, node: ast.Call
) -> None:
    if len(args) != count or kwargs:
        low.fail(node, f"{name} takes {count} arguments, but got {len(args) + len(kwargs)}")


def _extremum(op: ops.BinaryOp, python: Callable[..., Any]) -> Intrinsic:
    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        values = list(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        is_typed = scalars.are_typed_numbers(*values)
        if not is_run_time(args) and not (len(values) > 1 and is_typed):
            return coercion.at_compile_time(low, node, lambda: python(*args, **kwargs))
        if len(values) < 2 or kwargs:
            low.fail(node, f"{op} of run-time values takes at least two values and no keywords")

        def pick(a: Any, b: Any) -> Any:
            return scalars.arithmetic(low, op, a, b, node)

        if is_typed:
            return typed_constants.folded(low, lambda: functools.reduce(pick, values))
        return functools.reduce(lambda a, b: whole_tensors.lift(low, (a, b), node, pick), values)

    return emit


def _absolute(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`abs(x)`: the larger of x and -x, which keeps NaN and turns -0.0 into 0.0."""
    _require(low, args, kwargs, 1, "abs", node)
    if not isinstance(args[0], (*RUN_TIME, Numeric)):
        return coercion.at_compile_time(low, node, lambda: abs(args[0]))

    def one(x: Any) -> Any:
        if coercion.is_complex(x):
            from ferrule.language.lowering.numbers import complexes

            return complexes.magnitude(low, x, node)
        number = coercion.operand(low, x, node)
        if number.dtype is Boolean:
            return coercion.convert(low, number, Int32)
        if number.dtype.kind == "uint":
            return number
        negative = Number(low.builder.unary("neg", number.value))
        return scalars.arithmetic(low, "max", number, negative, node)

    if isinstance(args[0], Numeric):
        return typed_constants.folded(low, lambda: one(args[0]))
    return whole_tensors.lift(low, (args[0],), node, one)


def _isinstance(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`isinstance(x, kind)`: a compile-time value, except for a union parameter."""
    _require(low, args, kwargs, 2, "isinstance", node)
    value, wanted = args
    match value:
        case OneOf(tag=tag, members=members):
            return _is_one_of(low, tag, [i for i, m in members.items() if is_kind(m[0], wanted)])
        case Number() | ComplexNumber():
            return value.dtype in (wanted if isinstance(wanted, tuple) else (wanted,))
        case TensorView():
            return Tensor in (wanted if isinstance(wanted, tuple) else (wanted,))
        case PointerView():
            return Pointer in (wanted if isinstance(wanted, tuple) else (wanted,))
        case Vector():
            return TensorSSA in (wanted if isinstance(wanted, tuple) else (wanted,))
        case Handle() if is_open(value):
            from ferrule.language.lowering.objects import any_values

            return any_values.is_instance(low, value, wanted, node)
        case Handle(param=param):
            return is_kind(param, wanted)
    return coercion.at_compile_time(low, node, lambda: isinstance(value, wanted))


def _is_one_of(low: Lowering, tag: ops.Value, positions: list[int]) -> Any:
    if not positions:
        return False
    build = low.builder
    parts = [build.compare("eq", tag, build.constant(Int32, i)) for i in positions]
    result = parts[0]
    for part in parts[1:]:
        result = build.binary("or", result, part)
    return Number(result)


def _length(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`len(x)`: for a tensor its first size."""
    _require(low, args, kwargs, 1, "len", node)
    value = args[0]
    if isinstance(value, TensorView) and value.type.shape:
        return size_number(low, layouts.size(value.layout, [0]))
    if isinstance(value, ConstantTable):
        return value.shape[0]
    if is_text(value):
        from ferrule.language.lowering.objects import texts

        return texts.length(low, value)
    if is_container(value):
        from ferrule.language.lowering.objects import containers

        return containers.length(low, value, node)
    if isinstance(value, RUN_TIME):
        low.fail(node, f"{describe(value)} has no length")
    low.state.witness.add_special(value, "__len__")
    return coercion.at_compile_time(low, node, lambda: len(value))


def _type(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`type(x)`: for a number its dtype."""
    _require(low, args, kwargs, 1, "type", node)
    match args[0]:
        case Number(dtype=dtype) | ComplexNumber(dtype=dtype):
            return dtype
        case TensorView():
            return Tensor
        case PointerView():
            return Pointer
        case Vector():
            return TensorSSA
        case value if isinstance(value, RUN_TIME):
            low.fail(node, f"the type of {describe(value)} is not known")
    return type(args[0])


def _constexpr(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`range_constexpr(...)`: a Python range."""
    for argument, value in zip(node.args, args, strict=False):
        if is_run_time(value):
            low.fail(
                argument,
                f"range_constexpr takes values known at compile time, but got {describe(value)}",
                hint="write range(...), whose loop runs at run time",
            )
    return coercion.at_compile_time(low, node, lambda: range_constexpr(*args, **kwargs))


def _operator(op: ast.operator | ast.cmpop | ast.unaryop) -> Intrinsic:
    """A function of Python's `operator` module."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        count = 1 if isinstance(op, ast.unaryop) else 2
        _require(low, args, kwargs, count, type(op).__name__.lower(), node)
        if isinstance(op, ast.unaryop):
            return low.unary(op, args[0], node)
        if isinstance(op, ast.cmpop):
            return low.compare(op, args[0], args[1], node)
        return low.binary(op, args[0], args[1], node)

    return emit


_PYTHON_OPERATORS: Final[dict[Any, Intrinsic]] = {
    operator.add: _operator(ast.Add()),
    operator.sub: _operator(ast.Sub()),
    operator.mul: _operator(ast.Mult()),
    operator.and_: _operator(ast.BitAnd()),
    operator.or_: _operator(ast.BitOr()),
    operator.xor: _operator(ast.BitXor()),
    operator.truediv: _operator(ast.Div()),
    operator.floordiv: _operator(ast.FloorDiv()),
    operator.mod: _operator(ast.Mod()),
    operator.pow: _operator(ast.Pow()),
    operator.lshift: _operator(ast.LShift()),
    operator.rshift: _operator(ast.RShift()),
    operator.lt: _operator(ast.Lt()),
    operator.le: _operator(ast.LtE()),
    operator.gt: _operator(ast.Gt()),
    operator.ge: _operator(ast.GtE()),
    operator.eq: _operator(ast.Eq()),
    operator.ne: _operator(ast.NotEq()),
    operator.neg: _operator(ast.USub()),
    operator.invert: _operator(ast.Invert()),
}

_TABLE: Final[dict[Any, Intrinsic]] = {
    **_PYTHON_OPERATORS,
    maths.max: _extremum("max", max),
    maths.min: _extremum("min", min),
    builtins.max: _extremum("max", max),
    builtins.min: _extremum("min", min),
    builtins.abs: _absolute,
    builtins.isinstance: _isinstance,
    builtins.len: _length,
    builtins.type: _type,
    range_constexpr: _constexpr,
}

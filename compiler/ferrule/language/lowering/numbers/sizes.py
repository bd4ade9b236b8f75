"""Sizes: run-time numbers in the language, expressions in the algebra of layouts."""

from __future__ import annotations

import ast
from typing import Any

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.layouts import ComposedLayout, Layout, ScaledBasis
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.values import RUN_TIME, Number, is_record
from ferrule.specs import Compound, Dim, DType, Int32, Int64, Numeric, Sym
from ferrule.specs.expr import is_dim, sym_int64


def size_number(low: Lowering, dim: Dim) -> Any:
    """A size in the language: a Python int, or a run-time Int32 or Int64."""
    if isinstance(dim, int):
        return dim
    return Number(low.builder.size(size_dtype(dim), dim), dim)


def size_dtype(dim: Dim) -> DType:
    """Int32 for a 32-bit symbol; Int64 for a wider one and for expressions that could exceed 32
    bits."""
    return Int32 if isinstance(dim, Sym) and dim.width == 32 else Int64


def size_numbers(low: Lowering, value: Any) -> Any:
    """A result of the algebra, with its sizes as in the language; layouts are unchanged."""
    if isinstance(value, tuple):
        return tuple(size_numbers(low, item) for item in value)
    return size_number(low, value) if is_dim(value) else value


def as_dims(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A shape of the language as sizes; other compile-time objects are unchanged.

    A CompileError for a run-time value that is not known to be a size.
    """
    match value:
        case tuple() | list():
            return tuple(as_dims(low, item, node) for item in value)
        case Layout() | ComposedLayout() | ScaledBasis():
            return named(low, value)
        case Number(dim=dim) if dim is not None:
            return named(low, dim)
        case Numeric():
            return value.value
        case Number() if low.kind == "host" and value.dtype.is_integer and not low.elementwise:
            return named(low, defined(low, value, node))
        case _ if isinstance(value, RUN_TIME):
            low.fail(
                node,
                f"a layout is made of {describe(value)}",
                expected="ints, sizes of tensors, and in a host function any integers",
                hint="make the layout in the host function, and pass the tensor to the kernel; of "
                "sizes, annotate the kernel's parameter, shape: fe.Shape"
                if low.kind == "kernel"
                else "convert it, fe.Int32(x)",
            )
        case _ if is_number_layout(value):
            low.fail(
                node,
                "a layout of numbers that a kernel computes is in the algebra of layouts",
                expected="a layout of ints and sizes of tensors",
                hint="it has coordinates and indices: l(i, j), l.get_flat_coord(i), fe.size(l)",
            )
    return value


def is_number_tensor(value: object) -> bool:
    """Whether this is a tensor whose layout has integers that a kernel computes."""
    if not is_record(value):
        return False
    from ferrule.language.faces.number_layouts import NumberTensor

    return isinstance(value, NumberTensor)


def is_number_layout(value: object) -> bool:
    """Whether this is a layout of integers that a kernel computes."""
    if not is_record(value):
        return False
    from ferrule.language.faces.number_layouts import NumberLayout

    return isinstance(value, NumberLayout)


def defined(low: Lowering, number: Number, node: ast.AST) -> Sym:
    """A run-time integer as a size: its symbol, which has its value from here on.

    A ValueError of the call for a negative one: a size is not negative.
    """
    wide = number.value if number.dtype is Int64 else low.builder.cast(Int64, number.value)
    message = "Invalid size or stride of a layout, expected at least 0, but got {}"
    at_least = low.builder.compare("ge", wide, low.builder.constant(Int64, 0))
    low.builder.check(at_least, Fault("ValueError", message, low.location(node)), wide)
    symbol = symbol_of(low, number.value)
    low.builder.append(ops.Define(symbol, wide))
    return symbol


def symbol_of(low: Lowering, value: ops.Value, divisibility: int = 1) -> Sym:
    """The symbol for a number that the body computes; equal numbers share one."""
    known = low.state.made
    if value not in known:
        known[value] = sym_int64(divisibility=divisibility)
        name_symbol(low, known[value], value.hint or "size")
    return known[value]


def name_symbol(low: Lowering, symbol: Sym, wanted: str) -> None:
    """Assigns a unique name to a symbol."""
    taken, name, count = set(low.state.symbols.values()), wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    low.state.symbols[symbol] = name


def named(low: Lowering, value: Any) -> Any:
    """The same sizes, with the symbols named as in the signature."""
    match value:
        case Layout(shape=shape, stride=stride):
            return Layout(named(low, shape), named(low, stride))
        case ScaledBasis(value=scale, mode=mode):
            return ScaledBasis(named(low, scale), mode)
        case ComposedLayout(inner, offset, outer):
            return ComposedLayout(named(low, inner), named(low, offset), named(low, outer))
        case tuple():
            return tuple(named(low, item) for item in value)
        case Sym(key):
            return Sym(key, low.state.symbols.get(value, value.name), *value.facts)
        case Compound(op, lhs, rhs):
            return Compound(op, named(low, lhs), named(low, rhs))
    return value

"""Sizes: run-time numbers in the language, expressions in the algebra of layouts."""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language.layouts import ComposedLayout, Layout, ScaledBasis
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.values import RUN_TIME, Number
from ferrule.specs import Compound, Dim, DType, Int32, Int64, Numeric, Sym
from ferrule.specs.expr import is_dim


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
        case _ if isinstance(value, RUN_TIME):
            low.fail(
                node,
                f"a layout is made of {describe(value)}",
                expected="ints, and sizes that are known before the body runs",
                hint="take sizes from a tensor's shape, or from a parameter annotated fe.Shape",
            )
    return value


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

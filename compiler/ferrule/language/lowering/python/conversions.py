"""Explicit conversions: `fe.Float32(x)`, `x.to(fe.Int8)`, and annotations."""

from __future__ import annotations

import ast
import math
from typing import Any

from ferrule.language.faces.base import Constexpr
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.promotion import stores_implicitly
from ferrule.language.values import RUN_TIME, ComplexNumber, Number, Vector, Whole, is_run_time
from ferrule.specs import (
    Boolean,
    DType,
    Float8E4M3FN,
    Float8E5M2,
    Float64,
    Int64,
    Numeric,
    TFloat32,
)


def convert_to(
    low: Lowering, dtype: DType, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`fe.Float32(x)`: a conversion of a run-time number, or a constant with a type."""
    if dtype.kind == "complex" and (len(args) == 2 or kwargs):
        return _of_parts(low, dtype, args, kwargs, node)
    if len(args) != 1 or kwargs:
        count = "one value" if dtype.kind != "complex" else "one value, or two parts"
        low.fail(node, f"{dtype.__name__} takes {count}, but got {len(args) + len(kwargs)}")
    return _converted(low, dtype, args[0], node)


def _of_parts(
    low: Lowering, dtype: DType, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`fe.Complex64(real, imag)`; of vectors and whole tensors, element by element."""
    from ferrule.language.lowering.numbers import complexes

    given = bound(low, "real imag", args, kwargs, node)
    return whole_tensors.lift(
        low, tuple(given), node, lambda x, y: complexes.of_parts(low, dtype, x, y, node)
    )


def _complex(low: Lowering, dtype: DType, value: Any, node: ast.AST) -> Any:
    """A conversion to or from a complex dtype."""
    from ferrule.language.lowering.numbers import complexes

    if dtype.kind != "complex":
        low.fail(
            node,
            f"{describe(value)} is converted to {dtype.name}, which holds one number",
            expected="a complex dtype",
            hint="take a part, z.real or z.imag, or abs(z)",
        )
    return whole_tensors.lift(
        low, (value,), node, lambda z: complexes.as_complex(low, z, dtype, node)
    )


def _is_complex(value: Any) -> bool:
    if isinstance(value, (Vector, Whole)):
        return value.dtype.kind == "complex"
    return coercion.is_complex(value)


def _converted(
    low: Lowering, dtype: DType, value: Any, node: ast.Call, *, saturate: bool = False
) -> Any:
    if dtype.kind == "complex" or _is_complex(value):
        return _complex(low, dtype, value, node)
    # CuTe DSL converts to floats of 8 bits by PTX's `satfinite`.
    saturate |= low.is_as_cute and dtype in (Float8E4M3FN, Float8E5M2)
    if isinstance(value, RUN_TIME):
        _require_scalar(low, dtype, node)
        return whole_tensors.lift(
            low,
            (value,),
            node,
            lambda x: coercion.convert(low, coercion.as_number(low, x, node), dtype, saturate),
        )
    if saturate and isinstance(value, (int, float)):
        value = Int64(value) if isinstance(value, int) else Float64(value)
    if isinstance(value, Numeric):
        _require_scalar(low, dtype, node)
        return coercion.at_compile_time(low, node, lambda: _constant(value, dtype, saturate))
    known = coercion.plain(value)
    if isinstance(known, float) and dtype.is_integer and math.isfinite(known):
        known = math.trunc(known)
    elif dtype is Boolean and isinstance(known, (int, float)):
        known = bool(known)
    if isinstance(known, int) and dtype.is_integer:
        coercion.require_in_range(low, known, dtype, node)
    return coercion.at_compile_time(low, node, lambda: dtype(known))


def _constant(value: Numeric, dtype: DType, saturate: bool) -> Any:
    wanted: Any = dtype
    return value.to(wanted, saturate=saturate)


def to(value: Any, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`x.to(fe.Int8)`: the number in another dtype; for a vector and a whole tensor every number.

    `saturate=True`: to a float of 8 bits, with its largest number for what is beyond it.
    """
    saturate = kwargs.pop("saturate", False)
    if len(args) != 1 or kwargs or not isinstance(args[0], DType):
        low.fail(node, "to takes one dtype", expected="x.to(fe.Float32)")
    if not isinstance(saturate, bool):
        low.fail(node, f"saturate is {describe(saturate)}", expected="True or False")
    if saturate and not args[0].is_narrow:
        low.fail(
            node,
            f"saturate is for floats of 8 bits, but the dtype is {args[0].name}",
            hint="integers saturate without it, and min and max limit a number"
            if args[0].is_integer
            else "min and max limit a number",
        )
    return _converted(low, args[0], value, node, saturate=saturate)


def bitcast(
    value: Any, low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> Any:
    """`x.bitcast(fe.Uint32)`: the bits of the number in another dtype of the same size; for a
    vector and a whole tensor of every number."""
    if len(args) != 1 or kwargs or not isinstance(args[0], DType):
        low.fail(node, "bitcast takes one dtype", expected="x.bitcast(fe.Uint32)")
    dtype = args[0]

    def emit(x: Any) -> Number:
        number = coercion.as_number(low, x, node)
        _require_same_size(low, number.dtype, dtype, node)
        if number.dtype is dtype:
            return number
        if dtype.bits < 8:
            number = scalars.arithmetic(low, "and", number, (1 << dtype.bits) - 1, node)
        return Number(low.builder.bitcast(dtype, number.value))

    if isinstance(value, Numeric):
        return typed_constants.folded(low, lambda: emit(value))
    return whole_tensors.lift(low, (value,), node, emit)


def _require_same_size(low: Lowering, source: DType, target: DType, node: ast.AST) -> None:
    """Refuses a bitcast between dtypes whose numbers have other sizes, or are no bits alone."""
    for dtype in (source, target):
        if dtype is Boolean or dtype is TFloat32 or not dtype.has_values:
            low.fail(
                node,
                f"a bitcast from {source.name} to {target.name}: the bits of a {dtype.name} are "
                "not its own",
                expected="integers, and floats but for tfloat32",
            )
    if source.value_bits != target.value_bits:
        low.fail(
            node,
            f"a bitcast from {source.name} to {target.name}, which have {source.value_bits} "
            f"and {target.value_bits} bits",
            expected=f"a dtype of {source.value_bits} bits",
            hint=f"x.to(fe.{target.__name__}) converts the number; a.recast(…) of a tensor joins "
            "and splits elements",
        )


def _require_scalar(low: Lowering, dtype: DType, node: ast.AST) -> None:
    if not dtype.has_values:
        low.fail(node, f"{dtype.name} is a storage type: it has no scalar values")


def _annotated_complex(
    low: Lowering, value: Any, annotation: DType, label: str, node: ast.AST
) -> Any:
    """A complex number, or one for a name that is annotated as complex."""
    if annotation.kind == "complex":
        if (
            coercion.is_complex(value)
            or isinstance(value, Number)
            or coercion.is_python_number(value)
        ):
            return _complex(low, annotation, value, node)
        return value
    low.fail(
        node,
        f"{label} is annotated as {annotation.__name__}, but gets {describe(value)}",
        hint="take a part, z.real or z.imag, or abs(z)",
    )


def annotated(
    low: Lowering, value: Any, annotation: Any, node: ast.AST, name: str | None = None
) -> Any:
    """A value converted for the annotation of its name: numbers to the annotated dtype.

    The conversion is as in a store: not from a float to an integer.  A Constexpr must be a
    compile-time value.  Other annotations are ignored.
    """
    label = "this value" if name is None else repr(name)
    if annotation is Constexpr and is_run_time(value):
        low.fail(
            node,
            f"{label} is a Constexpr, but gets {describe(value)}",
            expected="a value known at compile time",
            hint="annotate it with a dtype such as fe.Int32, or leave the annotation away",
        )
    if not isinstance(annotation, DType):
        return value
    value = coercion.plain(value)
    if isinstance(value, ComplexNumber) or annotation.kind == "complex":
        return _annotated_complex(low, value, annotation, label, node)
    if isinstance(value, (Number, Numeric)):
        _require_scalar(low, annotation, node)
        if not stores_implicitly(value.dtype, annotation):
            low.fail(
                node,
                f"{label} is annotated as {annotation.__name__}, but gets {describe(value)}",
                hint=f"convert it, fe.{annotation.__name__}(x)",
            )
        if isinstance(value, Numeric):
            return annotation(value)
        return coercion.convert(low, value, annotation)
    if coercion.is_python_number(value):
        return coercion.at_compile_time(low, node, lambda: annotation(value))
    return value

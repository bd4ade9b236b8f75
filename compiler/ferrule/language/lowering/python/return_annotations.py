"""The annotation of a function's result: it converts numbers, and checks everything else."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.language.faces import base as faces
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.python import conversions, records
from ferrule.language.source import is_hashable, outer_names
from ferrule.language.values import Handle, Number, Parts, TensorView, is_record
from ferrule.specs import Boolean, DType, Int64, Numeric, params
from ferrule.specs.expr import sym_int64

ANYTHING: Final = inspect.Signature.empty
"""The annotation of a function without one, or with one that is meaningless here."""

_SHAPES: Final[dict[object, params.TupleKind]] = {
    faces.Shape: "Shape",
    faces.Stride: "Stride",
    faces.Coord: "Coord",
    faces.Tile: "Tile",
    faces.IntTuple: "IntTuple",
}
_TEXTS: Final[dict[object, type]] = {str: params.String, bytes: params.Bytes}


def annotation_of(function: Callable[..., Any]) -> Any:
    """The annotation of a function's result.

    A name that is undefined at run time, because it is there for type checkers, is ignored.  Raises
    CompileError for an annotation that cannot be evaluated.
    """
    found = inspect.signature(function).return_annotation
    try:
        if isinstance(found, str):
            found = eval(found, outer_names(function))  # type: ignore[arg-type]
        return found if is_hashable(found) else ANYTHING
    except NameError:
        return ANYTHING
    except Exception as error:
        raise CompileError(
            f"{function.__name__}: the annotation {found!r} of the result cannot be evaluated: "
            f"{type(error).__name__}: {error}"
        ) from None


def require_nothing(low: Lowering, node: ast.AST, name: str) -> None:
    """A CompileError if a function without a result is annotated otherwise."""
    wanted = low.state.returns
    if wanted not in (ANYTHING, None, type(None), Any):
        low.fail(
            node,
            f"{name} returns nothing, but is annotated as {_text(wanted)}",
            hint="return a value, or write -> None",
        )


def declared(low: Lowering, value: Any, wanted: Any, node: ast.AST) -> Any:
    """A value converted or checked for an annotation.  A CompileError if it does not fit."""
    if wanted in (ANYTHING, Any):
        return value
    if isinstance(wanted, DType):
        return _number(low, value, wanted, node)
    if wanted in _SHAPES:
        return _shape(low, value, wanted, node)
    arguments = typing.get_args(wanted)
    if typing.get_origin(wanted) is tuple and arguments != ():
        return _tuple(low, value, wanted, arguments, node)
    if not _is_kind(value, wanted):
        _mismatch(low, value, wanted, node)
    return value


def _is_kind(value: Any, wanted: Any) -> bool:
    """Whether a value matches an annotation that does not convert; unknown annotations match."""
    if wanted in (None, type(None)):
        return value is None
    if wanted in _TEXTS:
        is_handle = isinstance(value, Handle) and isinstance(value.param, _TEXTS[wanted])
        return is_handle or isinstance(value, wanted)
    if wanted is faces.Tensor:
        return isinstance(value, TensorView)
    if wanted in (int, float, bool):
        return _is_number(value, wanted)
    if wanted is tuple:
        return isinstance(value, tuple)
    if records.is_record_class(wanted):
        return isinstance(value, wanted) and (is_record(value) or isinstance(value, tuple))
    return True


def _is_number(value: Any, wanted: type) -> bool:
    """Whether this is a Python number of this class, or a run-time number of that kind."""
    value = coercion.plain(value)
    if isinstance(value, Numeric):
        dtype: DType = type(value)
    elif isinstance(value, Number):
        dtype = value.dtype
    else:
        return type(value) is wanted or (wanted is float and type(value) is int)
    kinds = {int: dtype.is_integer, float: dtype.kind == "float", bool: dtype is Boolean}
    return kinds[wanted]


def _number(low: Lowering, value: Any, wanted: DType, node: ast.AST) -> Any:
    found = conversions.annotated(low, value, wanted, node)
    if not isinstance(found, (Number, Numeric)):
        _mismatch(low, value, wanted, node)
    return coercion.as_number(low, found, node, wanted)


def _tuple(
    low: Lowering, value: Any, wanted: Any, arguments: tuple[Any, ...], node: ast.AST
) -> Any:
    if not isinstance(value, tuple):
        _mismatch(low, value, wanted, node)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = arguments[:1] * len(value)
    if arguments == ((),):  # Tuple[()] in older versions of Python
        arguments = ()
    if len(arguments) != len(value):
        low.fail(
            node,
            f"the result is a tuple of {len(value)} values, but is annotated as {_text(wanted)}",
        )
    return tuple(
        declared(low, item, each, node) for item, each in zip(value, arguments, strict=True)
    )


def _shape(low: Lowering, value: Any, wanted: Any, node: ast.AST) -> Any:
    """A tuple of integers as a shape."""
    if not isinstance(value, tuple):
        _mismatch(low, value, wanted, node)
    numbers = [coercion.as_number(low, item, node, Int64) for item in value]
    if not all(number.dtype.is_integer for number in numbers):
        _mismatch(low, value, wanted, node)
    words = f"a {wanted.__name__} of {len(value)} sizes"
    kinds = low.state.returned
    if words not in kinds:
        spec = params.Shape("result", [sym_int64() for _ in value], _SHAPES[wanted])
        kinds[words] = type("Parts", (Parts,), {"param": spec, "words": words})
    sizes = [coercion.convert(low, number, Int64) for number in numbers]
    return tuple.__new__(kinds[words], sizes)


def _mismatch(low: Lowering, value: Any, wanted: Any, node: ast.AST) -> typing.NoReturn:
    low.fail(
        node,
        f"the result is {describe(value)}, but is annotated as {_text(wanted)}",
        hint=usage_hint(value),
    )


def _text(annotation: Any) -> str:
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is tuple:
        return f"tuple[{', '.join(map(_text, arguments)) or '()'}]"
    if arguments:
        return str(annotation)
    if annotation is Ellipsis:
        return "..."
    return getattr(annotation, "__name__", None) or str(annotation)

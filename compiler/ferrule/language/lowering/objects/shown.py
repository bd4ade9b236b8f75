"""Values of the call as text while compiling: what `print`, `str` and f-strings show of them.

What is known is shown, the rest by its type: a tensor as `tensor<ptr<f32, gmem> o (n0,4):(4,1)>`, a
number as `?`, inside of a tuple as `Int32(?)`, a size by its name.  The result is a `ShownText`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import format_tuple
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import named
from ferrule.language.values import (
    CoordinateView,
    Number,
    PointerView,
    ShownText,
    SwizzledPointer,
    SwizzledView,
    TensorView,
    Vector,
    is_run_time,
)
from ferrule.specs import AddressSpace, DType
from ferrule.specs.expr import is_dim

_SHORT: Final = {"bool": "i1", "bfloat16": "bf16", "tfloat32": "tf32"}
_LETTERS: Final = {"int": "i", "uint": "ui", "float": "f", "complex": "complex"}


def is_shown(value: Any) -> bool:
    """Whether a value is or contains a text that shows values of the call."""
    if isinstance(value, (tuple, list)):
        return any(map(is_shown, value))
    return isinstance(value, ShownText)


def as_text(low: Lowering, value: Any) -> str:
    """The text of a value, as `print` shows it."""
    match value:
        case str():
            return str.__str__(value)
        case Number(dim=None):
            return "?"
        case dict() if is_run_time(value):
            items = (f"{_inside(low, k)}: {_inside(low, v)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        case list() if is_run_time(value):
            return f"[{', '.join(_inside(low, item) for item in value)}]"
        case tuple() if is_run_time(value):
            inside = ", ".join(_inside(low, item) for item in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case _ if is_dim(value) or not is_run_time(value):
            return str(named(low, value))
    return _run_time(low, value)


def _inside(low: Lowering, value: Any) -> str:
    """The text of an item of a tuple, list or dict."""
    match value:
        case Number(dim=None):
            return f"{value.dtype.__name__}(?)"
        case _ if is_run_time(value):
            return as_text(low, value)
    return repr(value)


def _run_time(low: Lowering, value: Any) -> str:
    match value:
        case Number(dim=dim):
            return str(named(low, dim))
        case TensorView():
            return f"tensor<{_pointer(low, value.type)} o {named(low, value.layout)}>"
        case PointerView():
            return _pointer(low, value.type)
        case CoordinateView(layout=layout, origin=origin):
            return f"tensor<{_coordinate(low, origin)} o {named(low, layout)}>"
        case SwizzledView(inner=inner, layout=layout):
            shown = f", {inner}" if getattr(inner, "num_bits", 1) else ""
            pointer = _pointer(low, value.type, shown)
            return f"tensor<{pointer} o {named(low, layout)}>"
        case SwizzledPointer(inner=inner):
            return _pointer(low, value.type, f", {inner}")
        case Vector():
            count = f"{len(value.items)}x{dtype_name(value.dtype)}"
            return f"vector<{count} o {format_tuple(value.shape)}>"
    return f"<{describe(value)}>"


def _coordinate(low: Lowering, origin: Any) -> str:
    if isinstance(origin, tuple):
        return f"({','.join(_coordinate(low, each) for each in origin)})"
    return as_text(low, origin)


def _pointer(low: Lowering, type_: TensorType, more: str = "") -> str:
    aligned = f", align<{type_.align}>" if type_.align > type_.dtype.itemsize else ""
    return f"ptr<{dtype_name(type_.dtype)}, {_space(low, type_)}{aligned}{more}>"


def elements(low: Lowering, type_: TensorType) -> str:
    """The elements behind an address: `f32, generic, align<4>`."""
    return f"{dtype_name(type_.dtype)}, {_space(low, type_)}, align<{type_.align}>"


def _space(low: Lowering, type_: TensorType) -> str:
    on_cpu = type_.space is AddressSpace.gmem and low.state.target == "cpu"
    return (AddressSpace.generic if on_cpu else type_.space).value


def dtype_name(dtype: DType) -> str:
    """The short name of a dtype in types: `f32`, `i8`, `bf16`, `f8E4M3FN`."""
    if dtype.name in _SHORT:
        return _SHORT[dtype.name]
    letters = _LETTERS[dtype.kind]
    if dtype.is_narrow:
        return letters + dtype.__name__.removeprefix("Float")
    return f"{letters}{dtype.bits}"


def f_string(low: Lowering, node: ast.JoinedStr) -> str:
    """An f-string, each part evaluated once, in order."""
    text, is_known = "", True
    for piece in node.values:
        if not isinstance(piece, ast.FormattedValue):
            text += str(low.evaluate(piece))
            continue
        value = low.evaluate(piece.value)
        spec = "" if piece.format_spec is None else low.evaluate(piece.format_spec)
        is_known = is_known and not (is_run_time(value) or is_shown(value) or is_shown(spec))
        conversion = "" if piece.conversion == -1 else chr(piece.conversion)
        text += formatted(low, value, conversion, str(spec), piece)
    return text if is_known else ShownText(text)


def formatted(low: Lowering, value: Any, conversion: str, spec: str, node: ast.AST) -> str:
    """A part of an f-string: as Python formats it, or as it is shown."""
    if not is_run_time(value):
        known = coercion.at_compile_time(low, node, lambda: _python(low, value, conversion, spec))
        return str(known)
    text = as_text(low, value)
    try:
        return format(text, spec)
    except ValueError:  # a format for numbers, which need not be known
        return text


_CONVERSIONS: Final[dict[str, Callable[[Any], str]]] = {"s": str, "r": repr, "a": ascii}


def _python(low: Lowering, value: Any, conversion: str, spec: str) -> str:
    if low.state.region is not None:
        low.state.region.runs(value)
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)


def known(low: Lowering, value: Any) -> Any:
    """A value for ordinary Python: one of the call as its text."""
    return ShownText(as_text(low, value)) if is_run_time(value) else value


def nested(low: Lowering, value: Any) -> ShownText:
    """What `repr` shows of a value of the call."""
    return ShownText(_inside(low, value))

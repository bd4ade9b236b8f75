"""The functions of `faces.tuples` whose meaning depends on what is known of run-time numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language.faces import tuples as faces
from ferrule.language.lowering.arguments import Intrinsic, bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import symbol_of
from ferrule.language.lowering.tensors.layout_functions import known_function
from ferrule.language.values import Number, is_run_time
from ferrule.specs import Numeric


def _question(face: Callable[[Any], bool]) -> Intrinsic:
    """`is_integer(x)` and `is_int_tuple(x)`, which look at dtypes alone."""

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> bool:
        (value,) = bound(low, "a", args, kwargs, node)
        return _holds(face, value)

    return emit


def _holds(face: Callable[[Any], bool], value: Any) -> bool:
    match value:
        case Number(dtype=dtype):
            return dtype.is_integer
        case Numeric():
            return type(value).is_integer
        case tuple() if face is faces.is_int_tuple:
            return all(_holds(face, item) for item in value)
    return False if is_run_time(value) else face(value)


def _assume(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
    """`assume(src, divby)`: checked where it can be."""
    source, divisor, power = bound(low, "src divby= pow2=", args, kwargs, node)
    if not isinstance(divisor, int | None) or (divisor is not None and divisor < 1):
        low.fail(node, f"assume: divby is {describe(divisor)}", expected="an int of at least 1")
    if not _holds(faces.is_integer, source):
        low.fail(node, f"assume takes an integer, but got {describe(source)}")
    if not isinstance(source, Number):
        return _of_known(low, source, divisor, power, node)
    if low.kind == "host" and not low.elementwise and divisor is not None:
        _check(low, source, divisor, node)
        if not low.is_conditional() and source.value not in low.state.made:
            # A size that is made of this number is divisible, too.
            symbol_of(low, source.value, divisor)
    return source


def _of_known(low: Lowering, source: Any, divisor: int | None, power: Any, node: ast.Call) -> Any:
    value = int(coercion.plain(source.value if isinstance(source, Numeric) else source))
    if divisor is not None and value % divisor:
        low.fail(node, f"assume: {value} is not divisible by {divisor}")
    if power and value.bit_count() != 1:
        low.fail(node, f"assume: {value} is no power of two")
    return source


def _check(low: Lowering, source: Number, divisor: int, node: ast.Call) -> None:
    """Checks in each call that a number is divisible."""
    build = low.builder
    rest = build.binary("mod", source.value, build.constant(source.dtype, divisor))
    is_whole = build.compare("eq", rest, build.constant(source.dtype, 0))
    text = literal(ast.unparse(node.args[0] if node.args else node))
    message = f"Invalid {text}, assumed to be divisible by {divisor}, but got {{}}"
    build.check(is_whole, Fault("ValueError", message, low.location(node)), source.value)


TABLE: Final[dict[Any, Intrinsic]] = {
    faces.is_integer: _question(faces.is_integer),
    faces.is_int_tuple: _question(faces.is_int_tuple),
    faces.assume: _assume,
    **{
        function: known_function(function)
        for function in (
            faces.get_divisibility,
            faces.is_major,
            faces.leading_dim,
            faces.product_like,
            faces.size_in_bytes,
        )
    },
}
"""The emitters of these functions."""

"""The functions of `fe.math`: each function's op in the kernel IR, and its Python function.

`constants` computes compile-time operands; all others become numbers of one float dtype, element by
element if one of them is a whole tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

from ferrule.language.faces import maths
from ferrule.language.folding import scalars as folding
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import BINARY, EVERY, require_all
from ferrule.language.lowering.arguments import Intrinsic
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars, typed_constants
from ferrule.language.lowering.python import constants
from ferrule.language.lowering.tensors import whole_tensors
from ferrule.language.values import Number, is_run_time
from ferrule.specs import DType, Float32, Int32

_FAST: Final = ("fast", "fastmath")
"""The keyword, and CuTe's name for it."""
_EXACT: Final = ("fma", *(name for name, row in EVERY.items() if row.function == "exact"))
_ROUNDED: Final = tuple(name for name, row in EVERY.items() if row.function == "rounded")
"""The functions that accept the keyword: those that are not exact."""
_OPERANDS: Final = {"fma": 3} | {str(name): 2 for name in BINARY}
require_all("lowering.constants.FUNCTIONS", constants.FUNCTIONS, (*_EXACT, *_ROUNDED))


def _function(name: str) -> Intrinsic:
    """A function of floats."""
    python = constants.FUNCTIONS[name]

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        args, kwargs = _by_name(name, args, kwargs)
        fast = _checked(low, name, args, kwargs, node)
        fast = fast or (name in _ROUNDED and "afn" in low.builder.flags)

        def one(*operands: Any) -> Number:
            return _op(low, name, _floats(low, name, operands, node), fast)

        if scalars.are_typed_numbers(*args):
            return typed_constants.folded(low, lambda: one(*args))
        if not is_run_time(args):
            raw = [coercion.plain(arg) for arg in args]
            return coercion.at_compile_time(low, node, lambda: python(*raw))
        return whole_tensors.lift(low, tuple(args), node, one)

    return emit


def _by_name(
    name: str, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments, with `fast` by its name: CuTe takes it after the operands too."""
    count = _OPERANDS.get(name, 1)
    if name in _ROUNDED and len(args) == count + 1 and isinstance(args[-1], bool):
        return args[:-1], {"fastmath": args[-1], **kwargs}
    return args, kwargs


def _checked(
    low: Lowering, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> bool:
    """Whether the call requests `fast`; also checks the number of operands."""
    count = _OPERANDS.get(name, 1)
    takes = _FAST if name in _ROUNDED else ()
    for keyword in kwargs.keys() - set(takes):
        low.fail(
            node,
            f"math.{name} has no keyword {keyword!r}",
            hint="its keyword is fast=True" if takes else "give its operands by position",
        )
    if len(args) != count:
        plural = "" if count == 1 else "s"
        low.fail(node, f"math.{name} takes {count} operand{plural}, but got {len(args)}")
    for keyword, value in kwargs.items():
        if not isinstance(value, bool):
            low.fail(
                node,
                f"{keyword} must be a bool known at compile time, but got {describe(value)}",
            )
    return any(kwargs.values())


def _floats(low: Lowering, name: str, operands: tuple[Any, ...], node: ast.Call) -> list[ops.Value]:
    """The operands in one float dtype."""
    first, *rest = operands
    if not rest:
        number = coercion.operand(low, first, node)
        return [coercion.convert(low, number, _float_of(number.dtype)).value]
    dtype = reduce(lambda left, right: _common(low, name, left, right, node), operands).dtype
    dtype = _float_of(dtype)
    numbers = (coercion.as_number(low, operand, node, dtype) for operand in operands)
    return [coercion.convert(low, number, dtype).value for number in numbers]


def _common(low: Lowering, name: str, left: Any, right: Any, node: ast.Call) -> Number:
    """A number with the common dtype; the ops that are emitted for it are unused."""
    return scalars.common(low, left, right, f"math.{name}", node)[0]


def _float_of(dtype: DType) -> DType:
    return dtype if dtype.kind == "float" else Float32


def _op(low: Lowering, name: str, values: list[ops.Value], fast: bool) -> Number:
    build = low.builder
    match values:
        case [x]:
            return Number(build.unary(name, x, fast=fast))  # type: ignore[arg-type]
        case [x, y]:
            return Number(build.binary(name, x, y, fast=fast))  # type: ignore[arg-type]
        case [x, y, z]:
            return Number(build.fma(x, y, z))
    raise AssertionError(f"{name} has {len(values)} operands")


# ---- predicates ----


def _question(name: str, ask: Callable[[Lowering, ops.Value], ops.Value]) -> Intrinsic:
    """A Boolean predicate of a float."""
    python = constants.FUNCTIONS[name]

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        _checked(low, name, args, kwargs, node)

        def one(operand: Any) -> Number:
            (value,) = _floats(low, name, (operand,), node)
            return Number(ask(low, value))

        if scalars.are_typed_numbers(*args):
            return typed_constants.folded(low, lambda: one(*args))
        if not is_run_time(args):
            return coercion.at_compile_time(low, node, lambda: python(coercion.plain(args[0])))
        return whole_tensors.lift(low, tuple(args), node, one)

    return emit


def _is_nan(low: Lowering, x: ops.Value) -> ops.Value:
    return low.builder.compare("ne", x, x)


def _is_infinite(low: Lowering, x: ops.Value) -> ops.Value:
    assert isinstance(x.type, DType)
    magnitude = low.builder.unary("fabs", x)
    return low.builder.compare("eq", magnitude, low.builder.constant(x.type, float("inf")))


# ---- integers ----


def _of_integers(name: str) -> Intrinsic:
    """A function of integers; a count of bits is an Int32."""
    row = EVERY[name]

    def emit(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        _checked(low, name, args, kwargs, node)
        raw = [coercion.plain(arg) for arg in args]
        if all(isinstance(each, int) and not isinstance(each, bool) for each in raw):
            for each in raw:
                coercion.constant(low, each, Int32, node)  # refuses what is no Int32
            return folding.computed(row, Int32, *raw)

        def one(*operands: Any) -> Number:
            found = _op(low, name, _integers(low, name, operands, node), fast=False)
            return coercion.convert(low, found, Int32) if row.counts else found

        if scalars.are_typed_numbers(*args):
            return typed_constants.folded(low, lambda: one(*args))
        return whole_tensors.lift(low, tuple(args), node, one)

    return emit


def _integers(
    low: Lowering, name: str, operands: tuple[Any, ...], node: ast.Call
) -> list[ops.Value]:
    """The operands in one integer dtype."""
    first, *others = operands
    numbers: tuple[Number, ...] = (coercion.as_number(low, first, node),)
    for other in others:
        numbers = scalars.common(low, first, other, f"math.{name}", node)
    for number in numbers:
        if not number.dtype.is_integer:
            low.fail(
                node,
                f"math.{name} takes integers, but got {describe(number)}",
                hint="convert it, fe.Int32(x)",
            )
    return [number.value for number in numbers]


TABLE: Final[dict[Any, Intrinsic]] = {
    **{getattr(maths, name): _function(name) for name in (*_ROUNDED, *_EXACT)},
    maths.isnan: _question("isnan", _is_nan),
    maths.isinf: _question("isinf", _is_infinite),
    **{
        getattr(maths, name): _of_integers(name)
        for name, row in EVERY.items()
        if row.function == "integers"
    },
}
"""The emitter of each function of `fe.math`, except `max` and `min`."""

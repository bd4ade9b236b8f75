"""The operators on numbers: one row for each, with its properties.

The semantics of an operator is in the docstring of `ops`.  Tables elsewhere, with the
implementation for a target, are checked by `require_all` when they are imported: if one of them
lacks a new row, this is reported at once, with the names of both.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import Kind

__all__ = [  # names of `ops`
    "BinaryOp",
    "UnaryOp",
]

INTEGERS: Final[tuple[Kind, ...]] = ("int", "uint")
NUMBERS: Final[tuple[Kind, ...]] = ("int", "uint", "float")
FLOATS: Final[tuple[Kind, ...]] = ("float",)
BITS: Final[tuple[Kind, ...]] = ("bool", "int", "uint")


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """An operator whose operands and result have one dtype, of one of these kinds.

    `library`: `mathlib` implements it for targets without an instruction.  `function`: what the
    function of `fe.math` with this name is, if there is one: of floats, where it accepts `fast` if
    it is rounded, or of integers.  `counts`: its results are numbers of bits, which users get as an
    Int32.  `sign`: Python's operator.  `integers`: its value of integers, each within its dtype,
    and then of their width; the result is wrapped.  `floats`: its value of floats, unless it is of
    the library.  `libdevice`: NVIDIA's library has it, under its own name and with C's special
    values.  `mlir`: MLIR's operation by kind; without one the MLIR pipeline writes several
    operations.
    """

    kinds: tuple[Kind, ...]
    library: bool = False
    function: Literal["rounded", "exact", "integers"] | None = None
    counts: bool = False
    sign: str | None = None
    integers: Callable[..., int] | None = None
    floats: Callable[..., float] | None = None
    libdevice: bool = False
    mlir: Mapping[Kind, str] = field(default_factory=dict)


# ---- values ----


def _square_root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan


def _quotient(x: float, y: float) -> float:
    if y != 0:
        return x / y
    # IEEE 754; Python raises an exception for these.
    if x == 0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _maximum(x: float, y: float) -> float:
    """NaN if one is, and -0.0 below 0.0."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if x == y:
        return y if math.copysign(1.0, x) < 0 else x
    return max(x, y)


def _minimum(x: float, y: float) -> float:
    return -_maximum(-x, -y)


def _shifted(shift: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    """A shift by a count that is read as unsigned: one of the width or more shifts all bits out."""
    return lambda x, y, width: shift(x, min(y % (1 << width), width))


def _ones(x: int, width: int) -> int:
    return (x % (1 << width)).bit_count()


def _leading_zeros(x: int, width: int) -> int:
    return width - (x % (1 << width)).bit_length()


# ---- rows ----


def _integers(name: str) -> dict[Kind, str]:
    return dict.fromkeys(INTEGERS, name)


def _of_floats(mlir: str) -> dict[Kind, str]:
    return {"float": mlir}


def _arithmetic(
    sign: str, value: Callable[[Any, Any], Any], integers: str, floats: str
) -> ScalarOp:
    words: dict[Kind, str] = {**_integers(integers), "float": floats}
    return ScalarOp(
        NUMBERS, sign=sign, integers=lambda x, y, _: value(x, y), floats=value, mlir=words
    )


def _bitwise(sign: str, value: Callable[[int, int], int], mlir: str) -> ScalarOp:
    return ScalarOp(
        BITS, sign=sign, integers=lambda x, y, _: value(x, y), mlir=dict.fromkeys(BITS, mlir)
    )


def _of_integers(sign: str, value: Callable[[int, int, int], int]) -> ScalarOp:
    """An operator for which MLIR has no operation that is defined for all operands."""
    return ScalarOp(INTEGERS, sign=sign, integers=value)


def _rounded(name: str, mlir: str | None = None) -> ScalarOp:
    """A function of the library that libdevice has too."""
    words = _of_floats(mlir or f"math.{name}")
    return ScalarOp(FLOATS, library=True, function="rounded", libdevice=True, mlir=words)


def _count(mlir: str, count: Callable[[int, int], int]) -> ScalarOp:
    return ScalarOp(
        INTEGERS, function="integers", counts=True, integers=count, mlir=_integers(mlir)
    )


def _exact(mlir: str) -> ScalarOp:
    return ScalarOp(FLOATS, library=True, function="exact", mlir=_of_floats(mlir))


UnaryOp = Literal[
    "neg",
    "not",
    "sqrt",
    "popc",
    "clz",
    "fabs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "rsqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
]
BinaryOp = Literal[
    "add",
    "sub",
    "mul",
    "div",
    "floordiv",
    "mod",
    "max",
    "min",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "copysign",
    "fmod",
    "pow",
    "atan2",
]

UNARY: Final[Mapping[UnaryOp, ScalarOp]] = MappingProxyType(
    {
        "neg": ScalarOp(
            NUMBERS, integers=lambda x, _: -x, floats=operator.neg, mlir=_of_floats("negf")
        ),
        "not": ScalarOp(BITS, integers=lambda x, _: ~x),
        "sqrt": ScalarOp(
            FLOATS, function="rounded", floats=_square_root, mlir=_of_floats("math.sqrt")
        ),
        "popc": _count("math.ctpop", _ones),
        "clz": _count("math.ctlz", _leading_zeros),
        "fabs": _exact("math.absf"),
        "floor": _exact("math.floor"),
        "ceil": _exact("math.ceil"),
        "round": _exact("math.roundeven"),
        "trunc": _exact("math.trunc"),
        "exp": _rounded("exp"),
        "exp2": _rounded("exp2"),
        "expm1": _rounded("expm1"),
        "log": _rounded("log"),
        "log2": _rounded("log2"),
        "log10": _rounded("log10"),
        "log1p": _rounded("log1p"),
        "rsqrt": _rounded("rsqrt"),
        "cbrt": _rounded("cbrt"),
        "sin": _rounded("sin"),
        "cos": _rounded("cos"),
        "tan": _rounded("tan"),
        "asin": _rounded("asin"),
        "acos": _rounded("acos"),
        "atan": _rounded("atan"),
        "sinh": _rounded("sinh"),
        "cosh": _rounded("cosh"),
        "tanh": _rounded("tanh"),
        "sigmoid": ScalarOp(FLOATS, library=True, function="rounded"),
        "erf": _rounded("erf"),
        "erfc": _rounded("erfc"),
    }
)
BINARY: Final[Mapping[BinaryOp, ScalarOp]] = MappingProxyType(
    {
        "add": _arithmetic("+", operator.add, "addi", "addf"),
        "sub": _arithmetic("-", operator.sub, "subi", "subf"),
        "mul": _arithmetic("*", operator.mul, "muli", "mulf"),
        "div": ScalarOp(FLOATS, sign="/", floats=_quotient, mlir=_of_floats("divf")),
        "floordiv": _of_integers("//", lambda x, y, _: x // y if y else 0),
        "mod": _of_integers("%", lambda x, y, _: x % y if y else 0),
        "max": ScalarOp(
            NUMBERS,
            integers=lambda x, y, _: max(x, y),
            floats=_maximum,
            mlir={"int": "maxsi", "uint": "maxui", "float": "maximumf"},
        ),
        "min": ScalarOp(
            NUMBERS,
            integers=lambda x, y, _: min(x, y),
            floats=_minimum,
            mlir={"int": "minsi", "uint": "minui", "float": "minimumf"},
        ),
        "and": _bitwise("&", operator.and_, "andi"),
        "or": _bitwise("|", operator.or_, "ori"),
        "xor": _bitwise("^", operator.xor, "xori"),
        "shl": _of_integers("<<", _shifted(operator.lshift)),
        "shr": _of_integers(">>", _shifted(operator.rshift)),
        "copysign": _exact("math.copysign"),
        "fmod": ScalarOp(
            FLOATS, library=True, function="exact", libdevice=True, mlir=_of_floats("arith.remf")
        ),
        "pow": _rounded("pow", "math.powf"),
        "atan2": _rounded("atan2"),
    }
)
"""Both are in the order of the names above."""

EVERY: Final[Mapping[str, ScalarOp]] = MappingProxyType(
    {str(name): row for name, row in (*UNARY.items(), *BINARY.items())}
)


def require_all(consumer: str, known: Collection[str], wanted: Collection[str]) -> None:
    """Raises TypeError, with the names of both, if a table lacks a required operator."""
    missing = sorted(set(wanted) - set(known))
    if missing:
        raise TypeError(f"{consumer} has no row for {', '.join(missing)}")


def _values() -> Iterator[str]:
    for name, row in EVERY.items():
        yield from (f"{name} of {kind}" for kind in row.kinds if row.integers and kind in BITS)
        yield from (f"{name} of {kind}" for kind in row.kinds if row.floats and kind in FLOATS)


require_all("ir.scalars.UNARY", UNARY, get_args(UnaryOp))
require_all("ir.scalars.BINARY", BINARY, get_args(BinaryOp))
require_all(
    "ir.scalars.integers and floats",
    set(_values()),
    [f"{name} of {kind}" for name, row in EVERY.items() if not row.library for kind in row.kinds],
)

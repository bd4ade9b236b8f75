"""Float expressions over the numbers and sizes of a call, in float64, as Python computes them.

    as_float(eps)                                  # a float parameter, or a size, as a float64
    Computed("div", (Real.of(1.0), Computed("sqrt", (as_float(n),))))

Each operation is rounded once, to nearest, ties to even.  None of them raises: a division by zero
gives an infinity or NaN, and who writes an expression compares the divisor.  Only
`evaluate_float` computes an expression in Python; tests use it as their oracle.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal

from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound, Dim, Sym, evaluate, format_dim, symbols_of

if TYPE_CHECKING:
    from ferrule.specs.params import Scalar

FloatOp = Literal["float", "add", "sub", "mul", "div", "neg", "abs", "sqrt"]


@dataclass(frozen=True, slots=True)
class Real:
    """A number of float64, told by its bits: NaN is NaN, and 0.0 is not -0.0."""

    bits: int

    @staticmethod
    def of(number: float) -> Real:
        """The number; every NaN is the same."""
        found = math.nan if math.isnan(number) else number
        return Real(int.from_bytes(struct.pack("<d", found), "little"))

    @property
    def number(self) -> float:
        """The number."""
        (number,) = struct.unpack("<d", self.bits.to_bytes(8, "little"))
        return float(number)


@dataclass(frozen=True, slots=True)
class Computed:
    """An operation on one or two floats; of "float" the operand is a parameter or a size."""

    op: FloatOp
    operands: tuple[Real | Computed | Scalar | Dim, ...]

    def __str__(self) -> str:
        return format_float(self, {})


FloatExpr = Real | Computed

_SIZES: Final = (int, Sym, Compound)
_NAMES: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def as_float(number: Scalar | Dim) -> FloatExpr:
    """A parameter or a size as a float64."""
    return Real.of(float(number)) if isinstance(number, int) else Computed("float", (number,))


def float_parts(expression: FloatExpr) -> Iterator[Scalar | Dim]:
    """The parameters and sizes in an expression, in the order in which they stand."""
    for each in expression.operands if isinstance(expression, Computed) else ():
        if isinstance(each, Real | Computed):
            yield from float_parts(each)
        else:
            yield each


def inner(expression: Computed) -> Iterator[FloatExpr]:
    """The operands that are floats themselves."""
    return (each for each in expression.operands if isinstance(each, Real | Computed))


def float_symbols(expression: FloatExpr) -> Iterator[Sym]:
    """The symbols in an expression."""
    for each in float_parts(expression):
        if isinstance(each, _SIZES):
            yield from symbols_of(each)


def evaluate_float(
    expression: FloatExpr, symbols: Mapping[Sym, int], floats: Mapping[str, float]
) -> float:
    """The value for these values of symbols, and of float parameters by name."""
    if isinstance(expression, Real):
        return expression.number
    if expression.op == "float":
        (of,) = float_parts(expression)
        return float(evaluate(of, symbols)) if isinstance(of, _SIZES) else floats[of.name]
    operands = [evaluate_float(each, symbols, floats) for each in inner(expression)]
    return _COMPUTE[expression.op](*operands)


def format_float(expression: FloatExpr, names: Mapping[Sym, str]) -> str:
    """The text of an expression, with these names of symbols."""
    if isinstance(expression, Real):
        return repr(expression.number)
    if expression.op == "float":
        (of,) = float_parts(expression)
        return format_dim(of, names) if isinstance(of, _SIZES) else of.name
    parts = [format_float(each, names) for each in inner(expression)]
    if expression.op in _NAMES:
        return f"({parts[0]} {_NAMES[expression.op]} {parts[1]})"
    return f"-{parts[0]}" if expression.op == "neg" else f"{expression.op}({parts[0]})"


def _divided(left: float, right: float) -> float:
    if right != 0:
        return left / right
    sign = math.copysign(1.0, left) * math.copysign(1.0, right)
    return math.nan if left == 0 or left != left else math.copysign(math.inf, sign)


def _root(number: float) -> float:
    return math.nan if number < 0 else math.sqrt(number)


_COMPUTE: Final[Mapping[str, Callable[..., float]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divided,
    "neg": operator.neg,
    "abs": abs,
    "sqrt": _root,
}

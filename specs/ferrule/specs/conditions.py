"""Conditions over sizes and addresses of a call, by which it chooses the kernel to launch.

    n < 32                                    # comparisons of sizes: <, <=, >, >=
    specs.equal(n, m), specs.divisible(n, 16)
    specs.aligned(x.data, 16)
    specs.compare_float("gt", eps, 0.0)       # of a float parameter, in its own dtype
    FloatRelation("gt", as_float(eps), x)     # of float expressions
    (n > 0) & ~specs.divisible(n, 4)          # and, or, not: &, |, ~

`==` of sizes is Python's own: it compares the two expressions, not their values at the call.
Therefore there is `equal`.  Only `holds` evaluates a condition in Python; tests use it as their
oracle.  `ferrule.compiler` lowers conditions to code.

A float expression is over the numbers and sizes of a call, in float64, as Python computes them:

    Computed("div", (Real.of(1.0), Computed("sqrt", (as_float(n),))))

Each operation is rounded once, to nearest, ties to even.  None of them raises: a division by zero
gives an infinity or NaN, and who writes an expression compares the divisor.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal

from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import (
    Compound,
    Dim,
    Sym,
    evaluate,
    format_dim,
    is_dim,
    make,
    shown_operand,
    symbols_of,
)

if TYPE_CHECKING:
    from ferrule.specs.params import Data, Optional, Scalar

ComparisonOp = Literal["lt", "le", "gt", "ge", "eq", "ne"]
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


class _Logic:
    """The operators that all conditions share."""

    __slots__ = ()

    def __and__(self, other: Condition) -> Condition:
        return Junction("and", _self(self), checked_condition(other))

    def __or__(self, other: Condition) -> Condition:
        return Junction("or", _self(self), checked_condition(other))

    def __invert__(self) -> Condition:
        return Negation(_self(self))

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self} is decided at the call: it has no truth value here; join conditions with "
            f"&, | and ~"
        )


@dataclass(frozen=True, slots=True)
class Comparison(_Logic):
    """`lhs op rhs` of two sizes, in 64 bits."""

    op: ComparisonOp
    lhs: Dim
    rhs: Dim

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class FloatComparison(_Logic):
    """`param op number` of a float parameter with the value that it has in its dtype.  With NaN
    only "ne" holds."""

    op: ComparisonOp
    param: Scalar
    number: float

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class FloatRelation(_Logic):
    """`lhs op rhs` of two float expressions, in float64.  With NaN only "ne" holds, and "same":
    whether both are the same number, where NaN is NaN and 0.0 is not -0.0."""

    op: ComparisonOp | Literal["same"]
    lhs: FloatExpr
    rhs: FloatExpr

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class Aligned(_Logic):
    """Whether an address is aligned to a number of bytes, which is a power of two."""

    data: Data
    bytes: int

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class Present(_Logic):
    """Whether an optional parameter was given."""

    param: Optional

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class Negation(_Logic):
    """Whether a condition does not hold."""

    condition: Condition

    def __str__(self) -> str:
        return format_condition(self, {})


@dataclass(frozen=True, slots=True)
class Junction(_Logic):
    """Whether both conditions hold, or one of them; both are evaluated."""

    op: Literal["and", "or"]
    lhs: Condition
    rhs: Condition

    def __str__(self) -> str:
        return format_condition(self, {})


Condition = Comparison | FloatComparison | FloatRelation | Aligned | Present | Negation | Junction

_COMPARE: Final[dict[ComparisonOp, tuple[str, Callable[[float, float], bool]]]] = {
    "lt": ("<", lambda a, b: a < b),
    "le": ("<=", lambda a, b: a <= b),
    "gt": (">", lambda a, b: a > b),
    "ge": (">=", lambda a, b: a >= b),
    "eq": ("==", lambda a, b: a == b),
    "ne": ("!=", lambda a, b: a != b),
}


def compare(op: ComparisonOp, lhs: Dim, rhs: Dim) -> Comparison:
    """`lhs op rhs`.  Raises TypeError for operands that are no sizes, ValueError for another op."""
    require_comparison("compare", op)
    for operand in (lhs, rhs):
        if not is_dim(operand):
            raise TypeError(f"a size is compared with a size, but got {shown_operand(operand)}")
    return Comparison(op, lhs, rhs)


def require_comparison(name: str, op: object) -> None:
    """ValueError for what is no `ComparisonOp`; `name` is the function that got it."""
    if op not in _COMPARE:
        raise ValueError(f"{name}: op must be one of {', '.join(_COMPARE)}, but got {op!r}")


def equal(lhs: Dim, rhs: Dim) -> Comparison:
    """Whether two sizes are equal at the call."""
    return compare("eq", lhs, rhs)


def divisible(size: Dim, by: int) -> Comparison:
    """Whether a size is a multiple of `by`.  ValueError unless `by` is at least 1."""
    if isinstance(by, bool) or not isinstance(by, int) or by < 1:
        raise ValueError(f"divisible: expected a number of at least 1, but got {by!r}")
    return compare("eq", make("mod", size, by), 0)


def checked_condition(value: object) -> Condition:
    """A condition as it is.  Raises TypeError for anything else."""
    if not isinstance(value, Condition):
        got = shown_operand(value)
        if isinstance(value, bool):
            got = f"{value} (== compares expressions)"
        elif isinstance(value, int | Sym | Compound):
            got = f"the size {format_dim(value, {})}"
        raise TypeError(
            f"expected a condition over sizes, such as n < 32 or equal(n, 0), but got {got}"
        )
    return value


def dims_of(condition: Condition) -> Iterator[Dim]:
    """The sizes that a condition compares."""
    match condition:
        case Comparison(_, lhs, rhs):
            yield lhs
            yield rhs
        case Negation(inner):
            yield from dims_of(inner)
        case Junction(_, lhs, rhs):
            yield from dims_of(lhs)
            yield from dims_of(rhs)


def condition_symbols(condition: Condition) -> Iterator[Sym]:
    """The symbols in a condition, in the order in which they stand."""
    for dim in dims_of(condition):
        yield from symbols_of(dim)
    for each in relations_in(condition):
        yield from (*float_symbols(each.lhs), *float_symbols(each.rhs))


def relations_in(condition: Condition) -> Iterator[FloatRelation]:
    """The relations of float expressions in a condition."""
    match condition:
        case FloatRelation():
            yield condition
        case Negation(inner):
            yield from relations_in(inner)
        case Junction(_, lhs, rhs):
            yield from relations_in(lhs)
            yield from relations_in(rhs)


def holds(
    condition: Condition,
    symbols: Mapping[Sym, int],
    addresses: Mapping[str, int] | None = None,
    floats: Mapping[str, float] | None = None,
) -> bool:
    """Whether a condition holds for these values of symbols, addresses of tensors by name, and
    values of float parameters by name.

    A parameter is present if it has an address.  Raises the errors of `evaluate`.
    """
    known = addresses or {}
    match condition:
        case Comparison(op, lhs, rhs):
            return _COMPARE[op][1](evaluate(lhs, symbols), evaluate(rhs, symbols))
        case FloatComparison(op, param, number):
            return _COMPARE[op][1]((floats or {})[param.name], number)
        case FloatRelation(op, left, right):
            pair = [evaluate_float(each, symbols, floats or {}) for each in (left, right)]
            return pair_holds(op, *pair)
        case Aligned(data, to):
            address = known[data.tensor.name] + evaluate(data.offset, symbols)
            return address % to == 0
        case Present(param):
            return param.name in known
        case Negation(inner):
            return not holds(inner, symbols, known, floats)
        case Junction("and", lhs, rhs):
            return holds(lhs, symbols, known, floats) and holds(rhs, symbols, known, floats)
        case Junction(_, lhs, rhs):
            return holds(lhs, symbols, known, floats) or holds(rhs, symbols, known, floats)


def pair_holds(op: str, left: float, right: float) -> bool:
    """Whether a relation of two floats holds: see `FloatRelation`."""
    if op == "same":
        return Real.of(left) == Real.of(right)
    return _COMPARE[op][1](left, right)  # type: ignore[index]


def format_condition(condition: Condition, names: Mapping[Sym, str]) -> str:
    """The text of a condition, with these names of symbols."""
    match condition:
        case Comparison(op, lhs, rhs):
            return f"{format_dim(lhs, names)} {_COMPARE[op][0]} {format_dim(rhs, names)}"
        case FloatComparison(op, param, number):
            return f"{param.name} {_COMPARE[op][0]} {number!r}"
        case FloatRelation(op, left, right):
            word = "is" if op == "same" else _COMPARE[op][0]
            return f"{format_float(left, names)} {word} {format_float(right, names)}"
        case Aligned(data, to):
            return f"{data.tensor.name} is {to}-byte aligned"
        case Present(param):
            return f"{param.name} is given"
        case Negation(inner):
            return f"not ({format_condition(inner, names)})"
        case Junction(op, lhs, rhs):
            return f"({format_condition(lhs, names)} {op} {format_condition(rhs, names)})"


# ---- float expressions ----


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
    # IEEE 754 and LLVM's fdiv; Python raises an exception.
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


def _self(value: _Logic) -> Condition:
    assert isinstance(value, Condition)
    return value

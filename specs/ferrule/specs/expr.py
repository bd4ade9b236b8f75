"""Integer expressions over symbolic sizes.

An expression can be a dim of a spec, a stride, a relation that a wrapper checks, or a launch size.
Division and modulo are Python's (floor).  Arithmetic is in signed 64 bits; an overflow is an
error, it never wraps.  Only `evaluate` computes an expression in Python; tests use it as their
oracle.  `ferrule.compiler` has the only lowering to LLVM.

Invariants: expressions are immutable and hashable; constants are folded; a constant operand of a
commutative operation stands on the right.
"""

from __future__ import annotations

import builtins
import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, overload

from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.specs.conditions import Comparison, ComparisonOp

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1

ExprOp = Literal["add", "sub", "mul", "floordiv", "mod", "min", "max", "ceildiv"]


class _Arithmetic:
    """The operators that symbols and compound expressions share."""

    __slots__ = ()

    def __add__(self, other: Dim) -> Dim:
        return make("add", _self(self), other)

    def __radd__(self, other: Dim) -> Dim:
        return make("add", other, _self(self))

    def __sub__(self, other: Dim) -> Dim:
        return make("sub", _self(self), other)

    def __rsub__(self, other: Dim) -> Dim:
        return make("sub", other, _self(self))

    def __mul__(self, other: Dim) -> Dim:
        return make("mul", _self(self), other)

    def __rmul__(self, other: Dim) -> Dim:
        return make("mul", other, _self(self))

    def __floordiv__(self, other: Dim) -> Dim:
        return make("floordiv", _self(self), other)

    def __rfloordiv__(self, other: Dim) -> Dim:
        return make("floordiv", other, _self(self))

    def __mod__(self, other: Dim) -> Dim:
        return make("mod", _self(self), other)

    def __rmod__(self, other: Dim) -> Dim:
        return make("mod", other, _self(self))

    def __lt__(self, other: Dim) -> Comparison:
        return _compare("lt", _self(self), other)

    def __le__(self, other: Dim) -> Comparison:
        return _compare("le", _self(self), other)

    def __gt__(self, other: Dim) -> Comparison:
        return _compare("gt", _self(self), other)

    def __ge__(self, other: Dim) -> Comparison:
        return _compare("ge", _self(self), other)

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} is known only at the call: it has no truth value here")

    def __index__(self) -> int:
        raise TypeError(f"the size {self} is known only at the call: it is no Python integer")


@dataclass(frozen=True, slots=True)
class Sym(_Arithmetic):
    """A size that is known only at the call.

    Two symbols are equal if their keys are equal.  The key of a named symbol is its name; the key
    of an unnamed symbol is a fresh object.
    `width` is 32 or 64 bits; a value at a call is a multiple of `divisibility`, at least `min` and
    at most `max`; None is no bound but that of the width.
    """

    key: object
    name: str | None = field(default=None, compare=False)
    width: int = field(default=32, compare=False)
    divisibility: int = field(default=1, compare=False)
    min: int | None = field(default=None, compare=False)
    max: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.name or "?"

    def __repr__(self) -> str:
        given = {
            "symbol": self.name,
            "divisibility": self.divisibility if self.divisibility != 1 else None,
            "min": self.min,
            "max": self.max,
        }
        words = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        return f"sym_int({', '.join([str(self.width), *words])})"

    @property
    def bounds(self) -> str:
        """The bounds as text, `1..4096` or `..4096`; nothing for a symbol without bounds."""
        if self.min is None and self.max is None:
            return ""
        low, high = ("" if bound is None else str(bound) for bound in (self.min, self.max))
        return f"{low}..{high}"

    @property
    def facts(self) -> tuple[int, int, int | None, int | None]:
        """Width, divisibility and bounds: what all occurrences of a symbol have in common."""
        return self.width, self.divisibility, self.min, self.max

    @property
    def fallback(self) -> int:
        """The value in a call that tells none: 1, or the nearest that its bounds and its
        divisibility allow."""
        low, high = self.interval()
        # Division rounds down, so the negation on both sides rounds up.
        first = -(-builtins.max(1, low) // self.divisibility) * self.divisibility
        return first if first <= high else high // self.divisibility * self.divisibility

    def interval(self, *, signed: bool = True) -> tuple[int, int]:
        """The smallest and the largest value at a call; a size that is not `signed` is at least
        0."""
        low = -(1 << self.width - 1) if signed else 0
        high = (1 << self.width - 1) - 1
        return (
            low if self.min is None else builtins.max(low, self.min),
            high if self.max is None else self.max,
        )


@dataclass(frozen=True, slots=True)
class ValueOf:
    """The key of a symbol that represents the value of an integer parameter."""

    param: str


@dataclass(frozen=True, slots=True)
class Compound(_Arithmetic):
    """`lhs op rhs`.  Made by `make`, which folds constants."""

    op: ExprOp
    lhs: Dim
    rhs: Dim

    def __str__(self) -> str:
        return format_dim(self, {})


IntExpr = Sym | Compound
Dim = int | Sym | Compound


def _self(value: _Arithmetic) -> IntExpr:
    assert isinstance(value, (Sym, Compound))
    return value


def _compare(op: ComparisonOp, lhs: IntExpr, rhs: Dim) -> Comparison:
    from ferrule.specs.conditions import compare

    return compare(op, lhs, rhs)


def sym_int(
    width: int = 32,
    *,
    divisibility: int = 1,
    min: int | None = None,
    max: int | None = None,
    symbol: str | None = None,
) -> Sym:
    """A symbolic size.  Symbols with the same name are equal; an unnamed one equals only itself.

    `width`: 32 or 64 bits; the value at a call must fit in this width.  `divisibility`: each value
    is a multiple of it.  `min`, `max`: each value is at least and at most this; sizes of tensors
    are never negative, also without `min`.  Raises ValueError for another width, a divisibility
    below 1, bounds that do not fit the width or allow no value, or a symbol that is not an
    identifier; TypeError for bounds or a divisibility that are no ints.
    """
    if width not in (32, 64):
        raise ValueError(f"sym_int: width must be 32 or 64, but got {width!r}")
    if isinstance(divisibility, bool) or not isinstance(divisibility, int):
        raise TypeError(f"sym_int: divisibility must be an int, but got {divisibility!r}")
    if not 1 <= divisibility < 1 << width - 1:
        raise ValueError(
            f"sym_int: divisibility must be at least 1 and fit int{width}, but got {divisibility}"
        )
    if symbol is not None and not (isinstance(symbol, str) and is_name(symbol)):
        raise ValueError(f"sym_int: symbol must be an identifier, but got {symbol!r}")
    _check_bounds(width, divisibility, min, max)
    key = symbol if symbol is not None else object()
    return Sym(key, symbol, width, divisibility, min, max)


def _check_bounds(width: int, divisibility: int, low: int | None, high: int | None) -> None:
    """Raises TypeError or ValueError unless some multiple of `divisibility` is in the bounds."""
    least, largest = -(1 << width - 1), (1 << width - 1) - 1
    for name, bound in (("min", low), ("max", high)):
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise TypeError(f"sym_int: {name} must be an int or None, but got {bound!r}")
        if not least <= bound <= largest:
            wider = "; use a symbol of 64 bits" if width == 32 else ""
            raise ValueError(f"sym_int: {name} must fit int{width}, but got {bound}{wider}")
    least = least if low is None else low
    largest = largest if high is None else high
    if least > largest:
        raise ValueError(f"sym_int: min must be at most max, but got min={low}, max={high}")
    if largest // divisibility * divisibility < least:
        raise ValueError(f"sym_int: no multiple of {divisibility} is in {least}..{largest}")


def is_name(text: str) -> bool:
    """Whether the text is a Python name: a normalised identifier that is not a keyword."""
    return _is_normal(text) and text.isidentifier() and not keyword.iskeyword(text)


def _is_normal(text: str) -> bool:
    """Whether Python takes a name as it is written."""
    if text.isascii():
        return True
    import unicodedata

    return unicodedata.is_normalized("NFKC", text)


def sym_int32(
    divisibility: int = 1,
    symbol: str | None = None,
    *,
    min: int | None = None,
    max: int | None = None,
) -> Sym:
    """A symbolic size of 32 bits: see `sym_int`."""
    return sym_int(32, divisibility=divisibility, min=min, max=max, symbol=symbol)


def sym_int64(
    divisibility: int = 1,
    symbol: str | None = None,
    *,
    min: int | None = None,
    max: int | None = None,
) -> Sym:
    """A symbolic size of 64 bits: see `sym_int`."""
    return sym_int(64, divisibility=divisibility, min=min, max=max, symbol=symbol)


@overload
def ceil_div(lhs: Dim, rhs: Dim) -> Dim: ...
@overload
def ceil_div(lhs: tuple[Any, ...], rhs: Any) -> tuple[Any, ...]: ...
def ceil_div(lhs: Dim | tuple[Any, ...], rhs: Any) -> Any:
    """`lhs / rhs` rounded up, without the overflow that `lhs + rhs - 1` could have.

    Of tuples it is mode by mode; modes of `lhs` beyond those of `rhs` are unchanged.  Raises
    ValueError if `rhs` has more modes.
    """
    if not isinstance(lhs, tuple) and not isinstance(rhs, tuple):
        return make("ceildiv", lhs, rhs)
    by = rhs if isinstance(rhs, tuple) else (rhs,)
    if not isinstance(lhs, tuple) or len(by) > len(lhs):
        raise ValueError(f"ceil_div: {rhs} has more modes than {lhs}")
    return (*map(ceil_div, lhs, by), *lhs[len(by) :])


def minimum(lhs: Dim, rhs: Dim) -> Dim:
    """The smaller of two sizes."""
    return make("min", lhs, rhs)


def maximum(lhs: Dim, rhs: Dim) -> Dim:
    """The larger of two sizes."""
    return make("max", lhs, rhs)


_EVALUATE: Final[dict[ExprOp, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
}
_COMMUTES: Final = ("add", "mul", "min", "max")
_INFIX: Final[dict[ExprOp, tuple[str, int]]] = {
    "add": ("+", 1),
    "sub": ("-", 1),
    "mul": ("*", 2),
    "floordiv": ("//", 2),
    "mod": ("%", 2),
}


def is_dim(value: object) -> bool:
    """Whether this is a size: an int (no bool) or an expression."""
    return isinstance(value, (int, Sym, Compound)) and not isinstance(value, bool)


def shown_operand(operand: object) -> str:
    """A value that is no size, and what to write instead of it."""
    hint: str | None = getattr(operand, "instead_of_size", None)
    return repr(operand) if hint is None else hint


class NoSize:
    """A parameter, or a part of one, that stands where a size is wanted: the error says what its
    sizes are."""

    __slots__ = ()

    @property
    def instead_of_size(self) -> str:
        """What it is, and which sizes it has."""
        raise NotImplementedError

    def _refuse(self, _: object) -> NoReturn:
        raise TypeError(f"a size is compared with a size, but got {self.instead_of_size}")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def make(op: ExprOp, lhs: Dim, rhs: Dim) -> Dim:
    """`lhs op rhs`, with constants folded.  Raises TypeError for operands that are not sizes.

    A constant result that overflows 64 bits, or a division by a constant zero, is not folded.  The
    error comes when the expression is evaluated, as it does for operands that are not constant.
    """
    for operand in (lhs, rhs):
        if not is_dim(operand):
            raise TypeError(
                f"a size takes ints and symbolic ints, but got {shown_operand(operand)}"
            )
    if isinstance(lhs, int) and isinstance(rhs, int):
        folded = _fold(op, lhs, rhs)
        return Compound(op, lhs, rhs) if folded is None else folded
    if isinstance(lhs, int) and op in _COMMUTES:
        lhs, rhs = rhs, lhs
    if op == "sub" and isinstance(rhs, int):
        op, rhs = "add", -rhs
    return _simplify(op, lhs, rhs)


def _fold(op: ExprOp, lhs: int, rhs: int) -> int | None:
    if rhs == 0 and op in ("floordiv", "mod", "ceildiv"):
        return None
    value = _EVALUATE[op](lhs, rhs)
    return value if INT64_MIN <= value <= INT64_MAX else None


def _simplify(op: ExprOp, lhs: Dim, rhs: Dim) -> Dim:
    match op, rhs:
        case ("add", 0) | ("mul" | "floordiv" | "ceildiv", 1):
            return lhs
        case "mod", 1:
            return 0
        case "mul", 0:
            return 0
    if lhs == rhs and op in ("min", "max"):
        return lhs
    if isinstance(rhs, int) and isinstance(lhs, Compound) and isinstance(lhs.rhs, int):
        if op == lhs.op and op in ("add", "mul"):
            inner = _fold(op, lhs.rhs, rhs)
            if inner is not None:
                return make(op, lhs.lhs, inner)
    return Compound(op, lhs, rhs)


def evaluate(dim: Dim, values: Mapping[Sym, int]) -> int:
    """The value of an expression for these values of its symbols.

    Raises OverflowError if the value of a subexpression does not fit in 64 bits, ZeroDivisionError
    for a division by zero, and KeyError for a symbol without a value.
    """
    match dim:
        case Sym():
            return values[dim]
        case Compound(op, lhs, rhs):
            result = _EVALUATE[op](evaluate(lhs, values), evaluate(rhs, values))
            if not INT64_MIN <= result <= INT64_MAX:
                raise OverflowError(f"{dim} leaves the range of a 64-bit integer")
            return result
        case _:
            return dim


def divisibility_of(dim: Dim) -> int:
    """The largest known divisor of all values of a size; 0 for the size 0."""
    match dim:
        case int():
            return abs(dim)
        case Sym(divisibility=divisibility):
            return divisibility
        case Compound():
            pass
        case _:
            raise TypeError(f"a size is an int or a symbolic int, but got {dim!r}")
    left, right = divisibility_of(dim.lhs), divisibility_of(dim.rhs)
    match dim.op:
        case "mul":
            return left * right
        case "add" | "sub" | "min" | "max" | "mod":
            return math.gcd(left, right)
        case "floordiv" | "ceildiv":
            exact = isinstance(dim.rhs, int) and dim.rhs != 0 and left % dim.rhs == 0
            return left // right if exact else 1


def symbols_of(dim: Dim) -> Iterator[Sym]:
    """The symbols of an expression from left to right, with repetitions."""
    match dim:
        case Sym():
            yield dim
        case Compound(_, lhs, rhs):
            yield from symbols_of(lhs)
            yield from symbols_of(rhs)


def format_dim(dim: Dim, names: Mapping[Sym, str], outer: int = 0) -> str:
    """The expression in Python's syntax; `names` maps its symbols to names."""
    match dim:
        case Sym():
            return names.get(dim) or str(dim)
        case Compound(op, lhs, rhs) if op in _INFIX:
            sign, level = _INFIX[op]
            if op == "add" and isinstance(rhs, int) and rhs < 0:
                sign, rhs = "-", -rhs
            left, right = format_dim(lhs, names, level), format_dim(rhs, names, level + 1)
            text = f"{left} {sign} {right}"
            return f"({text})" if level < outer else text
        case Compound(op, lhs, rhs):
            name = "ceil_div" if op == "ceildiv" else op
            return f"{name}({format_dim(lhs, names)}, {format_dim(rhs, names)})"
        case _:
            return str(dim)

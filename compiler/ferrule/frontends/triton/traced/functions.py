"""Functions of a kernel's arguments that are traced: grids, heuristics, hooks.

As from Triton's own launcher, a function gets a mapping from the names of the parameters to their
values.  Values that are known only in a call are `Traced`: `+ - * // %`, shifts by a number,
`triton.cdiv`, and `math.ceil` and `math.floor` of a quotient work on them.  For a comparison, as in
`min` and `if`, the function is traced with each outcome, one after the other, and the call selects
between the results; so it is for `triton.next_power_of_2`.  What the function raises for an outcome
is the error of these calls.  An operation that needs the value itself (`int`, `range`, a float) is
a CompileError with a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, NoReturn, TypeVar

from ferrule import specs
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.told import Told
from ferrule.frontends.triton.traced.numbers import Given, Unseen
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.powers import Smeared, bit_length
from ferrule.frontends.triton.traced.refusals import CallRefused, refusal_of, undecided
from ferrule.specs import Dim
from ferrule.specs.conditions import Comparison, ComparisonOp
from ferrule.specs.expr import ExprOp, is_dim, make

T = TypeVar("T")

_EXACT: Final = 1 << 10
"""The largest denominator of a float that a quotient is compared with: Python rounds quotients, and
those near such a float are exact."""


class Traced:
    """A size in a traced function whose value is known only in a call.

    `path` decides comparisons; without one they are refused.
    """

    __slots__ = ("dim", "path")

    def __init__(self, dim: Dim, path: Path | None = None) -> None:
        self.dim = dim
        self.path = path

    def __add__(self, other: Any) -> Any:
        return compute("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return compute("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return compute("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return compute("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return compute("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return compute("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return compute("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return compute("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return compute("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return compute("mod", other, self)

    def __truediv__(self, other: Any) -> Quotient:
        return Quotient(self, other)

    def __rtruediv__(self, other: Any) -> Quotient:
        return Quotient(other, self)

    def __rshift__(self, bits: Any) -> Any:
        return compute("floordiv", self, 1 << bits) if type(bits) is int else self._refuse()

    def __lshift__(self, bits: Any) -> Any:
        return compute("mul", self, 1 << bits) if type(bits) is int else self._refuse()

    def __or__(self, other: Any) -> Any:
        """`n | n >> 1`, as `triton.next_power_of_2` begins."""
        half = compute("floordiv", self, 2)
        if isinstance(other, Traced) and isinstance(half, Traced) and other.dim == half.dim:
            return Smeared(self.dim, self.path, 2)
        self._refuse()

    def bit_length(self) -> int:
        """The bit length, which the call decides."""
        if self.path is None:
            self._refuse()
        return bit_length(self.dim, self.path)

    def __neg__(self) -> Any:
        return compute("sub", 0, self)

    def __pos__(self) -> Traced:
        return self

    def __lt__(self, other: Any) -> Any:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("ge", other)

    def __eq__(self, other: Any) -> Any:
        return False if other is None else self._compared("eq", other)

    def __ne__(self, other: Any) -> Any:
        return True if other is None else self._compared("ne", other)

    def __bool__(self) -> bool:
        return bool(self._compared("ne", 0))

    def _compared(self, op: ComparisonOp, other: Any) -> Any:
        if isinstance(other, Quotient):
            return NotImplemented
        if isinstance(other, float):
            return Quotient(self, 1)._compared(op, other)
        side = untraced(other)
        side = int(side) if isinstance(side, bool) else side
        if isinstance(side, Told):
            side.compared, side = True, int(side)
        if self.path is None or not is_dim(side):
            self._refuse()
        return self.path.decide(Comparison(op, self.dim, side))

    def _refuse(self, *_: Any) -> NoReturn:
        raise CompileError(undecided(specs.format_dim(self.dim, {})))

    __int__ = __index__ = __float__ = __hash__ = __round__ = _refuse
    __pow__ = __rpow__ = __divmod__ = __rdivmod__ = _refuse
    __and__ = __xor__ = __invert__ = __abs__ = _refuse
    __rlshift__ = __rrshift__ = __rand__ = __ror__ = __rxor__ = _refuse
    __trunc__ = __floor__ = __ceil__ = _refuse

    def __repr__(self) -> str:
        return str(self.dim)


class Quotient:
    """`a / b` of sizes: its `math.ceil` and `math.floor` are sizes, and it can be compared."""

    __slots__ = ("lhs", "rhs")

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs = lhs
        self.rhs = rhs

    def __ceil__(self) -> Any:
        return compute("ceildiv", self.lhs, self.rhs)

    def __floor__(self) -> Any:
        return compute("floordiv", self.lhs, self.rhs)

    def refuse(self, *_: Any) -> NoReturn:
        """Raises CompileError: it is not a size."""
        raise CompileError(
            Diagnostic(
                f"{self.lhs} / {self.rhs} is a float, which no size is",
                expected="sizes and integers",
                hint="write a // b, triton.cdiv(a, b) or math.ceil(a / b)",
            )
        )

    __bool__ = __int__ = __index__ = __float__ = __hash__ = __round__ = __trunc__ = refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __abs__ = refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = refuse
    __pow__ = __rpow__ = refuse

    def __lt__(self, other: Any) -> bool:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> bool:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> bool:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> bool:
        return self._compared("ge", other)

    def __eq__(self, other: Any) -> bool:
        return self._compared("eq", other)

    def __ne__(self, other: Any) -> bool:
        return self._compared("ne", other)

    def _compared(self, op: ComparisonOp, other: Any) -> bool:
        """`lhs * q op p * rhs` for another number `p / q`."""
        other = Quotient(*_ratio(other)) if isinstance(other, float) else other
        over = other if isinstance(other, Quotient) else Quotient(other, 1)
        sides = self.lhs, self.rhs, over.lhs, over.rhs
        path = next((each.path for each in sides if isinstance(each, Traced)), None)
        if path is None or not all(is_dim(untraced(each)) for each in sides):
            self.refuse()
        for divisor in (self.rhs, over.rhs):
            if not path.decide(Comparison("gt", untraced(divisor), 0)):
                raise CallRefused(str(divisor), "ValueError", f"{divisor} is no positive divisor")
        left, right = make_product(self.lhs, over.rhs), make_product(over.lhs, self.rhs)
        return path.decide(Comparison(op, left, right))


def _ratio(number: float) -> tuple[int, int]:
    """A float as a quotient.  Raises CompileError for one that no small numbers give."""
    try:
        exact = Fraction(number)
    except (ValueError, OverflowError):
        exact = Fraction(1, 2 * _EXACT)
    if exact.denominator > _EXACT:
        raise CompileError(
            Diagnostic(
                f"a quotient of sizes is compared with {number!r}, and rounding decides",
                expected="a number such as 1, 0.5 or 1.25",
            )
        )
    return exact.numerator, exact.denominator


def make_product(lhs: Any, rhs: Any) -> Dim:
    """The product of two sizes, traced or not."""
    return make("mul", untraced(lhs), untraced(rhs))


def traced(dim: Dim, path: Path | None = None) -> Any:
    """A size in the form that a traced function sees: a number is unchanged."""
    return dim if isinstance(dim, int) else Traced(dim, path)


def untraced(value: Any) -> Any:
    """The size of a traced value; other values are unchanged."""
    return value.dim if isinstance(value, Traced) else value


def trace(
    function: Callable[[Any], T],
    arguments: Mapping[str, Any],
    what: str,
    advice: str | None = None,
    path: Path | None = None,
) -> T:
    """The result of a function of the kernel's arguments.

    Raises CompileError, which names `what` and contains `advice`, if it needs a value that is known
    only in a call, reads an argument that does not exist, or fails; CallRefused for what it raises
    on a path that not every call takes.
    """
    try:
        return function(Given(arguments))
    except CallRefused:
        raise
    except CompileError as error:
        raise CompileError(
            Diagnostic(
                f"{what} cannot be traced: {error.diagnostic.message}",
                expected=error.diagnostic.expected,
                hint="; ".join(filter(None, (error.diagnostic.hint, advice))) or None,
            )
        ) from None
    except KeyError as error:
        raise CompileError(
            Diagnostic(
                f"{what} asks for {error.args[0]!r}, which is no parameter of the kernel",
                expected=", ".join(arguments),
            )
        ) from None
    except Exception as error:
        refused = refusal_of(error, what) if path is not None and path.taken else None
        if refused is not None:
            raise refused from error
        raise CompileError(f"{what} cannot be traced: {type(error).__name__}: {error}") from error


def compute(op: ExprOp, lhs: Any, rhs: Any) -> Any:
    """An operation on sizes, at least one of which is traced."""
    sides = _side(lhs), _side(rhs)
    for side in sides:
        if isinstance(side, Quotient | Unseen):
            side.refuse()
        if isinstance(side, float):
            raise CompileError(
                Diagnostic(
                    f"{side} is no integer",
                    expected="sizes and integers",
                    hint="write // or triton.cdiv(a, b) instead of a / b",
                )
            )
        if not is_dim(side):
            raise TypeError(f"a size takes integers and sizes, but got {side!r}")
    paths = (side.path for side in (lhs, rhs) if isinstance(side, Traced))
    return traced(make(op, *sides), next((path for path in paths if path is not None), None))


def _side(given: Any) -> Any:
    """An operand of an operation; a number keeps its origin if that is recorded."""
    side = untraced(given)
    return int(side) if isinstance(side, Told) and not side.sources else side

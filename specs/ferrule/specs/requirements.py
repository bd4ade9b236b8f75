"""Requirements of a function: relations between sizes and integer parameters, checked in a call.

    specs.require(m * k <= 1 << 20, "the scratch has a MiB")
    specs.require(specs.divisible(n, 4) | (k.value > 0))

A requirement is part of a signature: `Signature("f", params, requires=[…])`.  Its condition is one
of `conditions`, over symbols of the parameters and over `value` of integer parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ferrule.specs.conditions import (
    Aligned,
    ComparisonOp,
    Condition,
    FloatComparison,
    FloatRelation,
    Junction,
    Negation,
    Present,
    checked_condition,
    condition_symbols,
    divisible,
    format_condition,
    require_comparison,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Sym
from ferrule.specs.params.compound import Optional
from ferrule.specs.params.numbers import Scalar
from ferrule.specs.params.tensors import Data


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition that holds in every call, else the call is a ValueError with the message, if
    there is one, behind the condition and its values."""

    condition: Condition
    message: str | None = None

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """The symbols of the condition, each once, in the order in which they stand."""
        return tuple(dict.fromkeys(condition_symbols(self.condition)))

    def text(self, names: Mapping[Sym, str]) -> str:
        """The condition with these names of its symbols: `m * k <= 1048576`."""
        text = format_condition(self.condition, names)
        outer = isinstance(self.condition, Junction)
        return text[1:-1] if outer else text


def require(condition: Condition, message: str | None = None) -> Requirement:
    """A requirement of a function.

    Raises TypeError unless the condition is a Condition and the message a string, ValueError for a
    condition over addresses or over parameters that may be absent, and for one over constants.
    """
    checked = checked_condition(condition)
    if message is not None and not isinstance(message, str):
        raise TypeError(f"require: message must be a str or None, but got {message!r}")
    for part in _parts(checked):
        if isinstance(part, (Aligned, FloatComparison, FloatRelation, Present)):
            raise ValueError(
                f"require: {part}: a requirement compares sizes and integers; "
                f"conventions.Require takes every condition"
            )
    if next(condition_symbols(checked), None) is None:
        raise ValueError(f"require: {checked} has no size of a call in it")
    return Requirement(checked, message)


def is_of_sizes(condition: Condition) -> bool:
    """Whether a condition compares sizes and integers of a call alone, as a requirement does."""
    others = (Aligned, FloatComparison, FloatRelation, Present)
    known = any(isinstance(part, others) for part in _parts(condition))
    return not known and next(condition_symbols(condition), None) is not None


def kept(value: Sym, symbol: Sym) -> tuple[Requirement, ...]:
    """The requirements by which a number of a call, such as `k.value`, keeps what a symbol says."""
    found: list[Condition] = []
    if symbol.divisibility > 1:
        found.append(divisible(value, symbol.divisibility))
    if symbol.min is not None:
        found.append(value >= symbol.min)
    if symbol.max is not None:
        found.append(value <= symbol.max)
    return tuple(map(Requirement, found))


def checked_requirements(function: str, requires: object) -> tuple[Requirement, ...]:
    """The requirements, each once; a condition alone is one without a message.  Raises TypeError
    for anything else."""
    if isinstance(requires, (str, Condition, Requirement)) or not isinstance(requires, Iterable):
        raise TypeError(f"{function}: requires must be a list, but got {requires!r}")
    found = dict.fromkeys(
        each if isinstance(each, Requirement) else require(each) for each in requires
    )
    return tuple(found)


def _parts(condition: Condition) -> Iterator[Condition]:
    yield condition
    match condition:
        case Negation(inner):
            yield from _parts(inner)
        case Junction(_, lhs, rhs):
            yield from _parts(lhs)
            yield from _parts(rhs)


# ---- conditions over single parameters; `ferrule.specs.conditions` has what they are ----


def compare_float(op: ComparisonOp, param: Scalar, number: float) -> FloatComparison:
    """`param op number` of a float parameter; `number` is rounded to its dtype.

    Raises TypeError for another parameter and for what is no number, ValueError for another op.
    """
    if not isinstance(param, Scalar) or param.dtype.kind != "float":
        raise TypeError(f"compare_float: expected a float parameter, but got {param!r}")
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"compare_float: expected a number, but got {number!r}")
    require_comparison("compare_float", op)
    return FloatComparison(op, param, float(param.dtype(float(number)).value))


def aligned(data: Data, to: int) -> Aligned:
    """Whether an address is aligned to `to` bytes.  ValueError unless `to` is a power of two."""
    if not isinstance(data, Data):
        raise TypeError(f"aligned: expected the .data of a tensor, but got {data!r}")
    if isinstance(to, bool) or not isinstance(to, int) or to < 1 or to & (to - 1):
        raise ValueError(f"aligned: expected a power of two in bytes, but got {to!r}")
    return Aligned(data, to)


def present(param: Optional) -> Present:
    """Whether the caller gave an optional parameter.  TypeError for a parameter of another kind."""
    if not isinstance(param, Optional):
        raise TypeError(f"present: expected an optional parameter, but got {param!r}")
    return Present(param)

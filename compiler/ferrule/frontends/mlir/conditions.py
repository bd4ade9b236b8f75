"""In the process of MLIR: flags of a host function as conditions over its arguments.

They are what an assertion demands, and what a branch around a launch depends on: comparisons of the
integers that `expressions` traces back to the arguments, joined by and, or and not.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias

from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.expressions import (
    Expression,
    expression,
    is_positive,
    refused,
    takes_sign,
)
from ferrule.frontends.mlir.reading import attribute
from ferrule.specs.deferred import dataclass

Comparator: TypeAlias = Literal["lt", "le", "gt", "ge", "eq", "ne"]


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of two integers."""

    operator: Comparator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Inverted:
    """The opposite of a condition."""

    condition: Test


@dataclass(frozen=True, slots=True)
class Joined:
    """Two conditions as one."""

    operator: Literal["and", "or"]
    left: Test
    right: Test


Test: TypeAlias = "Compared | Inverted | Joined"

_SIGNED: Final[tuple[Comparator, ...]] = ("eq", "ne", "lt", "le", "gt", "ge")
"""The comparisons by their numbers in `arith.cmpi`; those without signs follow."""
_BY_WORD: Final[dict[str, Comparator]] = {"eq": "eq", "ne": "ne"}
_WORD: Final = re.compile(r"(eq|ne|[su](?:lt|le|gt|ge))")
_JOINS: Final[dict[str, Literal["and", "or"]]] = {"arith.andi": "and", "arith.ori": "or"}
_COMPARISONS: Final = ("arith.cmpi", "index.cmp")


def condition(session: Session, value: Any) -> Test:
    """The condition for an `i1`.  Raises CompileError, with the place, for any other value."""
    if isinstance(value.owner, session.ir.Block):
        return Compared("ne", expression(session, value), 0)
    owner = value.owner.operation
    if owner.name == "arith.constant":
        return Compared("ne", expression(session, value), 0)
    operands = list(owner.operands)
    if owner.name in _COMPARISONS:
        return _compared(session, owner)
    if owner.name in _JOINS:
        left, right = (condition(session, each) for each in operands)
        return Joined(_JOINS[owner.name], left, right)
    if owner.name == "arith.xori" and _is_true(operands[1]):
        return Inverted(condition(session, operands[0]))
    raise refused(session, owner)


def _compared(session: Session, operation: Any) -> Test:
    left, right = (expression(session, each) for each in operation.operands)
    operator, unsigned = _operator(operation)
    if unsigned and not (is_positive(left) and is_positive(right)):
        raise refused(session, operation, "its operands may be negative")
    ordered = operator not in ("eq", "ne")
    if ordered and str(operation.operands[0].type) == "i1":
        raise refused(session, operation, "it orders flags")
    if ordered and not unsigned and any(takes_sign(session, each) for each in operation.operands):
        raise refused(session, operation, "its operand is unsigned")
    return Compared(operator, left, right)


def _operator(operation: Any) -> tuple[Comparator, bool]:
    """The comparison of an operation, and whether it is one without signs."""
    if operation.name == "arith.cmpi":
        number = int(operation.attributes["predicate"])
        return _SIGNED[number if number < len(_SIGNED) else number - 4], number >= len(_SIGNED)
    found = _WORD.search(str(operation.attributes["pred"]).partition(" ")[2])
    assert found is not None, "index.cmp has a predicate"
    word = found[1]
    if word in _BY_WORD:
        return _BY_WORD[word], False
    return next(each for each in _SIGNED if each == word[1:]), word[0] == "u"


def _is_true(value: Any) -> bool:
    owner = getattr(value.owner, "operation", None)
    if owner is None or owner.name != "arith.constant":
        return False
    return str(attribute(owner, "value")) == "true"

"""`Require`: refuses calls that the code is not for."""

from __future__ import annotations

from dataclasses import field

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.floats import float_value
from ferrule.compiler.conventions.protocol import CallingConvention, PlainStep
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import (
    Condition,
    Requirement,
    Scalar,
    Signature,
    format_condition,
    require,
)
from ferrule.specs.conditions import (
    as_float,
    checked_condition,
    condition_symbols,
    float_parts,
    relations_in,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import format_dim
from ferrule.specs.requirements import is_of_sizes


@dataclass(frozen=True, slots=True)
class Require(PlainStep):
    """A ValueError of the call unless a condition holds; the message follows the condition.

        Sequence([Require(m * k <= 1 << 20, "the scratch has a MiB"), call])

    A condition over sizes and integers that does not depend on `when` and is a step of the
    function, or of a sequence that is one, becomes a requirement of the signature: the arguments
    are checked with it, it is in `text()` and in the metadata, and overloads choose by it.  Any
    other is checked where it stands, and callers find it in `notes["assumes"]`.  Raises TypeError
    for what is no condition and for a message that is no text.
    """

    condition: Condition
    message: str | None = None
    when: Condition | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        checked_condition(self.condition)
        if self.when is not None:
            checked_condition(self.when)
        if not isinstance(self.message, str | None):
            raise TypeError(f"Require: message must be a str or None, but got {self.message!r}")

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say(call.with_condition("require {}", self.condition))
        if self.when is None and self.requirement in call.signature.requires:
            return
        names = call.signature.known
        text = format_condition(self.condition, names)
        hint = f": {self.message}" if self.message else ""
        symbols = tuple(dict.fromkeys(condition_symbols(self.condition)))[:MAX_FAULT_VALUES]
        floats = _floats_in(self.condition)[: MAX_FAULT_VALUES - len(symbols)]
        shown = [f"{literal(format_dim(each, names))} = {{}}" for each in symbols]
        got = ", ".join([*shown, *(f"{literal(each.name)} = {{float}}" for each in floats)])
        but = f", but got {got}" if got else ""
        expected = literal(f"{call.signature.name}: expected {text}")
        flag = call.emitter.not_(call.condition(self.condition))
        values = [call.size(each, "a size of a condition") for each in symbols]
        numbers = (float_value(call, as_float(each)) for each in floats)
        values += [call.emitter.builder.bitcast(each, I64) for each in numbers]
        call.refuse(flag, Fault("ValueError", f"{expected}{but}{literal(hint)}"), values)
        when = "" if self.when is None else f" where {format_condition(self.when, names)}"
        call.assumed[text + when] = None

    @property
    def requirement(self) -> Requirement | None:
        """The requirement of a signature that says the same; None if none can."""
        return require(self.condition, self.message) if is_of_sizes(self.condition) else None


def with_requirements(signature: Signature, convention: CallingConvention) -> Signature:
    """The signature with the requirements among the steps that every call makes."""
    found = list(_requirements(convention))
    if not found:
        return signature
    return signature.altered(requires=tuple(dict.fromkeys((*signature.requires, *found))))


def _requirements(convention: object) -> list[Requirement]:
    if getattr(convention, "when", None) is not None:
        return []
    if isinstance(convention, Require):
        found = convention.requirement
        return [] if found is None else [found]
    steps = getattr(convention, "steps", ())
    return [each for step in steps for each in _requirements(step)]


def _floats_in(condition: Condition) -> list[Scalar]:
    """The float parameters that a condition compares, each once."""
    relations = relations_in(condition)
    sides = (side for each in relations for side in (each.lhs, each.rhs))
    parts = (part for side in sides for part in float_parts(side))
    return list(dict.fromkeys(each for each in parts if isinstance(each, Scalar)))

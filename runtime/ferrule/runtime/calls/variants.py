"""The variants of a function: which one a call takes, and why not a better one.

A function whose code makes assumptions about the arguments may have several variants, listed in
`notes["variants"]`, the best first: groups, each with the condition `when` under which a call is of
it, and of each variant its name and the conditions that it `assumes`.  Exported files have the
notes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.runtime.values.views import view_of
from ferrule.specs import Condition, Scalar, Signature, Sym, Tensor, holds
from ferrule.specs.binding import ACTUAL
from ferrule.specs.conditions import Aligned, condition_symbols
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import evaluate
from ferrule.specs.reading import parse_condition


@dataclass(frozen=True, slots=True)
class Explanation:
    """The variant that a call takes, and for each better one what the call lacks.

    `variant` is None if none fits, and the call is refused.
    """

    function: str
    variant: str | None
    lacking: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        taken = "no variant: the call is refused" if self.variant is None else self.variant
        missed = (f"  not {name}: {', '.join(why)}" for name, why in self.lacking.items())
        return "\n".join((f"{self.function} takes {taken}", *missed))


def explained(
    notes: Mapping[str, Any], signature: Signature, arguments: Sequence[Any]
) -> Explanation:
    """The variant for arguments in the order of the parameters.

    Raises ValueError for a function without variants, arguments that it does not take, and
    conditions that cannot be read.
    """
    groups = notes.get("variants")
    if not isinstance(groups, list):
        raise ValueError(f"{signature.name} has one variant, which every call takes")
    call = _Call.of(signature, arguments)
    for group in groups:
        if "when" not in group or call.holds(parse_condition(group["when"], signature)):
            return _chosen(call, group["variants"])
    return Explanation(signature.name, None, {})


def _chosen(call: _Call, variants: Sequence[Mapping[str, Any]]) -> Explanation:
    lacking: dict[str, tuple[str, ...]] = {}
    for variant in variants:
        conditions = [parse_condition(text, call.signature) for text in variant["assumes"]]
        found = zip(variant["assumes"], conditions, strict=True)
        missed = tuple(call.told(text, each) for text, each in found if not call.holds(each))
        if not missed:
            return Explanation(call.signature.name, variant["name"], lacking)
        lacking[variant["name"]] = missed
    return Explanation(call.signature.name, None, lacking)


@dataclass(frozen=True, slots=True)
class _Call:
    """The values of a call: of symbols, the addresses of tensors by name, floats by name."""

    signature: Signature
    values: Mapping[Sym, int]
    addresses: Mapping[str, int]
    floats: Mapping[str, float]

    @classmethod
    def of(cls, signature: Signature, arguments: Sequence[Any]) -> _Call:
        """Those of these arguments."""
        given = {
            each.name: value for each, value in zip(signature.arguments, arguments, strict=True)
        }
        views = {}
        for param in signature.params:
            if isinstance(param, Tensor):
                view = views[param.name] = view_of(given[param.name])
                if len(view.shape) != len(param.shape):
                    raise ValueError(
                        f"{signature.name}: {param.name} has {len(view.shape)} dims, "
                        f"expected {len(param.shape)}"
                    )
        values = call_values(signature, given)
        addresses = {name: view.address for name, view in views.items()}
        floats = {
            param.name: float(param.dtype(given[param.name]).value)
            for param in signature.params
            if isinstance(param, Scalar) and param.dtype.kind == "float"
        }
        return cls(signature, values, addresses, floats)

    def holds(self, condition: Condition) -> bool:
        """Whether a condition holds in this call."""
        return holds(condition, self.values, self.addresses, self.floats)

    def told(self, text: str, condition: Condition) -> str:
        """A condition that does not hold, with the values that it is about."""
        if isinstance(condition, Aligned):
            name = condition.data.tensor.name
            past = self.addresses[name] % condition.bytes
            return f"{text}, but its address is {past} bytes past a multiple of {condition.bytes}"
        names = self.signature.known
        symbols = dict.fromkeys(condition_symbols(condition))
        got = ", ".join(f"{names[each]} = {self.values[each]}" for each in symbols)
        return f"{text}, but {got}"


def call_values(signature: Signature, given: Mapping[str, Any]) -> dict[Sym, int]:
    """The values of the symbols and integers of a signature, as a call with these arguments by name
    binds them."""
    values: dict[Sym, int] = {}
    for binding in signature.bindings:
        place = binding.places[0]
        view = view_of(given[place.param.name])
        actual = (view.shape if place.kind == "shape" else view.strides)[place.axis]
        values[binding.symbol] = evaluate(binding.solution, {**values, ACTUAL: actual})
    for param in signature.params:
        if isinstance(param, Scalar) and param.dtype.kind != "float":
            values[param.value] = int(given[param.name])
    return values

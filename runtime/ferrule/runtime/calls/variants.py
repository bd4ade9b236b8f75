"""The variants of a function: which one a call takes, and why not a better one.

A function whose code makes assumptions about the arguments may have several variants, listed in
`notes["variants"]`, the best first: groups, each with the condition `when` under which a call is of
it, and of each variant its name and the conditions that it `assumes`.  Exported files have the
notes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ferrule.runtime.values.views import View, view_of
from ferrule.specs import Condition, Scalar, Signature, Sym, Tensor, holds
from ferrule.specs.binding import ACTUAL, Place
from ferrule.specs.conditions import Aligned, condition_symbols
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import evaluate
from ferrule.specs.reading import is_of_made, parse_condition

ONLY: Final = "its only variant"
"""The variant of a function that has one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The variant that a call takes, and for each better one what the call lacks.

    `variant` is None if none fits, and the call is refused; `ONLY` if the function has one alone.
    Memory that the call allocates is taken for aligned, as allocators give it.
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

    Raises ValueError for arguments that the function does not take, and conditions that cannot be
    read.
    """
    groups = notes.get("variants")
    if not isinstance(groups, list):
        return Explanation(signature.name, ONLY, {})
    call = _Call.of(signature, arguments)
    for group in groups:
        if "when" not in group or call.holds(parse_condition(group["when"], signature)):
            return _chosen(call, group["variants"])
    return Explanation(signature.name, None, {})


def _chosen(call: _Call, variants: Sequence[Mapping[str, Any]]) -> Explanation:
    lacking: dict[str, tuple[str, ...]] = {}
    for variant in variants:
        texts = (each for each in variant["assumes"] if not is_of_made(each, call.signature))
        found = ((text, parse_condition(text, call.signature)) for text in texts)
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
        found = (_number(place, view_of(given[place.param.name])) for place in binding.places)
        actual = next((each for each in found if each is not None), binding.symbol.fallback)
        values[binding.symbol] = evaluate(binding.solution, {**values, ACTUAL: actual})
    for param in signature.params:
        if isinstance(param, Scalar) and param.dtype.kind != "float":
            values[param.value] = int(given[param.name])
    return values


def _number(place: Place, view: View) -> int | None:
    """The size or stride at a place of a call; None for a stride without a meaning there."""
    if place.kind == "shape":
        return view.shape[place.axis]
    is_exact = isinstance(place.param, Tensor) and place.axis in place.param.exact_strides
    has_meaning = view.shape[place.axis] > 1 and 0 not in view.shape
    return view.strides[place.axis] if is_exact or has_meaning else None

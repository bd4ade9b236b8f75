"""Facts of ops, each made wrong in every way that there is: the class says so while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from string import Formatter
from typing import Any, Final, get_args
from unittest.mock import patch

from ferrule.language.ir import ops
from ferrule.language.ir.operation import Effect, Facts, Operation
from op_facts.complaints import overrides

PROPERTIES: Final = (
    "effects",
    "is_uniform",
    "is_speculative",
    "since",
    "symbols",
    "objects",
    "kept",
    "written",
    "writes_elsewhere",
)
"""What a class may say by its fields; taken away, the facts of the class are asked."""
ROLES: Final = ("operands", "defined", "defined_inside", "regions")


@dataclass(frozen=True)
class Mutation:
    """One wrong fact of a class, and its name."""

    kind: type[Operation]
    name: str
    applied: Callable[[], AbstractContextManager[Any]]


def mutations(kind: type[Operation], samples: Sequence[ops.Op]) -> Iterator[Mutation]:
    """All wrong facts of a class, of which there are these ops."""
    for name, facts in _facts(kind):
        yield Mutation(kind, name, lambda facts=facts: patch.object(kind, "facts", facts))  # type: ignore[misc]
    for name in PROPERTIES:
        if overrides(kind, name):
            yield Mutation(
                kind, f"without its own {name}", lambda name=name: _inherited(kind, name)
            )  # type: ignore[misc]
    if issubclass(kind, ops.Synchronising):
        found = {each.meets for each in samples if isinstance(each, ops.Synchronising)}
        for other in {"block", "lanes", "some", "phase"} - (found if len(found) == 1 else set()):
            own = property(lambda op, other=other: other)
            yield Mutation(kind, f"meets {other}", lambda own=own: patch.object(kind, "meets", own))  # type: ignore[misc]
        nothing = property(lambda op: "nothing()")
        yield Mutation(kind, "called nothing", lambda: patch.object(kind, "called", nothing))
    yield from _without_roles(kind)


def _facts(kind: type[Operation]) -> Iterator[tuple[str, Facts]]:
    facts = kind.facts
    for effect in get_args(Effect):
        word = "without" if effect in facts.effects else "with"
        yield f"{word} {effect}", replace(facts, effects=facts.effects ^ {effect})
    for flag in ("uniform", "speculative"):
        wrong = not getattr(facts, flag)
        yield f"{flag}: {wrong}", replace(facts, **{flag: wrong})  # type: ignore[arg-type]
    for place in {"anywhere", "kernel", "host"} - {facts.place}:
        yield f"in this place: {place}", replace(facts, place=place)  # type: ignore[arg-type]
    yield from _writes(kind)
    yield from _since(facts)
    yield from _texts(kind)


def _writes(kind: type[Operation]) -> Iterator[tuple[str, Facts]]:
    facts, known = kind.facts, set(kind.facts.writes or ())
    for name in kind.fields["operands"]:
        wrong = tuple(sorted(known ^ {name}))
        yield f"writes {wrong}", replace(facts, writes=wrong)
    if facts.writes is not None:
        yield "writes anything", replace(facts, writes=None)
    elif "writes" in facts.effects:
        yield "writes nothing", replace(facts, writes=())


def _since(facts: Facts) -> Iterator[tuple[str, Facts]]:
    if facts.since is None:
        yield "since sm_90", replace(facts, since=("mbarrier", 90))
        return
    name, least = facts.since
    yield "since always", replace(facts, since=None)
    yield "since earlier", replace(facts, since=(name, least - 1))
    yield "since later", replace(facts, since=(name, least + 1))
    yield "another name", replace(facts, since=(f"{name}x", least))


def _texts(kind: type[Operation]) -> Iterator[tuple[str, Facts]]:
    facts = kind.facts
    if not facts.text:
        yield "with a text", replace(facts, text="text")
        return
    yield "without a text", replace(facts, text="")
    parts = list(Formatter().parse(facts.text))
    for left_out, (_, path, *_) in enumerate(parts):
        if path is not None:
            rest = (
                _part(literal, None if at == left_out else path, form, conversion)
                for at, (literal, path, form, conversion) in enumerate(parts)
            )
            yield f"without {path} in its text", replace(facts, text="".join(rest))


def _part(literal: str, path: str | None, form: str | None, conversion: str | None) -> str:
    if path is None:
        return literal
    ending = (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
    return f"{literal}{{{path}{ending}}}"


def _without_roles(kind: type[Operation]) -> Iterator[Mutation]:
    for role in ROLES:
        for name in kind.fields[role]:
            wrong = _short(getattr(kind, role), name)
            yield Mutation(
                kind,
                f"{name} is none of its {role}",
                lambda role=role, wrong=wrong: patch.object(kind, role, wrong),  # type: ignore[misc]
            )


def _short(whole: property, name: str) -> property:
    """A role without the values of one field."""

    def rest(op: Any) -> tuple[Any, ...]:
        item = getattr(op, name)
        gone = item if isinstance(item, tuple) else (item,)
        return tuple(each for each in whole.__get__(op) if not any(each is one for one in gone))

    return property(rest)


@contextmanager
def _inherited(kind: type[Operation], name: str) -> Iterator[None]:
    """A class that says a fact as `Operation` does."""
    with patch.object(kind, name, vars(Operation)[name]):
        yield

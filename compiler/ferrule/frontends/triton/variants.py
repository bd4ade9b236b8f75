"""The variants of a launch: what is compiled for each, which of them are needed, how they are told.

Two variants whose code is the same are one, with the assumptions of the more general: what does not
change the code need not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ferrule.frontends.strides import Read
from ferrule.frontends.triton.installed import Kernel
from ferrule.frontends.triton.launching import Candidate
from ferrule.frontends.triton.offline import Compiled, Wanted, compile_offline
from ferrule.frontends.triton.planning import Plan
from ferrule.frontends.triton.specialise import Specialisation
from ferrule.frontends.triton.traced.refusals import Refusal
from ferrule.specs import Condition, Sym
from ferrule.specs.conditions import Junction, format_condition
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Planned:
    """A launch before its kernel is compiled, with its specialisations; or the error of a call.

    `whole`: the last of them accepts every call.  `when` is the condition of its outcome, None for
    the last; `version` that of its configuration.  `strides` are those that functions read.
    """

    plan: Plan | Refusal
    kinds: tuple[Specialisation, ...]
    whole: bool
    when: Condition | None = None
    version: Condition | None = None
    strides: frozenset[Read] = frozenset()

    def told(self) -> list[object]:
        """All that decides the launch beside the code of its kernels, for the key of a function."""
        kinds = [
            (each.specialisation.name, each.specialisation.conditions, each.specialisation.packed)
            for each in self.wanted()
        ]
        plan, read = self.plan, sorted(self.strides)
        if isinstance(plan, Refusal):
            return [plan, self.when, self.version, read]
        return [plan.grid, plan.fills, kinds, self.whole, self.when, self.version, read]

    def wanted(self) -> Iterator[Wanted]:
        """What is compiled, up to the first that fits every call."""
        if isinstance(self.plan, Refusal):
            return
        for each in self.kinds:
            yield Wanted(each, self.plan.options)
            if not each.conditions:
                break

    def candidates(self, codes: Codes) -> list[Candidate]:
        """The specialisations with their code, without those that another makes needless."""
        if isinstance(self.plan, Refusal):
            return []
        grid = self.plan.grid
        found = [Candidate(each.specialisation, codes.of(each), grid) for each in self.wanted()]
        return _needed(found) if self.whole else found


@dataclass(frozen=True, slots=True)
class Codes:
    """The compiled kernels of a function, each once."""

    wanted: tuple[Wanted, ...]
    made: tuple[tuple[Compiled, ...], ...]

    @classmethod
    def compiled(cls, kernel: Kernel, wanted: Sequence[Wanted], archs: Sequence[int]) -> Codes:
        """Those of all specialisations: outcomes may differ in their grid alone."""
        each: list[Wanted] = []
        for one in wanted:
            if not any(one.is_like(other) for other in each):
                each.append(one)
        return cls(tuple(each), tuple(compile_offline(kernel, each, archs)))

    def of(self, wanted: Wanted) -> tuple[Compiled, ...]:
        """The code of one of these specialisations."""
        return next(
            made for each, made in zip(self.wanted, self.made, strict=True) if each.is_like(wanted)
        )


def _needed(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates without those whose code an earlier one has, which then assumes no more than
    they."""
    left, found = list(candidates), list[Candidate]()
    while left:
        first, *left = left
        for other in list(left):
            if _is_general(other, first) and _images(other) == _images(first):
                left.remove(other)
                first = _with_conditions(first, other)
        found.append(first)
        if not first.specialisation.conditions:
            break
    return found


def _is_general(other: Candidate, first: Candidate) -> bool:
    """Whether a candidate assumes nothing that `first` does not."""
    known = first.specialisation.conditions
    return all(each in known for each in other.specialisation.conditions)


def _images(candidate: Candidate) -> list[Any]:
    return [(each.facts, each.code.images) for each in candidate.compiled]


def _with_conditions(first: Candidate, other: Candidate) -> Candidate:
    conditions = other.specialisation.conditions
    return replace(first, specialisation=replace(first.specialisation, conditions=conditions))


@dataclass(frozen=True, slots=True)
class Group:
    """The variants among which a call chooses if `when` holds, which None always does."""

    when: Condition | None
    candidates: Sequence[Candidate]


def joined(left: Condition | None, right: Condition | None) -> Condition | None:
    """Both conditions; None is one that always holds."""
    return right if left is None else left if right is None else left & right


def variants_note(groups: Sequence[Group], names: Mapping[Sym, str]) -> dict[str, Any]:
    """As data: the names of the variants, and what each assumes; nothing where a call has no
    choice."""
    if not any(candidate.specialisation.name for each in groups for candidate in each.candidates):
        return {}
    told = []
    for each in groups:
        variants = [_told(candidate.specialisation, names) for candidate in each.candidates]
        when = {} if each.when is None else {"when": format_condition(each.when, names)}
        told.append({**when, "variants": variants})
    return {"variants": told}


def _told(each: Specialisation, names: Mapping[Sym, str]) -> dict[str, Any]:
    parts = [part for assumption in each.conditions for part in _parts(assumption.condition)]
    return {"name": each.name, "assumes": [format_condition(part, names) for part in parts]}


def _parts(condition: Condition) -> Iterator[Condition]:
    """The conditions that all must hold."""
    if isinstance(condition, Junction) and condition.op == "and":
        yield from _parts(condition.lhs)
        yield from _parts(condition.rhs)
    else:
        yield condition

"""The remarks about a function: what the lowering decided, and what LLVM made of each loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Body, Location
from ferrule.compiler.remarks.llvm import Said, remarks_of
from ferrule.compiler.remarks.reasons import Reason, change_of, is_straight, lanes_of, reason_of
from ferrule.compiler.targets import HostTarget
from ferrule.language.codegen.facts.apart import Apart
from ferrule.language.codegen.functions.chains import CHAINED
from ferrule.language.codegen.functions.report import FILE, Report, Subject
from ferrule.runtime.artefacts import Remark, Remarks
from ferrule.specs import Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import format_dim

_SCALAR: Final = 1


def remarks(
    report: Report, body: Body, level: int, target: HostTarget, names: Mapping[Sym, str]
) -> Remarks:
    """The remarks about a body whose loops a report has numbered; `names` are those of sizes.

    Raises CompileError if LLVM cannot be asked.
    """
    said: dict[int, list[Said]] = {}
    found, vectorises = remarks_of(body, level, target, FILE)
    for each in found:
        said.setdefault(each.line, []).append(each)
    units = _units(report.subjects, said)
    _add_straight(units)
    why = "" if vectorises else "the function is too long for it"
    why = f"--opt-level {level} vectorises nothing" if level < 2 else why
    loops = (unit.remark(names, why) for unit in units if unit.counts)
    every = [*_launches(report.subjects), *loops]
    return Remarks(sorted(every, key=lambda remark: (remark.file, remark.line)))


@dataclass(slots=True)
class _Unit:
    """All loops in LLVM that are of one line of the source."""

    at: Location
    subjects: list[Subject] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    around: list[int] = field(default_factory=list)
    """The lines of the loops inside."""
    is_shared: bool = False
    """Whether the threads of a block make the loop together."""
    straight: list[int] = field(default_factory=list)
    """The lines of the same function where code without a loop is vectorised."""

    @property
    def counts(self) -> bool:
        """Whether it is the program's: threads that only prepare the memory of others are not."""
        texts = [each.text for each in self.said]
        return self.what != "kernel" or any(lanes_of(text) or reason_of(text) for text in texts)

    @property
    def what(self) -> str:
        """The word for it in a remark."""
        if any(subject.is_loop for subject in self.subjects):
            return "loop"
        return "kernel" if any(subject.name for subject in self.subjects) else "expression"

    def remark(self, names: Mapping[Sym, str], never: str) -> Remark:
        """What became of it; `never`: why nothing is vectorised, or ""."""
        lanes, state, hint = self._state(never)
        words = dict.fromkeys(word for subject in self.subjects for word in subject.words)
        apart = dict.fromkeys(_far(each, names) for each in self._apart())
        said = "; ".join((f"{self._who()}: {state}", *words, *apart, *self._index()))
        return Remark(self.at.file, self.at.function, self.at.line, self.what, lanes, said, hint)

    def _who(self) -> str:
        names = dict.fromkeys(subject.name for subject in self.subjects if subject.name)
        match self.what:
            case "loop" if self.is_shared:
                return "the loop, made by all threads of a block together"
            case "kernel":
                return f"the threads of {', '.join(names)}"
        return f"the {self.what}"

    def _state(self, never: str) -> tuple[int | None, str, str]:
        """The lanes, and whether and why, with a hint."""
        texts = [each.text for each in self.said]
        lanes = max(map(lanes_of, texts), default=0)
        reasons = [(each, r) for each in self.said if (r := reason_of(each.text)) is not None]
        if lanes:
            masks = any(subject.kind == "masks" for subject in self.subjects)
            return lanes, f"vectorised{' by masks' * masks}, {lanes} lanes", ""
        if reasons:
            return self._not(reasons)
        if changes := dict.fromkeys(filter(None, map(change_of, texts))):
            straight = ", and vectorised as straight code" if any(map(is_straight, texts)) else ""
            return None, "; ".join(changes) + straight, ""
        if self.around:
            lines = ", ".join(map(str, dict.fromkeys(self.around)))
            return _SCALAR, f"around what is in line {lines}", ""
        if never:
            return _SCALAR, f"not vectorised: {never}", ""
        return None, "LLVM says nothing of it: it was computed or unrolled away", ""

    def _not(self, reasons: Sequence[tuple[Said, Reason]]) -> tuple[int | None, str, str]:
        said, reason = max(reasons, key=lambda pair: pair[1].weight)
        where = f" (line {said.column})" if said.column not in (0, self.at.line) else ""
        if any(CHAINED in subject.words for subject in self.subjects):
            # LLVM's would be one about the code that keeps them there.
            reason, where = Reason("an iteration needs a value of the one before"), ""
        text = f"not vectorised: {reason.text}{where}"
        if self.straight:
            lines = ", ".join(map(str, self.straight))
            text += f"; line {lines} is vectorised as straight code, with the values that it takes"
        return _SCALAR, text, reason.hint

    def _apart(self) -> Iterator[Apart]:
        for subject in self.subjects:
            if not self.around:
                yield from subject.apart

    def _index(self) -> Iterator[str]:
        kinds = {subject.index for subject in self.subjects if subject.index and subject.is_loop}
        if kinds and self.what == "loop":
            yield f"index {', '.join(sorted(kinds))}"


def _units(subjects: Sequence[Subject], said: Mapping[int, list[Said]]) -> list[_Unit]:
    """The loops by their places in the source."""
    units: dict[tuple[str, int], _Unit] = {}
    for number, subject in enumerate(subjects, 1):
        at = subject.location
        if at is None or subject.kind in ("launch", "kernel"):
            continue
        unit = units.setdefault((at.file, at.line), _Unit(at))
        unit.subjects.append(subject)
        unit.said += said.get(number, ())
        outer = None if subject.inside is None else subjects[subject.inside - 1]
        if outer is not None and outer.kind not in ("launch", "kernel"):
            above = outer.location
            if above is not None and (above.file, above.line) != (at.file, at.line):
                units[above.file, above.line].around.append(at.line)
        if subject.kind == "threads" and outer is not None and outer.kind == "loop":
            unit.is_shared |= outer.location == at
    return list(units.values())


def _add_straight(units: Sequence[_Unit]) -> None:
    """Tell the loops of each function where LLVM has made vectors of straight code there.

    That begins at stores and goes back to what they store: the sums of an unrolled tile are such
    vectors, also inside of a loop that itself is none.
    """
    lines: dict[tuple[str, str], dict[int, None]] = {}
    for unit in units:
        found = lines.setdefault((unit.at.file, unit.at.function), {})
        found.update((each.column, None) for each in unit.said if is_straight(each.text))
    for unit in units:
        unit.straight = sorted(lines[unit.at.file, unit.at.function])


def _launches(subjects: Sequence[Subject]) -> Iterator[Remark]:
    """The remarks about launches, with those about the kernels."""
    kernels = {subject.name: subject for subject in subjects if subject.kind == "kernel"}
    for subject in subjects:
        at = subject.location
        if subject.kind == "launch" and at is not None:
            kernel = kernels.get(subject.name)
            words = dict.fromkeys((*(kernel.words if kernel else ()), *subject.words))
            text = f"the launch of {subject.name}: {'; '.join(words)}"
            yield Remark(at.file, at.function, at.line, "launch", None, text)


def _far(access: Apart, names: Mapping[Sym, str]) -> str:
    """An access, whose next iteration is not at the next element."""
    verb = "writes" if access.writes else "reads"
    if access.stride is None:
        return f"it {verb} {access.tensor} at places that are not side by side"
    return f"it {verb} {access.tensor} in steps of {format_dim(access.stride, names)} elements"

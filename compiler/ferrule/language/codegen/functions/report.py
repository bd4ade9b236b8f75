"""What is decided about the loops of a module, and a number for each, by which LLVM's remarks name
it.

The module has debug metadata that only remarks read: the line of a location is the number of a
loop, its column the line in the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Location
from ferrule.language.checks.places import Places
from ferrule.language.codegen.facts.apart import Apart, accesses_apart
from ferrule.language.codegen.functions.lines import Scopes
from ferrule.language.codegen.functions.lowering import LoopKind
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.specs.deferred import dataclass

FILE: Final = "loops"
"""The file that the locations name."""

_COLUMNS: Final = 1 << 16
"""The limit of LLVM's columns."""


@dataclass(slots=True)
class Subject:
    """A loop, or code with loops.

    `inside` is the number of the one around it, `name` that of the kernel, `words` what was
    decided.  `is_made`: a pass made the loop, of one of the program; `is_loop`: the text has it as
    one.  `index` is the dtype of a loop's index, `apart` its accesses to elements that are not side
    by side.
    """

    kind: LoopKind
    location: Location | None
    name: str = ""
    inside: int | None = None
    words: list[str] = field(default_factory=list)
    is_made: bool = False
    is_loop: bool = False
    index: str = ""
    apart: tuple[Apart, ...] = ()


class Report:
    """The loops of one module in their order, numbered from 1; see `lowering.Lines`."""

    def __init__(self, places: Places) -> None:
        self.subjects: Final[list[Subject]] = []
        self.places: Final = places
        self._open: Final[list[int]] = []
        self._scopes: Scopes | None = None

    def begin(self, emitter: Emitter) -> Report:
        """The loops that follow are in this module; returns the report."""
        self._scopes = Scopes(emitter, "NoDebug", paths=False)
        return self

    def enter(self, function: ops.Function) -> None:
        """The beginning of a function is no loop."""

    def at(self, op: ops.Op) -> None:
        """The code that follows belongs to this op."""
        if self._open:
            self._place(self.places.at(op))

    def _place(self, at: Location | None) -> None:
        assert self._scopes is not None
        number = self._open[-1]
        own = self.subjects[number - 1].location
        column = 0
        if at is not None and own is not None and at.file == own.file and at.line < _COLUMNS:
            column = at.line
        place = self._scopes.place(Location(FILE, FILE, number), number, column)
        self._scopes.emitter.builder.debug_metadata = place

    @contextmanager
    def inside(self, loop: ops.Op | ops.Region, kind: LoopKind, name: str = "") -> Iterator[None]:
        """The code in the block is a loop."""
        assert self._scopes is not None
        subject = self._subject(loop, kind)
        subject.name, subject.inside = name, self._open[-1] if self._open else None
        self.subjects.append(subject)
        self._open.append(len(self.subjects))
        builder = self._scopes.emitter.builder
        before = builder.debug_metadata
        self._place(subject.location)
        try:
            yield
        finally:
            self._open.pop()
            builder.debug_metadata = before

    def _subject(self, loop: ops.Op | ops.Region, kind: LoopKind) -> Subject:
        if isinstance(loop, ops.Region):
            apart = accesses_apart(loop, None, self.places) if kind == "threads" else ()
            return Subject(kind, self.places.first(loop), apart=apart)
        around = self.subjects[self._open[-1] - 1] if self._open else None
        source = self._source(loop)
        at, is_made = self.places.at(source), source is not loop
        if is_made and around is not None and around.is_made:
            at = around.location
        subject = Subject(kind, at, is_made=is_made, is_loop=self.places.is_loop(source))
        if isinstance(loop, ops.For):
            subject.index = str(loop.index.type)
            lane = None if kind == "strips" else loop.index
            subject.apart = accesses_apart(loop.body, lane, self.places)
        return subject

    def _source(self, op: ops.Op) -> ops.Op:
        """The op itself if it has a location; of a loop that a pass has made, the first op in it
        that has one."""
        found = None if self.places.at(op) is None else op
        for region in op.regions:
            found = found or self.places.first_op(region)
        return found or op

    def say(self, words: str) -> None:
        """This was decided about the innermost loop that is being emitted."""
        if self._open and words not in (said := self.subjects[self._open[-1] - 1].words):
            said.append(words)

    def along(self, body: ops.Region, known: Mapping[ops.Value, int] | None) -> None:
        """The innermost loop goes along rows of threads."""
        if self._open:
            apart = () if known is None else accesses_apart(body, None, self.places, known)
            self.subjects[self._open[-1] - 1].apart = apart

    def where(self, op: ops.Op) -> str:
        """The place of an op, as the end of a sentence."""
        at = self.places.at(self._source(op))
        return "" if at is None else f" (line {at.line})"

    def finish(self) -> None:
        """The module is complete."""
        assert self._scopes is not None
        self._scopes.finish()

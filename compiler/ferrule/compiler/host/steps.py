"""The steps of a body as text, recorded while its code is emitted.

A line says what the code at this place does: it is added where the code is written, so that the
text cannot say anything else.  Blocks, such as what runs under a condition, are indented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final, TypeAlias

from ferrule.compiler.artefacts import Fault
from ferrule.specs.deferred import dataclass

Line: TypeAlias = "str | Callable[[], str]"
"""A line, or a function that makes it when somebody reads the text: most texts nobody reads."""

_INDENT: Final = "  "
_HOLE: Final = re.compile(r"(?<!\{)\{\w*\}")


@dataclass(slots=True)
class Steps:
    """The steps so far."""

    lines: list[tuple[int, Line]] = field(default_factory=list)
    depth: int = 0

    def add(self, line: Line) -> None:
        """Add a step at the end."""
        self.lines.append((self.depth, line))

    @contextmanager
    def block(self, line: Line) -> Iterator[None]:
        """Add a step whose own steps are added inside; without any it is no step."""
        before = len(self.lines)
        self.add(line)
        self.depth += 1
        yield
        self.depth -= 1
        if len(self.lines) == before + 1:
            del self.lines[before]

    def wrap(self, start: int, line: Line) -> None:
        """Add a step before those from `start` on, which become its own."""
        inner = [(depth + 1, each) for depth, each in self.lines[start:]]
        self.lines[start:] = [(self.depth, line), *inner]

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Drop the steps that are added inside: other lines say them already."""
        before = len(self.lines)
        yield
        del self.lines[before:]

    def refusal(self, fault: Fault) -> None:
        """Add the check that ends the call with a fault."""
        self.add(lambda: f"check, or {fault.kind}: {readable(fault.message)}")

    def status(self, faults: Sequence[Fault]) -> None:
        """Add the check of the status of the step before."""
        self.add(lambda: f"check the status, or {' or '.join(_kinds(faults))}")

    def text(self, head: str) -> str:
        """The text below a line that says what they are the steps of."""
        found = [head]
        for depth, line in self.lines:
            found.append(_INDENT * (depth + 1) + (line if isinstance(line, str) else line()))
        return "\n".join(found) + "\n"


def _kinds(faults: Sequence[Fault]) -> list[str]:
    return list(dict.fromkeys(fault.kind for fault in faults))


def readable(message: str) -> str:
    """The message of a fault, with … for each value that only a call knows."""
    return _HOLE.sub("…", message).replace("{{", "{").replace("}}", "}")

"""What is counted in SASS, the text that NVIDIA's disassemblers write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

_SECTION: Final = re.compile(r"^\.text\.(\S+):$")
_LABEL: Final = re.compile(r"^(\.L\w+):$")
_INSTRUCTION: Final = re.compile(r"^/\*[0-9a-f]+\*/\s+(.*?)\s*;")
_TARGET: Final = re.compile(r"\bBRA\b.*`\((\.L\w+)\)")
_GUARD: Final = re.compile(r"^@!?U?P\w+\s+")


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel: its instructions, and the loops, each from its first to its last instruction."""

    instructions: tuple[str, ...]
    loops: tuple[tuple[int, int], ...]

    def count(self, pattern: str) -> int:
        """Instructions whose operation begins so."""
        return _count(self.instructions, pattern)

    def wide(self, operation: str) -> int:
        """Accesses of 16 bytes."""
        return self.count(rf"({operation})\b(?=.*\.128)")

    def hot_loop(self, unit: str, without: str) -> Loop | None:
        """The innermost loop with the most units."""
        found = []
        for place in self.loops:
            loop = self._loop(place, unit)
            inner = any(other != place and _inside(other, place) for other in self.loops)
            if not inner and not _count(self.instructions[place[0] : place[1] + 1], without):
                found.append(loop)
        best = max(found, key=lambda loop: (loop.units, -loop.length), default=None)
        return best if best is not None and best.units else None

    def around(self, loop: Loop, units: int, unit: str) -> Loop | None:
        """The loop around a loop, with that one run so often that there are so many units."""
        outer = [each for each in self.loops if each != loop.place and _inside(loop.place, each)]
        if not outer or not loop.units:
            return None
        found = self._loop(min(outer, key=lambda each: each[1] - each[0]), unit)
        length = found.length - loop.length + loop.length * units / loop.units
        return replace(found, length=length, units=units)

    def _loop(self, place: tuple[int, int], unit: str) -> Loop:
        body = self.instructions[place[0] : place[1] + 1]
        return Loop(place, len(body), _count(body, unit), bool(_count(body, "BAR")))


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] <= inner[1] <= outer[1]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: its first and last instruction, how many it has, how many are units of its work, and
    whether threads wait in it."""

    place: tuple[int, int]
    length: float
    units: int
    waits: bool

    @property
    def each(self) -> float:
        """Instructions for a unit."""
        return self.length / self.units


def alike(first: Code, second: Code, unit: str, without: str) -> tuple[Loop | None, Loop | None]:
    """The hot loops of two sides.

    One side may have unrolled its innermost loop whole: then its hot loop is the one around it, in
    which threads wait for a tile, say.  So is the other side's then, with its inner loop run as
    often as there are units.
    """
    a, b = first.hot_loop(unit, without), second.hot_loop(unit, without)
    if a is not None and b is not None and a.waits != b.waits:
        if a.waits:
            b = second.around(b, a.units, unit) or b
        else:
            a = first.around(a, b.units, unit) or a
    return a, b


def read(text: str) -> dict[str, Code]:
    """The kernels of a cubin by name."""
    return {name: _code(lines) for name, lines in _sections(text)}


def operation(instruction: str) -> str:
    """Without its guard."""
    return _GUARD.sub("", instruction)


def _count(instructions: tuple[str, ...], pattern: str) -> int:
    word = re.compile(pattern)
    return sum(word.match(operation(instruction)) is not None for instruction in instructions)


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    name, lines = "", []
    for line in map(str.strip, text.splitlines()):
        found = _SECTION.match(line)
        if found or line.startswith(".section"):
            if name:
                yield name, lines
            name, lines = (found[1] if found else ""), []
        elif name:
            lines.append(line)
    if name:
        yield name, lines


def _code(lines: list[str]) -> Code:
    """Without the padding behind the kernel: a branch to itself, and NOPs."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    for line in lines:
        if found := _LABEL.match(line):
            labels[found[1]] = len(instructions)
        elif found := _INSTRUCTION.match(line):
            if not _is_padding(found[1], labels, len(instructions)):
                instructions.append(found[1])
    backward = []
    for place, instruction in enumerate(instructions):
        target = _TARGET.search(instruction)
        if target and labels.get(target[1], place + 1) <= place:
            backward.append((labels[target[1]], place))
    return Code(tuple(instructions), tuple(backward))


def _is_padding(instruction: str, labels: dict[str, int], place: int) -> bool:
    if operation(instruction).startswith("NOP"):
        return True
    target = _TARGET.search(instruction)
    return target is not None and labels.get(target[1]) == place

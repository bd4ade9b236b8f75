"""What is counted in SASS, the text that NVIDIA's disassemblers write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
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

    def hot_loop(self, unit: str, without: str) -> tuple[int, int] | None:
        """The length of the innermost loop with the most units, and how many these are."""
        found = []
        for first, last in self.loops:
            body = self.instructions[first : last + 1]
            inner = any((a, b) != (first, last) and first <= a <= b <= last for a, b in self.loops)
            if not inner and not _count(body, without):
                found.append((_count(body, unit), -len(body)))
        units, length = max(found, default=(0, 0))
        return (-length, units) if units else None


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

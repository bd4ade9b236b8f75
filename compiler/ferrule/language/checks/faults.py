"""The faults of checks, all in one form.

The values of a fault are two numbers, then, in a kernel, block x, y, z and thread x, y, z.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ferrule.compiler.artefacts import Fault, Location, literal
from ferrule.specs.deferred import dataclass

_MOST_LINES: Final = 4
_RUNNING: Final = " in block ({}, {}, {}), thread ({}, {}, {})"


@dataclass(frozen=True, slots=True)
class Where:
    """The place of an op: its function, whether that is a kernel, and its source location."""

    function: str
    in_kernel: bool
    location: Location | None
    stripped: bool = False

    def fault(self, kind: str, text: str) -> Fault:
        """A fault there; `text` has the placeholders for its numbers."""
        location = self.location
        at = "" if location is None else f" at {self._place(location)}"
        running = _RUNNING if self.in_kernel else ""
        comma = "," if at or running else ""
        message = f"{literal(self.function)}: {text}{comma}{at}{running}"
        return Fault(kind, message, location)

    def _place(self, location: Location) -> str:
        if self.stripped:
            return f"line {location.line}"
        return literal(f"{location.file}:{location.line}")


def out_of_dim(where: Where, name: str, axis: int) -> Fault:
    """An index is out of range; its numbers: the index, and the size of the dim."""
    return where.fault("IndexError", _out_of_dim(name, axis))


def wrapped(where: Where, name: str, axis: int) -> Fault:
    """The same for a negative index that may have wrapped around in 32 bits."""
    hint = "; if it wrapped around in 32 bits, compute it with fe.Int64(block index)"
    return where.fault("IndexError", _out_of_dim(name, axis) + hint)


def _out_of_dim(name: str, axis: int) -> str:
    return f"index {{}} is out of range for dim {axis} of {literal(name)}, which has {{}}"


def out_of_memory(where: Where, name: str, dtype: str) -> Fault:
    """An element is outside of its memory; its numbers: the element, and the number of elements."""
    text = f"element {{}} is out of range for {literal(name)}, which has {{}} elements of {dtype}"
    return where.fault("IndexError", text)


def division(where: Where) -> Fault:
    """An integer is divided by zero."""
    return where.fault("ZeroDivisionError", "an integer is divided by zero")


def misaligned(where: Where, name: str, align: int) -> Fault:
    """A tensor lacks the alignment of its type; its number: the bytes past a multiple."""
    text = f"{literal(name)} begins {{}} bytes past a multiple of {align}, to which it is aligned"
    return where.fault("ValueError", text)


def race(where: Where, name: str, does: str, did: str, there: str) -> Fault:
    """Two threads use an element at the same time; its numbers: the element, and the other
    thread's.

    `there`: the possible places of the other access, see `lines`.
    """
    text = (
        f"element {{}} of {literal(name)} is {does}, and thread number {{}} has {did} it{there}"
        " since the last barrier"
    )
    return where.fault("RaceError", text)


def lines(places: Iterable[Location | None]) -> str:
    """One or more places, by their lines."""
    found = sorted({place.line for place in places if place is not None})
    if not found or len(found) > _MOST_LINES:
        return ""
    *first, last = map(str, found)
    return f" in line {', '.join(first)} or {last}" if first else f" in line {last}"

"""Where in a kernel's code checks and counts are called.

The emitter tells a `Watch` of each helper that it calls, before and after, and the table of
instructions of each instruction that is written. Kernels are translated with one only where a check
or the profile was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ferrule.emulator.checks.reads import Reads
    from ferrule.emulator.ptx.module import Instruction
    from ferrule.emulator.warps.emitter import Emitter


class Watch(Protocol):
    """What is told of a kernel's code while it is written."""

    def before(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        """The helper `name` will be called for the lanes of `mask`, with pointers to `places`."""

    def after(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        """It was called, and no lane failed."""

    def executed(self, e: Emitter, item: Instruction) -> None:
        """All of an instruction is written."""

    def started(self, reads: Reads) -> None:
        """The kernel whose code follows, and its reads."""


class Watches:
    """Several as one."""

    def __init__(self, parts: Sequence[Watch]) -> None:
        self._parts = tuple(parts)

    def before(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        for each in self._parts:
            each.before(e, name, places, mask)

    def after(self, e: Emitter, name: str, places: Sequence[str], mask: str) -> None:
        for each in self._parts:
            each.after(e, name, places, mask)

    def executed(self, e: Emitter, item: Instruction) -> None:
        for each in self._parts:
            each.executed(e, item)

    def started(self, reads: Reads) -> None:
        for each in self._parts:
            each.started(reads)


def call(e: Emitter, name: str, pointers: Sequence[str], mask: str) -> None:
    """Call a helper of a check; the warp ends if it returns 1."""
    e.helpers.add(name)
    given = "".join(f", ptr {each}" for each in pointers)
    e.stop_if(e.op(f'call i32 @"{name}"(ptr %w, i32 {mask}{given})'))


def number(value: int) -> str:
    """A number in place of a pointer."""
    return f"inttoptr (i64 {value} to ptr)"

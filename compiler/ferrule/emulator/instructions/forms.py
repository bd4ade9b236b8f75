"""The table of forms: which instruction, with which modifiers, is written by which function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter
from ferrule.specs.deferred import dataclass

Named = dict[str, "str | None"]
Write = Callable[[Emitter, Instruction, Named], None]


@dataclass(frozen=True, slots=True)
class Form:
    """An opcode with a pattern for all of its modifiers, and the numbers of operands it takes."""

    opcode: str
    pattern: re.Pattern[str]
    operands: tuple[int, ...]
    write: Write


FORMS: Final[dict[str, list[Form]]] = {}


def form(opcode: str, pattern: str, *operands: int) -> Callable[[Write], Write]:
    """Marks what writes a form: `form("add", r"\\.(?P<t>[us]32)", 3)`."""

    def mark(write: Write) -> Write:
        FORMS.setdefault(opcode, []).append(Form(opcode, re.compile(pattern), operands, write))
        return write

    return mark


def kind(named: Named, name: str = "t") -> str:
    """The named parts of a pattern that matched."""
    found = named[name]
    assert found is not None
    return found

"""How a program ends that does not run to its end."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from ferrule.compiler.artefacts import Fault


class Stopped(Exception):
    """A check ended the call with a fault."""

    def __init__(self, fault: Fault, values: Sequence[int] = ()) -> None:
        super().__init__(fault.kind, _filled(fault.message, values))
        self.fault = fault
        self.kind: str = fault.kind
        self.message: str = self.args[1]


def _filled(message: str, values: Sequence[Any]) -> str:
    """The message of a fault with its values, of the placeholders that numbers have."""
    shown = iter(values)

    def text(found: re.Match[str]) -> str:
        match found[0]:
            case "{{" | "}}":
                return found[0][0]
            case "{bool}":
                return str(bool(next(shown)))
            case "{float}":
                return f"{struct.unpack('d', struct.pack('q', int(next(shown))))[0]:g}"
            case _:
                return str(int(next(shown)))

    return re.sub(r"\{\{|\}\}|\{(?:|unsigned|bool|float)\}", text, message)


class Undefined(AssertionError):
    """A program does what the IR gives no meaning."""


class Endless(AssertionError):
    """A program ran more ops than it was given."""

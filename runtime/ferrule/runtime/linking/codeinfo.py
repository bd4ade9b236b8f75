"""What profilers and debuggers can be told of code in this process, and how a user asks for it."""

from __future__ import annotations

from typing import Final

from ferrule.specs.deferred import dataclass

VARIABLE: Final = "FERRULE_JIT_INFO"
"""Asks for information about the code, see `jitinfo`."""

PERF_MAP: Final = "perfmap"
JIT_DUMP: Final = "jitdump"
GDB: Final = "gdb"
"""The conventions that `VARIABLE` names."""


@dataclass(frozen=True, slots=True)
class CodeFunction:
    """A function in memory: `section` and `offset` are its place in the object, `code` its bytes
    there, before relocation."""

    name: str
    address: int
    section: int
    offset: int
    code: bytes

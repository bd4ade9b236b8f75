"""The state of the checker that a message shows: the current place, and the values.

The checker has one `CONTEXT` for a call and passes it to `ferrule_raise` as the buffer of values:
its first slots are that buffer.  A *program* is the constant that the checker runs; messages read
its header and its paths too.  Everything in a program is addressed by its offset in bytes from the
start; a text is its length (u32) and its UTF-8 bytes, and offset 0 means no text.  `is_result` is 1
if the checker checks the result of a call instead of arguments.

A path leads from an argument to a value inside it: positions in tuples, and the running index of a
loop over a container; `indices` are those of all loops.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from ferrule.runtime.llvm.layouts import I16, I32, I64, PTR, Field, Layout

MAX_LOOPS: Final = 8
"""The largest nesting depth of loops over containers."""


class PlaceKind(IntEnum):
    """The kind of the current place: a value itself, or one of its numbers."""

    VALUE = 0
    SHAPE = 1
    STRIDES = 2
    DIMS = 3
    SYMBOL = 4


class Order(IntEnum):
    """The order of strides for which a tensor gets a hint."""

    NONE = 0
    ROW_MAJOR = 1
    COLUMN_MAJOR = 2


CONTEXT: Final = Layout(
    "Context",
    [
        *(Field(f"value{slot}", I64) for slot in range(4)),
        Field("any", PTR),
        Field("tensor", PTR),
        Field("program", PTR),
        Field("path", I32),
        Field("place", I32),
        Field("axis", I32),
        Field("expected", I32),
        Field("owner", I32),
        Field("order", I32),
        Field("hint", I32),
        Field("num_args", I32),
        Field("indices", PTR),
    ],
)

HEADER_FIELDS: Final = ("signature", "trace", "paths", "code", "leaves", "symbols", "stack")
PROGRAM: Final = Layout("Program", [Field(name, I32) for name in (*HEADER_FIELDS, "is_result")])
PROGRAM_STRUCT: Final = struct.Struct("<8I")

PATH: Final = Layout(
    "Path",
    [
        Field("argument", I16),
        Field("count", I16),
        Field("steps", I32),
        Field("name", I32),
        Field("suffix", I32),
    ],
)
PATH_STRUCT: Final = struct.Struct("<HHIII")
RUNNING: Final = 1 << 31
"""A step by the running index of the loop whose number is in its low bits."""

assert (PROGRAM.size, PATH.size) == (PROGRAM_STRUCT.size, PATH_STRUCT.size)

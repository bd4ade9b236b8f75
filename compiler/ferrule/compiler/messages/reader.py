"""The segment under the reader of messages, and what a handler can make of it.

A handler shows one text and ends the function: a text of the table or of the program, or one that
it formats in the scratch room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.context import CONTEXT, PATH, PROGRAM
from ferrule.compiler.messages.names import Group, name_key
from ferrule.compiler.messages.table import ROW, SEGMENT
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    BYTE_ARRAY,
    I8,
    I16,
    I32,
    I64,
    PTR,
    Field,
    Layout,
)

SCRATCH: Final = 256

HEADER_LAYOUT = Layout("Header", [Field("segments", I32), Field("texts", I32)])
ROW_LAYOUT = Layout("Row", [Field(name, I32) for name in ("first", "count", "kind", "trace")])
SEGMENT_LAYOUT = Layout(
    "Segment", [Field("op", I8), Field("__padding", I8), Field("arg", I16), Field("offset", I32)]
)
TYPE_INFO = Layout(
    "TVMFFITypeInfo",
    [Field("type_index", I32), Field("type_depth", I32), Field("type_key", BYTE_ARRAY)],
)
assert (ROW_LAYOUT.size, SEGMENT_LAYOUT.size) == (ROW.size, SEGMENT.size)

PART_ARGUMENTS: Final = (PTR, I32, PTR, I32, PTR, PTR, PTR)


@dataclass(frozen=True, slots=True)
class Reader:
    """The segment under the reader, and what it can be read from."""

    emitter: Emitter
    function: ir.Function
    find_name: ir.Function
    stride: ir.Function
    text: ir.Function
    arg: ir.Value
    offset: ir.Value

    @property
    def values(self) -> ir.Value:
        return self.function.args[4]

    @property
    def scratch(self) -> ir.Value:
        return self.function.args[5]

    @property
    def out(self) -> ir.Value:
        return self.function.args[6]

    def context(self, name: str) -> ir.Value:
        """A field of where the checker is."""
        return self.emitter.load_field(self.values, CONTEXT, name)

    def path(self, name: str) -> ir.Value:
        """A field of the path that the checker is at, i64."""
        emitter, program = self.emitter, self.context("program")
        first = emitter.load_field(program, PROGRAM, "paths")
        paths = emitter.index(program, I8, emitter.builder.zext(first, I64))
        number = emitter.builder.zext(self.context("path"), I64)
        field = emitter.load_field(emitter.index(paths, PATH, number), PATH, name)
        return emitter.builder.zext(field, I64)

    def any(self) -> ir.Value:
        """The address of the value that the checker is at."""
        return self.context("any")

    def tensor(self) -> ir.Value:
        """The DLTensor that the checker is at."""
        return self.context("tensor")

    def slot(self) -> ir.Value:
        """The number in the slot of the buffer of values."""
        return self.emitter.load(self.emitter.index(self.values, I64, self.arg), I64)

    def find(self, group: Group, number: ir.Value) -> ir.Value:
        """Whether there is a name for a number of 32 bits; it is in `out` then."""
        build = self.emitter.builder
        tag = self.emitter.const_i64(name_key(group, 0))
        key = build.or_(build.zext(number, I64), tag)
        return self.emitter.call(self.find_name, [key, self.out])

    def show(self, data: ir.Value, size: ir.Value) -> None:
        """End with this text."""
        self.emitter.store_field(self.out, BYTE_ARRAY, "data", data)
        self.emitter.store_field(self.out, BYTE_ARRAY, "size", size)
        self.emitter.ret()

    def show_formatted(self, text: str, *numbers: ir.Value) -> None:
        """End with what C's printf makes of these."""
        emitter = self.emitter
        room, form = emitter.const_i64(SCRATCH), emitter.cstring(text)
        size = emitter.call("snprintf", [self.scratch, room, form, *numbers])
        self.show(self.scratch, emitter.builder.sext(size, I64))

    def show_nothing(self) -> None:
        """End without a text."""
        self.show(self.emitter.null(), self.emitter.const_i64(0))

    def show_text(self, offset: ir.Value) -> None:
        """End with the text at an offset, i64, in the program; with nothing for 0."""
        emitter = self.emitter
        with emitter.if_then(emitter.builder.icmp_signed("==", offset, emitter.const_i64(0))):
            self.show_nothing()
        text = emitter.index(self.context("program"), I8, offset)
        size = emitter.builder.zext(emitter.load(text, I32), I64)
        self.show(emitter.index(text, I8, 4), size)

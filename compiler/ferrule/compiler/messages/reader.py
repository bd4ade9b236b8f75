"""The interface of a handler of a message operation: its inputs, and its results.

A handler is a function of its own, `{ptr, i64} ferrule_part_<op>(ptr context, i64 operand, ptr
scratch)`, so that an object contains only the handlers that its messages need.  It returns one
text: a text of the program, or one that it formats in the scratch buffer.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.context import CONTEXT, PATH, PROGRAM
from ferrule.compiler.messages.names import Names, find_name
from ferrule.compiler.messages.texts import TEXT, is_there, text_of
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I8, I32, I64, PTR, Field, Layout
from ferrule.specs.deferred import dataclass

SCRATCH: Final = 256

TYPE_INFO: Final = Layout(
    "TVMFFITypeInfo",
    [Field("type_index", I32), Field("type_depth", I32), Field("type_key", BYTE_ARRAY)],
)

PART: Final = ir.FunctionType(TEXT, [PTR, I64, PTR])
FORMAT: Final = ir.FunctionType(TEXT, [PTR, PTR, I64, I64, I64])
_MOST_NUMBERS: Final = 3


@dataclass(frozen=True, slots=True)
class Reader:
    """The current operation, and its inputs."""

    emitter: Emitter
    values: ir.Value
    arg: ir.Value
    scratch: ir.Value

    def context(self, name: str) -> ir.Value:
        """A field of the checker's context."""
        return self.emitter.load_field(self.values, CONTEXT, name)

    def path(self, name: str) -> ir.Value:
        """A field of the current path, i64."""
        emitter, program = self.emitter, self.context("program")
        first = emitter.load_field(program, PROGRAM, "paths")
        paths = emitter.index(program, I8, emitter.builder.zext(first, I64))
        number = emitter.builder.zext(self.context("path"), I64)
        field = emitter.load_field(emitter.index(paths, PATH, number), PATH, name)
        return emitter.builder.zext(field, I64)

    def any(self) -> ir.Value:
        """The address of the current value."""
        return self.context("any")

    def tensor(self) -> ir.Value:
        """The current DLTensor."""
        return self.context("tensor")

    def slot(self) -> ir.Value:
        """The number in the slot of the buffer of values."""
        return self.emitter.load(self.emitter.index(self.values, I64, self.arg), I64)

    def show_name(self, names: Names, number: ir.Value) -> None:
        """End with the name of a number of 32 bits, if it has one."""
        self.show_found(find_name(self.emitter, names, number))

    def show_found(self, text: ir.Value) -> None:
        """End with a text, if there is one."""
        with self.emitter.if_then(is_there(self.emitter, text)):
            self.emitter.ret(text)

    def show(self, data: ir.Value, size: ir.Value) -> None:
        """End with this text."""
        self.emitter.ret(text_of(self.emitter, data, size))

    def show_formatted(self, text: str, *numbers: ir.Value) -> None:
        """End with integers or addresses in a format of C's printf, at most three.

        Integer conversions in the format need `l` for i64; shorter values are zero-extended.
        """
        emitter, build = self.emitter, self.emitter.builder
        wide = [_widened(build, number) for number in numbers]
        wide += [emitter.const_i64(0)] * (_MOST_NUMBERS - len(wide))
        show = emitter.symbol("ferrule_format", FORMAT)
        emitter.ret(emitter.tail_call(show, [self.scratch, emitter.cstring(text), *wide]))

    def show_nothing(self) -> None:
        """End without a text."""
        self.show(self.emitter.null(), self.emitter.const_i64(0))

    def show_text(self, offset: ir.Value) -> None:
        """End with the text at an offset, i64, in the program; with nothing for 0."""
        emitter = self.emitter
        show = emitter.symbol("ferrule_program_text", PROGRAM_TEXT)
        emitter.ret(emitter.tail_call(show, [self.context("program"), offset]))


def _widened(build: ir.IRBuilder, number: ir.Value) -> ir.Value:
    match number.type:
        case ir.PointerType():
            return build.ptrtoint(number, I64)
        case ir.IntType(width=64):
            return number
        case _:
            return build.zext(number, I64)


PROGRAM_TEXT: Final = ir.FunctionType(TEXT, [PTR, I64])


def define_showing(emitter: Emitter) -> None:
    """The functions that end handlers: `ferrule_format` and `ferrule_program_text`."""
    with emitter.define("ferrule_format", TEXT, FORMAT.args, attributes=COLD) as function:
        scratch, form, *numbers = function.args
        room = emitter.const_i64(SCRATCH)
        size = emitter.call("snprintf", [scratch, room, form, *numbers])
        emitter.ret(text_of(emitter, scratch, emitter.builder.sext(size, I64)))
    with emitter.define(
        "ferrule_program_text", TEXT, PROGRAM_TEXT.args, attributes=COLD
    ) as function:
        program, offset = function.args
        text = emitter.index(program, I8, offset)
        with emitter.if_then(emitter.builder.icmp_signed("==", offset, emitter.const_i64(0))):
            emitter.ret(text_of(emitter, text, offset))
        size = emitter.builder.zext(emitter.load(text, I32), I64)
        emitter.ret(text_of(emitter, emitter.index(text, I8, 4), size))

"""What the handlers of the interpreter share: its registers, and the ways to read and end a row.

A handler is a part of one large function: LLVM takes longer for a function than for what is in it.
It begins in a block of its own and ends in one of `Ends`: with the next row, at the end of the
program, or with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler.checker.format import ROW
from ferrule.compiler.checker.reports import Said, report_table
from ferrule.compiler.messages.context import CONTEXT, MAX_LOOPS
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    I8,
    I32,
    I64,
    OBJECT,
    PTR,
    SEQ,
    SHAPE,
    Field,
    Layout,
    View,
)

HELD: Final = Layout("Held", [Field("next", PTR), Field("key", ANY), Field("value", ANY)])
"""What a loop over a map owns: the function that iterates, the key and value that it is at."""

MACHINE: Final = Layout(
    "Machine",
    [
        Field("context", CONTEXT),
        Field("table", PTR),
        Field("args", PTR),
        Field("values", PTR),
        Field("out", PTR),
        Field("symbols", PTR),
        Field("owners", PTR),
        Field("stack", PTR),
        Field("number", I64),
        Field("num_args", I32),
        Field("pc", I32),
        Field("depth", I32),
        Field("undefined", I32),
        Field("device_id", I32),
        Field("device_owner", I32),
        *(Field(f"held{level}", HELD) for level in range(MAX_LOOPS)),
    ],
)

SEQ_OBJECT: Final = Layout("SeqObj", [Field("header", OBJECT), Field("cell", SEQ)])
SHAPE_OBJECT: Final = Layout("ShapeObj", [Field("header", OBJECT), Field("cell", SHAPE)])
MAP_OBJECT: Final = Layout(
    "MapObj", [Field("header", OBJECT), Field("data", PTR), Field("size", I64)]
)
BIG_INT_OBJECT: Final = Layout(
    "BigIntObj",
    [Field("header", OBJECT), Field("n_words", I64), Field("word", I64), Field("word1", I64)],
)
TYPE_INFO: Final = Layout(
    "TVMFFITypeInfo",
    [
        Field("type_index", I32),
        Field("type_depth", I32),
        Field("type_key", BYTE_ARRAY),
        Field("type_ancestors", PTR),
        View("index", "type_index", I32),
    ],
)


@dataclass(frozen=True, slots=True)
class Ends:
    """The blocks in which a handler can end.

    In `refused` it is known which message is `said`.
    """

    following: ir.Block
    done: ir.Block
    failed: ir.Block
    refused: ir.Block
    said: ir.PhiInstr


@dataclass(frozen=True, slots=True)
class Frame:
    """One handler under construction."""

    emitter: Emitter
    machine: ir.Value
    row: ir.Value
    ends: Ends

    @property
    def build(self) -> ir.IRBuilder:
        """For arithmetic and comparisons."""
        return self.emitter.builder

    # ---- registers and operands ----

    def get(self, path: str) -> ir.Value:
        """A register."""
        return self.emitter.load_field(self.machine, MACHINE, path)

    def set(self, path: str, value: ir.Value | int) -> None:
        """Set a register."""
        if isinstance(value, int):
            value = ir.Constant(MACHINE.type_of(path), int(value))
        self.emitter.store_field(self.machine, MACHINE, path, value)

    def operand(self, name: str) -> ir.Value:
        """An operand of the row, i64."""
        value = self.emitter.load_field(self.row, ROW, name)
        return value if name == "b" else self.build.zext(value, I64)

    def operand32(self, name: str) -> ir.Value:
        """The same as i32, without its upper bits."""
        return self.build.trunc(self.operand(name), I32)

    def any(self) -> ir.Value:
        """The address of the value."""
        return self.get("context.any")

    def type_index(self) -> ir.Value:
        """The type index of the value."""
        return self.emitter.load_field(self.any(), ANY, "type_index")

    def payload(self, name: str = "v_int64") -> ir.Value:
        """The payload of the value."""
        return self.emitter.load_field(self.any(), ANY, name)

    def is_type(self, kind: TypeIndex | int) -> ir.Value:
        """Whether the value has this type index."""
        return self.equal(self.type_index(), int(kind))

    def equal(self, value: ir.Value, other: ir.Value | int) -> ir.Value:
        """Whether two numbers are equal."""
        if isinstance(other, int):
            other = ir.Constant(value.type, int(other))
        return self.build.icmp_signed("==", value, other)

    def text(self, offset: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Address and length of the text at an offset of the program."""
        emitter = self.emitter
        text = emitter.index(self.get("context.program"), I8, offset)
        size = self.build.zext(emitter.load(text, I32), I64)
        return emitter.index(text, I8, 4), size

    def byte_array(self, data: ir.Value, size: ir.Value) -> ir.Value:
        """The address of a byte array on the stack."""
        array = self.emitter.alloca(BYTE_ARRAY, name="text")
        self.emitter.store_field(array, BYTE_ARRAY, "data", data)
        self.emitter.store_field(array, BYTE_ARRAY, "size", size)
        return array

    def slot(self, register: str, number: ir.Value, kind: ir.Type = I64) -> ir.Value:
        """The address of an element of the array that a register points to."""
        return self.emitter.index(self.get(register), kind, number)

    def loop_index(self, level: ir.Value) -> ir.Value:
        """The address of the running index of a loop."""
        first = self.emitter.field_ptr(self.machine, MACHINE, "context.index0")
        return self.emitter.index(first, I64, level)

    def held(self, level: ir.Value) -> ir.Value:
        """The address of what a loop over a map owns."""
        first = self.emitter.field_ptr(self.machine, MACHINE, "held0")
        return self.emitter.index(first, HELD, level)

    # ---- ends ----

    def go_on(self) -> None:
        """End: go on with the next row."""
        self.emitter.branch(self.ends.following)

    def go_to(self, row: ir.Value) -> None:
        """End: go on with this row, i32."""
        self.set("pc", row)
        self.go_on()

    def number(self, value: ir.Value) -> None:
        """End: this is the number."""
        self.set("number", value)
        self.go_on()

    def finish(self) -> None:
        """End: all is well."""
        self.emitter.branch(self.ends.done)

    def fail(self) -> None:
        """End: an error is set."""
        self.emitter.branch(self.ends.failed)

    def refuse(
        self,
        said: Said,
        *,
        wanted: ir.Value | None = None,
        actual: ir.Value | None = None,
        **shown: ir.Value | int,
    ) -> None:
        """End with a message.

        It shows the text `a` of the row as what is expected, the first two numbers, and `shown`,
        fields of the context.
        """
        numbers = {"value0": wanted, "value1": actual}
        for name, value in (numbers | shown).items():
            if value is not None:
                self.set(f"context.{name}", value)
        number = self.emitter.const_i32(report_table()[1][said])
        self.ends.said.add_incoming(number, self.build.block)
        self.emitter.branch(self.ends.refused)

    def refuse_big_int(
        self, value: ir.Value, large: Said, small: Said, shown: Mapping[str, ir.Value | int]
    ) -> None:
        """End with one of two messages: for a BigInt above 64 bits, and for one below."""
        self.check(self.build.not_(self.emitter.is_null(value)), Said.NULL_VALUE, **shown)
        count = self.emitter.load_field(value, BIG_INT_OBJECT, "n_words")
        zero = self.emitter.const_i64(0)
        self.check(self.build.icmp_signed(">", count, zero), large, **shown)
        words = self.emitter.field_ptr(value, BIG_INT_OBJECT, "word")
        last = self.build.sub(count, self.emitter.const_i64(1))
        top = self.emitter.load(self.emitter.index(words, I64, last), I64)
        self.check(self.build.icmp_signed(">=", top, zero), small, **shown)
        self.refuse(large, **shown)

    def check(self, ok: ir.Value, said: Said, **shown: Any) -> None:
        """Refuse unless this holds."""
        with self.emitter.if_then(self.build.not_(ok)):
            self.refuse(said, **shown)

"""`Frame`: the registers of the interpreter for its handlers, and ways to read and end a row.

A handler is a function of its own, `i32 ferrule_op_<op>(ptr machine, ptr row)`, so that an object
contains only the handlers that its program needs.  It ends with one of `Status`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler.checker.format import ROW
from ferrule.compiler.checker.reports import Said, report, report_symbol
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
    SHAPE,
    Field,
    Layout,
    View,
)
from ferrule.specs.deferred import dataclass

HELD: Final = Layout("Held", [Field("next", PTR), Field("key", ANY), Field("value", ANY)])
"""The state of a loop over a map: the iterator function, the current key and value."""

MACHINE: Final = Layout(
    "Machine",
    [
        Field("context", CONTEXT),
        Field("b", I64),
        Field("number", I64),
        Field("symbols", PTR),
        Field("owners", PTR),
        Field("out", PTR),
        Field("args", PTR),
        Field("stack", PTR),
        Field("table", PTR),
        Field("release", PTR),
        Field("pc", I32),
        Field("depth", I32),
        Field("undefined", I32),
        Field("device_id", I32),
        Field("device_owner", I32),
        Field("reached", I32),
        *(Field(f"index{level}", I64) for level in range(MAX_LOOPS)),
        *(Field(f"held{level}", HELD) for level in range(MAX_LOOPS)),
    ],
)
"""The registers.  The ones that many handlers use come first, where the offset in instructions is
shortest.

`b` is that operand of the row, `pc` the place of the next row, `reached` the number of rows so far.
`release`, if not null, is a function of the machine that releases the references of loops.
"""

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


class Status(IntEnum):
    """The result of a handler."""

    NEXT = 0
    """Go on with the row at the register `pc`."""
    DONE = 1
    """The call is accepted."""
    FAILED = -1
    """An error is set."""


HANDLER: Final = ir.FunctionType(I32, [PTR, PTR])
END: Final = "ferrule_end"
"""The function that ends a handler with a message, of the type `REFUSE`."""
REFUSE: Final = ir.FunctionType(I32, [PTR, PTR, PTR])


@dataclass(frozen=True, slots=True)
class Frame:
    """One handler under construction."""

    emitter: Emitter
    machine: ir.Value
    row: ir.Value

    @property
    def build(self) -> ir.IRBuilder:
        """The builder of arithmetic and comparisons."""
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
        if name == "b":
            return self.get("b")
        return self.build.zext(self.emitter.load_field(self.row, ROW, name), I64)

    def operand32(self, name: str) -> ir.Value:
        """The lower 32 bits of an operand, i32."""
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
        first = self.emitter.field_ptr(self.machine, MACHINE, "index0")
        return self.emitter.index(first, I64, level)

    def held(self, level: ir.Value) -> ir.Value:
        """The address of the state of a loop over a map."""
        first = self.emitter.field_ptr(self.machine, MACHINE, "held0")
        return self.emitter.index(first, HELD, level)

    # ---- ends ----

    def go_on(self) -> None:
        """End: go on with the next row."""
        self._end(Status.NEXT)

    def go_to(self, row: ir.Value) -> None:
        """End: go on with this row, i32."""
        self.set("pc", row)
        self.go_on()

    def number(self, value: ir.Value) -> None:
        """End: set the number."""
        self.set("number", value)
        self.go_on()

    def finish(self) -> None:
        """End: the call is accepted."""
        self._end(Status.DONE)

    def fail(self) -> None:
        """End: an error is set."""
        self._end(Status.FAILED)

    def _end(self, status: Status) -> None:
        self.emitter.ret(self.emitter.const_i32(status))

    def refuse(
        self,
        said: Said,
        *,
        wanted: ir.Value | None = None,
        actual: ir.Value | None = None,
        **shown: ir.Value | int,
    ) -> None:
        """End with a message.

        It shows the text `a` of the row as the expectation, the first two numbers, and `shown`,
        fields of the context.
        """
        numbers = {"value0": wanted, "value1": actual}
        for name, value in (numbers | shown).items():
            if value is not None:
                self.set(f"context.{name}", value)
        refuse = self.emitter.symbol(END, REFUSE)
        arguments = [self.machine, self.row, _message(self.emitter, said)]
        self.emitter.ret(self.emitter.tail_call(refuse, arguments))

    def refuse_big_int(
        self, value: ir.Value, large: Said, small: Said, shown: Mapping[str, ir.Value | int]
    ) -> None:
        """End with one of two messages: `large` for a BigInt above 64 bits, `small` for one
        below."""
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
        """Refuse unless this is true."""
        with self.emitter.if_then(self.build.not_(ok)):
            self.refuse(said, **shown)


def _message(emitter: Emitter, said: Said) -> ir.Value:
    """The address of a message, which is in the module once."""
    name = report_symbol(said)
    known = emitter.module.globals.get(name)
    if known is None:
        data = report(said)
        value = ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data))
        known = emitter.global_constant(name, value)
        known.linkage = "internal"
        known.align = 1
    return known

"""LLVM code that writes a text of a message: `ferrule_write`, and the handlers of its operations.

`ptr ferrule_write(ptr context, ptr text, ptr array)` appends the text to a byte array and returns
the end of the text.  If the array has no memory, it only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages import here, values
from ferrule.compiler.messages.names import define_name
from ferrule.compiler.messages.reader import PART, SCRATCH, Reader, define_showing
from ferrule.compiler.messages.table import HANDLED, PARTS, PLAIN, RARE, Op, phrases
from ferrule.compiler.messages.texts import define_text, text_of
from ferrule.compiler.support.dispatch import define_table, handler_of, part_symbol
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, DLTENSOR, I8, I64, PTR

WRITE: Final = ir.FunctionType(PTR, [PTR, PTR, PTR])


def define_write(emitter: Emitter) -> None:
    """All functions of this module, without the handlers of `RARE` and the table of all."""
    define_name(emitter)
    define_showing(emitter)
    here.define_stride(emitter)
    _define_handlers(emitter, (op for op in HANDLED if op not in RARE))
    _define_write(emitter)


def define_rare_parts(emitter: Emitter) -> None:
    """The handlers of `RARE`, and their helpers."""
    define_text(emitter)
    _define_handlers(emitter, RARE)


def define_part_table(emitter: Emitter) -> None:
    """The table of all handlers."""
    symbols = {int(op): part_symbol(op) for op in HANDLED}
    numbers = range(min(HANDLED), max(HANDLED) + 1)
    define_table(emitter, PARTS, PART, [symbols.get(number) for number in numbers])


def _define_handlers(emitter: Emitter, ops: Iterable[Op]) -> None:
    for op in ops:
        symbol = part_symbol(op)
        with emitter.define(
            symbol, PART.return_type, PART.args, linkage="internal", attributes=COLD
        ) as handler:
            HANDLERS[op](Reader(emitter, *handler.args))


def _define_write(emitter: Emitter) -> None:
    with emitter.define(
        "ferrule_write",
        PTR,
        WRITE.args,
        names=("context", "text", "array"),
        linkage="internal",
        attributes=COLD,
    ) as function:
        _Writing(emitter, *function.args).run()


class _Writing:
    """`ferrule_write` under construction.

    `at` holds the place in the text, `behind` the return place from a phrase.
    """

    def __init__(
        self, emitter: Emitter, context: ir.Value, text: ir.Value, array: ir.Value
    ) -> None:
        self.emitter = emitter
        self.context = context
        self.array = array
        self.at = emitter.alloca(PTR, name="at")
        self.behind = emitter.alloca(PTR, name="behind")
        emitter.store(text, self.at)
        emitter.store(emitter.null(), self.behind)
        self.head = emitter.block("next")

    def run(self) -> None:
        emitter, build = self.emitter, self.emitter.builder
        scratch = emitter.alloca(I8, SCRATCH, name="scratch")
        emitter.branch(self.head)
        emitter.at(self.head)
        start = emitter.load(self.at, PTR)
        byte = emitter.load(start, I8)
        with emitter.if_then(_equal(emitter, byte, Op.END)):
            self._end()
        with emitter.if_then(build.icmp_unsigned(">=", byte, ir.Constant(I8, PLAIN))):
            self._plain(start)
        self._advance(start)
        operand = emitter.load(self.at, PTR)
        with emitter.if_then(_equal(emitter, byte, Op.LITERAL)):
            self._advance(operand)
            self._append(text_of(emitter, operand, emitter.const_i64(1)))
        number = build.sub(build.zext(emitter.load(operand, I8), I64), emitter.const_i64(1))
        with emitter.if_then(build.icmp_unsigned(">=", byte, ir.Constant(I8, int(Op.PHRASE)))):
            self._advance(operand)
            with emitter.if_then(_equal(emitter, byte, Op.PHRASE)):
                self._phrase(number)
        self._append(self._part(byte, [self.context, number, scratch]))

    def _advance(self, place: ir.Value) -> None:
        self.emitter.store(self.emitter.index(place, I8, 1), self.at)

    def _end(self) -> None:
        """Return from a phrase, or end the text."""
        emitter = self.emitter
        behind = emitter.load(self.behind, PTR)
        with emitter.if_then(emitter.is_null(behind)):
            emitter.ret(emitter.index(emitter.load(self.at, PTR), I8, 1))
        emitter.store(behind, self.at)
        emitter.store(emitter.null(), self.behind)
        emitter.branch(self.head)

    def _plain(self, start: ir.Value) -> None:
        """Write the bytes up to the next operation."""
        emitter, build = self.emitter, self.emitter.builder
        more = emitter.block("more")
        emitter.branch(more)
        emitter.at(more)
        self._advance(emitter.load(self.at, PTR))
        end = emitter.load(self.at, PTR)
        plain = build.icmp_unsigned(">=", emitter.load(end, I8), ir.Constant(I8, PLAIN))
        with emitter.if_then(plain):
            emitter.branch(more)
        size = build.sub(build.ptrtoint(end, I64), build.ptrtoint(start, I64))
        self._append(text_of(emitter, start, size))

    def _phrase(self, number: ir.Value) -> None:
        emitter, build = self.emitter, self.emitter.builder
        emitter.store(emitter.load(self.at, PTR), self.behind)
        words = b"".join(phrase + b"\0" for phrase in phrases())
        emitter.store(emitter.bytes_constant(words), self.at)
        with emitter.loop(number):
            skip = emitter.block("skip")
            emitter.branch(skip)
            emitter.at(skip)
            place = emitter.load(self.at, PTR)
            self._advance(place)
            with emitter.if_then(build.not_(_equal(emitter, emitter.load(place, I8), 0))):
                emitter.branch(skip)
        emitter.branch(self.head)

    def _part(self, op: ir.Value, arguments: list[ir.Value]) -> ir.Value:
        """The text from the handler of an operation."""
        emitter, build = self.emitter, self.emitter.builder
        number = build.sub(build.zext(op, I64), emitter.const_i64(int(min(HANDLED))))
        handler = handler_of(emitter, PARTS, number)
        return emitter.call_pointer(handler, PART, arguments)

    def _append(self, text: ir.Value) -> None:
        emitter, build = self.emitter, self.emitter.builder
        data, size = (build.extract_value(text, i) for i in (0, 1))
        room = emitter.load_field(self.array, BYTE_ARRAY, "data")
        used = emitter.load_field(self.array, BYTE_ARRAY, "size")
        with emitter.if_then(build.not_(emitter.is_null(room))):
            emitter.call("memcpy", [emitter.index(room, I8, used), data, size])
        emitter.store_field(self.array, BYTE_ARRAY, "size", build.add(used, size))
        emitter.branch(self.head)


def _equal(emitter: Emitter, byte: ir.Value, number: int) -> ir.Value:
    return emitter.builder.icmp_signed("==", byte, ir.Constant(I8, int(number)))


def _value(reader: Reader) -> None:
    reader.show_formatted("%lld", reader.slot())


def _num_args(reader: Reader) -> None:
    reader.show_formatted("%d", reader.context("num_args"))


def _type(reader: Reader) -> None:
    values.show_type(reader, reader.emitter.load_field(reader.any(), ANY, "type_index"))


def _dtype(reader: Reader) -> None:
    values.show_dtype(reader, reader.emitter.load_field(reader.tensor(), DLTENSOR, "dtype"))


def _device(reader: Reader) -> None:
    emitter, tensor = reader.emitter, reader.tensor()
    code = emitter.load_field(tensor, DLTENSOR, "device_type")
    values.show_device(reader, code, emitter.load_field(tensor, DLTENSOR, "device_id"))


HANDLERS: Final[Mapping[Op, Callable[[Reader], None]]] = MappingProxyType(
    {
        Op.VALUE: _value,
        Op.NUM_ARGS: _num_args,
        Op.SIGNATURE: here.signature,
        Op.TRACE: here.trace,
        Op.NAME: here.name,
        Op.SUFFIX: here.suffix,
        Op.INSIDE: here.inside,
        Op.ARGUMENT_NUMBER: here.argument_number,
        Op.ELEMENT: here.element,
        Op.EXPECTED: here.expected,
        Op.OWNER: here.owner,
        Op.UNSIGNED: here.unsigned,
        Op.HEXADECIMAL: here.hexadecimal,
        Op.TYPE: _type,
        Op.QUOTE: here.quote,
        Op.VALUE_HERE: here.value,
        Op.DTYPE: _dtype,
        Op.DEVICE: _device,
        Op.HINT: here.hint,
        Op.C_STRING: values.c_string,
        Op.GIVEN_BOOL: values.boolean,
        Op.GIVEN_FLOAT: values.floating,
        Op.GIVEN_DTYPE: values.dtype,
        Op.GIVEN_DEVICE: values.device,
        Op.GIVEN_BYTES: values.text,
        Op.GIVEN_TYPE: values.kind,
    }
)

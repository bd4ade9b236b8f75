"""Handlers of the values of a fault: see `parts.Given`, and the display of values."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.messages.names import DEVICES, DTYPES, TYPES, find_name
from ferrule.compiler.messages.reader import SCRATCH, TYPE_INFO, Reader
from ferrule.compiler.messages.texts import is_there
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR


def boolean(reader: Reader) -> None:
    """0 as False, anything else as True."""
    show_boolean(reader, reader.slot())


def floating(reader: Reader) -> None:
    """The bits of a float64."""
    place = reader.emitter.index(reader.values, I64, reader.arg)
    show_float(reader, reader.emitter.load(place, ir.DoubleType()), "%g")


def dtype(reader: Reader) -> None:
    """The 4 bytes of a dtype."""
    show_dtype(reader, reader.emitter.builder.trunc(reader.slot(), I32))


def device(reader: Reader) -> None:
    """The 8 bytes of a device: its type, then its number."""
    build, both = reader.emitter.builder, reader.slot()
    number = build.trunc(build.lshr(both, ir.Constant(I64, 32)), I32)
    show_device(reader, build.trunc(both, I32), number)


def kind(reader: Reader) -> None:
    """A type index."""
    show_type(reader, reader.emitter.builder.trunc(reader.slot(), I32))


def text(reader: Reader) -> None:
    """Bytes at an address; the next slot is their length."""
    emitter = reader.emitter
    behind = emitter.builder.add(reader.arg, emitter.const_i64(1))
    size = emitter.load(emitter.index(reader.values, I64, behind), I64)
    reader.show(emitter.builder.inttoptr(reader.slot(), PTR), size)


def c_string(reader: Reader) -> None:
    """See `parts.CString`."""
    emitter = reader.emitter
    address = emitter.builder.inttoptr(reader.slot(), PTR)
    with emitter.if_then(emitter.is_null(address)):
        reader.show_nothing()
    reader.show(address, emitter.call("strlen", [address]))


def show_boolean(reader: Reader, number: ir.Value) -> None:
    """End with True or False for an i64."""
    emitter, build = reader.emitter, reader.emitter.builder
    is_false = build.icmp_signed("==", number, emitter.const_i64(0))
    data = build.select(is_false, emitter.cstring("False"), emitter.cstring("True"))
    reader.show(data, build.select(is_false, emitter.const_i64(5), emitter.const_i64(4)))


def show_float(reader: Reader, number: ir.Value, form: str) -> None:
    """End with a double in C's format, with a point as the decimal separator in every locale."""
    emitter, build = reader.emitter, reader.emitter.builder
    room = emitter.const_i64(SCRATCH)
    size = emitter.call("snprintf", [reader.scratch, room, emitter.cstring(form), number])
    with emitter.loop(size) as i:
        at = emitter.index(reader.scratch, I8, build.sext(i, I64))
        is_comma = build.icmp_signed("==", emitter.load(at, I8), ir.Constant(I8, ord(",")))
        with emitter.if_then(is_comma):
            emitter.store(ir.Constant(I8, ord(".")), at)
    reader.show(reader.scratch, build.sext(size, I64))


def show_dtype(reader: Reader, bits: ir.Value) -> None:
    """End with the name of a dtype of 32 bits, or with its components if it has no name."""
    build = reader.emitter.builder
    reader.show_name(DTYPES, bits)
    code, width = (build.and_(build.lshr(bits, bits.type(by)), bits.type(255)) for by in (0, 8))
    lanes = build.lshr(bits, bits.type(16))
    reader.show_formatted("(code %d, bits %d, lanes %d)", code, width, lanes)


def show_device(reader: Reader, code: ir.Value, number: ir.Value) -> None:
    """End with a device such as `cuda:1`."""
    emitter, build = reader.emitter, reader.emitter.builder
    name = find_name(emitter, DEVICES, code)
    with emitter.if_then(is_there(emitter, name)):
        data, size = (build.extract_value(name, i) for i in (0, 1))
        reader.show_formatted("%.*s:%d", size, data, number)
    reader.show_formatted("(device type %d):%d", code, number)


def show_type(reader: Reader, index: ir.Value) -> None:
    """End with the name of a type index."""
    emitter = reader.emitter
    reader.show_name(TYPES, index)
    registered = emitter.const_i32(int(TypeIndex.OBJECT))
    with emitter.if_then(emitter.builder.icmp_signed(">=", index, registered)):
        info = emitter.call("TVMFFIGetTypeInfo", [index])
        data = emitter.load_field(info, TYPE_INFO, "type_key.data")
        reader.show(data, emitter.load_field(info, TYPE_INFO, "type_key.size"))
    reader.show_formatted("a value of type index %d", index)

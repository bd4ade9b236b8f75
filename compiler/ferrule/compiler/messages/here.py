"""Handlers of the parts that speak of where the checker is: see `context`."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.messages import given
from ferrule.compiler.messages.context import MAX_LOOPS, PROGRAM, Order, PlaceKind
from ferrule.compiler.messages.reader import SCRATCH, Reader
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I8, I32, I64


def _header_text(reader: Reader, name: str) -> None:
    emitter = reader.emitter
    offset = emitter.load_field(reader.context("program"), PROGRAM, name)
    reader.show_text(emitter.builder.zext(offset, I64))


def _context_text(reader: Reader, name: str) -> None:
    reader.show_text(reader.emitter.builder.zext(reader.context(name), I64))


def _equal(reader: Reader, value: ir.Value, number: int) -> ir.Value:
    return reader.emitter.builder.icmp_signed("==", value, ir.Constant(value.type, int(number)))


def _is_symbol(reader: Reader) -> ir.Value:
    """Whether words about the place speak of a symbol, and not of where it stands."""
    symbol = _equal(reader, reader.context("place"), PlaceKind.SYMBOL)
    return reader.emitter.builder.and_(symbol, _equal(reader, reader.arg, 0))


def signature(reader: Reader) -> None:
    """See `parts.Signature`."""
    _header_text(reader, "signature")


def trace(reader: Reader) -> None:
    """See `parts.Trace`."""
    _header_text(reader, "trace")


def name(reader: Reader) -> None:
    """See `parts.Name`."""
    emitter = reader.emitter
    with emitter.if_then(_is_symbol(reader)):
        _context_text(reader, "owner")
    whole = _equal(reader, reader.path("count"), 0)
    with emitter.if_then(emitter.builder.and_(whole, _equal(reader, reader.arg, 1))):
        reader.show_nothing()
    reader.show_text(reader.path("name"))


def suffix(reader: Reader) -> None:
    """See `parts.Suffix`.  The text of a suffix is a format for the running indices."""
    emitter, build, offset = reader.emitter, reader.emitter.builder, reader.path("suffix")
    absent = build.or_(_is_symbol(reader), _equal(reader, offset, 0))
    with emitter.if_then(absent):
        reader.show_nothing()
    form = emitter.index(reader.context("program"), I8, build.add(offset, emitter.const_i64(4)))
    indices = [reader.context(f"index{level}") for level in range(MAX_LOOPS)]
    room = emitter.const_i64(SCRATCH)
    size = emitter.call("snprintf", [reader.scratch, room, form, *indices])
    size, limit = build.sext(size, I64), emitter.const_i64(SCRATCH - 1)
    reader.show(reader.scratch, build.select(build.icmp_signed("<", size, limit), size, limit))


def inside(reader: Reader) -> None:
    """See `parts.Inside`."""
    emitter, words = reader.emitter, " in "
    with emitter.if_then(_equal(reader, reader.path("count"), 0)):
        reader.show_nothing()
    reader.show(emitter.cstring(words), emitter.const_i64(len(words)))


def argument_number(reader: Reader) -> None:
    """See `parts.ArgumentNumber`."""
    reader.show_formatted("%lld", reader.path("argument"))


def element(reader: Reader) -> None:
    """See `parts.Element`."""
    place = reader.context("place")
    forms = {
        PlaceKind.SHAPE: ".shape[%d]",
        PlaceKind.STRIDES: ".strides[%d]",
        PlaceKind.DIMS: "[%d]",
    }
    for kind, form in forms.items():
        with reader.emitter.if_then(_equal(reader, place, kind)):
            reader.show_formatted(form, reader.context("axis"))
    reader.show_nothing()


def expected(reader: Reader) -> None:
    """See `parts.Expected`."""
    _context_text(reader, "expected")


def owner(reader: Reader) -> None:
    """See `parts.Owner`."""
    _context_text(reader, "owner")


def unsigned(reader: Reader) -> None:
    """See `parts.Unsigned`."""
    reader.show_formatted("%llu", reader.slot())


def hexadecimal(reader: Reader) -> None:
    """See `parts.Hexadecimal`."""
    reader.show_formatted("0x%llx", reader.slot())


def _has_text(reader: Reader) -> ir.Value:
    return reader.emitter.call(reader.text, [reader.context("any"), reader.out])


def quote(reader: Reader) -> None:
    """The quotation mark around a text, and around nothing else."""
    emitter = reader.emitter
    with emitter.if_then(_has_text(reader)):
        reader.show(emitter.cstring("'"), emitter.const_i64(1))
    reader.show_nothing()


def value(reader: Reader) -> None:
    """See `parts.ValueHere`."""
    emitter, any_value = reader.emitter, reader.context("any")
    with emitter.if_then(_has_text(reader)):
        emitter.ret()
    index = emitter.load_field(any_value, ANY, "type_index")
    number = emitter.load_field(any_value, ANY, "v_int64")
    with emitter.if_then(_equal(reader, index, TypeIndex.FLOAT)):
        given.show_float(reader, emitter.load_field(any_value, ANY, "v_float64"), "%.17g")
    with emitter.if_then(_equal(reader, index, TypeIndex.BOOL)):
        given.show_boolean(reader, number)
    reader.show_formatted("%lld", number)


def hint(reader: Reader) -> None:
    """See `parts.HintHere`."""
    emitter, build = reader.emitter, reader.emitter.builder
    order = reader.context("order")
    shown = build.and_(
        _equal(reader, reader.context("place"), PlaceKind.STRIDES),
        build.not_(_equal(reader, order, Order.NONE)),
    )
    with emitter.if_then(shown):
        tensor = reader.context("tensor")
        last = build.sub(emitter.load_field(tensor, DLTENSOR, "ndim"), emitter.const_i32(1))
        rows = _equal(reader, order, Order.ROW_MAJOR)
        fastest = build.select(rows, last, ir.Constant(I32, 0))
        stride = emitter.call(reader.stride, [tensor, fastest])
        with emitter.if_then(_equal(reader, stride, 1)):
            _context_text(reader, "hint")
    reader.show_nothing()

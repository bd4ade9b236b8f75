"""Handlers of the parts about the checker's current place: see `context`."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.messages import values
from ferrule.compiler.messages.context import MAX_LOOPS, PROGRAM, Order, PlaceKind
from ferrule.compiler.messages.reader import SCRATCH, Reader
from ferrule.compiler.messages.texts import find_text, is_there
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I8, I32, I64, PTR

STRIDE: Final = ir.FunctionType(I64, [PTR, I32])


def _header_text(reader: Reader, name: str) -> None:
    emitter = reader.emitter
    offset = emitter.load_field(reader.context("program"), PROGRAM, name)
    reader.show_text(emitter.builder.zext(offset, I64))


def _context_text(reader: Reader, name: str) -> None:
    reader.show_text(reader.emitter.builder.zext(reader.context(name), I64))


def _equal(reader: Reader, value: ir.Value, number: int) -> ir.Value:
    return reader.emitter.builder.icmp_signed("==", value, ir.Constant(value.type, int(number)))


def _is_symbol(reader: Reader) -> ir.Value:
    """Whether the words about the place describe a symbol instead of its position."""
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
    first = reader.context("indices")
    indices = [emitter.load(emitter.index(first, I64, level), I64) for level in range(MAX_LOOPS)]
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
    emitter, words = reader.emitter, "the result"
    flag = emitter.load_field(reader.context("program"), PROGRAM, "is_result")
    with emitter.if_then(_equal(reader, flag, 1)):
        reader.show(emitter.cstring(words), emitter.const_i64(len(words)))
    reader.show_formatted("argument #%lld", reader.path("argument"))


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


def quote(reader: Reader) -> None:
    """The quotation mark around a text; nothing for other values."""
    emitter = reader.emitter
    with emitter.if_then(is_there(emitter, find_text(emitter, reader.any()))):
        reader.show(emitter.cstring("'"), emitter.const_i64(1))
    reader.show_nothing()


def value(reader: Reader) -> None:
    """See `parts.ValueHere`."""
    emitter, any_value = reader.emitter, reader.any()
    reader.show_found(find_text(emitter, any_value))
    index = emitter.load_field(any_value, ANY, "type_index")
    number = emitter.load_field(any_value, ANY, "v_int64")
    with emitter.if_then(_equal(reader, index, TypeIndex.FLOAT)):
        values.show_float(reader, emitter.load_field(any_value, ANY, "v_float64"), "%.17g")
    with emitter.if_then(_equal(reader, index, TypeIndex.BOOL)):
        values.show_boolean(reader, number)
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
        stride = emitter.call(emitter.symbol("ferrule_stride", STRIDE), [tensor, fastest])
        with emitter.if_then(_equal(reader, stride, 1)):
            _context_text(reader, "hint")
    reader.show_nothing()


def define_stride(emitter: Emitter) -> None:
    """`i64 ferrule_stride(ptr tensor, i32 axis)`: a stride, computed if the tensor has none."""
    names = ("tensor", "axis")
    with emitter.define(
        "ferrule_stride", I64, STRIDE.args, names=names, attributes=COLD
    ) as function:
        tensor, axis = function.args
        build = emitter.builder
        strides = emitter.load_field(tensor, DLTENSOR, "strides")
        with emitter.if_then(build.icmp_unsigned("!=", strides, emitter.null())):
            place = emitter.index(strides, I64, build.sext(axis, I64))
            emitter.ret(emitter.load(place, I64))
        shape = emitter.load_field(tensor, DLTENSOR, "shape")
        product = emitter.alloca(I64, name="product")
        emitter.store(emitter.const_i64(1), product)
        behind = build.add(axis, emitter.const_i32(1))
        count = build.sub(emitter.load_field(tensor, DLTENSOR, "ndim"), behind)
        with emitter.loop(count) as i:
            place = emitter.index(shape, I64, build.sext(build.add(behind, i), I64))
            emitter.store(build.mul(emitter.load(product, I64), emitter.load(place, I64)), product)
        emitter.ret(emitter.load(product, I64))

"""LLVM code that reads one segment of a table of messages: the text that it shows.

`void ferrule_part(ptr table, i32 segment, ptr args, i32 num_args, ptr values, ptr scratch,
ptr out)` sets `out`, a byte array, to text in the table or in `scratch` (`SCRATCH` bytes).  Every
operation of `table.Op` has one handler, which ends the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages import given, here
from ferrule.compiler.messages.names import Group, define_name
from ferrule.compiler.messages.reader import (
    HEADER_LAYOUT,
    PART_ARGUMENTS,
    SEGMENT_LAYOUT,
    TYPE_INFO,
    Reader,
)
from ferrule.compiler.messages.table import Op
from ferrule.compiler.messages.texts import define_text
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I8, I32, I64, PTR, VOID


def define_part(emitter: Emitter) -> ir.Function:
    """See the module."""
    helpers = define_name(emitter), _define_stride(emitter), define_text(emitter)
    names = ("table", "segment", "args", "num_args", "values", "scratch", "out")
    with emitter.define(
        "ferrule_part", VOID, PART_ARGUMENTS, names=names, attributes=COLD
    ) as function:
        table, number = function.args[:2]
        header = emitter.load_field(table, HEADER_LAYOUT, "segments")
        segments = emitter.index(table, I8, emitter.builder.zext(header, I64))
        entry = emitter.index(segments, SEGMENT_LAYOUT, emitter.builder.zext(number, I64))
        op, arg, offset = (
            emitter.load_field(entry, SEGMENT_LAYOUT, name) for name in ("op", "arg", "offset")
        )
        arg = emitter.builder.zext(arg, I64)
        _dispatch(Reader(emitter, function, *helpers, arg, offset), op)
    return function


def _dispatch(reader: Reader, op: ir.Value) -> None:
    emitter = reader.emitter
    blocks = {each: emitter.block(each.name.lower()) for each in Op}
    switch = emitter.builder.switch(op, blocks[Op.TEXT])
    for each, block in blocks.items():
        if each is not Op.TEXT:
            switch.add_case(ir.Constant(I8, int(each)), block)
        emitter.at(block)
        HANDLERS[each](reader)


def _define_stride(emitter: Emitter) -> ir.Function:
    """`i64 ferrule_stride(ptr tensor, i32 axis)`: a stride, computed where none are given."""
    names = ("tensor", "axis")
    with emitter.define(
        "ferrule_stride", I64, [PTR, I32], names=names, attributes=COLD
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
    return function


def _text(reader: Reader) -> None:
    emitter, table = reader.emitter, reader.function.args[0]
    texts = emitter.load_field(table, HEADER_LAYOUT, "texts")
    at = emitter.builder.add(texts, reader.offset)
    reader.show(emitter.index(table, I8, emitter.builder.zext(at, I64)), reader.arg)


def _value(reader: Reader) -> None:
    reader.show_formatted("%lld", reader.slot())


def _c_string(reader: Reader) -> None:
    emitter = reader.emitter
    text = emitter.builder.inttoptr(reader.slot(), PTR)
    with emitter.if_then(emitter.is_null(text)):
        reader.show_nothing()
    reader.show(text, emitter.call("strlen", [text]))


def _num_args(reader: Reader) -> None:
    reader.show_formatted("%d", reader.function.args[3])


def _type(reader: Reader) -> None:
    emitter = reader.emitter
    index = emitter.load_field(reader.any(), ANY, "type_index")
    with emitter.if_then(reader.find(Group.TYPE, index)):
        emitter.ret()
    registered = emitter.const_i32(int(TypeIndex.OBJECT))
    with emitter.if_then(emitter.builder.icmp_signed(">=", index, registered)):
        info = emitter.call("TVMFFIGetTypeInfo", [index])
        data = emitter.load_field(info, TYPE_INFO, "type_key.data")
        reader.show(data, emitter.load_field(info, TYPE_INFO, "type_key.size"))
    reader.show_formatted("a value of type index %d", index)


def _dtype(reader: Reader) -> None:
    given.show_dtype(reader, reader.emitter.load_field(reader.tensor(), DLTENSOR, "dtype"))


def _device(reader: Reader) -> None:
    emitter, tensor = reader.emitter, reader.tensor()
    kind = emitter.load_field(tensor, DLTENSOR, "device_type")
    given.show_device(reader, kind, emitter.load_field(tensor, DLTENSOR, "device_id"))


HANDLERS: Final[Mapping[Op, Callable[[Reader], None]]] = MappingProxyType(
    {
        Op.TEXT: _text,
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
        Op.C_STRING: _c_string,
        Op.GIVEN_BOOL: given.boolean,
        Op.GIVEN_FLOAT: given.floating,
        Op.GIVEN_DTYPE: given.dtype,
        Op.GIVEN_DEVICE: given.device,
        Op.GIVEN_BYTES: given.text,
    }
)

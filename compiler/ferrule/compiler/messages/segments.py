"""LLVM code that reads one segment of a table of messages: the text that it shows.

`void ferrule_part(ptr table, i32 segment, ptr args, i32 num_args, ptr values, ptr scratch,
ptr out)` sets `out`, a byte array, to text in the table or in `scratch` (`SCRATCH` bytes).  Every
operation of `table.Op` has one handler, which ends the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.names import Group, define_name, name_key
from ferrule.compiler.messages.table import ROW, SEGMENT, Op
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    DLTENSOR,
    I8,
    I16,
    I32,
    I64,
    PTR,
    TENSOR_OBJECT,
    VOID,
    Field,
    Layout,
)

SCRATCH = 96

HEADER_LAYOUT = Layout("Header", [Field("segments", I32), Field("texts", I32)])
ROW_LAYOUT = Layout("Row", [Field(name, I32) for name in ("first", "count", "kind", "trace")])
SEGMENT_LAYOUT = Layout(
    "Segment", [Field("op", I8), Field("axis", I8), Field("arg", I16), Field("offset", I32)]
)
TYPE_INFO = Layout(
    "TVMFFITypeInfo",
    [Field("type_index", I32), Field("type_depth", I32), Field("type_key", BYTE_ARRAY)],
)
assert (ROW_LAYOUT.size, SEGMENT_LAYOUT.size) == (ROW.size, SEGMENT.size)

PART_ARGUMENTS: Final = (PTR, I32, PTR, I32, PTR, PTR, PTR)


@dataclass(frozen=True, slots=True)
class _Reader:
    """The segment under the reader, and what it can be read from."""

    emitter: Emitter
    function: ir.Function
    find_name: ir.Function
    stride: ir.Function
    axis: ir.Value
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

    def any(self) -> ir.Value:
        """The address of the argument."""
        return self.emitter.index(self.function.args[2], ANY, self.arg)

    def tensor(self) -> ir.Value:
        """The DLTensor of the argument."""
        emitter, any_value = self.emitter, self.any()
        payload = emitter.load_field(any_value, ANY, "v_ptr")
        index = emitter.load_field(any_value, ANY, "type_index")
        is_object = emitter.builder.icmp_signed(
            "==", index, emitter.const_i32(int(TypeIndex.TENSOR))
        )
        inside = emitter.field_ptr(payload, TENSOR_OBJECT, "dl")
        return emitter.builder.select(is_object, inside, payload, name="tensor")

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

    def show_segment(self, number: ir.Value) -> None:
        """End with what another segment shows."""
        table, _, *rest = self.function.args
        self.emitter.call(self.function, [table, number, *rest])
        self.emitter.ret()


def define_part(emitter: Emitter) -> ir.Function:
    """See the module."""
    helpers = define_name(emitter), _define_stride(emitter)
    names = ("table", "segment", "args", "num_args", "values", "scratch", "out")
    with emitter.define(
        "ferrule_part", VOID, PART_ARGUMENTS, names=names, attributes=COLD
    ) as function:
        table, number = function.args[:2]
        header = emitter.load_field(table, HEADER_LAYOUT, "segments")
        segments = emitter.index(table, I8, emitter.builder.zext(header, I64))
        entry = emitter.index(segments, SEGMENT_LAYOUT, emitter.builder.zext(number, I64))
        op, axis, arg, offset = (
            emitter.load_field(entry, SEGMENT_LAYOUT, name)
            for name in ("op", "axis", "arg", "offset")
        )
        axis, arg = emitter.builder.zext(axis, I32), emitter.builder.zext(arg, I64)
        _dispatch(_Reader(emitter, function, *helpers, axis, arg, offset), op)
    return function


def _dispatch(reader: _Reader, op: ir.Value) -> None:
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


def _text(reader: _Reader) -> None:
    emitter, table = reader.emitter, reader.function.args[0]
    texts = emitter.load_field(table, HEADER_LAYOUT, "texts")
    at = emitter.builder.add(texts, reader.offset)
    reader.show(emitter.index(table, I8, emitter.builder.zext(at, I64)), reader.arg)


def _value(reader: _Reader) -> None:
    reader.show_formatted("%lld", reader.slot())


def _num_args(reader: _Reader) -> None:
    reader.show_formatted("%d", reader.function.args[3])


def _int(reader: _Reader) -> None:
    reader.show_formatted("%lld", reader.emitter.load_field(reader.any(), ANY, "v_int64"))


def _type(reader: _Reader) -> None:
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


def _ndim(reader: _Reader) -> None:
    reader.show_formatted("%d", reader.emitter.load_field(reader.tensor(), DLTENSOR, "ndim"))


def _dtype(reader: _Reader) -> None:
    emitter, build, tensor = reader.emitter, reader.emitter.builder, reader.tensor()
    with emitter.if_then(reader.find(Group.DTYPE, emitter.load_field(tensor, DLTENSOR, "dtype"))):
        emitter.ret()
    code, bits, lanes = (
        build.zext(emitter.load_field(tensor, DLTENSOR, f"dtype_{name}"), I32)
        for name in ("code", "bits", "lanes")
    )
    reader.show_formatted("(code %d, bits %d, lanes %d)", code, bits, lanes)


def _device(reader: _Reader) -> None:
    emitter, tensor = reader.emitter, reader.tensor()
    kind = emitter.load_field(tensor, DLTENSOR, "device_type")
    number = emitter.load_field(tensor, DLTENSOR, "device_id")
    with emitter.if_then(reader.find(Group.DEVICE, kind)):
        size = emitter.load_field(reader.out, BYTE_ARRAY, "size")
        data = emitter.load_field(reader.out, BYTE_ARRAY, "data")
        reader.show_formatted("%.*s:%d", emitter.builder.trunc(size, I32), data, number)
    reader.show_formatted("(device type %d):%d", kind, number)


def _size(reader: _Reader) -> None:
    emitter = reader.emitter
    shape = emitter.load_field(reader.tensor(), DLTENSOR, "shape")
    place = emitter.index(shape, I64, emitter.builder.zext(reader.axis, I64))
    reader.show_formatted("%lld", emitter.load(place, I64))


def _stride(reader: _Reader) -> None:
    stride = reader.emitter.call(reader.stride, [reader.tensor(), reader.axis])
    reader.show_formatted("%lld", stride)


def _address(reader: _Reader) -> None:
    emitter, tensor = reader.emitter, reader.tensor()
    data = emitter.builder.ptrtoint(emitter.load_field(tensor, DLTENSOR, "data"), I64)
    offset = emitter.load_field(tensor, DLTENSOR, "byte_offset")
    reader.show_formatted("0x%llx", emitter.builder.add(data, offset))


def _one_of(reader: _Reader) -> None:
    build = reader.emitter.builder
    reader.show_segment(build.add(reader.offset, build.trunc(reader.slot(), I32)))


def _hint_row_major(reader: _Reader) -> None:
    emitter, tensor = reader.emitter, reader.tensor()
    ndim = emitter.load_field(tensor, DLTENSOR, "ndim")
    _hint(reader, tensor, emitter.builder.sub(ndim, emitter.const_i32(1)))


def _hint_column_major(reader: _Reader) -> None:
    _hint(reader, reader.tensor(), reader.emitter.const_i32(0))


def _hint(reader: _Reader, tensor: ir.Value, fastest: ir.Value) -> None:
    """Show the words where the dim that varies fastest in that order has stride 1."""
    emitter = reader.emitter
    stride = emitter.call(reader.stride, [tensor, fastest])
    one = emitter.const_i64(1)
    with emitter.if_then(emitter.builder.icmp_signed("==", stride, one)):
        reader.show_segment(reader.offset)
    reader.show(emitter.null(), emitter.const_i64(0))


HANDLERS: Final[Mapping[Op, Callable[[_Reader], None]]] = MappingProxyType(
    {
        Op.TEXT: _text,
        Op.VALUE: _value,
        Op.NUM_ARGS: _num_args,
        Op.INT: _int,
        Op.TYPE: _type,
        Op.NDIM: _ndim,
        Op.DTYPE: _dtype,
        Op.DEVICE: _device,
        Op.SIZE: _size,
        Op.STRIDE: _stride,
        Op.ADDRESS: _address,
        Op.ONE_OF: _one_of,
        Op.HINT_ROW_MAJOR: _hint_row_major,
        Op.HINT_COLUMN_MAJOR: _hint_column_major,
    }
)

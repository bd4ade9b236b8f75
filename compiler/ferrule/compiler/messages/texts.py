"""LLVM code that finds the bytes of a string or bytes value, and the type of such results."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I1, I32, I64, OBJECT, PTR, Field, Layout

TEXT: Final = ir.LiteralStructType([PTR, I64])
"""Address and length, in two registers."""
ABSENT: Final = ir.Constant(TEXT, [ir.Constant(PTR, None), ir.Constant(I64, -1)])
"""There is no text."""
FIND: Final = ir.FunctionType(TEXT, [PTR])
TEXT_OBJECT: Final = Layout("BytesObj", [Field("header", OBJECT), Field("bytes", BYTE_ARRAY)])

_SMALL: Final = (TypeIndex.SMALL_STR, TypeIndex.SMALL_BYTES)
_HEAP: Final = (TypeIndex.STR, TypeIndex.BYTES)


def text_of(emitter: Emitter, data: ir.Value, size: ir.Value) -> ir.Value:
    """The text of this length at an address."""
    build = emitter.builder
    return build.insert_value(build.insert_value(ir.Constant(TEXT, ir.Undefined), data, 0), size, 1)


def is_there(emitter: Emitter, text: ir.Value) -> ir.Value:
    """Whether there is a text."""
    size = emitter.builder.extract_value(text, 1)
    return emitter.builder.icmp_signed(">=", size, emitter.const_i64(0))


def find_text(emitter: Emitter, any_value: ir.Value) -> ir.Value:
    """The bytes of a string or bytes value; `ABSENT` for others and for null pointers."""
    return emitter.call(emitter.symbol("ferrule_text", FIND), [any_value])


def define_text(emitter: Emitter) -> None:
    """`{ptr, i64} ferrule_text(ptr any)`: see `find_text`."""
    with emitter.define(
        "ferrule_text", TEXT, FIND.args, names=("any",), attributes=COLD
    ) as function:
        (any_value,) = function.args
        index = emitter.load_field(any_value, ANY, "type_index")
        with emitter.if_then(_is_one_of(emitter, index, _SMALL)):
            size = emitter.load_field(any_value, ANY, "small_str_len")
            limit = emitter.const_i32(7)
            few = emitter.builder.icmp_unsigned("<", size, limit)
            size = emitter.builder.zext(emitter.builder.select(few, size, limit), I64)
            inside = emitter.field_ptr(any_value, ANY, "v_bytes")
            emitter.ret(text_of(emitter, inside, size))
        payload = emitter.load_field(any_value, ANY, "v_ptr")
        with emitter.if_then(emitter.is_null(payload)):
            emitter.ret(ABSENT)
        with emitter.if_then(_is_one_of(emitter, index, (TypeIndex.RAW_STR,))):
            emitter.ret(text_of(emitter, payload, emitter.call("strlen", [payload])))
        with emitter.if_then(_is_one_of(emitter, index, _HEAP)):
            emitter.ret(_copy(emitter, emitter.field_ptr(payload, TEXT_OBJECT, "bytes")))
        with emitter.if_then(_is_one_of(emitter, index, (TypeIndex.BYTE_ARRAY_PTR,))):
            emitter.ret(_copy(emitter, payload))
        emitter.ret(ABSENT)


def _is_one_of(emitter: Emitter, index: ir.Value, kinds: tuple[TypeIndex, ...]) -> ir.Value:
    found: ir.Value = ir.Constant(I1, 0)
    for kind in kinds:
        same = emitter.builder.icmp_signed("==", index, ir.Constant(I32, int(kind)))
        found = emitter.builder.or_(found, same)
    return found


def _copy(emitter: Emitter, given: ir.Value) -> ir.Value:
    data = emitter.load_field(given, BYTE_ARRAY, "data")
    return text_of(emitter, data, emitter.load_field(given, BYTE_ARRAY, "size"))

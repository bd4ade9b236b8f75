"""LLVM code that finds the bytes of a string or bytes value."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I1, I32, I64, OBJECT, PTR, Field, Layout

TEXT_OBJECT: Final = Layout("BytesObj", [Field("header", OBJECT), Field("bytes", BYTE_ARRAY)])

_SMALL: Final = (TypeIndex.SMALL_STR, TypeIndex.SMALL_BYTES)
_HEAP: Final = (TypeIndex.STR, TypeIndex.BYTES)


def define_text(emitter: Emitter) -> ir.Function:
    """`i1 ferrule_text(ptr any, ptr out)`: put the bytes in a byte array.

    0 where the value is no string or bytes, or one that is a null pointer.
    """
    names = ("any", "out")
    with emitter.define("ferrule_text", I1, [PTR, PTR], names=names, attributes=COLD) as function:
        any_value, out = function.args
        index = emitter.load_field(any_value, ANY, "type_index")
        with emitter.if_then(_is_one_of(emitter, index, _SMALL)):
            size = emitter.load_field(any_value, ANY, "small_str_len")
            limit = emitter.const_i32(7)
            few = emitter.builder.icmp_unsigned("<", size, limit)
            size = emitter.builder.zext(emitter.builder.select(few, size, limit), I64)
            _answer(emitter, out, emitter.field_ptr(any_value, ANY, "v_bytes"), size)
        payload = emitter.load_field(any_value, ANY, "v_ptr")
        with emitter.if_then(emitter.is_null(payload)):
            emitter.ret(ir.Constant(I1, 0))
        with emitter.if_then(_is_one_of(emitter, index, (TypeIndex.RAW_STR,))):
            _answer(emitter, out, payload, emitter.call("strlen", [payload]))
        with emitter.if_then(_is_one_of(emitter, index, _HEAP)):
            _copy(emitter, out, emitter.field_ptr(payload, TEXT_OBJECT, "bytes"))
        with emitter.if_then(_is_one_of(emitter, index, (TypeIndex.BYTE_ARRAY_PTR,))):
            _copy(emitter, out, payload)
        emitter.ret(ir.Constant(I1, 0))
    return function


def _is_one_of(emitter: Emitter, index: ir.Value, kinds: tuple[TypeIndex, ...]) -> ir.Value:
    found: ir.Value = ir.Constant(I1, 0)
    for kind in kinds:
        same = emitter.builder.icmp_signed("==", index, ir.Constant(I32, int(kind)))
        found = emitter.builder.or_(found, same)
    return found


def _copy(emitter: Emitter, out: ir.Value, given: ir.Value) -> None:
    data = emitter.load_field(given, BYTE_ARRAY, "data")
    _answer(emitter, out, data, emitter.load_field(given, BYTE_ARRAY, "size"))


def _answer(emitter: Emitter, out: ir.Value, data: ir.Value, size: ir.Value) -> None:
    emitter.store_field(out, BYTE_ARRAY, "data", data)
    emitter.store_field(out, BYTE_ARRAY, "size", size)
    emitter.ret(ir.Constant(I1, 1))

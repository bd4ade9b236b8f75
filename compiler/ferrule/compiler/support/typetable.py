"""Support code that finds fields and methods by name in tvm-ffi's table of types.

The structs are those of tvm-ffi's C header; they have been the same since version 0.1.0, and a test
pins them.  The functions are internal to the module that defines them.

* `ptr ferrule_type_of(ptr key)`: the TVMFFITypeInfo of a type key, null if there is none.
* `ptr ferrule_find_field(ptr info, ptr name)`, `ptr ferrule_find_method(ptr info, ptr name)`: the
  TVMFFIFieldInfo or TVMFFIMethodInfo of a type or its ancestors, null if there is none; the most
  derived type is searched first.
* `ptr ferrule_init_of(ptr info, ptr name)`: the function that makes objects of a type, if it is an
  attribute of the type; null for another name, and if the type has none.

Keys and names are NUL-terminated.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I32, I64, PTR, Field, Layout

FIELD_INFO: Final = Layout(
    "TVMFFIFieldInfo",
    [
        Field("name", BYTE_ARRAY),
        Field("doc", BYTE_ARRAY),
        Field("metadata", BYTE_ARRAY),
        Field("flags", I64),
        Field("size", I64),
        Field("alignment", I64),
        Field("offset", I64),
        Field("getter", PTR),
        Field("setter", PTR),
        Field("default_value_or_factory", ANY),
        Field("field_static_type_index", I32),
    ],
)
METHOD_INFO: Final = Layout(
    "TVMFFIMethodInfo",
    [
        Field("name", BYTE_ARRAY),
        Field("doc", BYTE_ARRAY),
        Field("metadata", BYTE_ARRAY),
        Field("flags", I64),
        Field("method", ANY),
    ],
)
TYPE_INFO: Final = Layout(
    "TVMFFITypeInfo",
    [
        Field("type_index", I32),
        Field("type_depth", I32),
        Field("type_key", BYTE_ARRAY),
        Field("type_ancestors", PTR),
        Field("type_key_hash", I64),
        Field("num_fields", I32),
        Field("num_methods", I32),
        Field("fields", PTR),
        Field("methods", PTR),
        Field("metadata", PTR),
    ],
)
TYPE_ATTR_COLUMN: Final = Layout(
    # Before version 0.1.11 the size is an i64: `begin_index` is its upper half there, which is 0.
    "TVMFFITypeAttrColumn",
    [Field("data", PTR), Field("size", I32), Field("begin_index", I32)],
)
INIT: Final = "__ffi_init__"
"""The name of the method that makes an object, or of the type attribute."""

_TYPE_OF: Final = ir.FunctionType(PTR, [PTR])
_FIND: Final = ir.FunctionType(PTR, [PTR, PTR])
_INIT_OF: Final = ir.FunctionType(PTR, [PTR, PTR])


def define_type_table(emitter: Emitter) -> None:
    """All functions of the module."""
    _define_type_of(emitter)
    _define_find(emitter, "field", FIELD_INFO)
    _define_find(emitter, "method", METHOD_INFO)
    _define_init(emitter)


def type_of(emitter: Emitter, key: ir.Value) -> ir.Value:
    """A call of `ferrule_type_of`."""
    return emitter.call(emitter.symbol("ferrule_type_of", _TYPE_OF), [key], "info")


def find_field(emitter: Emitter, info: ir.Value, name: ir.Value) -> ir.Value:
    """A call of `ferrule_find_field`."""
    return emitter.call(emitter.symbol("ferrule_find_field", _FIND), [info, name], "field")


def find_method(emitter: Emitter, info: ir.Value, name: ir.Value) -> ir.Value:
    """A call of `ferrule_find_method`."""
    return emitter.call(emitter.symbol("ferrule_find_method", _FIND), [info, name], "method")


def init_of(emitter: Emitter, info: ir.Value, name: ir.Value) -> ir.Value:
    """A call of `ferrule_init_of`."""
    return emitter.call(emitter.symbol("ferrule_init_of", _INIT_OF), [info, name], "init")


def _define_type_of(emitter: Emitter) -> None:
    with emitter.define(
        "ferrule_type_of", PTR, [PTR], names=("key",), linkage="internal", attributes=COLD
    ) as function:
        (key,) = function.args
        index = emitter.alloca(I32, name="index")
        arguments = [_byte_array(emitter, key), index]
        status = emitter.call("TVMFFITypeKeyToIndex", arguments)
        with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0))):
            _forget_error(emitter)
            emitter.ret(emitter.null())
        emitter.ret(emitter.call("TVMFFIGetTypeInfo", [emitter.load(index, I32)]))


def _byte_array(emitter: Emitter, text: ir.Value) -> ir.Value:
    array = emitter.alloca(BYTE_ARRAY, name="text")
    emitter.store_field(array, BYTE_ARRAY, "data", text)
    emitter.store_field(array, BYTE_ARRAY, "size", emitter.call("strlen", [text]))
    return array


def _forget_error(emitter: Emitter) -> None:
    """Discard the error that tvm-ffi set, to set one of ours."""
    handle = emitter.alloca(PTR, name="error")
    emitter.store(emitter.null(), handle)
    emitter.call("TVMFFIErrorMoveFromRaised", [handle])
    error = emitter.load(handle, PTR)
    with emitter.if_then(emitter.not_(emitter.is_null(error))):
        emitter.call("TVMFFIObjectDecRef", [error])


def _define_find(emitter: Emitter, kind: str, layout: Layout) -> None:
    with emitter.define(
        f"ferrule_find_{kind}",
        PTR,
        _FIND.args,
        names=("info", "name"),
        linkage="internal",
        attributes=COLD,
    ) as function:
        info, name = function.args
        build, size = emitter.builder, emitter.call("strlen", [name])
        ancestors = emitter.load_field(info, TYPE_INFO, "type_ancestors")
        depth = build.sext(emitter.load_field(info, TYPE_INFO, "type_depth"), I64)
        current = emitter.alloca(PTR, name="type")
        emitter.store(info, current)
        with emitter.loop(build.add(depth, emitter.const_i64(1)), name="up") as up:
            with emitter.if_then(emitter.icmp("ne", up, emitter.const_i64(0))):
                above = emitter.index(ancestors, PTR, build.sub(depth, up))
                emitter.store(emitter.load(above, PTR), current)
            here = emitter.load(current, PTR)
            rows = emitter.load_field(here, TYPE_INFO, f"{kind}s")
            count = build.sext(emitter.load_field(here, TYPE_INFO, f"num_{kind}s"), I64)
            with emitter.loop(count, name="row") as i:
                _end_if_named(emitter, emitter.index(rows, layout, i), layout, name, size)
        emitter.ret(emitter.null())


def _end_if_named(
    emitter: Emitter, row: ir.Value, layout: Layout, name: ir.Value, size: ir.Value
) -> None:
    same = emitter.icmp("eq", emitter.load_field(row, layout, "name.size"), size)
    with emitter.if_then(same):
        data = emitter.load_field(row, layout, "name.data")
        differs = emitter.call("memcmp", [data, name, size])
        with emitter.if_then(emitter.icmp("eq", differs, emitter.const_i32(0))):
            emitter.ret(row)


def _define_init(emitter: Emitter) -> None:
    with emitter.define(
        "ferrule_init_of", PTR, [PTR, PTR], names=("info", "name"), linkage="internal"
    ) as function:
        info, name = function.args
        build, init = emitter.builder, emitter.cstring(INIT)
        size = emitter.const_i64(len(INIT))
        with emitter.if_then(emitter.icmp("ne", emitter.call("strlen", [name]), size)):
            emitter.ret(emitter.null())
        differs = emitter.call("memcmp", [name, init, size])
        with emitter.if_then(emitter.icmp("ne", differs, emitter.const_i32(0))):
            emitter.ret(emitter.null())
        column = emitter.call("TVMFFIGetTypeAttrColumn", [emitter.byte_array(INIT)])
        with emitter.if_then(emitter.is_null(column)):
            emitter.ret(emitter.null())
        index = emitter.load_field(info, TYPE_INFO, "type_index")
        begin, count = (
            emitter.load_field(column, TYPE_ATTR_COLUMN, field) for field in ("begin_index", "size")
        )
        at = build.sub(index, begin)
        with emitter.if_then(emitter.not_(emitter.icmp("ult", at, count))):
            emitter.ret(emitter.null())
        data = emitter.load_field(column, TYPE_ATTR_COLUMN, "data")
        value = emitter.index(data, ANY, build.zext(at, I64))
        is_function = emitter.icmp(
            "eq",
            emitter.load_field(value, ANY, "type_index"),
            emitter.const_i32(TypeIndex.FUNCTION),
        )
        handle = emitter.load_field(value, ANY, "v_obj")
        emitter.ret(emitter.select(is_function, handle, emitter.null()))

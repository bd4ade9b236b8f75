"""Names of kinds, dtypes and devices for messages, as a table in the support code."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I1, I32, I64, PTR, Field, Layout
from ferrule.specs import BY_DLPACK, DEVICE_NAMES
from ferrule.specs.params import PACKED_NAME

BIG_INT: Final = 78
"""The type index of ints that do not fit 64 bits; tvm-ffi has it from 0.1.14 on."""

TYPE_NAMES: Final[dict[int, str]] = {
    TypeIndex.NONE: "None",
    TypeIndex.INT: "int",
    TypeIndex.BOOL: "bool",
    TypeIndex.FLOAT: "float",
    TypeIndex.OPAQUE_PTR: "a pointer",
    TypeIndex.DATA_TYPE: "dtype",
    TypeIndex.DEVICE: "Device",
    TypeIndex.DLTENSOR_PTR: "Tensor",
    TypeIndex.RAW_STR: "str",
    TypeIndex.BYTE_ARRAY_PTR: "bytes",
    TypeIndex.OBJECT_RVALUE_REF: "an rvalue reference",
    TypeIndex.SMALL_STR: "str",
    TypeIndex.SMALL_BYTES: "bytes",
    TypeIndex.OBJECT: "Object",
    TypeIndex.STR: "str",
    TypeIndex.BYTES: "bytes",
    TypeIndex.ERROR: "Error",
    TypeIndex.FUNCTION: "Function",
    TypeIndex.SHAPE: "Shape",
    TypeIndex.TENSOR: "Tensor",
    TypeIndex.ARRAY: "tuple or list",
    TypeIndex.MAP: "dict",
    TypeIndex.MODULE: "Module",
    TypeIndex.OPAQUE_PY_OBJECT: "a Python object of another kind",
    TypeIndex.LIST: "List",
    TypeIndex.DICT: "Dict",
    BIG_INT: "an int of more than 64 bits",
}
PACKED_DTYPE: Final = 0x00020411
"""Two 4-bit floats in a byte, as DLPack writes it."""


class Group(IntEnum):
    """What a number in the table is."""

    TYPE = 0
    DTYPE = 1
    DEVICE = 2


ENTRY = Layout("Name", [Field("key", I64), Field("offset", I32), Field("size", I32)])
_PACKED = struct.Struct("<QII")


def name_key(group: Group, number: int) -> int:
    """The key of a name: the group above the number's 32 bits."""
    return group << 32 | number


def _names() -> dict[int, str]:
    names = {name_key(Group.TYPE, index): name for index, name in TYPE_NAMES.items()}
    names |= {name_key(Group.DTYPE, code): dtype.name for code, dtype in BY_DLPACK.items()}
    names[name_key(Group.DTYPE, PACKED_DTYPE)] = PACKED_NAME
    names |= {name_key(Group.DEVICE, code): name for code, name in DEVICE_NAMES.items()}
    return names


def _packed(names: dict[int, str]) -> bytes:
    entries, texts = b"", b""
    base = len(names) * _PACKED.size
    for key, name in names.items():
        data = name.encode()
        entries += _PACKED.pack(key, base + len(texts), len(data))
        texts += data
    return entries + texts


def define_name(emitter: Emitter) -> ir.Function:
    """`i1 ferrule_name(i64 key, ptr out)`: put the name in a byte array, if there is one."""
    names = _names()
    table = emitter.bytes_constant(_packed(names), align=8)
    with emitter.define(
        "ferrule_name", I1, [I64, PTR], names=("key", "out"), attributes=COLD
    ) as function:
        key, out = function.args
        with emitter.loop(emitter.const_i64(len(names))) as i:
            entry = emitter.index(table, ENTRY, i)
            found = emitter.builder.icmp_signed("==", emitter.load_field(entry, ENTRY, "key"), key)
            with emitter.if_then(found):
                _answer(emitter, table, entry, out)
        emitter.ret(ir.Constant(I1, 0))
    return function


def _answer(emitter: Emitter, table: ir.Value, entry: ir.Value, out: ir.Value) -> None:
    offset = emitter.builder.zext(emitter.load_field(entry, ENTRY, "offset"), I64)
    size = emitter.builder.zext(emitter.load_field(entry, ENTRY, "size"), I64)
    emitter.store_field(
        out, BYTE_ARRAY, "data", emitter.builder.gep(table, [offset], source_etype=ir.IntType(8))
    )
    emitter.store_field(out, BYTE_ARRAY, "size", size)
    emitter.ret(ir.Constant(I1, 1))

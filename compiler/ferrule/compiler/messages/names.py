"""Names of kinds, dtypes and devices for messages, as tables in the support code."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.texts import ABSENT, TEXT, text_of
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR
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

FIND: Final = ir.FunctionType(TEXT, [PTR, I32])
_KEY: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one sort of number: entries of a key (u32), a length (u8) and the name.

    An entry without a name is the last.
    """

    symbol: str
    names: Mapping[int, str]

    def data(self) -> bytes:
        """The entries."""
        packed = (
            struct.pack("<IB", key, len(name)) + name.encode() for key, name in self.names.items()
        )
        return b"".join(packed) + bytes(_KEY.size + 1)


TYPES: Final = Names("ferrule_types", MappingProxyType(TYPE_NAMES))
DTYPES: Final = Names(
    "ferrule_dtypes",
    MappingProxyType(
        {**{code: dtype.name for code, dtype in BY_DLPACK.items()}, PACKED_DTYPE: PACKED_NAME}
    ),
)
DEVICES: Final = Names("ferrule_devices", DEVICE_NAMES)


def find_name(emitter: Emitter, names: Names, number: ir.Value) -> ir.Value:
    """The name of a number of 32 bits, `ABSENT` where it has none."""
    table = emitter.module.globals.get(names.symbol)
    if table is None:
        data = names.data()
        value = ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data))
        table = emitter.global_constant(names.symbol, value)
        table.align = 1
    return emitter.call(emitter.symbol("ferrule_name", FIND), [table, number])


def define_name(emitter: Emitter) -> None:
    """`{ptr, i64} ferrule_name(ptr names, i32 key)`: see `find_name`."""
    with emitter.define(
        "ferrule_name", TEXT, FIND.args, names=("names", "key"), attributes=COLD
    ) as function:
        names, key = function.args
        build, place = emitter.builder, emitter.alloca(PTR, name="place")
        emitter.store(names, place)
        head = emitter.block("next")
        emitter.branch(head)
        emitter.at(head)
        entry = emitter.load(place, PTR)
        size = emitter.builder.zext(emitter.load(emitter.index(entry, I8, _KEY.size), I8), I64)
        with emitter.if_then(build.icmp_signed("==", size, emitter.const_i64(0))):
            emitter.ret(ABSENT)
        name = emitter.index(entry, I8, _KEY.size + 1)
        known = build.load(entry, align=1, typ=I32)
        with emitter.if_then(build.icmp_signed("==", known, key)):
            emitter.ret(text_of(emitter, name, size))
        emitter.store(emitter.index(name, I8, size), place)
        emitter.branch(head)

"""Names of kinds, dtypes and devices for messages, as tables in the support code."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.messages.texts import ABSENT, TEXT, text_of
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I16, I32, I64, PTR
from ferrule.specs import BY_DLPACK, DEVICE_NAMES
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import BIG_INT, PACKED_NAME

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
"""Two 4-bit floats in a byte, in DLPack's encoding."""

FIND: Final = ir.FunctionType(TEXT, [PTR, I32])
_ENTRY: Final = struct.Struct("<HB")
_HALF: Final = 16
_LAST: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one kind of number: entries of half a number (u16), a length (u8), the name.

    The other half is 0 until an entry without a name changes it; `_LAST` in it marks the end.
    """

    symbol: str
    names: Mapping[int, str]

    def data(self) -> bytes:
        """The entries."""
        packed, high = [], 0
        for number, name in self.names.items():
            if number >> _HALF != high:
                high = number >> _HALF
                packed.append(_ENTRY.pack(high, 0))
            packed += [_ENTRY.pack(number & _LAST, len(name)), name.encode()]
        return b"".join([*packed, _ENTRY.pack(_LAST, 0)])


TYPES: Final = Names("ferrule_types", MappingProxyType(TYPE_NAMES))
DTYPES: Final = Names(
    "ferrule_dtypes",
    MappingProxyType(
        {**{code: dtype.name for code, dtype in BY_DLPACK.items()}, PACKED_DTYPE: PACKED_NAME}
    ),
)
DEVICES: Final = Names("ferrule_devices", DEVICE_NAMES)


def find_name(emitter: Emitter, names: Names, number: ir.Value) -> ir.Value:
    """The name of a number of 32 bits, `ABSENT` if it has none."""
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
        e, b = emitter, emitter.builder
        place, high = e.alloca(PTR, name="place"), e.alloca(I32, name="high")
        e.store(function.args[0], place)
        e.store(e.const_i32(0), high)
        head = e.block("next")
        e.branch(head)
        e.at(head)
        entry = e.load(place, PTR)
        low = b.zext(b.load(entry, align=1, typ=I16), I32)
        size = b.zext(e.load(e.index(entry, I8, _ENTRY.size - 1), I8), I64)
        name = e.index(entry, I8, _ENTRY.size)
        e.store(e.index(name, I8, size), place)
        with e.if_then(e.icmp("eq", size, e.const_i64(0))):
            with e.if_then(e.icmp("eq", low, e.const_i32(_LAST))):
                e.ret(ABSENT)
            e.store(b.shl(low, e.const_i32(_HALF)), high)
            e.branch(head)
        known = e.binary("or", low, e.load(high, I32))
        with e.if_then(e.icmp("eq", known, function.args[1])):
            e.ret(text_of(e, name, size))
        e.branch(head)

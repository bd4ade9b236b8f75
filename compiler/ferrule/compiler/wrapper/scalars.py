"""Scalars and constants on the hot path.

Integer parameters accept ints and bools, float parameters also floats, a bool parameter accepts
bools and the ints 0 and 1.  BigInt objects, bools for int constants, and strings on the heap go to
the checker.
"""

from __future__ import annotations

import struct
from typing import Final

from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.compiler.wrapper.items import Item
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.writer import Value, i32
from ferrule.specs import DType, Float32

_SMALL: Final = 7
"""The length of the longest text that fits into a TVMFFIAny."""


def accept_scalar(hot: Hot, item: Item, dtype: DType) -> None:
    """Check kind and range of a number, and store the value in the parameter's type."""
    index = item.index(hot)
    # INT, BOOL and FLOAT are consecutive, so one compare checks a range of them.
    last = TypeIndex.FLOAT if dtype.kind == "float" else TypeIndex.BOOL
    above = hot.writer.binary("sub", index, i32(TypeIndex.INT))
    hot.require_kind(hot.writer.icmp("ule", above, i32(last - TypeIndex.INT)), index)
    if dtype.kind == "float":
        item.keep(hot, _float(hot, dtype, index, item))
        return
    value = item.payload(hot)
    _require_range(hot, dtype, value)
    item.keep(hot, value)


def _float(hot: Hot, dtype: DType, index: Value, item: Item) -> Value:
    writer = hot.writer
    is_float = writer.icmp("eq", index, i32(TypeIndex.FLOAT))
    whole = writer.cast("sitofp", item.payload(hot), "double")
    value = writer.select(is_float, item.payload(hot, "double"), whole)
    match dtype.bits:
        case 64:
            return value
        case 32 if dtype is Float32:
            return writer.cast("fptrunc", value, "float")
        case _:
            from ferrule.compiler.wrapper.halves import round_to_narrow

            return round_to_narrow(writer, dtype, value)


def _require_range(hot: Hot, dtype: DType, value: Value) -> None:
    match dtype.kind, dtype.bits:
        case "bool", _:
            hot.require_that(value, "ule", 1, certain=True)
        case "int", 64:
            return
        case "uint", 64:
            hot.require_that(value, "sge", 0, certain=True)
        case kind, bits:
            hot.require_fit(value, bits, signed=kind == "int", certain=True)


def accept_none(hot: Hot, item: Item) -> None:
    """None and nothing else."""
    item.require_index(hot, TypeIndex.NONE)


def accept_constant(hot: Hot, item: Item, value: bool | int | float | str) -> None:
    """The same kind and the same bits."""
    head, payload = _constant(value)
    # The padding is 0, except for a small text: there it is the length.
    found = hot.writer.load(item.at(hot), "i64", "head")
    hot.require_that(found, "eq", head)
    hot.require_that(item.payload(hot), "eq", payload)


def _constant(value: bool | int | float | str) -> tuple[int, int]:
    """The two halves of the TVMFFIAny of a constant."""
    match value:
        # Before the ints: Python's bool is one of them.
        case bool():
            return int(TypeIndex.BOOL), int(value)
        case int():
            return int(TypeIndex.INT), value
        case float():
            return int(TypeIndex.FLOAT), int.from_bytes(struct.pack("<d", value), "little")
        case str():
            data = value.encode()
            if len(data) > _SMALL:
                raise Unfit
            return TypeIndex.SMALL_STR | len(data) << 32, int.from_bytes(data, "little")

"""Reading NumPy's numbers: the value lies behind the head of the object."""

from __future__ import annotations

import ctypes
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np
from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    PTR,
    PY_OBJECT,
    size_of,
)

NUMBER: Final = "ferrule_read_number"
"""`i32 (argument, out, floats)`: read a number of NumPy; 0 if the argument is none.

With `floats`, also a float. A half, a long double, and an int that does not fit 64 bits with a
sign are left to the gate.
"""

NUMBER_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, I32])

_KINDS: Final = MappingProxyType(
    {
        "?": I8,
        **dict(zip("bhilq", (I8, I16, I32, I64, I64), strict=True)),
        **dict(zip("BHILQ", (I8, I16, I32, I64, I64), strict=True)),
        "f": F32,
        "d": F64,
    }
)
"""The types of the values by NumPy's characters."""


def number_symbols() -> dict[str, int]:
    """The classes of NumPy's numbers, as the code names them."""
    return {_symbol(character): id(np.dtype(character).type) for character in _KINDS}


def _symbol(character: str) -> str:
    return f"numpy_number_{'bool' if character == '?' else character}"


@cache
def numbers_fit() -> bool:
    """Whether the values are where they are expected."""
    return all(map(_fits, _KINDS))


def _fits(character: str) -> bool:
    kind = np.dtype(character)
    values = [kind.type(each) for each in ((True, False) if character == "?" else (1, 3, 100))]
    read = [ctypes.string_at(id(each) + PY_OBJECT.size, kind.itemsize) for each in values]
    return kind.itemsize == size_of(_KINDS[character]) and read == [v.tobytes() for v in values]


def define_read_number(e: Emitter) -> None:
    """Define `NUMBER`."""
    names = ("argument", "out", "floats")
    with e.define(NUMBER, I32, NUMBER_TYPE.args, names=names, attributes=("noinline",)) as function:
        argument, out, floats = function.args
        kind = e.load_field(argument, PY_OBJECT, "ob_type")
        value = e.index(argument, I8, PY_OBJECT.size)
        for character in _KINDS:
            with e.if_then(e.icmp("eq", kind, e.external(_symbol(character)))):
                _read(e, character, value, out, floats)
        e.ret(e.const_i32(0))


def _read(e: Emitter, character: str, value: ir.Value, out: ir.Value, floats: ir.Value) -> None:
    number = e.load(value, _KINDS[character])
    if character in "fd":
        with e.if_then(e.icmp("eq", floats, e.const_i32(0))):
            e.ret(e.const_i32(0))
        wide = number if character == "d" else e.builder.fpext(number, F64)
        e.store_field(out, ANY, "head", e.const_i64(TypeIndex.FLOAT))
        e.store_field(out, ANY, "v_float64", wide)
    else:
        _store_int(e, character, number, out)
    e.ret(e.const_i32(1))


def _store_int(e: Emitter, character: str, number: ir.Value, out: ir.Value) -> None:
    is_signed = character in "bhilq"
    if number.type != I64:
        number = (e.builder.sext if is_signed else e.builder.zext)(number, I64)
    elif not is_signed:
        with e.if_then(e.icmp("slt", number, e.const_i64(0)), likely=False):
            e.ret(e.const_i32(0))
    index = TypeIndex.BOOL if character == "?" else TypeIndex.INT
    e.store_field(out, ANY, "head", e.const_i64(index))
    e.store_field(out, ANY, "v_int64", number)

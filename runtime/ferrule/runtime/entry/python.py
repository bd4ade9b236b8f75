"""Calls of Python's C API from generated code, and reference counting for this interpreter."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import tvm_ffi
from llvmlite import ir

from ferrule.runtime.calls.interpreter import counts_inline
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, PY_OBJECT, VOID

GENERIC_CALL: Final = "tvm_ffi_generic_call"
"""The `tp_call` of `tvm_ffi.Function`: (callable, tuple, keywords or null)."""

NONE: Final = "_Py_NoneStruct"
TRUE: Final = "_Py_TrueStruct"
FALSE: Final = "_Py_FalseStruct"

VECTORCALL: Final = ir.FunctionType(PTR, [PTR, PTR, I64, PTR])
"""The type of a vectorcall function: (callable, arguments, number with a flag, names)."""

API: Final[Mapping[str, ir.FunctionType]] = MappingProxyType(
    {
        "Py_IncRef": ir.FunctionType(VOID, [PTR]),
        "Py_DecRef": ir.FunctionType(VOID, [PTR]),
        "_Py_Dealloc": ir.FunctionType(VOID, [PTR]),
        "PyTuple_New": ir.FunctionType(PTR, [I64]),
        "PyTuple_Size": ir.FunctionType(I64, [PTR]),
        "PyObject_CallFunctionObjArgs": ir.FunctionType(PTR, [PTR], var_arg=True),
        "PyObject_CallMethodObjArgs": ir.FunctionType(PTR, [PTR, PTR], var_arg=True),
        "PyObject_GetAttr": ir.FunctionType(PTR, [PTR, PTR]),
        "PyType_IsSubtype": ir.FunctionType(I32, [PTR, PTR]),
        "PyLong_FromLongLong": ir.FunctionType(PTR, [I64]),
        "PyLong_AsLongLongAndOverflow": ir.FunctionType(I64, [PTR, PTR]),
        "PyFloat_FromDouble": ir.FunctionType(PTR, [ir.DoubleType()]),
        "PyUnicode_AsUTF8AndSize": ir.FunctionType(PTR, [PTR, PTR]),
        "PyObject_GetBuffer": ir.FunctionType(I32, [PTR, PTR, I32]),
        "PyBuffer_Release": ir.FunctionType(VOID, [PTR]),
        "PyErr_Occurred": ir.FunctionType(PTR, []),
        "PyErr_Clear": ir.FunctionType(VOID, []),
        "PyEval_SaveThread": ir.FunctionType(PTR, []),
        "PyEval_RestoreThread": ir.FunctionType(VOID, [PTR]),
        GENERIC_CALL: ir.FunctionType(PTR, [PTR, PTR, PTR]),
    }
)

_OBJECTS: Final[Mapping[str, object]] = MappingProxyType({NONE: None, TRUE: True, FALSE: False})

_TP_CALL: Final = 50


def python_symbols(more: Iterable[str] = ()) -> dict[str, int]:
    """The addresses of the functions in `API`, of `more` functions, and of Python's constants."""
    names = [*(name for name in API if name != GENERIC_CALL), *more]
    symbols = {name: _address(name) for name in names}
    symbols.update({name: id(value) for name, value in _OBJECTS.items()})
    symbols[GENERIC_CALL] = slot_of(tvm_ffi.Function, _TP_CALL)
    return symbols


def _address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def slot_of(kind: type[Any], slot: int) -> int:
    """The function in a slot of a type."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
        ("PyType_GetSlot", ctypes.pythonapi)
    )
    address: int = get(kind, slot)
    return address


def python(e: Emitter, name: str, *arguments: ir.Value) -> ir.Value:
    """Call a function of `API`."""
    return e.call(near(e, name, API[name]), arguments)


def near(e: Emitter, name: str, kind: ir.FunctionType) -> ir.Function:
    """A function that is called through its address in memory: a stub would cost another jump."""
    function = e.symbol(name, kind)
    function.attributes.add("nonlazybind")
    return function


def require(e: Emitter, condition: ir.Value, otherwise: ir.Block) -> None:
    """Continue if the condition holds, which is likely; else go to the block `otherwise`."""
    on = e.block("on")
    e.cond_branch(condition, on, otherwise, LIKELY)
    e.at(on)


def incref(e: Emitter, value: ir.Value) -> None:
    """Increment a reference count: inline if this CPython's rules are known, else by a call."""
    if not counts_inline():
        python(e, "Py_IncRef", value)
    elif sys.version_info < (3, 12):
        count = e.load_field(value, PY_OBJECT, "ob_refcnt")
        e.store_field(value, PY_OBJECT, "ob_refcnt", e.builder.add(count, e.const_i64(1)))
    else:
        # The lower half is the count; all ones marks an immortal object, whose count stays.
        count = e.builder.add(e.load(value, I32), e.const_i32(1))
        with e.if_then(e.builder.icmp_unsigned("!=", count, e.const_i32(0))):
            e.store(count, value)


def decref(e: Emitter, value: ir.Value) -> None:
    """Decrement a reference count, in the same way."""
    if not counts_inline():
        python(e, "Py_DecRef", value)
        return
    left = e.builder.sub(e.load_field(value, PY_OBJECT, "ob_refcnt"), e.const_i64(1))
    # Before 3.12 nothing is immortal, and no count has bit 31 set.
    mortal = e.builder.icmp_signed(">=", e.load(value, I32), e.const_i32(0))
    with e.if_then(mortal):
        e.store_field(value, PY_OBJECT, "ob_refcnt", left)
        with e.if_then(e.builder.icmp_unsigned("==", left, e.const_i64(0))):
            python(e, "_Py_Dealloc", value)


def new_tuple(e: Emitter, count: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A new tuple of null items, and the address of the items; the caller fills or releases it.

    The function under construction returns null if there is no memory.
    """
    made = python(e, "PyTuple_New", count)
    with e.if_then(e.is_null(made), likely=False):
        e.ret(e.null())
    return made, items_of(e, made)


def items_of(e: Emitter, tuple_: ir.Value) -> ir.Value:
    """The address of a tuple's items: they begin where its fixed part ends, in every CPython."""
    return e.index(tuple_, ir.IntType(8), tuple.__basicsize__)

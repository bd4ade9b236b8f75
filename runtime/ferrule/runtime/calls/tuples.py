"""Generated code that converts an Array of tvm-ffi to a Python tuple; it reads the Array's memory.

It handles results whose form is one tuple, and leaves other forms to Python code.  It converts
numbers and None itself, and leaves other items to Python code.  The code references Python's C API,
and is never exported.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    F64,
    I8,
    I32,
    I64,
    OBJECT,
    PTR,
    PY_OBJECT,
    SEQ,
    VOID,
)

PYTHON: Final = MappingProxyType(
    {
        "PyBool_FromLong": ir.FunctionType(PTR, [I64]),
        "PyFloat_FromDouble": ir.FunctionType(PTR, [F64]),
        "PyLong_FromLongLong": ir.FunctionType(PTR, [I64]),
        "PyObject_CallFunctionObjArgs": ir.FunctionType(PTR, [PTR], var_arg=True),
        "PyTuple_New": ir.FunctionType(PTR, [I64]),
        "Py_DecRef": ir.FunctionType(VOID, [PTR]),
        "Py_IncRef": ir.FunctionType(VOID, [PTR]),
    }
)
"""What the code calls."""

ARRAY_TYPE: Final = "ferrule_array_type"
TUPLE_TYPE: Final = "ferrule_tuple_type"
UNPACK: Final = "ferrule_unpack"
ITEM: Final = "ferrule_item"
NONE: Final = "_Py_NoneStruct"
"""Symbols of the objects that the code uses: the classes Array and tuple, `results.unpack`,
`results.item_of`, and None."""


def define_unpack(e: Emitter, handle_offset: int | None) -> ir.Function:
    """`PyObject* unpacked(PyObject* value, PyObject* form)`: the same as `results.unpack`; returns
    a new reference.

    `handle_offset`: the offset of the handle in an Array; None leaves all values to Python code.
    """
    names = ("value", "form")
    with e.define("unpacked", PTR, [PTR, PTR], names=names, linkage="internal") as function:
        value, form = function.args
        if handle_offset is not None:
            is_array = _is_of(e, value, ARRAY_TYPE)
            with e.if_then(e.builder.and_(is_array, _is_of(e, form, TUPLE_TYPE)), likely=True):
                _tuple(e, value, e.load(e.index(value, I8, handle_offset), PTR), form)
        e.ret(_call(e, UNPACK, value, form))
    return function


def _python(e: Emitter, name: str, *arguments: ir.Value) -> ir.Value:
    function = e.symbol(name, PYTHON[name])
    function.attributes.add("nonlazybind")
    return e.call(function, arguments)


def _call(e: Emitter, name: str, *arguments: ir.Value) -> ir.Value:
    return _python(e, "PyObject_CallFunctionObjArgs", e.external(name), *arguments, e.null())


def _is_of(e: Emitter, value: ir.Value, kind: str) -> ir.Value:
    return e.icmp("eq", e.load_field(value, PY_OBJECT, "ob_type"), e.external(kind))


def _tuple(e: Emitter, array: ir.Value, handle: ir.Value, form: ir.Value) -> None:
    """Return the items of an Array as a tuple."""
    cell = e.index(handle, I8, OBJECT.size)
    data, size = (e.load_field(cell, SEQ, name) for name in ("data", "size"))
    made = _python(e, "PyTuple_New", size)
    with e.if_then(e.is_null(made), likely=False):
        e.ret(made)
    items = e.index(made, I8, tuple.__basicsize__)
    with e.loop(size) as i:
        item = _item(e, array, e.index(data, ANY, i), i, form)
        with e.if_then(e.is_null(item), likely=False):
            _python(e, "Py_DecRef", made)
            e.ret(item)
        e.store(item, e.index(items, PTR, i))
    e.ret(made)


def _item(
    e: Emitter, array: ir.Value, place: ir.Value, position: ir.Value, form: ir.Value
) -> ir.Value:
    """One item, as a new reference; null after an error."""
    other, end = e.block("other"), e.block("item")
    switch = e.builder.switch(e.load_field(place, ANY, "type_index"), other)
    made = []
    for kind in _PLAIN:
        block = e.block(kind.name.lower())
        switch.add_case(ir.Constant(I32, int(kind)), block)
        e.at(block)
        made.append((_plain(e, kind, place), e.builder.block))
        e.branch(end)
    e.at(other)
    number = _python(e, "PyLong_FromLongLong", position)
    made.append((_call(e, ITEM, array, number, form), e.builder.block))
    _python(e, "Py_DecRef", number)
    e.branch(end)
    e.at(end)
    item = e.builder.phi(PTR, name="item")
    for value, block in made:
        item.add_incoming(value, block)
    return item


_PLAIN: Final = (TypeIndex.NONE, TypeIndex.INT, TypeIndex.BOOL, TypeIndex.FLOAT)


def _plain(e: Emitter, kind: TypeIndex, place: ir.Value) -> ir.Value:
    """A number or None, as a new reference."""
    match kind:
        case TypeIndex.INT:
            return _python(e, "PyLong_FromLongLong", e.load_field(place, ANY, "v_int64"))
        case TypeIndex.BOOL:
            return _python(e, "PyBool_FromLong", e.load_field(place, ANY, "v_int64"))
        case TypeIndex.FLOAT:
            return _python(e, "PyFloat_FromDouble", e.load_field(place, ANY, "v_float64"))
    none = e.external(NONE)
    _python(e, "Py_IncRef", none)
    return none

"""Reading values of somebody's own classes, as `values.learned` says: fields, handles, a tensor.

The value is asked through Python's attributes, so its own code can run.  A value that answers with
an error, or with something of another kind, goes to the gate, which asks it again.
"""

from __future__ import annotations

import sys
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.entry.python import incref, items_of, python, require
from ferrule.runtime.entry.readers import Key
from ferrule.runtime.entry.structs import PY_CDATA, PY_VAR
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, I8, I32, I64, PTR, PY_OBJECT, Field, Layout
from ferrule.runtime.values.learned import BUFFERS, CLASSES, HEAD, Way, table

FIELDS: Final = "ferrule_read_fields"
"""`i32 (argument, learned, items, count)`: put new references of the values of a record's fields
into `items`; 0 for an object of another class, of another number of items, or without a field."""

FIELDS_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, I64])

HANDLE: Final = "ferrule_read_handle"
"""`i32 (argument, learned, out)`: read the address that an object stands for; 0 for another one."""

HANDLE_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR])

INNER: Final = "ferrule_inner_tensor"
"""`ptr (argument)`: the tensor that an adapter holds, borrowed; null for another object."""

INNER_TYPE: Final = ir.FunctionType(PTR, [PTR])

LEARNED: Final = Layout("Learned", [Field("names", PTR), Field("count", I64)])
ENTRY: Final = Layout("LearnedClass", [Field("kind", PTR), Field("way", I64)])
"""`values.learned.Learned.words`: the first, then the second for each class."""

_ADAPTERS: Final[Key] = ("tensor",)
_METHODS: Final = {
    Way.OPAQUE: sys.intern("__tvm_ffi_opaque_ptr__"),
    Way.STREAM: sys.intern("__cuda_stream__"),
}
_WAY: Final = "ferrule_way"
_WAY_TYPE: Final = ir.FunctionType(I64, [PTR, PTR])


def learned_symbol(key: Key) -> str:
    """The symbol of the table for a purpose."""
    return "_".join(("ferrule_learned", *key))


def object_symbols() -> dict[str, int]:
    """What the functions of this module name."""
    methods = {_method_symbol(way): id(name) for way, name in _METHODS.items()}
    tables = {learned_symbol(key): table(key).address for key in (_ADAPTERS, BUFFERS)}
    return {**tables, **methods}


def _method_symbol(way: Way) -> str:
    return f"ferrule_method_{way.name}"


def define_read_objects(e: Emitter) -> None:
    """Define `FIELDS`, `HANDLE` and `INNER`."""
    _define_way(e)
    _define_fields(e)
    _define_handle(e)
    _define_inner(e)


def _define_way(e: Emitter) -> None:
    """`i64 (argument, learned)`: the way of the argument's class; 0 if the table has none."""
    names = ("argument", "learned")
    with e.define(_WAY, I64, _WAY_TYPE.args, names=names, linkage="internal") as function:
        argument, learned = function.args
        kind = e.load_field(argument, PY_OBJECT, "ob_type")
        with e.loop(e.const_i64(CLASSES)) as i:
            place = e.index(e.index(learned, I64, HEAD), ENTRY, i)
            with e.if_then(e.icmp("eq", e.load_field(place, ENTRY, "kind"), kind)):
                e.ret(e.load_field(place, ENTRY, "way"))
        e.ret(e.const_i64(0))


def way_of(e: Emitter, argument: ir.Value, learned: ir.Value) -> ir.Value:
    """The way of the argument's class; 0 if the table has none."""
    return e.call(e.symbol(_WAY, _WAY_TYPE), [argument, learned])


def _is(e: Emitter, way: ir.Value, wanted: Way) -> ir.Value:
    return e.icmp("eq", way, e.const_i64(wanted))


def _define_fields(e: Emitter) -> None:
    names = ("argument", "learned", "items", "count")
    with e.define(FIELDS, I32, FIELDS_TYPE.args, names=names) as function:
        argument, learned, items, count = function.args
        way = way_of(e, argument, learned)
        with e.if_then(_is(e, way, Way.ITEMS)):
            _take_items(e, argument, items, count)
        with e.if_then(_is(e, way, Way.ATTRIBUTES)):
            _take_attributes(e, argument, e.load_field(learned, LEARNED, "names"), items, count)
        e.ret(e.const_i32(0))


def _take_items(e: Emitter, argument: ir.Value, items: ir.Value, count: ir.Value) -> None:
    fits = e.icmp("eq", e.load_field(argument, PY_VAR, "ob_size"), count)
    with e.if_then(fits, likely=True):
        with e.loop(count) as i:
            item = e.load(e.index(items_of(e, argument), PTR, i), PTR)
            incref(e, item)
            e.store(item, e.index(items, PTR, i))
        e.ret(e.const_i32(1))


def _take_attributes(
    e: Emitter, argument: ir.Value, names: ir.Value, items: ir.Value, count: ir.Value
) -> None:
    """If an attribute is missing, the caller releases those taken before it."""
    with e.loop(count) as i:
        found = python(e, "PyObject_GetAttr", argument, e.load(e.index(names, PTR, i), PTR))
        with e.if_then(e.is_null(found), likely=False):
            python(e, "PyErr_Clear")
            e.ret(e.const_i32(0))
        e.store(found, e.index(items, PTR, i))
    e.ret(e.const_i32(1))


def _define_handle(e: Emitter) -> None:
    names = ("argument", "learned", "out")
    with e.define(HANDLE, I32, HANDLE_TYPE.args, names=names) as function:
        argument, learned, out = function.args
        way = way_of(e, argument, learned)
        with e.if_then(_is(e, way, Way.ADDRESS)):
            _give_address(e, e.load(e.load_field(argument, PY_CDATA, "b_ptr"), I64), out)
        for asked in _METHODS:
            with e.if_then(_is(e, way, asked)):
                _ask(e, argument, asked, out)
        e.ret(e.const_i32(0))


def _ask(e: Emitter, argument: ir.Value, way: Way, out: ir.Value) -> None:
    """Call the method; an answer of another kind than documented is left to the gate."""
    name = e.external(_method_symbol(way))
    answer = python(e, "PyObject_CallMethodObjArgs", argument, name, e.null())
    with e.if_then(e.is_null(answer), likely=False):
        python(e, "PyErr_Clear")
        e.ret(e.const_i32(0))
    unfit = e.block("unfit")
    with e.within(unfit):
        python(e, "Py_DecRef", answer)
        e.ret(e.const_i32(0))
    number = answer if way is Way.OPAQUE else _second(e, answer, unfit)
    require(e, _has_kind(e, number, "int"), unfit)
    overflow = e.alloca(I32, name="overflow")
    address = python(e, "PyLong_AsLongLongAndOverflow", number, overflow)
    require(e, e.icmp("eq", e.load(overflow, I32), e.const_i32(0)), unfit)
    python(e, "Py_DecRef", answer)
    _give_address(e, address, out)


def _second(e: Emitter, answer: ir.Value, unfit: ir.Block) -> ir.Value:
    """The second item of a tuple."""
    require(e, _has_kind(e, answer, "tuple"), unfit)
    require(e, e.icmp("sge", e.load_field(answer, PY_VAR, "ob_size"), e.const_i64(2)), unfit)
    return e.load(e.index(items_of(e, answer), PTR, 1), PTR)


def _has_kind(e: Emitter, value: ir.Value, kind: str) -> ir.Value:
    return e.icmp("eq", e.load_field(value, PY_OBJECT, "ob_type"), e.external(kind))


def _give_address(e: Emitter, address: ir.Value, out: ir.Value) -> None:
    e.store_field(out, ANY, "head", e.const_i64(TypeIndex.OPAQUE_PTR))
    e.store_field(out, ANY, "v_int64", address)
    e.ret(e.const_i32(1))


def _define_inner(e: Emitter) -> None:
    with e.define(INNER, PTR, INNER_TYPE.args, names=("argument",)) as function:
        (argument,) = function.args
        way = way_of(e, argument, e.external(learned_symbol(_ADAPTERS)))
        with e.if_then(e.icmp("eq", way, e.const_i64(0))):
            e.ret(e.null())
        offset = e.builder.lshr(way, e.const_i64(32))
        e.ret(e.load(e.index(argument, I8, offset), PTR))

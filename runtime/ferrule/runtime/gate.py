"""The gate: the C function in the vectorcall slot of every `Function`.

One function for the process, driven by the call plan of the instance; and another one like it for
functions that return containers, which hands the result to `unpack`. If there is no keyword, the
number of arguments is right and each argument's type is one that its parameter takes as it stands,
it makes tvm-ffi's generic call, and no Python code runs. Otherwise it hands all the values to the
slow path, before anything has run, and calls with what comes back. It never tries a refused call
again.

The gate references Python's C API. It is never exported.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

import tvm_ffi
from llvmlite import ir

from ferrule.runtime.engine import Engine, host_triple
from ferrule.runtime.heaptype import HeapType
from ferrule.runtime.llvm.emitter import COLD, LIKELY, UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import (
    I8,
    I32,
    I64,
    PTR,
    PY_ARRAY,
    PY_ARRAY_DESCR,
    PY_OBJECT,
    VOID,
    Field,
    Layout,
)
from ferrule.runtime.llvm.native import compile_native
from ferrule.runtime.plan import (
    NUMPY_DESCR_OFFSET,
    NUMPY_FLAGS_OFFSET,
    NUMPY_TYPE_NUM_OFFSET,
    NUMPY_WRITEABLE,
    CallPlan,
)
from ferrule.runtime.views import NUMPY_TYPES

GATE_NAME: Final = "gate"
UNPACKING_GATE_NAME: Final = "unpacking_gate"

PLAN = Layout("CallPlan", [Field("count", I64), Field("accepted", PTR)])  # as many as `count`
ACCEPT = Layout("Accepted", [Field("array", PTR), Field("types", PTR)])  # up to a null

_CALL: Final = "PyObject_CallFunctionObjArgs"
_GENERIC_CALL: Final = "tvm_ffi_generic_call"

_PYTHON: Final = {
    "Py_IncRef": ir.FunctionType(VOID, [PTR]),
    "_Py_Dealloc": ir.FunctionType(VOID, [PTR]),
    "Py_DecRef": ir.FunctionType(VOID, [PTR]),
    "PyTuple_New": ir.FunctionType(PTR, [I64]),
    "PyTuple_Size": ir.FunctionType(I64, [PTR]),
    _CALL: ir.FunctionType(PTR, [PTR], var_arg=True),
    _GENERIC_CALL: ir.FunctionType(PTR, [PTR, PTR, PTR]),
}
_SLOW_PATH: Final = "ferrule_slow_path"
_UNPACK: Final = "ferrule_unpack"
_NONE: Final = "_Py_NoneStruct"

_TP_CALL: Final = 50


class Gate:
    """The gate's machine code; whoever uses the address holds the gate."""

    __slots__ = ("_engine", "_helpers", "address", "heap", "unpacking_address")

    def __init__(self, heap: HeapType, slow_path: Any, unpack: Any) -> None:
        self.heap = heap
        self._helpers = (slow_path, unpack)
        code = compile_native(GATE_NAME, gate_text(heap))
        self._engine = Engine.load(code, _symbols(slow_path, unpack))
        self.address = self._engine.address(code.symbol)
        self.unpacking_address = self._engine.address(f"__tvm_ffi_{UNPACKING_GATE_NAME}")

    def install(self, instance: object, plan: CallPlan, *, unpacks: bool = False) -> None:
        """Put the gate into an instance; gate and plan must live as long as it does."""
        gate = self.unpacking_address if unpacks else self.address
        self.heap.install(instance, gate, plan.address)


def gate_text(heap: HeapType) -> str:
    """The gate as LLVM IR, for instances of this type."""
    emitter = Emitter("ferrule.gate", host_triple())
    instance = _instance_layout(heap)
    for name, unpacks in ((GATE_NAME, False), (UNPACKING_GATE_NAME, True)):
        slow = _emit_slow(emitter, f"slow_{name}", unpacks)
        _emit_gate(emitter, name, instance, slow, unpacks)
    return emitter.text()


def _instance_layout(heap: HeapType) -> Layout:
    before = ir.ArrayType(I8, heap.handle_offset)
    between = ir.ArrayType(I8, heap.base_size - heap.handle_offset - 8)
    return Layout(
        "Function",
        [
            Field("head", before),
            Field("handle", PTR),
            Field("base", between),
            Field("vectorcall", PTR),
            Field("plan", PTR),
            Field("weaklist", PTR),
        ],
    )


def _python(e: Emitter, name: str, *arguments: ir.Value) -> ir.Value:
    return e.call(_near(e, name, _PYTHON[name]), arguments)


def _near(e: Emitter, name: str, kind: ir.FunctionType) -> ir.Function:
    """A function called through its address in memory: a stub between costs a jump each call."""
    function = e.symbol(name, kind)
    function.attributes.add("nonlazybind")
    return function


def _emit_slow(e: Emitter, name: str, unpacks: bool) -> ir.Function:
    """A function that makes the generic call with what Python's slow path makes of the values.

    It asks `slow_path(self, values, keyword names or None)` for a tuple. The call itself is made
    here, so that an error of the callee has no frame of ferrule in its traceback.
    """
    arguments = [PTR, PTR, I64, PTR]
    names = ("self", "args", "count", "kwnames")
    with e.define(
        name, PTR, arguments, names=names, linkage="internal", attributes=COLD
    ) as function:
        self, args, count, kwnames = function.args
        total = e.alloca(I64, name="total")
        keywords = e.alloca(PTR, name="keywords")
        e.store(count, total)
        e.store(e.external(_NONE), keywords)
        with e.if_then(e.builder.not_(e.is_null(kwnames))):
            size = _python(e, "PyTuple_Size", kwnames)
            e.store(e.builder.add(count, size), total)
            e.store(kwnames, keywords)
        values, items = _emit_tuple(e, e.load(total, I64))
        with e.loop(e.load(total, I64)) as i:
            value = e.load(e.index(args, PTR, i), PTR)
            _python(e, "Py_IncRef", value)
            e.store(value, e.index(items, PTR, i))
        slow_path = _near(e, _CALL, _PYTHON[_CALL])
        arguments = [e.external(_SLOW_PATH), self, values, e.load(keywords, PTR), e.null()]
        prepared = e.call(slow_path, arguments)
        _emit_decref(e, values)
        with e.if_then(e.is_null(prepared), likely=False):
            e.ret(e.null())
        _emit_generic_call(e, self, prepared, unpacks)
    return function


def _emit_gate(
    e: Emitter, name: str, instance: Layout, slow: ir.Function, unpacks: bool
) -> None:
    arguments = [PTR, PTR, I64, PTR]
    names = ("self", "args", "nargsf", "kwnames")
    with e.define(f"__tvm_ffi_{name}", PTR, arguments, names=names) as function:
        self, args, nargsf, kwnames = function.args
        # The highest bit is a flag of the vectorcall protocol, not a part of the number.
        count = e.builder.and_(nargsf, e.const_i64((1 << 63) - 1), name="count")
        # Somebody may have moved the function object away, and the plan's memory with it.
        handle = e.load_field(self, instance, "handle")
        gone = e.builder.or_(e.is_null(handle), e.builder.not_(e.is_null(kwnames)))
        with e.if_then(gone, likely=False):
            e.ret(e.call(slow, [self, args, count, kwnames]))
        plan = e.load_field(self, instance, "plan")
        wanted = e.load_field(plan, PLAN, "count", name="wanted")
        with e.if_then(e.builder.icmp_unsigned("!=", count, wanted), likely=False):
            e.ret(e.call(slow, [self, args, count, kwnames]))
        values, items = _emit_tuple(e, count)
        refused = e.block("refused")
        with e.within(refused):
            _python(e, "Py_DecRef", values)
            e.ret(e.call(slow, [self, args, count, kwnames]))
        accepted = e.field_ptr(plan, PLAN, "accepted")
        with e.loop(count) as i:
            argument = e.load(e.index(args, PTR, i), PTR, name="argument")
            table = e.load(e.index(accepted, PTR, i), PTR, name="table")
            _emit_type_check(e, argument, table, refused)
            _emit_incref(e, argument)
            e.store(argument, e.index(items, PTR, i))
        _emit_generic_call(e, self, values, unpacks)


def _emit_tuple(e: Emitter, count: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A tuple of nulls, to be filled or dropped, and the address of its items."""
    made = _python(e, "PyTuple_New", count)
    with e.if_then(e.is_null(made), likely=False):
        e.ret(e.null())
    # A tuple's items begin where its fixed part ends, in every version of CPython.
    return made, e.index(made, I8, tuple.__basicsize__)


def _emit_generic_call(e: Emitter, self: ir.Value, values: ir.Value, unpacks: bool) -> None:
    """Return what tvm-ffi's call gives, unpacked where that is wanted; let go of the tuple."""
    result = _python(e, _GENERIC_CALL, self, values, e.null())
    _emit_decref(e, values)
    if unpacks:
        with e.if_then(e.is_null(result), likely=False):
            e.ret(e.null())
        function = _near(e, _CALL, _PYTHON[_CALL])
        packed = result
        result = e.call(function, [e.external(_UNPACK), packed, e.null()])
        _emit_decref(e, packed)
    e.ret(result)


def _emit_incref(e: Emitter, value: ir.Value) -> None:
    """Own a reference: as this version of CPython does it, by its own function if unknown."""
    if sys.version_info < (3, 12):
        count = e.load_field(value, PY_OBJECT, "ob_refcnt")
        e.store_field(value, PY_OBJECT, "ob_refcnt", e.builder.add(count, e.const_i64(1)))
    elif sys.version_info < (3, 14):
        # The lower half counts; all ones is an immortal object, whose count stays.
        count = e.builder.add(e.load(value, I32), e.const_i32(1))
        with e.if_then(e.builder.icmp_unsigned("!=", count, e.const_i32(0))):
            e.store(count, value)
    else:
        _python(e, "Py_IncRef", value)


def _emit_decref(e: Emitter, value: ir.Value) -> None:
    """Give a reference up, likewise."""
    if sys.version_info >= (3, 14):
        _python(e, "Py_DecRef", value)
        return
    left = e.builder.sub(e.load_field(value, PY_OBJECT, "ob_refcnt"), e.const_i64(1))
    # Before 3.12 nothing is immortal, and no count has bit 31 set.
    mortal = e.builder.icmp_signed(">=", e.load(value, I32), e.const_i32(0))
    with e.if_then(mortal):
        e.store_field(value, PY_OBJECT, "ob_refcnt", left)
        with e.if_then(e.builder.icmp_unsigned("==", left, e.const_i64(0))):
            _python(e, "_Py_Dealloc", value)


def _emit_type_check(e: Emitter, argument: ir.Value, table: ir.Value, refused: ir.Block) -> None:
    """Go on if the argument's type is in the table, to `refused` if it is not."""
    kind = e.load_field(argument, PY_OBJECT, "ob_type")
    first, array, search = e.block("first"), e.block("array"), e.block("search")
    following, taken = e.block("following"), e.block("taken")
    is_array = e.builder.icmp_unsigned("==", kind, e.load_field(table, ACCEPT, "array"))
    e.cond_branch(is_array, array, first)

    e.at(array)
    flags = e.load_field(argument, PY_ARRAY, "flags")
    writable = e.builder.and_(flags, e.const_i32(NUMPY_WRITEABLE))
    read_only = e.builder.icmp_unsigned("==", writable, e.const_i32(0))
    descr = e.load_field(argument, PY_ARRAY, "descr")
    number = e.load_field(descr, PY_ARRAY_DESCR, "type_num")
    foreign = e.builder.icmp_unsigned(">=", number, e.const_i32(NUMPY_TYPES))
    e.cond_branch(e.builder.or_(read_only, foreign), refused, taken, UNLIKELY)

    e.at(first)
    types = e.field_ptr(table, ACCEPT, "types")
    e.branch(search)

    e.at(search)
    position = e.builder.phi(I64, name="position")
    position.add_incoming(e.const_i64(0), first)
    candidate = e.load(e.index(types, PTR, position), PTR, name="candidate")
    e.cond_branch(e.builder.icmp_unsigned("==", kind, candidate), taken, following, LIKELY)

    e.at(following)
    position.add_incoming(e.builder.add(position, e.const_i64(1)), following)
    e.cond_branch(e.is_null(candidate), refused, search, UNLIKELY)
    e.at(taken)


def _symbols(slow_path: object, unpack: object) -> dict[str, int]:
    places = [PY_ARRAY.offset(name) for name in ("flags", "descr")]
    places.append(PY_ARRAY_DESCR.offset("type_num"))
    if places != [NUMPY_FLAGS_OFFSET, NUMPY_DESCR_OFFSET, NUMPY_TYPE_NUM_OFFSET]:
        raise RuntimeError("the layout of numpy's arrays and the call plan disagree")
    names = [*_PYTHON.keys() - {_GENERIC_CALL}, _NONE]
    symbols = {name: _python_address(name) for name in names}
    symbols[_SLOW_PATH], symbols[_UNPACK] = id(slow_path), id(unpack)
    symbols[_GENERIC_CALL] = _slot_of(tvm_ffi.Function, _TP_CALL)
    return symbols


def _python_address(name: str) -> int:
    if name == _NONE:
        return id(None)
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _slot_of(kind: type[Any], slot: int) -> int:
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(
        ("PyType_GetSlot", ctypes.pythonapi)
    )
    address: int = get(kind, slot)
    return address

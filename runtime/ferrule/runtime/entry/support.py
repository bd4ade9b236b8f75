"""Functions that all direct entries share: keywords, text, results that need Python, errors.

They are in one object. `TAKE` and `FAIL` are packed functions, which tvm-ffi calls like any other.
Through `TAKE`, tvm-ffi converts a value to its Python object. Through `FAIL`, tvm-ffi raises the
error that is set, with its class, message and traceback.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.entry.buffers import define_buffers
from ferrule.runtime.entry.numbers import define_read_number
from ferrule.runtime.entry.objects import define_read_objects
from ferrule.runtime.entry.python import (
    GENERIC_CALL,
    VECTORCALL,
    decref,
    incref,
    items_of,
    new_tuple,
    python,
    require,
)
from ferrule.runtime.entry.structs import PLAN, PY_VAR
from ferrule.runtime.entry.surroundings import Surroundings
from ferrule.runtime.entry.tensors import define_read_tensor
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, BYTE_ARRAY, I32, I64, PACKED, PTR, VOID, Layout

BIND: Final = "ferrule_bind"
BIND_TYPE: Final = ir.FunctionType(PTR, [*VECTORCALL.args, PTR])
"""`ptr (self, args, nargsf, kwnames, gate)`: bind keywords and defaults, then repeat the call.

A call that does not bind goes to the gate.
"""

TEXT: Final = "ferrule_text"
BYTES: Final = "ferrule_bytes"
"""`i32 (argument, out)`: whether the text became a TVMFFIAny, which may own an object."""

RAISE: Final = "ferrule_raise_last"
"""`ptr ()`: raise tvm-ffi's current error in Python; returns null."""

FINISH: Final = "ferrule_finish"
"""`ptr (result, framework or null)`: convert a result to a Python object; consumes `result`."""

DROP_ERROR: Final = "ferrule_drop_error"
"""`void ()`: clear tvm-ffi's current error."""

TAKE: Final = "__tvm_ffi_take"
FAIL: Final = "__tvm_ffi_fail"

TAKE_FUNCTION: Final = "ferrule_take_function"
FAIL_FUNCTION: Final = "ferrule_fail_function"
"""The function objects of Python for the two."""

_TO_OBJECT: Final = ir.FunctionType(I32, [PTR, PTR])


def packed_text(triple: str) -> str:
    """`TAKE` and `FAIL` as LLVM IR."""
    e = Emitter("ferrule.packed", triple)
    names = ("handle", "args", "count", "result")
    with e.define(TAKE, I32, PACKED.args, names=names) as function:
        _, args, _, result = function.args
        source = e.load_field(args, ANY, "v_ptr")
        for name in ("head", "v_int64"):
            e.store_field(result, ANY, name, e.load_field(source, ANY, name))
        # The value has moved: who called tvm-ffi releases what it finds here.
        e.store_field(source, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.ret(e.const_i32(0))
    with e.define(FAIL, I32, PACKED.args, names=names):
        e.ret(e.const_i32(-1))
    return e.text()


def support_text(triple: str, surroundings: Surroundings, instance: Layout) -> str:
    """The other functions as LLVM IR; `instance` is the layout of the callable."""
    e = Emitter("ferrule.support", triple)
    _define_bind(e, instance)
    _define_text(e)
    _define_bytes(e)
    _define_drop_error(e)
    _define_raise(e)
    _define_finish(e, torch=surroundings.has_torch)
    define_read_number(e)
    define_read_objects(e)
    define_buffers(e)
    define_read_tensor(e, surroundings, instance)
    return e.text()


def _define_bind(e: Emitter, instance: Layout) -> None:
    """Define `BIND`. It compares names by address: CPython interns the keywords in source code, and
    the plan's names are interned."""
    names = ("self", "args", "nargsf", "kwnames", "gate")
    with e.define(BIND, PTR, BIND_TYPE.args, names=names) as function:
        me, args, nargsf, kwnames, gate = function.args
        unfit = e.block("unfit")
        with e.within(unfit):
            e.ret(e.call_pointer(gate, VECTORCALL, [me, args, nargsf, kwnames]))
        plan = e.load_field(me, instance, "plan")
        wanted = e.load_field(plan, PLAN, "count")
        count = e.binary("and", nargsf, e.const_i64((1 << 63) - 1))
        positional = e.load_field(plan, PLAN, "positional")
        require(e, e.icmp("sle", count, positional), unfit)
        bound = e.builder.alloca(PTR, wanted, name="bound")
        bound.type = PTR
        with e.loop(count) as i:
            e.store(e.load(e.index(args, PTR, i), PTR), e.index(bound, PTR, i))
        with e.loop(e.binary("sub", wanted, count), name="rest") as i:
            e.store(e.null(), e.index(bound, PTR, e.binary("add", count, i)))
        with e.if_then(e.not_(e.is_null(kwnames))):
            values = e.index(args, PTR, count)
            with e.loop(e.load_field(kwnames, PY_VAR, "ob_size"), name="k") as k:
                name = e.load(e.index(items_of(e, kwnames), PTR, k), PTR)
                slot = _slot_of(e, plan, name, bound, unfit)
                require(e, e.is_null(e.load(slot, PTR)), unfit)
                e.store(e.load(e.index(values, PTR, k), PTR), slot)
        _fill_defaults(e, plan, bound, unfit)
        again = e.load_field(me, instance, "vectorcall")
        names = e.load_field(plan, PLAN, "kwnames")
        e.ret(e.call_pointer(again, VECTORCALL, [me, bound, positional, names]))


def _slot_of(
    e: Emitter, plan: ir.Value, name: ir.Value, bound: ir.Value, unfit: ir.Block
) -> ir.Value:
    """Where the value of the parameter with this name goes."""
    names, found = e.load_field(plan, PLAN, "names"), e.block("found")
    with e.loop(e.load_field(plan, PLAN, "count"), name="place") as i:
        other = e.block("other")
        e.cond_branch(e.icmp("eq", e.load(e.index(names, PTR, i), PTR), name), found, other)
        e.at(other)
    e.branch(unfit)
    e.at(found)
    require(e, e.icmp("sge", i, e.load_field(plan, PLAN, "unnamed")), unfit)
    return e.index(bound, PTR, i)


def _fill_defaults(e: Emitter, plan: ir.Value, bound: ir.Value, unfit: ir.Block) -> None:
    defaults = e.load_field(plan, PLAN, "defaults")
    with e.loop(e.load_field(plan, PLAN, "count"), name="d") as i:
        slot = e.index(bound, PTR, i)
        with e.if_then(e.is_null(e.load(slot, PTR)), likely=False):
            default = e.load(e.index(defaults, PTR, i), PTR)
            require(e, e.not_(e.is_null(default)), unfit)
            e.store(default, slot)


def _define_text(e: Emitter) -> None:
    """Read the UTF-8 of a str. A str with a lone surrogate has none: the gate's path reports it."""
    with e.define(TEXT, I32, [PTR, PTR], names=("argument", "out")) as function:
        argument, out = function.args
        size = e.alloca(I64, name="size")
        data = python(e, "PyUnicode_AsUTF8AndSize", argument, size)
        with e.if_then(e.is_null(data), likely=False):
            python(e, "PyErr_Clear")
            e.ret(e.const_i32(0))
        _emit_string(e, "TVMFFIStringFromByteArray", data, e.load(size, I64), out)


def _define_bytes(e: Emitter) -> None:
    with e.define(BYTES, I32, [PTR, PTR], names=("argument", "out")) as function:
        argument, out = function.args
        # As in `bound`: the last field of the struct is the first byte.
        data = e.index(argument, ir.IntType(8), bytes.__basicsize__ - 1)
        size = e.load_field(argument, PY_VAR, "ob_size")
        _emit_string(e, "TVMFFIBytesFromByteArray", data, size, out)


def _emit_string(e: Emitter, make: str, data: ir.Value, size: ir.Value, out: ir.Value) -> None:
    text = e.alloca(BYTE_ARRAY, name="text")
    e.store_field(text, BYTE_ARRAY, "data", data)
    e.store_field(text, BYTE_ARRAY, "size", size)
    e.store_field(out, ANY, "head", e.const_i64(TypeIndex.NONE))
    e.store_field(out, ANY, "v_int64", e.const_i64(0))
    failed = e.icmp("ne", e.call(make, [text, out]), e.const_i32(0))
    with e.if_then(failed, likely=False):
        e.call(e.symbol(DROP_ERROR, ir.FunctionType(VOID, [])), [])
        e.ret(e.const_i32(0))
    e.ret(e.const_i32(1))


def _define_drop_error(e: Emitter) -> None:
    function = e.symbol(DROP_ERROR, ir.FunctionType(VOID, []))
    with e.body(function):
        error = e.alloca(PTR, name="error")
        e.store(e.null(), error)
        e.call("TVMFFIErrorMoveFromRaised", [error])
        with e.if_then(e.not_(e.is_null(e.load(error, PTR)))):
            e.call("TVMFFIObjectDecRef", [e.load(error, PTR)])
        e.ret()


def _define_raise(e: Emitter) -> None:
    """Define `RAISE`. A pending Python error, such as KeyboardInterrupt, has precedence."""
    with e.define(RAISE, PTR, [], attributes=COLD):
        pending = python(e, "PyErr_Occurred")
        with e.if_then(e.not_(e.is_null(pending))):
            e.call(e.symbol(DROP_ERROR, ir.FunctionType(VOID, [])), [])
            e.ret(e.null())
        nothing, _ = new_tuple(e, e.const_i64(0))
        python(e, GENERIC_CALL, e.external(FAIL_FUNCTION), nothing, e.null())
        decref(e, nothing)
        e.ret(e.null())


def _define_finish(e: Emitter, *, torch: bool) -> None:
    """Define `FINISH`. It passes `framework` to tvm-ffi as an argument, so that tvm-ffi converts
    tensors to tensors of this framework."""
    with e.define(FINISH, PTR, [PTR, PTR], names=("result", "framework")) as function:
        result, framework = function.args
        some = e.not_(e.is_null(framework))
        if torch:
            _finish_tensor(e, result, some)
        count = e.select(some, e.const_i64(2), e.const_i64(1))
        values, items = new_tuple(e, count)
        address = python(e, "PyLong_FromLongLong", e.builder.ptrtoint(result, I64))
        e.store(address, items)
        with e.if_then(e.is_null(address), likely=False):
            decref(e, values)
            _release(e, result)
            e.ret(e.null())
        with e.if_then(some):
            incref(e, framework)
            e.store(framework, e.index(items, PTR, 1))
        found = python(e, GENERIC_CALL, e.external(TAKE_FUNCTION), values, e.null())
        decref(e, values)
        _release(e, result)
        e.ret(found)


def _finish_tensor(e: Emitter, result: ir.Value, of_torch: ir.Value) -> None:
    """Convert a Tensor to a torch tensor like tvm-ffi does, but without a call through tvm-ffi."""
    index = e.load_field(result, ANY, "type_index")
    is_tensor = e.icmp("eq", index, e.const_i32(TypeIndex.TENSOR))
    with e.if_then(e.binary("and", is_tensor, of_torch)):
        managed, found = e.alloca(PTR, name="managed"), e.alloca(PTR, name="found")
        handle = e.load_field(result, ANY, "v_obj")
        status = e.call("TVMFFITensorToDLPackVersioned", [handle, managed])
        with e.if_then(e.icmp("eq", status, e.const_i32(0)), likely=True):
            # The DLPack tensor has a reference of its own.
            e.call("TVMFFIObjectDecRef", [handle])
            given = e.load(managed, PTR)
            taken = e.call(e.symbol("torch_to_object", _TO_OBJECT), [given, found])
            failed = e.icmp("ne", taken, e.const_i32(0))
            e.ret(e.select(failed, e.null(), e.load(found, PTR)))
        # The way through tvm-ffi, behind this, has the same error or a result.
        e.call(e.symbol(DROP_ERROR, ir.FunctionType(VOID, [])), [])


def _release(e: Emitter, value: ir.Value) -> None:
    """Release a value whose ownership tvm-ffi did not take."""
    index = e.load_field(value, ANY, "type_index")
    with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT)), likely=False):
        e.call("TVMFFIObjectDecRef", [e.load_field(value, ANY, "v_obj")])

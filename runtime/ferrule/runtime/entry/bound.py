"""A bound call: a function with its arguments, which are converted and packed once.

What comes of `Function.bind` is a built-in function without parameters. It calls the wrapper with
the packed arguments as they are, so the wrapper's checks and its body run each time, and nothing
else. Its `self` is a tuple whose first item, bytes, is the `BOUND` that the code reads; the
others keep alive what the addresses in it mean.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, Final

import tvm_ffi
from llvmlite import ir

from ferrule.runtime.abi import SYMBOL_PREFIX, DeviceType
from ferrule.runtime.entry.invoke import Invocation
from ferrule.runtime.entry.python import items_of, python
from ferrule.runtime.entry.structs import NO_DEVICE, STATE
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, OBJECT, PTR, SEQ, Field, Layout
from ferrule.runtime.results import Form

BOUND_NAME: Final = "bound"

BOUND: Final = Layout(
    "BoundCall",
    [
        Field("code", PTR),
        Field("packed", PTR),
        Field("count", I32),
        Field("releases_gil", I32),
        Field("framework", PTR),  # an argument whose framework has an exchange API, or null
        Field("device", I64),  # of its first tensor that is not on the CPU, or `NO_DEVICE`
        Field("form", PTR),  # of the result, or null
    ],
)

_WORK_STREAM: Final = ir.FunctionType(I32, [I32, I32, PTR])
_NO_ARGUMENTS: Final = 4  # METH_NOARGS


def bound_text(triple: str, *, torch: bool, unpacks: bool) -> str:
    """The code of a bound call, `ptr (self, nothing)`, as LLVM IR."""
    e = Emitter("ferrule.bound", triple)
    names = ("self", "nothing")
    with e.define(SYMBOL_PREFIX + BOUND_NAME, PTR, [PTR, PTR], names=names) as function:
        block = e.load(items_of(e, function.args[0]), PTR)
        bound = e.index(block, I8, bytes.__basicsize__ - 1)
        state = e.alloca(STATE, name="state")
        for name in ("framework", "device"):
            e.store_field(state, STATE, name, e.load_field(bound, BOUND, name))
        if torch:
            _take_stream(e, state)
        made = Invocation(e, torch, torch, state)
        result, values = made.new_result(), ("code", "releases_gil", "packed", "count")
        code, releases, packed, count = (e.load_field(bound, BOUND, name) for name in values)
        form = e.load_field(bound, BOUND, "form") if unpacks else None
        made.finish(made.call(code, releases, packed, count, result), result, form)
    return e.text()


def _take_stream(e: Emitter, state: ir.Value) -> None:
    """The framework's current stream on the arguments' device."""
    device, b = e.load_field(state, STATE, "device"), e.builder
    with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
        kind, index = b.trunc(device, I32), b.trunc(b.lshr(device, e.const_i64(32)), I32)
        ask = e.symbol("torch_work_stream", _WORK_STREAM)
        place = e.field_ptr(state, STATE, "stream")
        failed = e.icmp("ne", e.call(ask, [kind, index, place]), e.const_i32(0))
        with e.if_then(failed, likely=False):
            python(e, "PyErr_Clear")
            e.store(e.null(), place)


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("code", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class Binder:
    """Makes bound calls; `address` is their code, which `owner` keeps."""

    __slots__ = ("_definition", "_owner")

    def __init__(self, address: int, owner: object) -> None:
        doc = b"A function with its arguments, which calls it with these."
        self._owner = owner
        self._definition = _MethodDef(b"bound_call", address, _NO_ARGUMENTS, doc)

    def bind(self, function: Any, code: int, form: Form, arguments: Sequence[Any]) -> Any:
        """`function`, whose wrapper is at `code`, with arguments as tvm-ffi's call takes them."""
        make_array = tvm_ffi.get_global_func("ffi.Array")
        packed, holder = make_array(*arguments), make_array(function)
        framework, device = _framework_of(arguments)
        data = packed.__chandle__() + OBJECT.size + SEQ.offset("data")
        block = _struct(
            code=code,
            packed=ctypes.c_uint64.from_address(data).value,
            count=len(arguments),
            releases_gil=int(function.release_gil),
            framework=0 if framework is None else id(framework),
            device=device,
            form=0 if form is None else id(form),
        )
        make = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
        )(("PyCFunction_NewEx", ctypes.pythonapi))
        kept = (block, packed, framework, holder, form, self)
        return make(ctypes.addressof(self._definition), kept, None)


def _struct(**values: int) -> bytes:
    block = bytearray(BOUND.size)
    for name, value in values.items():
        size = 4 if BOUND.type_of(name) == I32 else 8
        at = BOUND.offset(name)
        block[at : at + size] = value.to_bytes(size, "little", signed=value < 0)
    return bytes(block)


def _framework_of(arguments: Sequence[Any]) -> tuple[Any, int]:
    """An argument of torch, and the device of the first that is not on the CPU."""
    found = list(_torch_tensors(arguments))
    for tensor in found:
        kind, index = tensor.__dlpack_device__()
        if int(kind) != DeviceType.CPU:
            return tensor, int(kind) | int(index) << 32
    return (found[-1] if found else None), NO_DEVICE


def _torch_tensors(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _torch_tensors(value)
        elif hasattr(type(value), "__dlpack_c_exchange_api__"):
            yield value

"""Structs that the code of a call reads and writes: the callable, its plan, Python's own objects.

`surroundings` tests the layouts of CPython and NumPy on live objects before an entry uses them.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.calls.heaptype import HeapType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import DLTENSOR, F64, I8, I32, I64, PTR, PY_OBJECT, Field, Layout

PLAN: Final = Layout(
    "CallPlan",
    [
        Field("count", I64),
        Field("code", PTR),  # the wrapper
        Field("names", PTR),  # of the parameters, as many as `count`: interned strings
        Field("defaults", PTR),  # as many: borrowed references, null for a required parameter
        Field("positional", I64),  # how many arguments a call can give by position
        Field("unnamed", I64),  # how many it cannot name
        Field("kwnames", PTR),  # a tuple of the names that have no position, or null
        Field("form", PTR),  # of the result, `results.Form`, or null where nothing is unpacked
        Field("accepted", PTR),  # as many `Accepted` follow each other here
    ],
)
ACCEPT: Final = Layout(
    "Accepted",
    [
        Field("array", PTR),
        Field("torch", PTR),  # torch's types whose instances can have something pending, or null
        Field("parameter", PTR),
        Field("impl", I64),  # `LazyBits`, where there are such types
        Field("keys", I64),
        Field("mask", I64),
        Field("counter", I64),  # `VersionWords` of a written parameter, otherwise 0
        Field("number", I64),
        Field("types", PTR),  # up to a null
    ],
)

PY_VAR: Final = Layout("PyVarObject", [Field("ob_base", PY_OBJECT), Field("ob_size", I64)])
PY_FLOAT: Final = Layout("PyFloatObject", [Field("ob_base", PY_OBJECT), Field("ob_fval", F64)])
PY_LONG: Final = Layout(
    "PyLongObject", [Field("ob_base", PY_OBJECT), Field("size_or_tag", I64), Field("digit", I32)]
)
PY_CDATA: Final = Layout("CDataObject", [Field("ob_base", PY_OBJECT), Field("b_ptr", PTR)])

MAX_NDIM: Final = 8
"""Arrays with more dims go to the gate."""

PY_BUFFER: Final = Layout(
    "Py_buffer",
    [
        Field("buf", PTR),
        Field("obj", PTR),
        Field("len", I64),
        Field("itemsize", I64),
        Field("readonly", I32),
        Field("ndim", I32),
        Field("format", PTR),
        Field("shape", PTR),
        Field("strides", PTR),
        Field("suboffsets", PTR),
        Field("internal", PTR),
    ],
)

VIEW: Final = Layout(
    "TensorView",
    [
        Field("dl", DLTENSOR),
        Field("shape", ir.ArrayType(I64, MAX_NDIM)),
        Field("strides", ir.ArrayType(I64, MAX_NDIM)),
        Field("buffer", PY_BUFFER),  # of an array of JAX
        Field("held", PTR),  # the next view whose buffer the call holds, or null
    ],
)
"""Stack space for the description of a tensor argument."""


def describe_view(
    e: Emitter, view: ir.Value, data: ir.Value, ndim: ir.Value, dtype: ir.Value
) -> ir.Value:
    """The DLTensor in `view`, on the CPU, of the sizes and strides that the view has."""
    at = e.field_ptr(view, VIEW, "dl")
    e.store_field(at, DLTENSOR, "data", data)
    e.store_field(at, DLTENSOR, "device", e.const_i64(DeviceType.CPU))
    e.store_field(at, DLTENSOR, "ndim", ndim)
    e.store_field(at, DLTENSOR, "dtype", dtype)
    e.store_field(at, DLTENSOR, "shape", e.field_ptr(view, VIEW, "shape"))
    e.store_field(at, DLTENSOR, "strides", e.field_ptr(view, VIEW, "strides"))
    e.store_field(at, DLTENSOR, "byte_offset", e.const_i64(0))
    return at


STATE: Final = Layout(
    "CallState",
    [
        Field("framework", PTR),  # the last argument whose framework has an exchange API, or null
        Field("device", I64),  # of the first tensor that is not on the CPU, or one of those below
        Field("stream", PTR),  # its framework's current stream
        Field("former_stream", PTR),
        Field("former_allocator", PTR),
        Field("held", PTR),  # the first view whose buffer the call holds, or null
    ],
)
"""The framework, device and stream of a call, the former values to restore afterwards, and what it
must release."""

NO_DEVICE: Final = -1
UNUSED_DEVICE: Final = -2
"""The call needs no stream."""


def instance_layout(heap: HeapType) -> Layout:
    """An instance of the heap type."""
    head = ir.ArrayType(I8, heap.handle_offset)
    flag = heap.release_gil_offset - heap.handle_offset - 8
    rest = heap.base_size - heap.release_gil_offset - 4
    return Layout(
        "Function",
        [
            Field("head", head),
            Field("handle", PTR),
            Field("before_flag", ir.ArrayType(I8, flag)),
            Field("release_gil", I32),
            Field("behind_flag", ir.ArrayType(I8, rest)),
            Field("vectorcall", PTR),
            Field("plan", PTR),
            Field("owner", PTR),  # the function object that owns the plan: `handle`, unless moved
            Field("weaklist", PTR),
        ],
    )

"""A user's allocator: a pair of C functions, registered with tvm-ffi for the whole process.

tvm-ffi needs one function that makes a managed tensor. This function and the deleter of its tensors
are generated for each pair. Their code is never freed, because tensors may outlive all else.
"""

from __future__ import annotations

import ctypes
from _ctypes import CFuncPtr
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir

from ferrule.runtime.linking.engine import Engine, host_triple, libtvm_ffi
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    DLTENSOR,
    I8,
    I32,
    I64,
    MANAGED_TENSOR,
    PTR,
    VOID,
)
from ferrule.runtime.llvm.native import compile_native

ALIGNMENT: Final = 64
"""The alignment of memory for a tensor, in bytes."""

CFunction = Callable[..., Any] | int
"""A Python function, a function of ctypes, or the address of a C function."""

_NAME: Final = "allocator"
_ALLOCATE: Final = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32
)
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
_ALLOCATE_TYPE: Final = ir.FunctionType(PTR, [I64, I64, I32, I32])
_FREE_TYPE: Final = ir.FunctionType(VOID, [PTR, I32, I32])
_SET_ERROR: Final = ir.FunctionType(VOID, [PTR, PTR, PTR])

_KEPT: Final[list[object]] = []
"""Engines with the code of deleters, and the Python functions that this code calls; never freed."""


def use_allocator(allocate: CFunction | None, free: CFunction | None) -> None:
    """Set the allocator for new tensors, for calls without a tensor of a framework.

    `void* allocate(int64_t bytes, int64_t alignment, int32_t device_type, int32_t device_id)` gives
    memory on a device, given by DLPack's numbers, or null if there is no memory left.
    `void free(void* memory, int32_t device_type, int32_t device_id)` takes it back, on any thread.
    Both must stay valid as long as the process. None for both: no allocator, as at first.

    The allocator applies to every thread and to all users of tvm-ffi in the process. A call with a
    torch tensor uses torch's allocator. Raises TypeError for a value that is not a function.
    """
    if allocate is None and free is None:
        address = 0
    else:
        address = allocator_of(
            _address("allocate", _ALLOCATE, allocate), _address("free", _FREE, free)
        )
    register(address)


def register(address: int) -> None:
    """Let tvm-ffi call a function that makes managed tensors; 0 for none."""
    set_allocator = libtvm_ffi().TVMFFIEnvSetDLPackManagedTensorAllocator
    if set_allocator(ctypes.c_void_p(address), ctypes.c_int(1), None) != 0:
        raise RuntimeError("tvm-ffi has not taken the allocator")


def allocator_of(allocate: int, free: int) -> int:
    """The address of a function that makes managed tensors, as tvm-ffi wants it, of a pair's."""
    engine = Engine.load(compile_native(_NAME, _text(allocate, free)))
    _KEPT.append(engine)
    return engine.address(f"__tvm_ffi_{_NAME}")


def _address(what: str, kind: type[Any], function: CFunction | None) -> int:
    """The address of a C function; a Python function is wrapped in a C function."""
    if isinstance(function, int) and not isinstance(function, bool) and 0 < function < 1 << 64:
        return function
    if callable(function):
        made = function if isinstance(function, CFuncPtr) else kind(function)
        if address := ctypes.cast(made, ctypes.c_void_p).value:
            _KEPT.append(made)
            return address
    raise TypeError(f"{what} must be a function or the address of one, but got {function!r}")


def _text(allocate: int, free: int) -> str:
    e = Emitter("ferrule.allocator", host_triple())
    size = _define_size(e)
    deleter = _define_deleter(e, free)
    names = ("prototype", "out", "context", "set_error")
    with e.define(f"__tvm_ffi_{_NAME}", I32, [PTR] * 4, names=names) as function:
        prototype, out, context, set_error = function.args
        bytes_ = e.call(size, [prototype], "bytes")
        block = _block(e, prototype, bytes_, context, set_error)
        # Without elements nobody is asked: null would mean that there is no memory, and none is
        # freed.
        with e.if_then(e.icmp("sgt", bytes_, e.const_i64(0))):
            _fill(e, block, prototype, bytes_, allocate, context, set_error)
        e.store_field(block, MANAGED_TENSOR, "deleter", deleter)
        e.store(block, out)
        e.ret(e.const_i32(0))
    return e.text()


def _define_size(e: Emitter) -> ir.Function:
    """`i64 size(ptr prototype)`: the bytes of a compact tensor, or -1 if the number overflows."""
    with e.define("size", I64, [PTR], names=("prototype",), linkage="internal") as function:
        (prototype,) = function.args
        bits, lanes = (
            e.builder.zext(e.load_field(prototype, DLTENSOR, f"dtype_{name}"), I64)
            for name in ("bits", "lanes")
        )
        total = e.alloca(I64, name="total")
        e.store(e.builder.mul(bits, lanes), total)
        shape = e.load_field(prototype, DLTENSOR, "shape")
        with e.loop(e.builder.zext(e.load_field(prototype, DLTENSOR, "ndim"), I64)) as i:
            size = e.load(e.index(shape, I64, i), I64)
            product, wraps = e.overflowing("smul", e.load(total, I64), size)
            with e.if_then(wraps, likely=False):
                e.ret(e.const_i64(-1))
            e.store(product, total)
        # The sum is of bits, as elements may have fewer than eight.
        rounded = e.builder.add(e.load(total, I64), e.const_i64(7))
        e.ret(e.builder.lshr(rounded, e.const_i64(3)))
    return function


def _define_deleter(e: Emitter, free: int) -> ir.Function:
    with e.define("deleter", VOID, [PTR], names=("tensor",), linkage="internal") as function:
        (tensor,) = function.args
        data = e.load_field(tensor, MANAGED_TENSOR, "dl.data")
        with e.if_then(e.not_(e.is_null(data))):
            device = (
                e.load_field(tensor, MANAGED_TENSOR, "dl.device_type"),
                e.load_field(tensor, MANAGED_TENSOR, "dl.device_id"),
            )
            e.call_pointer(_pointer(e, free), _FREE_TYPE, [data, *device])
        e.call("free", [tensor])
        e.ret()
    return function


def _pointer(e: Emitter, address: int) -> ir.Value:
    return e.builder.inttoptr(e.const_i64(address), PTR)


def _refuse(e: Emitter, kind: str, message: str, context: ir.Value, set_error: ir.Value) -> None:
    """Set an error and end the function."""
    e.call_pointer(set_error, _SET_ERROR, [context, e.cstring(kind), e.cstring(message)])
    e.ret(e.const_i32(-1))


def _block(
    e: Emitter, prototype: ir.Value, bytes_: ir.Value, context: ir.Value, set_error: ir.Value
) -> ir.Value:
    """Memory with the managed tensor, its shape and strides, but without elements."""
    with e.if_then(e.icmp("slt", bytes_, e.const_i64(0)), likely=False):
        _refuse(e, "ValueError", "a new tensor is too large", context, set_error)
    count = e.builder.zext(e.load_field(prototype, DLTENSOR, "ndim"), I64)
    dims = e.builder.shl(count, e.const_i64(3))
    head = e.const_i64(MANAGED_TENSOR.size)
    room = e.builder.add(head, e.builder.shl(dims, e.const_i64(1)))
    block = e.call("malloc", [room], "block")
    with e.if_then(e.is_null(block), likely=False):
        _refuse(e, "MemoryError", "there is no memory for a new tensor", context, set_error)
    e.call("memset", [block, e.const_i32(0), head])
    e.store_field(block, MANAGED_TENSOR, "version_major", e.const_i32(1))
    shape = e.index(block, I8, MANAGED_TENSOR.size)
    strides = e.index(shape, I8, dims)
    e.call("memcpy", [shape, e.load_field(prototype, DLTENSOR, "shape"), dims])
    for name in ("device", "ndim", "dtype"):
        e.store_field(block, MANAGED_TENSOR, f"dl.{name}", e.load_field(prototype, DLTENSOR, name))
    e.store_field(block, MANAGED_TENSOR, "dl.shape", shape)
    e.store_field(block, MANAGED_TENSOR, "dl.strides", strides)
    running = e.alloca(I64, name="stride")
    e.store(e.const_i64(1), running)
    with e.loop(count) as i:
        axis = e.builder.sub(e.builder.sub(count, i), e.const_i64(1))
        stride = e.load(running, I64)
        e.store(stride, e.index(strides, I64, axis))
        size = e.load(e.index(shape, I64, axis), I64)
        e.store(e.builder.mul(stride, size), running)
    return block


def _fill(
    e: Emitter,
    block: ir.Value,
    prototype: ir.Value,
    bytes_: ir.Value,
    allocate: int,
    context: ir.Value,
    set_error: ir.Value,
) -> None:
    """Memory for the elements, from the user's function."""
    device = (
        e.load_field(prototype, DLTENSOR, "device_type"),
        e.load_field(prototype, DLTENSOR, "device_id"),
    )
    arguments = [bytes_, e.const_i64(ALIGNMENT), *device]
    data = e.call_pointer(_pointer(e, allocate), _ALLOCATE_TYPE, arguments, "data")
    with e.if_then(e.is_null(data), likely=False):
        e.call("free", [block])
        message = "the registered allocator has no memory for a new tensor"
        _refuse(e, "MemoryError", message, context, set_error)
    e.store_field(block, MANAGED_TENSOR, "dl.data", data)

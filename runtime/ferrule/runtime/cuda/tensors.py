"""New tensors in the memory of a GPU: allocated and freed by machine code.

A tensor may be freed by any thread, and when Python is gone, so none of it is Python. Each piece of
memory holds the primary context that it is in.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, Final

import tvm_ffi
from llvmlite import ir

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.allocator import allocator_of, use_allocator
from ferrule.runtime.cuda.driver import call, check_device, library, on_device
from ferrule.runtime.engine import Engine, host_triple
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID
from ferrule.runtime.llvm.native import compile_native
from ferrule.runtime.views import DLTensor
from ferrule.specs import DType

_NAMES: Final = (
    "cuInit",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
)
_ALLOCATE, _FREE = "cuda_allocate", "cuda_free"

_new_capsule: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
_SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_Allocator = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, _SetError
)


def new_tensor(shape: tuple[int, ...], dtype: DType, device: int) -> Any:
    """A compact tensor whose elements are whatever is there. MemoryError where there is none."""
    if dtype.bits % 8:
        raise TypeError(
            f"an array needs elements of whole bytes, but {dtype.name} has {dtype.bits} bits"
        )
    check_device(device)
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    prototype = DLTensor(0, DeviceType.CUDA, device, len(shape), dtype.dlpack, sizes, None, 0)
    managed, said = ctypes.c_void_p(), []
    set_error = _SetError(lambda _, kind, text: said.append(text.decode()))
    make = _Allocator(_allocator())
    if make(ctypes.addressof(prototype), ctypes.addressof(managed), None, set_error) != 0:
        size = math.prod(shape) * dtype.bits // 8
        raise MemoryError(f"{said[0]}: {size} bytes on cuda:{device}, {_free_bytes(device)} free")
    return tvm_ffi.from_dlpack(_new_capsule(managed.value, b"dltensor_versioned", None))


def _free_bytes(device: int) -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    with on_device(device):
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def use_as_allocator() -> None:
    """Let new tensors of calls that have none of a framework be in the memory of GPUs.

    It is `fe.runtime.use_allocator` with the driver's cuMemAlloc and cuMemFree, for all of the
    process. CudaError where there is no CUDA driver.
    """
    use_allocator(*_functions())


@cache
def _functions() -> tuple[int, int]:
    """The addresses of C functions that allocate and free, as `use_allocator` takes them."""
    engine = Engine.load(compile_native(_ALLOCATE, _text()))
    _KEPT.append(engine)
    return engine.address(f"__tvm_ffi_{_ALLOCATE}"), engine.address(f"__tvm_ffi_{_FREE}")


@cache
def _allocator() -> int:
    return allocator_of(*_functions())


_KEPT: Final[list[Engine]] = []
"""Code that the deleters of tensors are in."""


def _text() -> str:
    cuda, e = library(), Emitter("ferrule.cuda", host_triple())
    addresses = {
        name: ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value or 0 for name in _NAMES
    }
    _define_allocate(e, addresses)
    _define_free(e, addresses)
    return e.text()


def _driver(e: Emitter, addresses: dict[str, int], name: str, *arguments: ir.Value) -> ir.Value:
    """Call a function of the driver; its result."""
    kind = ir.FunctionType(I32, [each.type for each in arguments])
    pointer = e.builder.inttoptr(e.const_i64(addresses[name]), PTR)
    return e.call_pointer(pointer, kind, list(arguments))


def _define_allocate(e: Emitter, addresses: dict[str, int]) -> None:
    """`ptr allocate(i64 bytes, i64 alignment, i32 type, i32 device)`: the driver aligns to 256."""
    names = ("bytes", "alignment", "type", "device")
    with e.define(f"__tvm_ffi_{_ALLOCATE}", PTR, [I64, I64, I32, I32], names=names) as function:
        size, _, kind, device = function.args
        with e.if_then(e.icmp("ne", kind, e.const_i32(DeviceType.CUDA))):
            e.ret(e.null())
        context, place = e.alloca(PTR, name="context"), e.alloca(PTR, name="place")
        e.store(e.null(), place)
        _driver(e, addresses, "cuInit", e.const_i32(0))
        status = _driver(e, addresses, "cuDevicePrimaryCtxRetain", context, device)
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.ret(e.null())
        _within(e, addresses, context, "cuMemAlloc_v2", place, size)
        with e.if_then(e.is_null(e.load(place, PTR)), likely=False):
            _driver(e, addresses, "cuDevicePrimaryCtxRelease_v2", device)
        e.ret(e.load(place, PTR))


def _define_free(e: Emitter, addresses: dict[str, int]) -> None:
    """`void free(ptr memory, i32 type, i32 device)`, with the hold that the memory had."""
    names = ("memory", "type", "device")
    with e.define(f"__tvm_ffi_{_FREE}", VOID, [PTR, I32, I32], names=names) as function:
        memory, _, device = function.args
        context = e.alloca(PTR, name="context")
        status = _driver(e, addresses, "cuDevicePrimaryCtxRetain", context, device)
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.ret()
        _within(e, addresses, context, "cuMemFree_v2", memory)
        for _ in range(2):
            _driver(e, addresses, "cuDevicePrimaryCtxRelease_v2", device)
        e.ret()


def _within(
    e: Emitter, addresses: dict[str, int], context: ir.Value, name: str, *arguments: ir.Value
) -> None:
    """Call a function with a context current; without success its results are as they were."""
    popped = e.alloca(PTR, name="popped")
    pushed = _driver(e, addresses, "cuCtxPushCurrent_v2", e.load(context, PTR))
    with e.if_then(e.icmp("eq", pushed, e.const_i32(0))):
        _driver(e, addresses, name, *arguments)
        _driver(e, addresses, "cuCtxPopCurrent_v2", popped)

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
from ferrule.runtime.cuda.driver import call, check_device, library, on_device
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, MANAGED_TENSOR, PTR, VOID
from ferrule.runtime.llvm.native import compile_native
from ferrule.runtime.values.allocator import allocator_of, register
from ferrule.runtime.values.views import DLTensor
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
_WORD: Final = 8
_ALLOCATE, _FREE, _TENSOR = "cuda_allocate", "cuda_free", "cuda_tensor"
_ALLOCATOR_TYPE: Final = ir.FunctionType(I32, [PTR] * 4)

# PYFUNCTYPE, because PyCapsule_New needs the GIL.
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

    As `fe.runtime.use_allocator` it holds for all of the process, and for every user of tvm-ffi.
    CudaError where there is no CUDA driver.
    """
    register(_allocator())


@cache
def _allocator() -> int:
    """The address of a function that makes managed tensors, as tvm-ffi wants it.

    The code stays: the deleters of tensors are in it.
    """
    engine = Engine.load(compile_native(_ALLOCATE, _memory_text()))
    names = (f"__tvm_ffi_{each}" for each in (_ALLOCATE, _FREE))
    base = allocator_of(*map(engine.address, names))
    made = Engine.load(compile_native(_TENSOR, _tensor_text(base)))
    _KEPT.extend((engine, made))
    return made.address(f"__tvm_ffi_{_TENSOR}")


_KEPT: Final[list[Engine]] = []


@cache
def _addresses() -> dict[str, int]:
    """Those of the driver's functions; a library that is loaded stays."""
    cuda = library()
    return {name: ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value or 0 for name in _NAMES}


def _memory_text() -> str:
    e = Emitter("ferrule.cuda.memory", host_triple())
    _define_allocate(e, _addresses())
    _define_free(e)
    return e.text()


def _tensor_text(base: int) -> str:
    e = Emitter("ferrule.cuda.tensor", host_triple())
    deleter = _define_deleter(e, _addresses())
    _define_tensor(e, _addresses(), base, deleter)
    return e.text()


def _driver(e: Emitter, addresses: dict[str, int], name: str, *arguments: ir.Value) -> ir.Value:
    """Call a function of the driver; its result."""
    kind = ir.FunctionType(I32, [each.type for each in arguments])
    pointer = e.builder.inttoptr(e.const_i64(addresses[name]), PTR)
    return e.call_pointer(pointer, kind, list(arguments))


def _define_allocate(e: Emitter, addresses: dict[str, int]) -> None:
    """`ptr allocate(i64 bytes, i64 alignment, i32 type, i32 device)`: the driver aligns to 256.

    Atomics on numbers of 16 bits read and write the 4 bytes around: the last number has those.
    Functions for the CPU ask the same allocator.
    """
    names = ("bytes", "alignment", "type", "device")
    with e.define(f"__tvm_ffi_{_ALLOCATE}", PTR, [I64, I64, I32, I32], names=names) as function:
        size, alignment, kind, device = function.args
        with e.if_then(e.icmp("eq", kind, e.const_i32(DeviceType.CPU))):
            e.ret(_from_libc(e, size, alignment))
        with e.if_then(e.icmp("ne", kind, e.const_i32(DeviceType.CUDA))):
            e.ret(e.null())
        context, place = e.alloca(PTR, name="context"), e.alloca(PTR, name="place")
        e.store(e.null(), place)
        _driver(e, addresses, "cuInit", e.const_i32(0))
        status = _driver(e, addresses, "cuDevicePrimaryCtxRetain", context, device)
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.ret(e.null())
        # An odd number of 16-bit elements: the last one has only half of its 4 bytes.
        half_a_word = e.icmp("eq", e.builder.and_(size, e.const_i64(3)), e.const_i64(2))
        rest = e.builder.select(half_a_word, e.const_i64(2), e.const_i64(0))
        room = e.builder.add(size, rest, "room")
        _within(e, addresses, e.load(context, PTR), "cuMemAlloc_v2", place, room)
        with e.if_then(e.is_null(e.load(place, PTR)), likely=False):
            _driver(e, addresses, "cuDevicePrimaryCtxRelease_v2", device)
        e.ret(e.load(place, PTR))


def _from_libc(e: Emitter, size: ir.Value, alignment: ir.Value) -> ir.Value:
    """Memory of the CPU; the word before it says where the block begins that is to be freed."""
    b = e.builder
    block = e.call("malloc", [b.add(size, b.add(alignment, e.const_i64(_WORD)))], "block")
    with e.if_then(e.is_null(block), likely=False):
        e.ret(e.null())
    # Rounding down loses at most `alignment` - 1 bytes, so a word is left before `start`.
    behind = b.add(b.ptrtoint(block, I64), b.add(alignment, e.const_i64(_WORD - 1)))
    start = b.inttoptr(b.and_(behind, b.neg(alignment)), PTR, "start")
    e.store(block, e.index(start, I64, -1))
    return start


def _define_free(e: Emitter) -> None:
    """`void free(ptr memory, i32 type, i32 device)`: a tensor of a GPU has a deleter of its own."""
    names = ("memory", "type", "device")
    with e.define(f"__tvm_ffi_{_FREE}", VOID, [PTR, I32, I32], names=names) as function:
        memory, kind, _ = function.args
        with e.if_then(e.icmp("eq", kind, e.const_i32(DeviceType.CPU))):
            e.call("free", [e.load(e.index(memory, I64, -1), PTR)])
        e.ret()


def _define_tensor(e: Emitter, addresses: dict[str, int], base: int, deleter: ir.Value) -> None:
    """As `base`, with a deleter that knows the context that the memory is in.

    A primary context may end, and another one come: a tensor of the one before must not free what
    the new one has at the same address.
    """
    names = ("prototype", "out", "context", "set_error")
    with e.define(f"__tvm_ffi_{_TENSOR}", I32, [PTR] * 4, names=names) as function:
        pointer = e.builder.inttoptr(e.const_i64(base), PTR)
        status = e.call_pointer(pointer, _ALLOCATOR_TYPE, list(function.args), "status")
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            e.ret(status)
        tensor = e.load(function.args[1], PTR, name="tensor")
        data = e.load_field(tensor, MANAGED_TENSOR, "dl.data")
        kind = e.load_field(tensor, MANAGED_TENSOR, "dl.device_type")
        on_gpu = e.icmp("eq", kind, e.const_i32(DeviceType.CUDA))
        with e.if_then(e.builder.and_(on_gpu, e.not_(e.is_null(data)))):
            place = e.alloca(PTR, name="primary")
            e.store(e.null(), place)
            device = e.load_field(tensor, MANAGED_TENSOR, "dl.device_id")
            # Only to learn the context's handle. The hold on it is the one that `allocate` took.
            _driver(e, addresses, "cuDevicePrimaryCtxRetain", place, device)
            _driver(e, addresses, "cuDevicePrimaryCtxRelease_v2", device)
            e.store_field(tensor, MANAGED_TENSOR, "manager_ctx", e.load(place, PTR))
            e.store_field(tensor, MANAGED_TENSOR, "deleter", deleter)
        e.ret(e.const_i32(0))


def _define_deleter(e: Emitter, addresses: dict[str, int]) -> ir.Function:
    """Frees memory in its context, and gives back the hold that it had on that."""
    names = ("tensor",)
    with e.define("deleter", VOID, [PTR], names=names, linkage="internal") as function:
        (tensor,) = function.args
        context = e.load_field(tensor, MANAGED_TENSOR, "manager_ctx")
        data = e.load_field(tensor, MANAGED_TENSOR, "dl.data")
        device = e.load_field(tensor, MANAGED_TENSOR, "dl.device_id")
        freed = _within(e, addresses, context, "cuMemFree_v2", data)
        with e.if_then(e.icmp("eq", freed, e.const_i32(0))):
            _driver(e, addresses, "cuDevicePrimaryCtxRelease_v2", device)
        e.call("free", [tensor])
        e.ret()
    return function


def _within(
    e: Emitter, addresses: dict[str, int], context: ir.Value, name: str, *arguments: ir.Value
) -> ir.Value:
    """Call a function with a context current; the result of whatever failed first."""
    popped, status = e.alloca(PTR, name="popped"), e.alloca(I32, name="status")
    e.store(_driver(e, addresses, "cuCtxPushCurrent_v2", context), status)
    with e.if_then(e.icmp("eq", e.load(status, I32), e.const_i32(0))):
        e.store(_driver(e, addresses, name, *arguments), status)
        _driver(e, addresses, "cuCtxPopCurrent_v2", popped)
    return e.load(status, I32)

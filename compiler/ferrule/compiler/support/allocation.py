"""Support code that allocates the tensors of a body, and releases them.

* `i32 ferrule_allocate(ptr prototype, ptr slot, ptr values)`: a new tensor with the prototype's
  shape, dtype and device; its handle replaces the one in the slot.  The memory is from the caller's
  allocator in tvm-ffi.  Without one, on the CPU, it is one block from libc for the whole tensor.
* `i32 ferrule_allocate_aligned(ptr prototype, ptr slot, ptr values, i64 alignment)`: the same with
  a larger alignment than allocators guarantee, a power of two: a view of a larger tensor.  The
  strides of the prototype must point to space for as many as it has dims.
* `i32 ferrule_shrink(ptr prototype, ptr slot)`: the tensor of a slot with the prototype's sizes and
  data, which are a part of it: a view, no copy, which takes the tensor's place in the slot.
* `i32 ferrule_view(ptr prototype, ptr slot)`: the same with any sizes and strides, always a view.
* `void ferrule_keep(ptr results, i64 slot)`: the handle in a slot of the results gets a reference
  for the caller.
* `void ferrule_let_go(ptr slots, i64 count)`: release the handles of a table.

The first four return a `Status`, and store the values of its fault in `values`, if they have any.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, Location
from ferrule.compiler.support.entries import (
    ALIGNED,
    ALIGNMENT,
    ALLOCATE,
    KEEP,
    LET_GO,
    SHRINK,
    VIEW,
)
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    DLTENSOR,
    I8,
    I32,
    I64,
    MANAGED_TENSOR,
    PTR,
    TENSOR_OBJECT,
    VOID,
)
from ferrule.specs import Uint8

_MAX_BYTES: Final = 1 << 62
_DLPACK_MAJOR: Final = 1


class Status(IntEnum):
    """The result of an allocation: from 1 on the number of its fault."""

    RAISED = RAISED
    DONE = 0
    TOO_LARGE = 1
    NO_ALLOCATOR = 2
    NO_MEMORY = 3
    MISALIGNED = 4


_OF_GPU: Final = {"cuda": " or ferrule.cuda.use_as_allocator()"}
"""What else registers an allocator for tensors on a device."""
NO_VIEWS: Final = (
    "RuntimeError",
    "a result that is a part of a tensor needs a newer apache-tvm-ffi, one that has "
    "TVMFFITensorCreateUnsafeView",
)
"""The class and message of the fault of `ferrule_shrink` and `ferrule_view`, of status 1."""


def failures(
    device: str, location: Location | None, alignment: int = ALIGNMENT
) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …, for tensors on this device."""
    messages = {
        Status.TOO_LARGE: (
            "ValueError",
            "Invalid shape of a new tensor, expected fewer than 2**62 bytes",
        ),
        Status.NO_ALLOCATOR: (
            "RuntimeError",
            f"there is no allocator for a new tensor on {device}: in C and other languages "
            f"register one by TVMFFIEnvSetDLPackManagedTensorAllocator; in Python by "
            f"ferrule.runtime.use_allocator(allocate, free){_OF_GPU.get(device, '')}, or call with "
            "a torch tensor",
        ),
        Status.NO_MEMORY: ("MemoryError", "there is no memory for a new tensor of {} bytes"),
        Status.MISALIGNED: (
            "RuntimeError",
            f"Misaligned new tensor, expected data alignment={alignment} bytes of the allocator, "
            f"but got address {{}}",
        ),
    }
    return tuple(Fault(*messages[Status(i + 1)], location) for i in range(len(messages)))


_BYTES: Final = ir.FunctionType(I64, [PTR])
_VIEW: Final = "TVMFFITensorCreateUnsafeView"
_VIEWED: Final = ir.FunctionType(I32, [PTR, PTR, PTR])
_FROM_LIBC: Final = ir.FunctionType(I32, [PTR, PTR, I64, PTR])


def define_allocation(emitter: Emitter) -> None:
    """All functions of the module."""
    size = _define_size(emitter)
    block = _define_from_libc(emitter)
    allocate = _define_allocate(emitter, size, block)
    _define_allocate_aligned(emitter, size, allocate)
    _define_shrink(emitter)
    _define_view(emitter)
    _define_keep(emitter)
    _define_let_go(emitter)


def _status(value: Status) -> ir.Constant:
    return ir.Constant(I32, int(value))


def _define_size(emitter: Emitter) -> ir.Function:
    """`i64 ferrule_bytes(ptr prototype)`: the bytes of a compact tensor, -1 if it is too large.

    A size of 0 counts as 1 until the end: strides are products of the other sizes, and must fit
    too.
    """
    with emitter.define(
        "ferrule_bytes", I64, _BYTES.args, names=("prototype",), linkage="internal"
    ) as function:
        (prototype,) = function.args
        build = emitter.builder
        bits = build.zext(emitter.load_field(prototype, DLTENSOR, "dtype_bits"), I64)
        total, is_empty = emitter.alloca(I64, name="total"), emitter.alloca(I8, name="empty")
        emitter.store(build.lshr(bits, emitter.const_i64(3)), total)
        emitter.store(ir.Constant(I8, 0), is_empty)
        shape = emitter.load_field(prototype, DLTENSOR, "shape")
        count = build.zext(emitter.load_field(prototype, DLTENSOR, "ndim"), I64)
        with emitter.loop(count) as i:
            size = emitter.load(emitter.index(shape, I64, i), I64)
            is_zero = emitter.icmp("eq", size, emitter.const_i64(0))
            with emitter.if_then(is_zero):
                emitter.store(ir.Constant(I8, 1), is_empty)
            counted = emitter.select(is_zero, emitter.const_i64(1), size)
            product, wraps = emitter.overflowing("smul", emitter.load(total, I64), counted)
            large = emitter.icmp("sge", product, emitter.const_i64(_MAX_BYTES))
            with emitter.if_then(emitter.binary("or", wraps, large), likely=False):
                emitter.ret(emitter.const_i64(-1))
            emitter.store(product, total)
        nothing = emitter.icmp("ne", emitter.load(is_empty, I8), ir.Constant(I8, 0))
        emitter.ret(emitter.select(nothing, emitter.const_i64(0), emitter.load(total, I64)))
    return function


def _define_from_libc(emitter: Emitter) -> ir.Function:
    """`i32 ferrule_from_libc(ptr prototype, ptr slot, i64 bytes, ptr values)`: a tensor in one
    block.

    The block holds the managed tensor, the shape, the strides and the elements, so its deleter is
    just `free`.
    """
    names = ("prototype", "slot", "bytes", "values")
    with emitter.define(
        "ferrule_from_libc", I32, _FROM_LIBC.args, names=names, linkage="internal"
    ) as function:
        prototype, slot, size, values = function.args
        build = emitter.builder
        count = build.zext(emitter.load_field(prototype, DLTENSOR, "ndim"), I64)
        dims = build.shl(count, emitter.const_i64(3))
        head = build.add(emitter.const_i64(MANAGED_TENSOR.size), build.shl(dims, dims.type(1)))
        room = build.add(build.add(head, emitter.const_i64(ALIGNMENT)), size)
        block = emitter.call("malloc", [room], "block")
        with emitter.if_then(emitter.is_null(block), likely=False):
            emitter.store(size, values)
            emitter.ret(_status(Status.NO_MEMORY))
        shape = emitter.index(block, I8, MANAGED_TENSOR.size)
        strides = emitter.index(shape, I8, dims)
        behind = build.add(build.ptrtoint(block, I64), build.add(head, head.type(ALIGNMENT - 1)))
        data = build.inttoptr(build.and_(behind, emitter.const_i64(-ALIGNMENT)), PTR)
        _fill_strides(emitter, prototype, shape, strides, count)
        _fill_managed(emitter, block, prototype, {"data": data, "shape": shape, "strides": strides})
        arguments = [block, emitter.const_i32(0), emitter.const_i32(0), slot]
        made = emitter.call("TVMFFITensorFromDLPackVersioned", arguments)
        with emitter.if_then(emitter.icmp("ne", made, emitter.const_i32(0)), likely=False):
            emitter.call("free", [block])
            emitter.ret(_status(Status.RAISED))
        emitter.ret(_status(Status.DONE))
    return function


def _fill_strides(
    emitter: Emitter, prototype: ir.Value, shape: ir.Value, strides: ir.Value, count: ir.Value
) -> None:
    """Copy the shape, and set the strides for row-major order."""
    given = emitter.load_field(prototype, DLTENSOR, "shape")
    running = emitter.alloca(I64, name="stride")
    emitter.store(emitter.const_i64(1), running)
    with emitter.loop(count) as i:
        axis = emitter.builder.sub(emitter.builder.sub(count, i), emitter.const_i64(1))
        size = emitter.load(emitter.index(given, I64, axis), I64)
        stride = emitter.load(running, I64)
        emitter.store(size, emitter.index(shape, I64, axis))
        emitter.store(stride, emitter.index(strides, I64, axis))
        emitter.store(emitter.builder.mul(stride, size), running)


def _fill_managed(
    emitter: Emitter, block: ir.Value, prototype: ir.Value, addresses: dict[str, ir.Value]
) -> None:
    def put(name: str, value: ir.Value) -> None:
        emitter.store_field(block, MANAGED_TENSOR, name, value)

    put("version_major", emitter.const_i32(_DLPACK_MAJOR))
    put("version_minor", emitter.const_i32(0))
    put("manager_ctx", emitter.null())
    put("deleter", emitter.extern("free"))
    put("flags", emitter.const_i64(0))
    for name in ("device", "ndim", "dtype"):
        put(f"dl.{name}", emitter.load_field(prototype, DLTENSOR, name))
    for name, address in addresses.items():
        put(f"dl.{name}", address)
    put("dl.byte_offset", emitter.const_i64(0))


def _define_allocate(emitter: Emitter, size: ir.Function, block: ir.Function) -> ir.Function:
    names = ("prototype", "slot", "values")
    with emitter.define(ALLOCATE, I32, [PTR, PTR, PTR], names=names) as function:
        prototype, slot, values = function.args
        before = emitter.load(slot, PTR, name="before")
        with emitter.if_then(emitter.not_(emitter.is_null(before)), likely=False):
            # The slot is empty from here on, also where the new tensor cannot be made.
            emitter.store(emitter.null(), slot)
            emitter.call("TVMFFIObjectDecRef", [before])
        bytes_ = emitter.call(size, [prototype], "bytes")
        with emitter.if_then(emitter.icmp("slt", bytes_, emitter.const_i64(0)), likely=False):
            emitter.ret(_status(Status.TOO_LARGE))
        allocator = emitter.call("TVMFFIEnvGetDLPackManagedTensorAllocator", [], "allocator")
        missing = emitter.is_null(allocator)
        with emitter.builder.if_else(missing) as (without, with_one):
            with without:
                _without_allocator(emitter, prototype, slot, bytes_, values, block)
            with with_one:
                made = emitter.call("TVMFFIEnvTensorAlloc", [prototype, slot])
                failed = emitter.icmp("ne", made, emitter.const_i32(0))
                with emitter.if_then(failed, likely=False):
                    emitter.store(emitter.null(), slot)
                    emitter.ret(_status(Status.RAISED))
        _check_alignment(emitter, emitter.load(slot, PTR), bytes_, values)
        emitter.ret(_status(Status.DONE))
    return function


def _without_allocator(
    emitter: Emitter,
    prototype: ir.Value,
    slot: ir.Value,
    bytes_: ir.Value,
    values: ir.Value,
    block: ir.Function,
) -> None:
    kind = emitter.load_field(prototype, DLTENSOR, "device_type")
    elsewhere = emitter.icmp("ne", kind, emitter.const_i32(DeviceType.CPU))
    with emitter.if_then(elsewhere, likely=False):
        emitter.ret(_status(Status.NO_ALLOCATOR))
    made = emitter.call(block, [prototype, slot, bytes_, values])
    with emitter.if_then(emitter.icmp("ne", made, emitter.const_i32(0)), likely=False):
        emitter.store(emitter.null(), slot)
        emitter.ret(made)


def _define_allocate_aligned(emitter: Emitter, size: ir.Function, allocate: ir.Function) -> None:
    """The function for views was added after tvm-ffi 0.1.0, so it is looked up; without it the
    allocator's tensor is used if it is aligned."""
    names = ("prototype", "slot", "values", "alignment")
    with emitter.define(ALIGNED, I32, [PTR, PTR, PTR, I64], names=names) as function:
        prototype, slot, values, alignment = function.args
        strides = emitter.load_field(prototype, DLTENSOR, "strides")
        emitter.store_field(prototype, DLTENSOR, "strides", emitter.null())
        bytes_ = emitter.call(size, [prototype], "bytes")
        with emitter.if_then(emitter.icmp("slt", bytes_, emitter.const_i64(0)), likely=False):
            emitter.ret(_status(Status.TOO_LARGE))
        view = emitter.call("dlsym", [emitter.null(), emitter.cstring(_VIEW)], "view")
        with emitter.if_then(emitter.is_null(view), likely=False):
            _require(emitter, emitter.call(allocate, [prototype, slot, values]))
            _check_alignment(emitter, emitter.load(slot, PTR), bytes_, values, alignment)
            emitter.ret(_status(Status.DONE))
        larger = _larger(emitter, prototype, bytes_, alignment)
        _require(emitter, emitter.call(allocate, [larger, slot, values]))
        whole, less = emitter.load(slot, PTR), emitter.binary("sub", alignment, alignment.type(1))
        past = emitter.binary("add", _address(emitter, whole), less)
        data = emitter.binary("and", past, emitter.binary("sub", emitter.const_i64(0), alignment))
        emitter.store_field(prototype, DLTENSOR, "data", emitter.builder.inttoptr(data, PTR))
        shape = emitter.load_field(prototype, DLTENSOR, "shape")
        count = emitter.builder.zext(emitter.load_field(prototype, DLTENSOR, "ndim"), I64)
        _fill_strides(emitter, prototype, shape, strides, count)
        emitter.store_field(prototype, DLTENSOR, "strides", strides)
        _view_instead(emitter, view, prototype, slot)


def _view_instead(emitter: Emitter, view: ir.Value, prototype: ir.Value, slot: ir.Value) -> None:
    """Replace the tensor in a slot by a view of it, and end the function."""
    whole = emitter.load(slot, PTR)
    emitter.store(emitter.null(), slot)
    made = emitter.call_pointer(view, _VIEWED, [whole, prototype, slot])
    emitter.call("TVMFFIObjectDecRef", [whole])
    with emitter.if_then(emitter.icmp("ne", made, emitter.const_i32(0)), likely=False):
        emitter.store(emitter.null(), slot)
        emitter.ret(_status(Status.RAISED))
    emitter.ret(_status(Status.DONE))


def _define_shrink(emitter: Emitter) -> None:
    """A tensor that has the size already stays as it is, for which no view is needed."""
    with emitter.define(SHRINK, I32, [PTR, PTR], names=("prototype", "slot")) as function:
        prototype, slot = function.args
        given = emitter.load_field(prototype, DLTENSOR, "shape")
        there = emitter.load_field(emitter.load(slot, PTR), TENSOR_OBJECT, "dl.shape")
        sizes = [emitter.load(each, I64) for each in (given, there)]
        with emitter.if_then(emitter.icmp("eq", *sizes)):
            emitter.ret(_status(Status.DONE))
        _view_or_fault(emitter, prototype, slot)


def _define_view(emitter: Emitter) -> None:
    with emitter.define(VIEW, I32, [PTR, PTR], names=("prototype", "slot")) as function:
        _view_or_fault(emitter, *function.args)


def _view_or_fault(emitter: Emitter, prototype: ir.Value, slot: ir.Value) -> None:
    view = emitter.call("dlsym", [emitter.null(), emitter.cstring(_VIEW)], "view")
    with emitter.if_then(emitter.is_null(view), likely=False):
        emitter.ret(emitter.const_i32(1))
    _view_instead(emitter, view, prototype, slot)


def _require(emitter: Emitter, status: ir.Value) -> None:
    """End the function with a status unless it is 0."""
    with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0)), likely=False):
        emitter.ret(status)


def _larger(
    emitter: Emitter, prototype: ir.Value, bytes_: ir.Value, alignment: ir.Value
) -> ir.Value:
    """A prototype that is larger than needed, so that it contains an aligned range of `bytes_` at
    any address; allocators guarantee a part of the alignment."""
    spare = emitter.binary("sub", alignment, emitter.const_i64(ALIGNMENT))
    shape, larger = emitter.alloca(I64, name="room"), emitter.alloca(DLTENSOR, name="larger")
    emitter.store(emitter.binary("add", bytes_, spare), shape)
    for name, value in (
        ("data", emitter.null()),
        ("device", emitter.load_field(prototype, DLTENSOR, "device")),
        ("ndim", emitter.const_i32(1)),
        ("dtype", emitter.const_i32(Uint8.dlpack)),
        ("shape", shape),
        ("strides", emitter.null()),
        ("byte_offset", emitter.const_i64(0)),
    ):
        emitter.store_field(larger, DLTENSOR, name, value)
    return larger


def _address(emitter: Emitter, tensor: ir.Value) -> ir.Value:
    """The address of the first element of a tensor, i64."""
    data = emitter.load_field(tensor, TENSOR_OBJECT, "dl.data")
    offset = emitter.load_field(tensor, TENSOR_OBJECT, "dl.byte_offset")
    return emitter.builder.add(emitter.builder.ptrtoint(data, I64), offset)


def _check_alignment(
    emitter: Emitter,
    tensor: ir.Value,
    bytes_: ir.Value,
    values: ir.Value,
    alignment: ir.Value | None = None,
) -> None:
    """Check the alignment, on which the body's code relies; a tensor without elements needs
    none."""
    address = _address(emitter, tensor)
    less: ir.Value = emitter.const_i64(ALIGNMENT - 1)
    if alignment is not None:
        less = emitter.binary("sub", alignment, emitter.const_i64(1))
    rest = emitter.builder.and_(address, less)
    is_off = emitter.icmp("ne", rest, emitter.const_i64(0))
    has_some = emitter.icmp("ne", bytes_, emitter.const_i64(0))
    with emitter.if_then(emitter.binary("and", is_off, has_some), likely=False):
        emitter.store(address, values)
        emitter.ret(_status(Status.MISALIGNED))


def _define_keep(emitter: Emitter) -> None:
    with emitter.define(KEEP, VOID, [PTR, I64], names=("results", "slot")) as function:
        results, slot = function.args
        handle = emitter.load(emitter.index(results, PTR, slot), PTR)
        with emitter.if_then(emitter.not_(emitter.is_null(handle))):
            emitter.call("TVMFFIObjectIncRef", [handle])
        emitter.ret()


def _define_let_go(emitter: Emitter) -> None:
    with emitter.define(LET_GO, VOID, [PTR, I64], names=("slots", "count")) as function:
        slots, count = function.args
        with emitter.loop(count) as i:
            handle = emitter.load(emitter.index(slots, PTR, i), PTR)
            with emitter.if_then(emitter.not_(emitter.is_null(handle))):
                emitter.call("TVMFFIObjectDecRef", [handle])
        emitter.ret()

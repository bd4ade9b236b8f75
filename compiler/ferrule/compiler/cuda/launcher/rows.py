"""The loaded libraries and kernels of each image, and the image of each device.

A row is an image's library with the handles of its kernels, `ROW`.  If all GPUs get the same image,
its handles are also in the kernel records, and a launch takes them from there.  If GPUs differ, a
kernel's handle is the address of its record, and the state has, in place of the driver's
cuLaunchKernelEx, a function that finds the handle for the current device.  So the code of a launch
is the same on every machine, and machines with one kind of GPU pay nothing for the other case.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import call, cold, unless
from ferrule.compiler.cuda.launcher.driver import CALLS, Result
from ferrule.compiler.cuda.launcher.state import (
    KERNEL,
    MAX_DEVICES,
    PROGRAM,
    ROW,
    STATE,
    call_driver,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR, size_of

FIND_ROW: Final = "ferrule_cuda_row"
FIND_ROW_TYPE: Final = ir.FunctionType(PTR, [PTR, I32])
HANDLE: Final = "ferrule_cuda_handle"
HANDLE_TYPE: Final = ir.FunctionType(PTR, [PTR, PTR, I32])
LAUNCH: Final = "cuLaunchKernelEx"
LAUNCH_HERE: Final = "ferrule_cuda_launch_here"


def define_rows(emitter: Emitter) -> None:
    """`FIND_ROW`, `HANDLE` and `LAUNCH_HERE`."""
    _define_find_row(emitter)
    _define_handle(emitter)
    _define_launch_here(emitter)


def row_at(emitter: Emitter, state: ir.Value, image: ir.Value) -> ir.Value:
    """The row of an image, by its number, i64."""
    count = _kernel_count(emitter, state)
    kernels = emitter.binary("mul", count, emitter.const_i64(KERNEL.size))
    first = emitter.index(emitter.index(state, I8, STATE.size), I8, kernels)
    places = emitter.binary("add", count, emitter.const_i64(ROW.size // size_of(PTR)))
    return emitter.index(first, PTR, emitter.binary("mul", image, places))


def handle_in(emitter: Emitter, row: ir.Value, number: ir.Value) -> ir.Value:
    """The address of a kernel's handle in a row; the number is an i64."""
    return emitter.index(emitter.index(row, I8, ROW.size), PTR, number)


@contextmanager
def each_kernel(emitter: Emitter, state: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Emit a loop over the kernels of a state; yields number and `KERNEL`."""
    with emitter.loop(_kernel_count(emitter, state), name="kernel") as number:
        at = emitter.binary("mul", number, emitter.const_i64(KERNEL.size))
        yield number, emitter.index(emitter.index(state, I8, STATE.size), I8, at)


def chosen_at(emitter: Emitter, state: ir.Value, device: ir.Value) -> ir.Value:
    """The address of the record of a device's image."""
    last = emitter.const_i32(MAX_DEVICES - 1)
    kept = emitter.select(emitter.icmp("ult", device, last), device, last)
    chosen = emitter.field_ptr(state, STATE, "chosen")
    return emitter.index(chosen, I32, emitter.builder.zext(kept, I64))


def library_at(emitter: Emitter, row: ir.Value) -> ir.Value:
    """The library of a row, null if it is not loaded; after this acquiring load the handles can be
    read."""
    at = emitter.field_ptr(row, ROW, "library")
    return emitter.builder.load_atomic(at, "acquire", 8, typ=PTR, name="library")


def _kernel_count(emitter: Emitter, state: ir.Value) -> ir.Value:
    program = emitter.load_field(state, STATE, "program")
    return emitter.load_field(program, PROGRAM, "count")


def _define_find_row(emitter: Emitter) -> None:
    """`ptr ferrule_cuda_row(ptr state, i32 device)`: the loaded row of a device; null if there is
    none."""
    with cold(emitter, FIND_ROW, FIND_ROW_TYPE) as (state, device):
        place = chosen_at(emitter, state, device)
        chosen = emitter.builder.load_atomic(place, "acquire", 4, typ=I32, name="chosen")
        with emitter.if_then(emitter.icmp("eq", chosen, emitter.const_i32(0))):
            emitter.ret(emitter.null())
        # 0 means that none is chosen, so the place holds the number and one more.
        number = emitter.binary("sub", emitter.builder.zext(chosen, I64), emitter.const_i64(1))
        row = row_at(emitter, state, number)
        is_loaded = emitter.not_(emitter.is_null(library_at(emitter, row)))
        emitter.ret(emitter.select(is_loaded, row, emitter.null()))


def _define_handle(emitter: Emitter) -> None:
    """`ptr ferrule_cuda_handle(ptr state, ptr kernel, i32 device)`: the driver's handle of a kernel
    on a device; null if there is none."""
    with cold(emitter, HANDLE, HANDLE_TYPE) as (state, kernel, device):
        build = emitter.builder
        row = call(emitter, FIND_ROW, FIND_ROW_TYPE, state, device)
        with emitter.if_then(emitter.is_null(row)):
            emitter.ret(emitter.null())
        first = build.ptrtoint(emitter.index(state, I8, STATE.size), I64)
        behind = emitter.binary("sub", build.ptrtoint(kernel, I64), first)
        number = build.udiv(behind, emitter.const_i64(KERNEL.size))
        emitter.ret(emitter.load(handle_in(emitter, row, number), PTR, name="handle"))


def _define_launch_here(emitter: Emitter) -> None:
    """Like cuLaunchKernelEx, for a `KERNEL` on the current device."""
    with cold(emitter, LAUNCH_HERE, CALLS[LAUNCH]) as (config, kernel, pointers, extra):
        # Else its address would come from a table of the library, which support code does not have.
        emitter.current.linkage = "internal"
        state = emitter.load_field(kernel, KERNEL, "state")
        device = emitter.alloca(I32, name="device")
        result = call_driver(emitter, state, "cuCtxGetDevice", [device])
        with unless(emitter, result):
            emitter.ret(result)
        given = [state, kernel, emitter.load(device, I32)]
        handle = call(emitter, HANDLE, HANDLE_TYPE, *given)
        with emitter.if_then(emitter.is_null(handle)):
            emitter.ret(emitter.const_i32(Result.INVALID_HANDLE))
        launch = emitter.load_field(state, STATE, "launch")
        operands = [config, handle, pointers, extra]
        emitter.ret(emitter.call_pointer(launch, CALLS[LAUNCH], operands))

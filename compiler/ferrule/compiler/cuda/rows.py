"""What is loaded of each image, and which image is a device's.

A row is an image's library and the handles of its kernels.  Where all GPUs get the same image its
handles are in the kernels too, and a launch takes them there.  Where they differ, the state has in
place of the driver's cuLaunchKernelEx a function that finds the handle for the device that is
current, and a kernel's handle is its own address: so a launch is the same code on every machine,
and costs nothing where GPUs are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.cold import call, cold, unless
from ferrule.compiler.cuda.driver import CALLS, Result
from ferrule.compiler.cuda.state import (
    KERNEL,
    MAX_DEVICES,
    PROGRAM,
    ROW,
    STATE,
    call_driver,
    row_size,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR

LIBRARY_OF: Final = "ferrule_cuda_row"
LIBRARY_OF_TYPE: Final = ir.FunctionType(PTR, [PTR, I32])
HANDLE: Final = "ferrule_cuda_handle"
HANDLE_TYPE: Final = ir.FunctionType(PTR, [PTR, PTR, I32])
LAUNCH: Final = "cuLaunchKernelEx"
LAUNCH_HERE: Final = "ferrule_cuda_launch_here"


def define_rows(emitter: Emitter) -> None:
    """`LIBRARY_OF`, `HANDLE` and `LAUNCH_HERE`."""
    _define_row(emitter)
    _define_handle(emitter)
    _define_launch_here(emitter)


def row_at(emitter: Emitter, state: ir.Value, image: ir.Value) -> ir.Value:
    """The row of an image, by its number, i64."""
    program = emitter.load_field(state, STATE, "program")
    count = emitter.load_field(program, PROGRAM, "count")
    kernels = emitter.binary("mul", count, emitter.const_i64(KERNEL.size))
    first = emitter.index(emitter.index(state, I8, STATE.size), I8, kernels)
    size = emitter.binary("add", count, emitter.const_i64(1))
    assert row_size(0) == size_of_handle()
    return emitter.index(first, PTR, emitter.binary("mul", image, size))

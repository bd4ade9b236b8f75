"""The record of an object about its images, and the statuses of operations on it.

The state is zero at start.  A thread that loads `phase` READY, with an acquiring load, may read all
of it; before that only the loading thread accesses it.  If GPUs get different images, the phase is
MIXED, and rows and `chosen` are filled in when devices are first used, each by one loading thread.
`contexts` is filled in at any time: it has the primary context of each device that was ever made
current, retained once, and null before.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.driver import CALLS
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout, size_of

MAX_DEVICES: Final = 128
"""The number of devices whose contexts are cached; for other devices a context is retained each
time, and they are assumed to get the same image as the last cached one."""


class Phase(IntEnum):
    """The loading phase of the images; during a load it is -pid of the loading process."""

    UNLOADED = 0
    READY = 1
    """The image that every GPU of the machine gets is loaded."""
    CLOSED = 2
    """The library of the object was closed, or the process is ending: no more calls are made."""
    MIXED = 3
    """GPUs get different images; the rows show which of them are loaded."""


class Status(IntEnum):
    """The result of an operation: from 1 on the number of its fault."""

    PUSHED = -1
    """Success, and a context was pushed."""
    DONE = 0
    CALL_FAILED = 1
    NO_KERNEL = 2
    NO_LIBRARY = 3
    NO_FUNCTION = 4
    NO_DEVICE = 5
    FORKED = 6
    CLOSED = 7
    LAUNCH_FAILED = 8
    TOO_MANY_THREADS = 9
    TOO_MUCH_SHARED = 10
    NO_IMAGE = 11


STATE: Final = Layout(
    "CudaState",
    [
        Field("phase", I32),
        Field("pid", I32),
        *(Field(name, PTR) for name in CALLS),
        Field("launch", PTR),
        Field("program", PTR),
        Field("contexts", ir.ArrayType(PTR, MAX_DEVICES)),
        Field("chosen", ir.ArrayType(I32, MAX_DEVICES)),
        Field("loaded", I32),
        Field("registered", I32),
    ],
)
"""`pid`: the process that loaded the first image.  `launch`: the driver's cuLaunchKernelEx, if its
own slot has another function, see `rows`.  `chosen`: one more than the number of a device's image,
0 if unknown.  `loaded`: the phase after a successful load.  `registered`: not 0 if the exit handler
is registered, see `closing`.

After it come a `KERNEL` for each kernel, in the order of their names, then a `ROW` for each image
of the program.
"""

KERNEL: Final = Layout(
    "CudaKernel",
    [
        Field("handle", PTR),
        Field("state", PTR),
        Field("allowed", ir.ArrayType(I64, MAX_DEVICES // 64)),
        Field("clustered", ir.ArrayType(I64, MAX_DEVICES // 64)),
        Field("has_large_clusters", I32),
    ],
)
"""`state`: the state that it belongs to.  `allowed`: a bit for each device on which it may use all
the shared memory; `clustered`: the same for clusters of more than 8 blocks.  `has_large_clusters`:
1 after such a cluster was first requested."""

ROW: Final = Layout("CudaRow", [Field("library", PTR)])
"""Null if an image is not loaded.  The driver's handles of the kernels follow."""

PROGRAM: Final = Layout(
    "CudaProgram",
    [
        Field("images", PTR),
        Field("image_count", I64),
        Field("listed", PTR),
        Field("options", PTR),
        Field("option_values", PTR),
        Field("option_count", I64),
        Field("names", PTR),
        Field("count", I64),
    ],
)
"""A constant: the table of images (see `images`) with a text that lists them, the options of the
driver's assembler with their values, and the names of the kernels, one after the other, each with
its NUL."""

FIRST_CALL: Final = STATE.offset(next(iter(CALLS)))


def state_size(kernels: int, images: int) -> int:
    """The bytes of a state with all records that follow it."""
    handle = size_of(PTR)
    return STATE.size + KERNEL.size * kernels + (ROW.size + handle * kernels) * images


def call_driver(
    emitter: Emitter, state: ir.Value, name: str, arguments: list[ir.Value]
) -> ir.Value:
    """Call a function of the driver through the state; returns its CUresult."""
    function = emitter.load_field(state, STATE, name)
    return emitter.call_pointer(function, CALLS[name], arguments, name=f"{name}.result")


def status(value: Status) -> ir.Constant:
    """A status as an operand."""
    return ir.Constant(I32, int(value))

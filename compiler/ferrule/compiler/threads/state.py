"""The state of an object about the OpenMP runtime, the job that the threads of a launch share, and
limits.

The state is zero at start.  A thread that loads `phase` 1, with an acquiring load, may read all of
it.  Before that any number of threads fill it in: they agree on `library` first, so that all write
the same.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID, Field, Layout

SETTING: Final = "FERRULE_NUM_THREADS"
MAX_THREADS: Final = 4096

DONE: Final = 0
BAD_SETTING: Final = -1
"""The status of a launch whose number of threads is invalid; its fault's value is the text."""

INTERRUPTED: Final = RAISED
"""The status of a launch that a signal ended, with the error set."""

CALLS: Final = MappingProxyType(
    {
        "omp_get_max_threads": ir.FunctionType(I32, []),
        "omp_in_parallel": ir.FunctionType(I32, []),
        "GOMP_parallel": ir.FunctionType(VOID, [PTR, PTR, I32, I32]),
    }
)
"""The functions that an OpenMP runtime must have; those of GNU, LLVM and Intel do.  The last one
runs a function in a team of threads, with the caller as number 0."""

LIBC: Final = MappingProxyType(
    {
        "getenv": ir.FunctionType(PTR, [PTR]),
        "getpid": ir.FunctionType(I32, []),
        "pthread_self": ir.FunctionType(I64, []),
        "pthread_create": ir.FunctionType(I32, [PTR, PTR, PTR, PTR]),
        "pthread_join": ir.FunctionType(I32, [I64, PTR]),
        "close": ir.FunctionType(I32, [I32]),
        "read": ir.FunctionType(I64, [I32, PTR, I64]),
        "open": ir.FunctionType(I32, [PTR, I32], var_arg=True),
        "dlopen": ir.FunctionType(PTR, [PTR, I32]),
        "dl_iterate_phdr": ir.FunctionType(I32, [PTR, PTR]),
        "gettid": ir.FunctionType(I32, []),
    }
)
"""The functions of the C library.  Like the others they are looked up in this order, up to the
first that is missing: so if one is present, all before it are.  References to each of them would
make objects larger."""

TRIED: Final = 64
"""The number of calling threads for which an object records that their teams can be created."""

STATE: Final = Layout(
    "ThreadsState",
    [
        Field("phase", I32),
        Field("wanted", I32),
        Field("pid", I32),
        Field("__padding", I32),
        Field("library", I64),
        Field("checked", I64),
        Field("asked", I64),
        *(Field(name, PTR) for name in (*LIBC, *CALLS)),
        Field("tried", ir.ArrayType(I64, TRIED)),
    ],
)
"""`library`: a handle from dlopen, or `ABSENT` or `EVERYWHERE`.  `wanted`: FERRULE_NUM_THREADS, or
the number that could be created; 0 without.  `pid`: the process that found the runtime, and that
owns its threads.  `checked`: the time of the main thread's last check for signals, in nanoseconds,
`asked`: the time of any launch's last consideration.  `tried`: the teams whose threads could be
created, each the calling thread and the number in one word.  Missing functions are null; the last
of `CALLS` is present only with the others.
"""

ABSENT: Final = -1
EVERYWHERE: Final = -2
"""The process finds the functions without a handle."""

JOB: Final = Layout(
    "ThreadsJob",
    [
        Field("state", PTR),
        Field("code", PTR),
        Field("frame", PTR),
        Field("values", PTR),
        Field("base", I64),
        Field("count", I64),
        Field("caller", I64),
        Field("piece", I64),
        Field("grain", I64),
        Field("next", I64),
        Field("failed", I64),
        Field("lock", I32),
        Field("status", I32),
        Field("left", I32),
        Field("made", I32),
    ],
)
"""One launch: the blocks from `base` to below `count`, in pieces of at most `piece` blocks,
multiples of `grain` unless that takes long.  `next` is the first block, counted from `base`, of the
next piece, `failed` that of the first piece that failed, or the number of blocks.  `left` and
`made` belong to the trial that creates threads before a team does.  `caller`: the thread that made
the launch, which checks for signals.
"""

CODE: Final = ir.FunctionType(I32, [PTR, PTR, I64, I64])
"""`i32 (ptr frame, ptr values, i64 first, i64 last)`: runs the blocks first <= i < last in order;
returns the status of the first that failed, with the values of its fault, else 0."""

SIGNALS: Final = "ferrule_threads_signals"
SIGNALS_TYPE: Final = ir.FunctionType(I32, [PTR])
"""`i32 (ptr state)`: the status `INTERRUPTED` if a signal handler raised, else `DONE`."""

RUN: Final = "ferrule_run_blocks"
RUN_TYPE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR, I64, I64, I64])

ENTRIES: Final = (RUN, SIGNALS)


def bad_setting() -> Fault:
    """The fault of `BAD_SETTING`."""
    wanted = f"a whole number from 1 to {MAX_THREADS}, or unset"
    return Fault("ValueError", f"{SETTING} must be {wanted}, but it is '{{text}}'")


def call_found(emitter: Emitter, state: ir.Value, name: str, arguments: list[ir.Value]) -> ir.Value:
    """Call a function of the OpenMP runtime, or of the C library, through the state."""
    function = emitter.load_field(state, STATE, name)
    return emitter.call_pointer(function, {**CALLS, **LIBC}[name], arguments)

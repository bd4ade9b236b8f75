"""Unloads images together with their code, but not after the driver has shut down.

Finalisers run when a library is closed, and when a process ends; in the latter case the driver may
have shut down before.  A handler of `__cxa_atexit`, which the system calls before any finaliser,
distinguishes the cases.  It belongs to the state, and is removed with it.

Handlers run in reverse order of registration, and some of them close libraries, such as those of
tvm-ffi 0.1.8 to 0.1.13.  So our handler is registered twice: when the library is opened, and again
after kernels were loaded, so that it runs before the driver's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import cold, during_captures, entry, is_one_of
from ferrule.compiler.cuda.launcher.entries import REGISTER, UNLOAD
from ferrule.compiler.cuda.launcher.rows import library_at, row_at
from ferrule.compiler.cuda.launcher.state import (
    MAX_DEVICES,
    PROGRAM,
    STATE,
    Phase,
    Status,
    call_driver,
    status,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, PTR, VOID

_ENDING: Final = "ferrule_cuda_ending"
_ENDING_TYPE: Final = ir.FunctionType(VOID, [PTR])
_AT_EXIT: Final = ir.FunctionType(I32, [PTR, PTR, PTR])
_FINALIZE: Final = ir.FunctionType(VOID, [PTR])


def define_closing(emitter: Emitter) -> None:
    """`REGISTER` and `UNLOAD`."""
    closed = ir.Constant(I32, int(Phase.CLOSED))
    with cold(emitter, _ENDING, _ENDING_TYPE) as (state,):
        # Else its address would come from a table of the library, which support code does not have.
        emitter.current.linkage = "internal"
        phase = emitter.field_ptr(state, STATE, "phase")
        emitter.builder.atomic_rmw("xchg", phase, closed, "acq_rel")
        emitter.ret()
    with entry(emitter, REGISTER) as (state,):
        with _found(emitter, "__cxa_atexit") as register:
            ending = emitter.symbol(_ENDING, _ENDING_TYPE)
            emitter.call_pointer(register, _AT_EXIT, [ending, state, state])
            emitter.store_field(state, STATE, "registered", emitter.const_i32(1))
        emitter.ret(status(Status.DONE))
    with entry(emitter, UNLOAD) as (state,):
        phase = emitter.field_ptr(state, STATE, "phase")
        before = emitter.builder.atomic_rmw("xchg", phase, closed, "acq_rel")
        loaded = is_one_of(emitter, before, (Phase.READY, Phase.MIXED))
        # In a child of a fork the driver's handles are invalid.
        own = emitter.icmp(
            "eq", emitter.call("getpid", []), emitter.load_field(state, STATE, "pid")
        )
        with emitter.if_then(emitter.binary("and", loaded, own)):
            _let_go(emitter, state)
        with _found(emitter, "__cxa_finalize") as finalize:
            emitter.call_pointer(finalize, _FINALIZE, [state])
        emitter.ret(status(Status.DONE))


@contextmanager
def _found(emitter: Emitter, name: str) -> Iterator[ir.Value]:
    """Emit code that runs if the C library has this function; yields its address."""
    function = emitter.call("dlsym", [emitter.null(), emitter.cstring(name)])
    with emitter.if_then(emitter.not_(emitter.is_null(function))):
        yield function


def _let_go(emitter: Emitter, state: ir.Value) -> None:
    """Unload the libraries and release the contexts, even during another thread's stream
    capture.

    A driver that does not know the libraries has ended, and perhaps begun again: then the contexts
    are gone with it, and a release would end one that others retain.
    """
    with during_captures(emitter, state):
        _unload_all(emitter, state)


def _unload_all(emitter: Emitter, state: ir.Value) -> None:
    program, worst = emitter.load_field(state, STATE, "program"), emitter.alloca(I32, name="worst")
    emitter.store(ir.Constant(I32, 0), worst)
    with emitter.loop(emitter.load_field(program, PROGRAM, "image_count"), name="image") as image:
        library = library_at(emitter, row_at(emitter, state, image))
        with emitter.if_then(emitter.not_(emitter.is_null(library))):
            result = call_driver(emitter, state, "cuLibraryUnload", [library])
            emitter.store(emitter.binary("or", emitter.load(worst, I32), result), worst)
    is_known = emitter.icmp("eq", emitter.load(worst, I32), ir.Constant(I32, 0))
    contexts = emitter.field_ptr(state, STATE, "contexts")
    with emitter.loop(emitter.const_i32(MAX_DEVICES)) as device:
        context = emitter.load(emitter.index(contexts, PTR, device), PTR)
        is_there = emitter.not_(emitter.is_null(context))
        with emitter.if_then(emitter.binary("and", is_there, is_known)):
            call_driver(emitter, state, "cuDevicePrimaryCtxRelease_v2", [device])

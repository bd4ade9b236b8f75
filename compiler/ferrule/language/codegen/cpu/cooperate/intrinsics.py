"""LLVM's coroutine intrinsics, as functions of an emitter.

A coroutine is a function with the attribute `presplitcoroutine`; at every level, LLVM's ordinary
pipeline splits it at its suspend points and stores values that are live across them in a frame.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import binding as llvm
from llvmlite import ir

from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR, VOID


class _Token(ir.Type):  # type: ignore[misc]
    """LLVM's `token`, which connects the intrinsics of a coroutine."""

    def _to_string(self) -> str:
        return "token"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Token)

    def __hash__(self) -> int:
        return hash(_Token)


_TOKEN: Final = _Token()
_NONE: Final = ir.FormattedConstant(_TOKEN, "none")
_NO_TOKEN_RESULT: Final = 22
"""The version of LLVM since which `llvm.coro.end` has no result."""


def mark(function: ir.Function) -> None:
    """Marks a function as a coroutine."""
    # llvmlite refuses attributes that it does not know.
    set.add(function.attributes, "presplitcoroutine")


def identity(e: Emitter) -> Any:
    """The token of the coroutine under construction."""
    null, zero = e.null(), ir.Constant(I32, 0)
    # The default alignment, and no promise. LLVM fills in the other two itself and wants null here.
    return _call(e, "llvm.coro.id", _TOKEN, (zero, null, null, null))


def frame_size(e: Emitter) -> ir.Value:
    """The size in bytes of the frame of the current coroutine."""
    return _call(e, "llvm.coro.size.i64", I64, ())


def begin(e: Emitter, token: Any, memory: ir.Value) -> ir.Value:
    """Begins the coroutine with a frame at this address; returns its handle."""
    return _call(e, "llvm.coro.begin", PTR, (token, memory))


def suspend(e: Emitter, *, last: bool = False) -> ir.Value:
    """Suspends; an i8: 0 after a resume, other numbers if the coroutine must return control."""
    return _call(e, "llvm.coro.suspend", I8, (_NONE, ir.Constant(I1, int(last))))


def end(e: Emitter, handle: ir.Value) -> None:
    """Ends each part of the coroutine; a return follows."""
    _call(e, "llvm.coro.end", end_type(), (handle, ir.Constant(I1, 0), _NONE))


def end_type() -> ir.Type:
    """The result type of `llvm.coro.end`."""
    return I1 if llvm.llvm_version_info[0] < _NO_TOKEN_RESULT else VOID


def resume(e: Emitter, handle: ir.Value) -> None:
    """Resumes a coroutine."""
    _call(e, "llvm.coro.resume", VOID, (handle,))


def _call(e: Emitter, name: str, result: ir.Type, arguments: tuple[Any, ...]) -> ir.Value:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return e.call(e.symbol(name, kind), list(arguments))

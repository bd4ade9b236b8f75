"""Python functions as arguments: what they raise comes out of the call as the object that it is.

tvm-ffi carries an error as texts, its kind and its message, and makes a new exception of them, a
`RuntimeError` if no class is registered for the kind. So a function that is handed over keeps what
it has raised, under a kind of its own, and tvm-ffi finds it again by `_class`. A caller that is not
Python gets the qualified name of the class as the kind, `builtins.ValueError`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final
from weakref import WeakSet

import tvm_ffi
from tvm_ffi import core

from ferrule.runtime.forks import ForkLock
from ferrule.runtime.values.foreign import OTHER

_MOST: Final = 64
"""How many errors a function keeps: of those that nobody asks for the oldest are dropped."""
_MOST_FRAMES: Final = 100
"""The frames of a traceback that are kept for each callback on the way out."""


class _Raised:
    """The errors of a function that are on their way, each with its kind and its message."""

    __slots__ = ("__weakref__", "errors")

    def __init__(self) -> None:
        self.errors: list[tuple[str, str, BaseException]] = []

    def keep(self, error: BaseException) -> None:
        """Keep an error, without the frame of `keeping`."""
        trace = error.__traceback__
        error.__traceback__ = None if trace is None else _innermost(trace.tb_next)
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        with _LOCK:
            self.errors = [*self.errors[1 - _MOST :], (kind, _text(error), error)]
            _PENDING.add(self)
            if kind not in core.ERROR_NAME_TO_TYPE:
                core.ERROR_NAME_TO_TYPE[kind] = _class(kind)

    def carrier(self) -> BaseException:
        """The exception that tvm-ffi gets for the last of them."""
        kind, text, _ = self.errors[-1]
        carrier = RuntimeError(text)
        carrier.__tvm_ffi_error__ = core.Error(kind, text, "")  # type: ignore[attr-defined]
        return carrier

    def take(self, kind: str, text: str) -> BaseException | None:
        """The last error with this kind and message, which is not kept any more."""
        for i, (its_kind, its_text, error) in reversed(list(enumerate(self.errors))):
            if (its_kind, its_text) == (kind, text):
                del self.errors[i]
                return error
        return None


def _innermost(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are nearest to the error: calls and callbacks may be nested deeply."""
    count, rest = 0, trace
    while rest is not None:
        count, rest = count + 1, rest.tb_next
    for _ in range(count - _MOST_FRAMES):
        assert trace is not None
        trace = trace.tb_next
    return trace


def _class(kind: str) -> type[BaseException]:
    """What stands for a class among tvm-ffi's: its call gives the error that a function keeps."""

    def found(_: type, text: str) -> BaseException:
        return _found(kind, text)

    return type(kind.rpartition(".")[2], (RuntimeError,), {"__new__": found})


def _found(kind: str, text: str) -> BaseException:
    """The error; a RuntimeError if its function is gone, or the error is of another process."""
    with _LOCK:
        for each in list(_PENDING):
            error = each.take(kind, text)
            if not each.errors:
                _PENDING.discard(each)
            if error is not None:
                return error
    return RuntimeError(f"{kind}: {text}")


_LOCK: Final = ForkLock()
_PENDING: Final[WeakSet[_Raised]] = WeakSet()


def _text(error: BaseException) -> str:
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception as wrong:
        return f"<str() of the error raises {type(wrong).__name__}>"


def keeping(function: Any) -> Any:
    """A Python function for tvm-ffi that keeps what it raises; `OTHER` for anything else."""
    if not callable(function) or isinstance(function, (tvm_ffi.Object, tvm_ffi.Function)):
        return OTHER
    if hasattr(type(function), "__tvm_ffi_object__"):
        return OTHER
    raised = _Raised()
    call: Callable[..., Any] = function

    def callback(*given: Any) -> Any:
        try:
            return call(*given)
        except BaseException as error:
            raised.keep(error)
        raise raised.carrier()

    return callback

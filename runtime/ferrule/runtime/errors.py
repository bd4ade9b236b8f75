"""Error kinds of ferrule, and their registration with tvm-ffi.

An error of generated code carries its kind as text. Python's tvm-ffi turns the kinds that it knows
into their classes and every other into RuntimeError, so `register_error_kinds` teaches it those
that generated code raises, and Python's own, which callbacks raise. A kind that somebody has
registered already stays theirs. Loading an object needs no registration: a caller without ferrule
gets RuntimeError.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator


class LaunchError(RuntimeError):
    """The size of a launch is one that no target accepts."""


class DivergenceError(RuntimeError):
    """Threads of a block wait for others that cannot come any more; says where, and for whom."""


class RaceError(RuntimeError):
    """Two threads of a block use one piece of shared memory, one of them to write, and no barrier
    lies between; says which, and where.  Only code compiled with `--enable-checks` finds them."""


class CudaError(RuntimeError):
    """The CUDA driver is missing or refused a call; says which call, and the driver's words."""


class StageError(LookupError):
    """A function was asked for a text that it does not have."""

    def __init__(self, stage: str, available: Iterable[str], why: str = "") -> None:
        known = ", ".join(available) or "none"
        reason = f": {why}" if why else ""
        super().__init__(f"there is no {stage!r} text{reason}; available: {known}")


class LinkError(RuntimeError):
    """The C compiler that links a shared library is missing or failed, or a symbol of another
    library that code needs is nowhere."""


ERROR_KINDS: tuple[type[Exception], ...] = (
    LaunchError,
    DivergenceError,
    RaceError,
    CudaError,
    ZeroDivisionError,
    OverflowError,
)


def errors_of_python() -> Iterator[type[BaseException]]:
    """Python's own classes of errors that are made of a message; code and callbacks raise them."""
    for name, kind in vars(builtins).items():
        is_error = isinstance(kind, type) and issubclass(kind, (Exception, KeyboardInterrupt))
        if is_error and kind.__name__ == name and not issubclass(kind, Warning):
            try:
                kind("message")
            except TypeError:
                continue  # it says more than a message
            yield kind


def register_error_kinds() -> None:
    """Make errors of these kinds, and of Python's own, arrive in Python as their own classes.

    May be repeated.
    """
    from tvm_ffi import core, register_error

    for kind in (*ERROR_KINDS, *errors_of_python()):
        if kind.__name__ not in core.ERROR_NAME_TO_TYPE:
            register_error(kind.__name__, kind)

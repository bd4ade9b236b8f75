"""Error kinds of ferrule, and their registration with tvm-ffi.

An error of generated code carries its kind as text. Python's tvm-ffi turns the kinds that it knows
into their classes and every other into RuntimeError, so `register_error_kinds` teaches it those
that generated code raises. A kind that somebody has registered already stays theirs. Loading an
object needs no registration: a caller without ferrule gets RuntimeError.
"""

from __future__ import annotations

from collections.abc import Iterable


class LaunchError(RuntimeError):
    """The size of a launch is one that no target accepts."""


class CudaError(RuntimeError):
    """The CUDA driver is missing or refused a call; says which call, and the driver's words."""


class StageError(LookupError):
    """A function was asked for a text that it does not have."""

    def __init__(self, stage: str, available: Iterable[str], why: str = "") -> None:
        known = ", ".join(available) or "none"
        reason = f": {why}" if why else ""
        super().__init__(f"there is no {stage!r} text{reason}; available: {known}")


class LinkError(RuntimeError):
    """The C compiler that links a shared library is missing or failed."""


ERROR_KINDS: tuple[type[Exception], ...] = (
    LaunchError,
    CudaError,
    ZeroDivisionError,
    OverflowError,
)


def register_error_kinds() -> None:
    """Make errors of these kinds arrive in Python as their own classes. May be repeated."""
    from tvm_ffi import core, register_error

    for kind in ERROR_KINDS:
        if kind.__name__ not in core.ERROR_NAME_TO_TYPE:
            register_error(kind.__name__, kind)

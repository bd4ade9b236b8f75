"""Error kinds of ferrule, and their registration with tvm-ffi.

An error of generated code carries its kind as text. tvm-ffi for Python maps each kind that it knows
to a class, and each other kind to RuntimeError. `register_error_kinds` registers the kinds that
generated code raises, and Python's own, because callbacks raise these. A kind that is registered
already keeps its class. An object also works without this registration: then a caller without
ferrule gets RuntimeError.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator
from typing import Final

from ferrule.runtime.devices import emulated_arch


class LaunchError(RuntimeError):
    """The sizes of a launch are outside of the limits of all targets."""


class DivergenceError(RuntimeError):
    """Threads of a block wait for others that can never arrive; the message names both places."""


class RaceError(RuntimeError):
    """A data race: two threads of a block access the same shared memory, at least one writes, and
    no barrier separates the accesses.  The message names the threads and the places.  Only code
    compiled with `--enable-checks` detects races."""


_LOST_CONTEXT: Final = re.compile(r"; an [a-z ]+, and the context of its device is lost: .*", re.S)
"""What compiled code says behind a kernel's error, see `cuda.cold` of the compiler."""


def _without_lost_context(message: object) -> object:
    """A message without the advice to start the process again, where the GPU is emulated.

    Its error is that of the call itself, and its context is not lost.
    """
    if isinstance(message, str) and emulated_arch() is not None:
        return _LOST_CONTEXT.sub("", message)
    return message


class CudaError(RuntimeError):
    """The CUDA driver is missing or refused a call; the message has the call and its error text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*map(_without_lost_context, args))

    @property
    def error_code(self) -> int | None:
        """The number of the driver's error, as the message has it: `cudaError_t`, `CUresult`.

        >>> CudaError("cuLaunchKernel failed with CUDA_ERROR_INVALID_VALUE (1: ...)").error_code
        1
        """
        found = re.search(r"\b(?:CUDA_ERROR|cudaError)\w* \((\d+)", str(self))
        return int(found.group(1)) if found else None


class StageError(LookupError):
    """A function does not have the text or the form of code that the caller asked for."""

    def __init__(self, stage: str, available: Iterable[str], why: str = "") -> None:
        known = ", ".join(available) or "none"
        reason = f": {why}" if why else ""
        super().__init__(f"there is no {stage!r} text{reason}; available: {known}")


class NoKernelsError(StageError):
    """A function has no PTX because it has no kernels for a GPU: nothing of it is lost."""


class LinkError(RuntimeError):
    """The C compiler for a shared library is missing or failed, or a symbol of another library
    cannot be found."""


ERROR_KINDS: tuple[type[Exception], ...] = (
    LaunchError,
    DivergenceError,
    RaceError,
    CudaError,
    ZeroDivisionError,
    OverflowError,
)


def errors_of_python() -> Iterator[type[BaseException]]:
    """Python's built-in error classes with a message as their only argument.

    Generated code and callbacks raise them.
    """
    for name, kind in vars(builtins).items():
        is_error = isinstance(kind, type) and issubclass(kind, (Exception, KeyboardInterrupt))
        if is_error and kind.__name__ == name and not issubclass(kind, Warning):
            try:
                kind("message")
            except TypeError:
                continue  # its constructor needs more than a message
            yield kind


def register_error_kinds() -> None:
    """Register ferrule's error kinds, and Python's own, with tvm-ffi, so that the class survives.

    It can be called several times.
    """
    from tvm_ffi import core, register_error

    for kind in (*ERROR_KINDS, *errors_of_python()):
        if kind.__name__ not in core.ERROR_NAME_TO_TYPE:
            register_error(kind.__name__, kind)

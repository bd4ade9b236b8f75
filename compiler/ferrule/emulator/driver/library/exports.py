"""How a function of Python becomes one of the driver: its arguments, its result, its refusals.

A function takes the driver and the arguments of C as ints, and returns nothing; `DriverError` is
its result where that is none of success. The kinds of its arguments are a letter each:

    o  where a result goes: an address that must not be null
    p  an address or handle, 0 for none
    z  a size of 64 bits     q  an unsigned number of 64 bits
    i  an int                u  an unsigned int
    h  an unsigned short     b  an unsigned char     f  a float

Python looks for signals where a function begins. In a function that C has called, KeyboardInterrupt
goes nowhere: `ctypes` prints it and gives C whatever lies there as the result. So it waits until
the call has come back to the program, while GPUs are emulated and nobody else handles Ctrl-C.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import traceback
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

from ferrule.emulator.driver.results import DriverError, Result
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.driver.state import Driver

_KINDS: Final[dict[str, type[Any]]] = {
    "o": ctypes.c_uint64,
    "p": ctypes.c_uint64,
    "z": ctypes.c_uint64,
    "q": ctypes.c_uint64,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "h": ctypes.c_ushort,
    "b": ctypes.c_ubyte,
    "f": ctypes.c_float,
}

Function = Callable[..., None]


class Needs(IntEnum):
    """What must have been done before a function is called."""

    NOTHING = 0
    INIT = 1
    CONTEXT = 2
    """A context is current on the thread."""
    NO_CAPTURE = 3
    """A context, and no stream that is captured would be disturbed."""
    ITSELF = 4
    """A context, for which the function asks itself: what every launch calls is not asked twice."""


@dataclass(frozen=True, slots=True)
class Export:
    """A function of the library."""

    symbol: str
    kinds: str
    needs: Needs
    function: Function


class Exports:
    """The functions of a module, which a decorator collects."""

    def __init__(self) -> None:
        self._all: list[Export] = []

    def __iter__(self) -> Iterator[Export]:
        return iter(self._all)

    def __call__(
        self, symbols: str, kinds: str = "", needs: Needs = Needs.CONTEXT
    ) -> Callable[[Function], Function]:
        """Export a function under these names, parted by blanks."""

        def add(function: Function) -> Function:
            self._all.extend(Export(each, kinds, needs, function) for each in symbols.split())
            return function

        return add


def callback(driver: Driver, export: Export) -> Any:
    """A function of C; it must be kept as long as somebody may call it."""
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *(_KINDS[each] for each in export.kinds))
    return kind(_guarded(driver, export))


def unsupported(driver: Driver, symbol: str) -> Any:
    """Stands for a missing function: each call says that it is missing."""

    def call() -> int:
        return driver.refused(symbol, Result.NOT_SUPPORTED, f"the emulated GPU has no {symbol}")

    return ctypes.CFUNCTYPE(ctypes.c_int)(call)


def _guarded(driver: Driver, export: Export) -> Callable[..., int]:
    function, symbol = export.function, export.symbol
    outs = [i for i, kind in enumerate(export.kinds) if kind == "o"]
    check = _check(driver, export.needs)

    def call(*arguments: Any) -> int:
        try:
            check()
            for i in outs:
                if not arguments[i]:
                    raise DriverError(Result.INVALID_VALUE, f"argument {i + 1} is null")
            function(driver, *arguments)
        except DriverError as error:
            return driver.refused(symbol, error.result, error.sentence)
        except MemoryError:
            return driver.refused(symbol, Result.OUT_OF_MEMORY, "the emulated GPU has no more")
        except KeyboardInterrupt:
            # Here it would be raised in this function, below C: it is raised again a bit later,
            # when the call has come back to the program.
            later()
            return driver.refused(symbol, Result.LAUNCH_FAILED, "the kernel was interrupted")
        except BaseException as error:  # nothing may go on through C
            traceback.print_exc(file=sys.stderr)
            return driver.refused(symbol, Result.UNKNOWN, f"{type(error).__name__}: {error}")
        return 0

    called_by_c(call.__code__)
    return call


def _check(driver: Driver, needs: Needs) -> Callable[[], object]:
    if needs in (Needs.NOTHING, Needs.ITSELF):
        return lambda: None
    if needs is Needs.INIT:
        return driver.check_initialised
    return driver.current if needs is Needs.CONTEXT else driver.check_undisturbed


# ---- Ctrl-C while C calls the driver ----


_BACK_IN_PYTHON: Final = 0.02
"""Seconds after which a call of the driver has come back, generously."""

_CALLED_BY_C: Final[set[CodeType]] = set()


def called_by_c(code: CodeType) -> None:
    """Functions with this code are called by C: no exception may leave them."""
    _CALLED_BY_C.add(code)


def later() -> None:
    """Interrupt the program shortly afterwards, from another thread."""
    again = threading.Timer(_BACK_IN_PYTHON, interrupt_main)
    again.daemon = True
    again.start()


def _handle(number: int, frame: FrameType | None) -> None:
    if frame is not None and frame.f_code in _CALLED_BY_C:
        later()
    else:
        signal.default_int_handler(number, frame)


def defer() -> None:
    """From now on Ctrl-C does not interrupt what C calls; only where Python itself handles it."""
    if _is_main() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle)


def restore() -> None:
    """As it was."""
    if _is_main() and signal.getsignal(signal.SIGINT) is _handle:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()

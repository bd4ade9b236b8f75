"""Ctrl-C while C calls the driver.

Python looks for signals where a function begins. In a function that C has called, KeyboardInterrupt
goes nowhere: `ctypes` prints it and gives C whatever lies there as the result. So it waits until
the call has come back to the program, while GPUs are emulated and nobody else handles Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from _thread import interrupt_main
from types import CodeType, FrameType
from typing import Final

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

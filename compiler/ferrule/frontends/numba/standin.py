"""A device for the queries of `numba.cuda`, where there is no GPU.

Numba compiles a device function, `@cuda.jit(device=True)`, when a kernel that calls it is compiled,
and asks the driver for the architecture of the current GPU.  Here the target names the
architecture, so this is the answer: in this thread, while the kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from types import SimpleNamespace
from typing import Any, Final

from ferrule.frontends.packages import load
from ferrule.runtime.forks import ForkLock

_ASKED: Final = ForkLock()
_FUNCTION: Final = "get_current_device"


@contextmanager
def standing_in(capability: tuple[int, int]) -> Iterator[None]:
    """Within this context, Numba's dispatchers see a device of this compute capability in this
    thread."""
    dispatcher = load("numba.cuda.dispatcher", "numba", "numba-cuda")
    thread = get_ident()
    with _ASKED:
        own = getattr(dispatcher, _FUNCTION)

        def current() -> Any:
            if get_ident() == thread:
                return SimpleNamespace(compute_capability=capability)
            return own()

        setattr(dispatcher, _FUNCTION, current)
        try:
            yield
        finally:
            setattr(dispatcher, _FUNCTION, own)

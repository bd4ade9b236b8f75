"""What a compilation reads that no key has, as it says itself: its result is not kept.

A key is made before a compilation, of what can be known then.  Code that asks the process for
something else while it compiles notes it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_NOTED: Final[ContextVar[list[str] | None]] = ContextVar("ferrule_cache_unkept", default=None)


def note_unkept(why: str) -> None:
    """Say that what is being compiled depends on something that its key lacks."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(why)


@contextmanager
def noting() -> Iterator[list[str]]:
    """What is noted inside, also in functions that are compiled there for another one."""
    outer, noted = _NOTED.get(), list[str]()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
        if outer is not None:
            outer += noted

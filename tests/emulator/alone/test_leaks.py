"""With the check `leak`, a context is not left while memory is not freed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fake_machine import FakeMachine

import ferrule as fe
from ferrule.emulator.gpu import LeakError


@contextmanager
def gpu(checks: str | bool) -> Iterator[None]:
    with fe.emulated_gpu("sm_90a", checks=checks) as emulated:
        emulated.driver.__dict__["machine"] = FakeMachine()
        yield


def test_memory_that_is_not_freed() -> None:
    said = "40 bytes in 1 allocations were not freed: 40 bytes at 0x"
    with pytest.raises(LeakError, match=said), gpu("leak"):
        kept = fe.cuda.empty(10)
    del kept


def test_an_error_of_the_program_goes_first() -> None:
    with pytest.raises(KeyError), gpu("leak"):
        kept = fe.cuda.empty(10)
        raise KeyError(5)
    del kept


def test_memory_that_is_freed() -> None:
    with gpu("leak"):
        kept = fe.cuda.empty(10)
        del kept


def test_without_the_check() -> None:
    with gpu(True):
        kept = fe.cuda.empty(10)
    del kept

"""A plugin for pytest: `pytest --emulated-gpu=sm_90a` runs tests on an emulated GPU.

It is there for the whole run, from before tests are collected. The option takes what FERRULE_GPU
does behind `emulated:`, such as `sm_90a,devices=2,schedule=random:17`. The fixture `gpu`
is that GPU; a test that takes it is skipped where there is none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ferrule.emulator.gpu import EmulatedGPU

_VARIABLE = "FERRULE_GPU"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--emulated-gpu`."""
    parser.getgroup("ferrule").addoption(
        "--emulated-gpu",
        metavar="ARCH",
        help="run the tests on an emulated GPU of an architecture, such as sm_90a",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start what the option asks for; processes that tests start find it too."""
    asked = config.getoption("--emulated-gpu")
    if not asked:
        return
    from ferrule.emulator.gpu import active, start

    text = f"emulated:{asked}"
    if active() is not None and os.environ.get(_VARIABLE) == text:
        return  # a process of pytest-xdist, which has the variable from the one that started it
    try:
        start(text)
    except (ValueError, RuntimeError) as error:
        raise pytest.UsageError(f"--emulated-gpu={asked}: {error}") from None
    os.environ[_VARIABLE] = text


@pytest.fixture(scope="session")
def gpu() -> EmulatedGPU | None:
    """The emulated GPU of the run; None on a machine with a real one. Skips where there is none."""
    from ferrule.emulator.gpu import active
    from ferrule.runtime.devices import cuda_devices

    found = active()
    if found is None and not cuda_devices():
        pytest.skip("there is no GPU: run with --emulated-gpu=sm_90a to emulate one")
    return found

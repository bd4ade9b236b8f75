"""Switching emulated GPUs on and off: for a block of a program, for a process, for tests."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ferrule.emulator.settings import LEAK, Settings, from_text, settings
from ferrule.runtime.devices import note_emulated

if TYPE_CHECKING:
    from ferrule.emulator.checks.profile import Profile
    from ferrule.emulator.driver.allocations import Allocation
    from ferrule.emulator.driver.state import Driver

_TRITON: Final = "TRITON_LIBCUDA_PATH"
"""Where Triton looks for libcuda before it asks the system, which does not know this one."""

_ACTIVE: Final[list[EmulatedGPU]] = []
"""The emulated GPU of this process: there is one libcuda, and so one of these at most."""


class LeakError(RuntimeError):
    """Memory of an emulated GPU was not given back; says which pieces."""


class EmulatedGPU:
    """Emulated GPUs as a context manager; `fe.emulated_gpu` makes it.

    While it is entered, every program of the process that asks for the CUDA driver finds them.
    """

    def __init__(self, wanted: Settings) -> None:
        self._settings: Final = wanted
        self._driver: Driver | None = None
        self._environment: str | None = None

    @property
    def arch(self) -> str:
        """The architecture, such as `sm_90a`."""
        return self._settings.arch

    @property
    def devices(self) -> int:
        """How many there are."""
        return self._settings.devices

    @property
    def checks(self) -> frozenset[str]:
        """What is checked while kernels run."""
        return self._settings.checks

    @property
    def driver(self) -> Driver:
        """The driver; RuntimeError while it is not entered."""
        if self._driver is None:
            raise RuntimeError("the emulated GPU is not in use: enter it with `with`")
        return self._driver

    @property
    def libcuda(self) -> Path:
        """The file of its libcuda.so.1, for programs that link with one."""
        from ferrule.emulator.driver.library.loaded import library

        return library().path

    def allocations(self) -> list[Allocation]:
        """The memory that programs have now, without variables of modules."""
        from ferrule.emulator.driver.allocations import Kind

        return [each for each in self.driver.allocations if each.kind is not Kind.VARIABLE]

    @contextmanager
    def profile(self) -> Iterator[Profile]:
        """Count what kernels do inside of the `with`: `print` of the result gives a table.

        Kernels are translated anew with counters, and run slower meanwhile. It counts
        instructions, bytes, sectors and bank conflicts, and says nothing of times.
        RuntimeError while the GPU is profiled already.
        """
        from ferrule.emulator.checks.profile import Profile

        parts = self.driver.machine.parts  # type: ignore[attr-defined]
        if parts.profile is not None:
            raise RuntimeError("the emulated GPU is profiled already")
        parts.profile = profile = Profile(arch=self.arch)
        try:
            yield profile
        finally:
            parts.profile = None

    def __enter__(self) -> EmulatedGPU:
        from ferrule.emulator.driver.library.exports import defer
        from ferrule.emulator.driver.library.loaded import library
        from ferrule.emulator.driver.state import Driver

        if _ACTIVE:
            raise RuntimeError(
                f"this process emulates a GPU already, {_ACTIVE[0].arch}: leave that first"
            )
        loaded = library()
        driver = Driver(self.arch, self.devices, self._machine)
        loaded.fill(driver)
        self._driver = driver
        _ACTIVE.append(self)
        note_emulated(self.arch)
        defer()
        self._environment = os.environ.get(_TRITON)
        os.environ.setdefault(_TRITON, str(loaded.folder))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        left = self._left() if kind is None and LEAK in self.checks else ""
        self.close()
        if left:
            raise LeakError(left)

    def close(self) -> None:
        """Leave it, whatever it still holds: memory is gone, and calls of the driver fail."""
        from ferrule.emulator.driver.library.exports import restore
        from ferrule.emulator.driver.library.loaded import library

        driver, self._driver = self._driver, None
        if driver is None:
            return
        restore()
        library().empty()
        driver.close()
        _ACTIVE.remove(self)
        note_emulated(None)
        if self._environment is None:
            os.environ.pop(_TRITON, None)

    def _machine(self) -> Any:
        from ferrule.emulator.machine import Machine

        checks = self.checks - {LEAK}
        return Machine(self.arch, checks=checks, schedule=self._settings.schedule)

    def _left(self) -> str:
        """What of the memory was not given back; empty where all was."""
        # Arrays in reference cycles are freed first: they are no leak.
        gc.collect()
        left = self.allocations()
        if not left:
            return ""
        pieces = ", ".join(f"{each.size} bytes at {each.address:#x}" for each in left[:8])
        more = f" and {len(left) - 8} more" if len(left) > 8 else ""
        total = sum(each.size for each in left)
        return f"{total} bytes in {len(left)} allocations were not freed: {pieces}{more}"


def emulated_gpu(
    arch: str,
    *,
    devices: int = 1,
    checks: bool | str | Iterable[str] = True,
    schedule: str | None = None,
) -> EmulatedGPU:
    """GPUs of an architecture, emulated by the processor while the result is entered with `with`.

    `devices`: how many. `checks`: what is checked while kernels run: True for "memory" and "sync",
    False for nothing, or names of these, "race", "init" and "leak", as a str with commas or one by
    one.
    `schedule`: "random:17" lets warps take turns at random, in the order of that seed.

    TypeError and ValueError for other arguments. Entering raises CudaError where the process has
    loaded a real CUDA driver, and RuntimeError inside of another emulated GPU; leaving raises
    LeakError where leaks are checked and memory was not given back.
    """
    return EmulatedGPU(settings(arch, devices, checks, schedule))


def active() -> EmulatedGPU | None:
    """The emulated GPU that is in use."""
    return _ACTIVE[0] if _ACTIVE else None


def start(text: str) -> EmulatedGPU:
    """Emulate for the rest of the process, as `FERRULE_GPU` says; ValueError for another text."""
    gpu = EmulatedGPU(from_text(text))
    gpu.__enter__()
    atexit.register(_end, gpu)
    return gpu


def _end(gpu: EmulatedGPU) -> None:
    """At the end of the process there is nobody to raise an error to."""
    if gpu in _ACTIVE and LEAK in gpu.checks:
        left = gpu._left()
        if left:
            print(f"ferrule: {left}", file=sys.stderr)

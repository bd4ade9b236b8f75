"""The library in the process: written, loaded under libcuda's name, filled, emptied.

It is loaded once and stays: programs keep the addresses of its functions. Filled it is a driver;
empty, its functions answer that the driver is gone. In a process that is forked from one that has
used it, they answer what a real driver's do.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ferrule.emulator.driver.library.elf import TABLE, shared_library
from ferrule.emulator.driver.library.exports import Export, callback, unsupported
from ferrule.emulator.driver.library.names import FUNCTIONS
from ferrule.emulator.driver.state import Driver
from ferrule.runtime.binaries.elf import Machine
from ferrule.runtime.errors import CudaError

SONAME: Final = "libcuda.so.1"

_MACHINES: Final = {"x86_64": Machine.X86_64, "aarch64": Machine.AARCH64}
_MODULES: Final = (
    "contexts", "copies", "devices", "graphs", "kernels", "launches", "libraries", "linking",
    "lookup", "memory", "pools", "streams", "tensormaps",
)  # fmt: skip
"""The modules of this folder that have functions of the driver."""


def exported() -> Iterator[Export]:
    """All functions that are there."""
    for name in _MODULES:
        yield from import_module(f"ferrule.emulator.driver.{name}").exports


def symbols() -> dict[str, str]:
    """All symbols of the library; each with the one whose function it is."""
    found: dict[str, str] = {}
    for forms in FUNCTIONS.values():
        for form in forms:
            found[form.symbol] = form.symbol
            if form.per_thread:
                found[form.per_thread] = form.symbol
    for export in exported():
        found.setdefault(export.symbol, export.symbol)
    return found


class Library:
    """The library, loaded into this process."""

    def __init__(self) -> None:
        self.folder: Final = Path(tempfile.mkdtemp(prefix="ferrule-libcuda-"))
        self._pid: Final = os.getpid()
        self._symbols: Final = symbols()
        self._driver: Driver | None = None
        self._kept: dict[str, Any] = {}
        atexit.register(self._end)
        names = tuple(self._symbols)
        self.path: Final = self.folder / SONAME
        self.path.write_bytes(shared_library(SONAME, names, _machine()))
        (self.folder / "libcuda.so").symlink_to(SONAME)
        self._library: Final = ctypes.CDLL(str(self.path), mode=ctypes.RTLD_GLOBAL)
        self._table: Final = (ctypes.c_size_t * len(names)).in_dll(self._library, TABLE)
        self._addresses: Final = {name: self._address(name) for name in names}
        os.register_at_fork(after_in_child=self._after_fork)

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def fill(self, driver: Driver) -> None:
        """Its functions are those of a driver from now on."""
        driver.symbols = self._addresses
        there = {export.symbol: export for export in exported()}
        made: dict[str, Any] = {}
        for symbol, of in self._symbols.items():
            if of not in made:
                found = there.get(of)
                made[of] = callback(driver, found) if found else unsupported(driver, symbol)
        self._driver, self._kept = driver, made
        for i, of in enumerate(self._symbols.values()):
            self._table[i] = ctypes.cast(made[of], ctypes.c_void_p).value or 0

    def empty(self) -> None:
        """Its functions answer CUDA_ERROR_DEINITIALIZED from now on."""
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._driver = None

    def _after_fork(self) -> None:
        if self._driver is not None and self._driver.initialised:
            self._driver.forked = True

    def _end(self) -> None:
        """At the end of the process C may call when Python is gone."""
        self.empty()
        # A child of a fork must not remove the folder of its parent.
        if os.getpid() == self._pid:
            shutil.rmtree(self.folder, ignore_errors=True)


def _machine() -> Machine:
    found = _MACHINES.get(platform.machine())
    if found is None or platform.system() != "Linux":
        raise CudaError(
            f"GPUs are emulated on Linux on x86-64 and AArch64, but this is {platform.system()} "
            f"on {platform.machine()}"
        )
    return found


_LOADED: list[Library] = []
"""The one of this process, once it is loaded: what is loaded under a name stays."""


def library() -> Library:
    """The library of this process; CudaError where another libcuda is loaded already."""
    if not _LOADED:
        other = _other()
        if other is not None:
            raise CudaError(
                f"this process has loaded a CUDA driver, {other}, beside which no GPU can be "
                f"emulated: emulate one before anything asks for a GPU, or set FERRULE_GPU"
            )
        _LOADED.append(Library())
    return _LOADED[0]


def _other() -> str | None:
    """The libcuda that the process has loaded, by whatever way."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "libcuda.so" in line}
    except OSError:
        return None
    return min(paths, default=None)

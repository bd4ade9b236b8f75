"""A machine, and modules of PTX that it has loaded."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Mapping
from typing import Final

from ferrule.emulator.machine.kernels import Kernel
from ferrule.emulator.machine.memory import Memory
from ferrule.emulator.ptx.module import Module, PtxError, Variable
from ferrule.emulator.ptx.parser import parse

CHECKS: Final = frozenset({"memory", "race", "init", "sync"})
_SCHEDULE: Final = re.compile(r"random:(\d+)")


class Machine:
    """One emulated GPU of an architecture.

    `checks` are names of what is checked while kernels run: "memory" is; race and init are accepted
    and check nothing yet. `schedule` is None or "random:SEED".
    """

    def __init__(self, arch: str, *, checks: frozenset[str], schedule: str | None) -> None:
        unknown = checks - CHECKS
        if unknown:
            raise ValueError(f"checks must be of {sorted(CHECKS)}, but got {sorted(unknown)}")
        seed = None if schedule is None else _SCHEDULE.fullmatch(schedule)
        if schedule is not None and seed is None:
            raise ValueError(f"schedule must be None or 'random:SEED', but got {schedule!r}")
        self.arch: Final = arch
        self.checks: Final = checks
        self.memory: Final = Memory()
        self.random: int = 0 if seed is None else int(seed[1]) * 2 + 1
        self.lock: Final = threading.RLock()

    def load(self, ptx: str) -> LoadedModule:
        """A module of PTX, its kernels ready to launch.  PtxError for what is not emulated."""
        return LoadedModule(self, parse(ptx))


class LoadedModule:
    """Kernels and variables of a text."""

    def __init__(self, machine: Machine, module: Module) -> None:
        self._machine: Final = machine
        self._places: Final[dict[str, tuple[int, int]]] = {}
        try:
            self._place(module)
            self._begin(module)
            symbols = {
                each.name: (each.space, self._places[each.name][0])
                for each in module.variables
                if each.name in self._places
            }
            self.kernels: Mapping[str, Kernel] = {
                each.name: Kernel(machine, module, each, symbols)
                for each in module.functions
                if each.entry and each.body is not None
            }
        except BaseException:
            self.unload()
            raise

    @property
    def variables(self) -> Mapping[str, tuple[int, int]]:
        """Address and bytes of each variable of `.global` and `.const`."""
        return dict(self._places)

    def unload(self) -> None:
        """Give its memory back; its kernels must not be launched any more."""
        while self._places:
            self._machine.memory.free(self._places.popitem()[1][0])

    def _place(self, module: Module) -> None:
        for each in module.variables:
            if each.space not in ("global", "const"):
                continue
            if each.extern:
                raise PtxError(f"the variable {each.name} is of another module", each.line)
            if each.align > 256:
                raise PtxError(f"{each.name} is aligned to {each.align} bytes", each.line)
            address = self._machine.memory.allocate(each.size)
            self._places[each.name] = address, each.size
            ctypes.memset(address, 0, each.size)

    def _begin(self, module: Module) -> None:
        """What variables hold at first."""
        for each in module.variables:
            if each.name not in self._places or each.data is None:
                continue
            address = self._places[each.name][0]
            ctypes.memmove(address, each.data, len(each.data))
            self._refer(each, address)

    def _refer(self, variable: Variable, address: int) -> None:
        for offset, size, symbol in variable.references:
            if symbol.name not in self._places or size != 8:
                raise PtxError(
                    f"{variable.name} holds the address of {symbol.name}, which is not emulated",
                    variable.line,
                )
            value = self._places[symbol.name][0] + symbol.offset
            ctypes.c_uint64.from_address(address + offset).value = value

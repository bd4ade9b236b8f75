"""A machine, and modules of PTX that it has loaded."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ferrule.emulator.checks.parts import Parts
from ferrule.emulator.machine.kernels import Kernel
from ferrule.emulator.machine.known import Known, known
from ferrule.emulator.machine.memory import UNIT, Memory
from ferrule.emulator.ptx.module import Module, PtxError, Variable
from ferrule.emulator.warps.calls import function_addresses, static
from ferrule.runtime.forks import ForkLock

CHECKS: Final = frozenset({"memory", "sync", "race", "init", "approx"})
_SCHEDULE: Final = re.compile(r"random:(\d+)")


class Machine:
    """One emulated GPU of an architecture.

    `checks` are names of what is checked while kernels run: "memory", addresses of all accesses,
    "sync", shuffles from lanes that take no part, "race", accesses of threads that nothing orders,
    "init", reads of what nobody wrote, and "approx", by which approximations are moved inside of
    their errors. `memory` is that of another machine, to have it together. `schedule` is None or
    "random:SEED".
    """

    def __init__(
        self,
        arch: str,
        *,
        checks: frozenset[str],
        schedule: str | None,
        memory: Memory | None = None,
    ) -> None:
        unknown = checks - CHECKS
        if unknown:
            raise ValueError(f"checks must be of {sorted(CHECKS)}, but got {sorted(unknown)}")
        seed = None if schedule is None else _SCHEDULE.fullmatch(schedule)
        if schedule is not None and seed is None:
            raise ValueError(f"schedule must be None or 'random:SEED', but got {schedule!r}")
        self.arch: Final = arch
        self.checks: Final = checks
        self.memory: Final = Memory() if memory is None else memory
        self.parts: Final = Parts(checks, self.memory)
        self.random: int = 0 if seed is None else int(seed[1]) * 2 + 1
        self.lock: Final = ForkLock()

    def load(self, ptx: str) -> LoadedModule:
        """A module of PTX, its kernels ready to launch.  PtxError for what is not emulated."""
        return LoadedModule(self, known(ptx))


class LoadedModule:
    """Kernels and variables of a text."""

    def __init__(self, machine: Machine, text: Known) -> None:
        module = text.module
        self._machine: Final = machine
        self._places: Final[dict[str, tuple[int, int]]] = {}
        self._functions: Final = function_addresses(module)
        self.kernels: Mapping[str, Kernel] = {}
        try:
            statics = _statics(module)
            for each in statics:
                self._place(each)
            for each in statics:
                self._begin(each)
            symbols = {each.name: (each.space, self._places[each.name][0]) for each in statics}
            symbols |= {
                name: ("code", address)
                for name, address in self._functions.items()
                if name not in symbols
            }
            self.kernels = {
                each.name: Kernel(machine, text, each, symbols)
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
        for each in self.kernels.values():
            each.close()
        while self._places:
            self._machine.memory.free(self._places.popitem()[1][0])

    def _place(self, each: Variable) -> None:
        if each.extern:
            raise PtxError(f"the variable {each.name} is of another module", each.line)
        if each.align > UNIT:
            raise PtxError(f"{each.name} is aligned to {each.align} bytes", each.line)
        address = self._machine.memory.allocate(each.size)
        self._places[each.name] = address, each.size
        ctypes.memset(address, 0, each.size)
        if self._machine.memory.written is not None:
            self._machine.memory.written(address, each.size)

    def _begin(self, variable: Variable) -> None:
        """What a variable holds at first."""
        if variable.data is None:
            return
        address = self._places[variable.name][0]
        ctypes.memmove(address, variable.data, len(variable.data))
        for offset, size, symbol in variable.references:
            if size != 8:
                raise PtxError(f"{variable.name} holds addresses of {size} bytes", variable.line)
            value = self._address(variable, symbol.name) + symbol.offset
            ctypes.c_uint64.from_address(address + offset).value = value

    def _address(self, variable: Variable, name: str) -> int:
        _, _, function = variable.name.partition("@")
        for each in (static(name, function), name):
            if each in self._places:
                return self._places[each][0]
        if name in self._functions:
            return self._functions[name]
        raise PtxError(f"{variable.name} holds the address of {name}, which is none", variable.line)


def _statics(module: Module) -> list[Variable]:
    """The variables of global memory: of the text, and of its functions."""
    found = [each for each in module.variables if each.space in ("global", "const")]
    for function in module.functions:
        found += [
            replace(each, name=static(each.name, function.name))
            for each in function.variables
            if each.space in ("global", "const")
        ]
    return found

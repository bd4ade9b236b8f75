"""A machine for tests of the driver: its kernels are Python's, found by their names in PTX.

It keeps every launch. What a kernel of PTX says is not read but for its name and parameters.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SIZES = {"u8": 1, "b8": 1, "u16": 2, "u32": 4, "b32": 4, "f32": 4, "u64": 8, "b64": 8, "f64": 8}


@dataclass(frozen=True)
class Parameter:
    offset: int
    size: int
    align: int


class FaultError(Exception):
    """What a kernel ends with."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class FakePtxError(Exception):
    """The text is wrong."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(f"line {line}: {text}")
        self.line = line


class FakeMemory:
    """Memory of the process, aligned as a GPU's."""

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self.writes: list[tuple[int, int]] = []

    def allocate(self, size: int) -> int:
        block = ctypes.create_string_buffer(size + 256)
        address = (ctypes.addressof(block) + 255) & ~255
        ctypes.memset(address, 0xCD, size)
        self.held[address] = block
        return address

    def free(self, address: int) -> None:
        del self.held[address]

    def written(self, address: int, size: int) -> None:
        self.writes.append((address, size))


@dataclass
class FakeKernel:
    name: str
    parameters: tuple[Parameter, ...]
    machine: FakeMachine
    static_shared: int = 0
    local_bytes: int = 0
    registers: int = 16
    max_threads: int = 1024
    required_block: tuple[int, int, int] | None = None
    required_cluster: tuple[int, int, int] | None = None

    def launch(
        self,
        grid: Any,
        block: Any,
        *,
        smem: int,
        cluster: Any,
        parameters: bytes,
        stack: int,
        cooperative: bool,
    ) -> None:
        self.machine.launches.append((self.name, grid, block, smem, cluster, parameters))
        work = WORK.get(self.name)
        if work is not None:
            work(grid, block, parameters)


@dataclass
class FakeModule:
    kernels: dict[str, FakeKernel]
    variables: dict[str, tuple[int, int]]
    machine: FakeMachine

    def unload(self) -> None:
        for address, _ in self.variables.values():
            self.machine.memory.free(address)


@dataclass
class FakeMachine:
    memory: FakeMemory = field(default_factory=FakeMemory)
    launches: list[Any] = field(default_factory=list)

    def load(self, ptx: str) -> FakeModule:
        if "WRONG" in ptx:
            raise FakePtxError("the instruction WRONG", ptx[: ptx.index("WRONG")].count("\n") + 1)
        kernels = dict(self._kernel(*each) for each in re.findall(ENTRY, ptx))
        found = re.findall(r"\.global[^;]*?\.b8 (\w+)\[(\d+)\]", ptx)
        variables = {name: (self.memory.allocate(int(n)), int(n)) for name, n in found}
        return FakeModule(kernels, variables, self)

    def _kernel(self, name: str, listed: str, directives: str) -> tuple[str, FakeKernel]:
        parameters, offset = [], 0
        for align, kind, count in re.findall(
            r"\.param\s+(?:\.align (\d+) )?\.(\w+) \w+(?:\[(\d+)\])?", listed
        ):
            size = SIZES[kind] * int(count or 1)
            step = int(align or size)
            offset = -(-offset // step) * step
            parameters.append(Parameter(offset, size, step))
            offset += size
        kernel = FakeKernel(name, tuple(parameters), self)
        for which, numbers in re.findall(
            r"\.(maxntid|reqntid|reqnctapercluster) ([\d, ]+)", directives
        ):
            sizes = tuple(int(each) for each in numbers.split(","))
            sizes += (1,) * (3 - len(sizes))
            if which == "reqnctapercluster":
                kernel.required_cluster = sizes
            else:
                kernel.max_threads = sizes[0] * sizes[1] * sizes[2]
                kernel.required_block = sizes if which == "reqntid" else None
        return name, kernel


SIZED = r"\.(maxntid|reqntid|reqnctapercluster) ([\d, ]+)"
ENTRY = r"\.entry (\w+)\s*\(([^)]*)\)([^{]*)"


def scale(grid: Any, block: Any, parameters: bytes) -> None:
    """`x[i] *= by`, for i below count."""
    address, by, count = struct.unpack("<QfI", parameters)
    values = (ctypes.c_float * count).from_address(address)
    for i in range(min(count, grid[0] * block[0])):
        values[i] *= by


def fails(grid: Any, block: Any, parameters: bytes) -> None:
    raise FaultError("memory", "kernel fails, block (0, 0, 0), thread (3, 0, 0): line 7 of the PTX")


WORK: dict[str, Callable[..., None]] = {"scale": scale, "fails": fails}

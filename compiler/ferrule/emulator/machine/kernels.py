"""Kernels: what a launch must know of one, and the launch itself."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Final

from ferrule.emulator.machine.known import Known
from ferrule.emulator.machine.running import Launch, Runner
from ferrule.emulator.machine.work import Work
from ferrule.emulator.ptx.module import Function, Module, PtxError, Register, Variable
from ferrule.emulator.warps.calls import symbols
from ferrule.emulator.warps.emitter import RESERVED, RESERVED_BYTES
from ferrule.emulator.warps.flow import Flow
from ferrule.emulator.warps.layout import MOST_BLOCKS
from ferrule.emulator.warps.translate import translate
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.machine.memory import Memory
    from ferrule.emulator.machine.modules import Machine

Sizes = tuple[int, int, int]
MOST_THREADS: Final = 1024
STACK_BYTES: Final = 1024
"""What the driver's limit of a thread's stack is, where nobody has set it."""
_WORKSPACE: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where a parameter lies in the bytes of all."""

    offset: int
    size: int
    align: int


class Kernel:
    """A kernel of a loaded module."""

    def __init__(
        self,
        machine: Machine,
        text: Known,
        function: Function,
        places: Mapping[str, tuple[str, int]],
    ) -> None:
        self.name: Final = function.name
        self._machine: Final = machine
        self.parameters: Final = _parameters(function.parameters)
        blocks = text.flow(function)
        shared, self.static_shared, self._dynamic = _shared(text.module, blocks)
        self._text: Final = text
        self._function: Final = function
        local, self.local_bytes = _local(blocks)
        own = dict(places) | shared | local
        for name, parameter in zip(blocks.parameters, self.parameters, strict=True):
            own[name] = "param", parameter.offset
        self._flow: Final = blocks
        self._places: Final = own
        self._work: Work | None = None
        self._translate()
        said = function.directives
        # An estimate, as no assembler has allocated them; 255 is the most that a thread can have.
        self.registers: Final = min(255, 16 + len(blocks.registers) // 4)
        self.required_block: Final = _sizes(said.get("reqntid"))
        self.required_cluster: Final = _sizes(said.get("reqnctapercluster"))
        most = said.get("maxntid") or said.get("reqntid")
        self.max_threads: Final = min(MOST_THREADS, prod(most)) if most else MOST_THREADS

    def launch(
        self,
        grid: Sizes,
        block: Sizes,
        *,
        smem: int,
        cluster: Sizes = (1, 1, 1),
        parameters: bytes,
        stack: int = STACK_BYTES,
        cooperative: bool = False,
    ) -> None:
        """Run it to its end.  ValueError for sizes that no GPU has, Fault where a thread fails.

        Calls of functions that call themselves, and `alloca`, have twice `stack` bytes a thread.
        The blocks of a `cooperative` launch have memory for barriers of the whole grid.
        """
        self._check(grid, block, cluster, smem, parameters)
        with self._machine.lock:
            if self._profiled != (self._machine.parts.profile is not None):
                self.close()
                self._translate()
            work = self._work
            # Atomics on 16 bits are on the word around, which shared memory always has whole.
            shared = -(-(self._dynamic + smem if smem else self.static_shared) // 4) * 4
            local = self.local_bytes + (2 * stack if self._flow.has_stack else 0)
            if work is None or work.key != (block, shared, cluster, local):
                self._give_back()
                work = self._work = self._new_work(block, shared, cluster, local)
            with _workspace(self._machine.memory, cooperative) as workspace:
                launch = Launch(grid, smem, parameters, workspace)
                launch.begin(work, self._machine.random)
                self._machine.parts.begin()
                self._machine.parts.attach(work, self.name, self._translation.instructions)
                self._runner.run(work, prod(grid) // prod(cluster), launch)
                self._machine.parts.end(work, self.name, grid, self._translation.instructions)

    def _translate(self) -> None:
        """The code, with calls of the checks; while the machine is profiled, with counters."""
        machine = self._machine
        self._profiled = machine.parts.profile is not None
        watch = machine.parts.watch()
        if watch is None:
            self._translation = self._text.translation(self._function, self._places, machine.checks)
        else:
            self._translation = translate(
                self._flow, self._places, checks=machine.checks, watch=watch
            )
        self._runner = Runner(
            self.name, machine, self._translation, self._flow, self._places, self._new_work
        )

    def close(self) -> None:
        """Give the memory of its blocks back."""
        with self._machine.lock:
            self._give_back()

    def _give_back(self) -> None:
        if self._work is not None:
            self._work.close()
            self._work = None
        self._runner.close()

    def _new_work(self, block: Sizes, shared: int, cluster: Sizes, local: int) -> Work:
        return Work(
            self._machine.memory,
            block,
            shared,
            self._translation.warp_bytes,
            local,
            _end(self.parameters),
            self._translation.asynchronous,
            cluster,
            (self._places[RESERVED][1], RESERVED_BYTES) if RESERVED in self._places else (0, 0),
        )

    def _check(
        self, grid: Sizes, block: Sizes, cluster: Sizes, smem: int, parameters: bytes
    ) -> None:
        if min(*grid, *block, *cluster) < 1:
            raise ValueError(f"grid {grid}, block {block} and cluster {cluster} must be positive")
        if prod(block) > MOST_THREADS:
            raise ValueError(f"a block has at most {MOST_THREADS} threads, but {block} was asked")
        if cluster != (1, 1, 1) or self.required_cluster is not None:
            self._check_cluster(grid, cluster)
        if self.required_block is not None and block != self.required_block:
            raise ValueError(f"the block must be {self.required_block}, but is {block}")
        if len(parameters) < _end(self.parameters):
            raise ValueError(
                f"{self.name} has {_end(self.parameters)} bytes of parameters, "
                f"got {len(parameters)}"
            )
        if smem < 0:
            raise ValueError(f"smem must not be negative, but is {smem}")

    def _check_cluster(self, grid: Sizes, cluster: Sizes) -> None:
        if prod(cluster) > MOST_BLOCKS:
            raise ValueError(f"a cluster has at most {MOST_BLOCKS} blocks, but {cluster} was asked")
        if any(every % each for every, each in zip(grid, cluster, strict=True)):
            raise ValueError(f"a grid of {grid} is not made of clusters of {cluster}")
        if self.required_cluster not in (None, cluster):
            raise ValueError(f"the cluster must be {self.required_cluster}, but is {cluster}")


@contextmanager
def _workspace(memory: Memory, cooperative: bool) -> Iterator[int]:
    """`grid_workspace` of the headers of cooperative groups: its size, and a counter that is 0.

    It is at no address (0) for launches that are not cooperative.
    """
    if not cooperative:
        yield 0
        return
    address = memory.allocate(_WORKSPACE.size)
    ctypes.memmove(address, _WORKSPACE.pack(_WORKSPACE.size, 0), _WORKSPACE.size)
    if memory.written is not None:
        memory.written(address, _WORKSPACE.size)
    try:
        yield address
    finally:
        memory.free(address)


def _end(parameters: Iterable[Parameter]) -> int:
    return max((each.offset + each.size for each in parameters), default=0)


def _sizes(numbers: tuple[int, ...] | None) -> Sizes | None:
    if numbers is None:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _parameters(variables: tuple[Variable, ...]) -> tuple[Parameter, ...]:
    found = []
    at = 0
    for each in variables:
        at = -(-at // each.align) * each.align
        found.append(Parameter(at, each.size, each.align))
        at += each.size
    return tuple(found)


def _shared(module: Module, blocks: Flow) -> tuple[dict[str, tuple[str, int]], int, int]:
    """The offset of each shared variable, the bytes of those of known size, and where the
    others begin."""
    operands = [
        operand
        for block in blocks.blocks
        for item in block.instructions
        for operand in item.operands
    ]
    used = {name for operand in operands for name in symbols(operand)}
    variables = [each for each in (*module.variables, *blocks.variables) if each.space == "shared"]
    variables = [each for each in variables if each.name in used]
    places: dict[str, tuple[str, int]] = {}
    at = 0
    open_ended = [each for each in variables if not each.size]
    for each in variables:
        if each.size:
            at = -(-at // each.align) * each.align
            places[each.name] = "shared", at
            at += each.size
    if any(isinstance(each, Register) and each.name.startswith(RESERVED) for each in operands):
        at = -(-at // 16) * 16
        places[RESERVED] = "shared", at
        at += RESERVED_BYTES
    align = max((each.align for each in open_ended), default=16)
    dynamic = -(-at // align) * align
    places |= {each.name: ("shared", dynamic) for each in open_ended}
    return places, at, dynamic


def _local(blocks: Flow) -> tuple[dict[str, tuple[str, int]], int]:
    """The offset of each local variable; parameters of functions that were copied in are such."""
    places: dict[str, tuple[str, int]] = {}
    at = 0
    for each in blocks.variables:
        if each.space in ("local", "param"):
            # Memory of threads is given in units of 256 bytes.
            if each.align > 256:
                raise PtxError(f"{each.name} is aligned to {each.align} bytes", each.line)
            at = -(-at // each.align) * each.align
            places[each.name] = "local", at
            at += each.size
    return places, at

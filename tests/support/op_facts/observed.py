"""What the samples are seen to do, gathered once: what passes read of an op does not change it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
from interpreter import Memory, declared
from interpreter.machine import HOST as HOST_THREAD
from interpreter.machine import Machine, upwards
from interpreter.stops import Stopped
from interpreter.teams import Block, Run, Team, Thread

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.types import TensorType
from op_facts.samples import HOST, Sample, samples


@dataclass
class Deeds:
    """What one op of a sample has done."""

    op: ops.Op
    sample: Sample
    effects: set[str] = field(default_factory=set)
    written: set[ops.Value] = field(default_factory=set)
    elsewhere: bool = False
    """Whether it has written memory that no tensor among its operands has."""
    symbols: set[Any] = field(default_factory=set)
    objects: int = 0
    kept: int = 0
    alike: bool = True
    """Whether threads got the same results of the same operands."""
    inside: bool = False
    """Whether it is inside of a region of a sample."""


def values_of(op: ops.Op) -> Iterator[tuple[str, ops.Value]]:
    """The values in the fields of an op, each with the name of the field."""
    for each in fields_of(op):
        item = getattr(op, each.name)
        for value in item if isinstance(item, tuple) else (item,):
            if isinstance(value, ops.Value):
                yield each.name, value


def observed() -> list[Deeds]:
    """What each op of each sample does."""
    return [deeds for sample in samples() for deeds in _of(sample)]


def _of(sample: Sample) -> list[Deeds]:
    found = {op: Deeds(op, sample) for op in sample.ops}
    found |= {op: Deeds(op, sample, inside=True) for op in all_ops(ops.Region(sample.ops))} | found
    run = _Run(sample, found)
    with declared.watched(run.see), suppress(Stopped):
        run.run(range(sample.threads))
    run.compare()
    return list(found.values())


@dataclass
class _Run:
    """A sample that is running, with the memory of each tensor in each thread."""

    sample: Sample
    found: dict[ops.Op, Deeds]
    rooms: list[tuple[ops.Value, Memory]] = field(default_factory=list)
    values: list[dict[ops.Value, Any]] = field(default_factory=list)

    def see(self, op: ops.Op, deed: declared.Deed, of: Any) -> None:
        """Notes what an op does; those of a kernel that a sample launches are not of interest."""
        deeds = self.found.get(op)
        if deeds is None:
            return
        if deed == "symbols":
            deeds.symbols.add(of)
        elif deed == "objects":
            deeds.objects += 1
        elif deed == "kept":
            deeds.kept += 1
        else:
            deeds.effects.add(deed)
            if deed == "writes" and of is not None:
                self._write(deeds, of)

    def _write(self, deeds: Deeds, memory: Memory) -> None:
        given = {value for _, value in values_of(deeds.op)}
        named = {v for v, room in self.rooms if room.bytes is memory.bytes and v in given}
        tensors = {value for value in named if isinstance(value.type, TensorType)}
        deeds.written |= tensors
        deeds.elsewhere = deeds.elsewhere or not tensors

    def run(self, threads: range) -> bool:
        """Runs the sample in these threads of its block; gives whether all of them ended."""
        machine = self._machine()
        region = ops.Region(self.sample.ops)
        if self.sample.threads == HOST:
            machine.region(region, self._given(0), HOST_THREAD)
            return True
        block = Block(Memory.undefined(64))
        runs: dict[int, Run] = {}
        for number in threads:
            thread = Thread(_registers(number, self.sample.threads), block)
            runs[number] = machine.walk(region, self._given(number), thread)
        shape = (self.sample.threads, 1, 1)
        team = Team("k", (0, 0, 0), shape, _padded(runs, self.sample.threads), block.arrived)
        team.run(list(runs))
        return True

    def _given(self, number: int) -> dict[ops.Value, Any]:
        given = dict(self.sample.given(number))
        self.rooms += [(v, room) for v, room in given.items() if isinstance(room, Memory)]
        self.values.append(given)
        return given

    def _machine(self) -> Machine:
        host = ops.Function("f", "host", (), ops.Region())
        names = dict.fromkeys(self.sample.symbols, "n") | dict.fromkeys(self.sample.made, "m")
        program = ops.Program("f", self.sample.kernels, host, names, made=self.sample.made)
        machine = Machine(program, self.sample.symbols, upwards, 100_000)
        machine.functions = self.sample.functions
        return machine

    def compare(self) -> None:
        """Compares the results of two threads that were given the same."""
        if len(self.values) < 2:
            again = _Run(self.sample, self.found)
            with suppress(Stopped):
                again.run(range(1))
            self.values += again.values
        left, right = self.values[:2]
        for op, deeds in self.found.items():
            if all(_same(left.get(each), right.get(each)) for each in op.operands):
                deeds.alike = all(_same(left.get(v), right.get(v)) for v in op.defined)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, Memory) and isinstance(right, Memory):
        return left.first == right.first and (
            left.bytes is right.bytes or not left.bytes.flags.writeable
        )
    if isinstance(left, np.generic | int | float) and isinstance(right, np.generic | int | float):
        return bool(left == right)
    return left is right


def _registers(number: int, count: int) -> dict[str, tuple[int, ...]]:
    one, zero = (1, 1, 1), (0, 0, 0)
    return {
        "thread_idx": (number, 0, 0),
        "block_idx": zero,
        "block_dim": (count, 1, 1),
        "grid_dim": one,
        "cluster_idx": zero,
        "cluster_dim": one,
        "block_in_cluster_idx": zero,
        "block_in_cluster_dim": one,
    }


def _padded(runs: dict[int, Run], count: int) -> dict[int, Run]:
    """All threads of a block: those that do not run never come."""
    return {number: runs.get(number, _absent()) for number in range(count)}


def _absent() -> Run:
    yield from ()
    return []


def meets(sample: Sample) -> str:
    """Whom an op waits for: the smallest part of a block of four warps that is enough."""
    for count, name in ((32, "lanes"), (64, "some"), (128, "block")):
        try:
            _Run(sample, {}).run(range(count))
        except Stopped:
            continue
        return name
    return "phase"

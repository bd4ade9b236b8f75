"""The emulated GPU by itself: thread-instructions a second, launches, and translation of PTX.

    python benchmarks/emulated.py [--quick] [--json FILE]

Two kernels in PTX, saxpy and a tiled matmul with barriers, each with all checks (of memory,
meetings, races and fresh memory), with those of memory and with none, on one core, and a launch on
all cores. Results are compared with NumPy before anything is timed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from emulated_kernels import SAXPY, Matmul, long_kernel
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Table,
    Unit,
    arguments,
    block_side,
    call_side,
    finish,
    measure,
)

from ferrule.emulator.machine import Machine

THREADS: Final = "FERRULE_NUM_THREADS"
US: Final = Unit("us", 1e6)
CHECKS: Final = {"none": "", "memory": "memory", "all": "memory,sync,race,init"}
LIMITS: Final = {"none": 1000.0, "memory": 5000.0, "all": 33_000.0}
"""Picoseconds of a thread-instruction: 1 G, 200 M and 30 M of them a second."""


@dataclass(frozen=True, slots=True)
class Work:
    """A launch that can be repeated, and the thread-instructions that it executes."""

    launch: Callable[[], None]
    instructions: int


def loaded(ptx: str, checks: str) -> tuple[Machine, Any]:
    """A machine of its own, and the kernel `k` of a text."""
    gpu = Machine("sm_90a", checks=frozenset(filter(None, checks.split(","))), schedule=None)
    return gpu, gpu.load(ptx).kernels["k"]


def on_device(gpu: Machine, array: Any) -> int:
    """The address of a copy."""
    place = gpu.memory.allocate(array.nbytes)
    ctypes.memmove(place, array.ctypes.data, array.nbytes)
    if gpu.memory.written is not None:
        gpu.memory.written(place, array.nbytes)
    return place


def saxpy(checks: str, size: int) -> Work:
    """y = 2 x + y, in blocks of 256."""
    gpu, kernel = loaded(SAXPY, checks)
    x = np.arange(size, dtype=np.float32)
    places = on_device(gpu, x), on_device(gpu, np.ones(size, np.float32))
    data = struct.pack("<2QfI", *places, 2.0, size)

    def launch() -> None:
        kernel.launch((size // 256, 1, 1), (256, 1, 1), smem=0, parameters=data)

    launch()
    found = np.frombuffer(ctypes.string_at(places[1], 4 * size), np.float32)
    if not (found == 2 * x + 1).all():
        raise AssertionError("saxpy is wrong")
    return Work(launch, 20 * size)


def matmul(checks: str, size: int) -> Work:
    """Products of square matrices, in tiles of 16 by 16."""
    made = Matmul(size)
    gpu, kernel = loaded(made.text, checks)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (size, size)).astype(np.float32) for _ in range(2))
    places = [on_device(gpu, each) for each in (a, b, np.zeros_like(a))]
    data = struct.pack("<3Q", *places)
    grid = (size // 16, size // 16, 1)

    def launch() -> None:
        kernel.launch(grid, (16, 16, 1), smem=0, parameters=data)

    launch()
    found = np.frombuffer(ctypes.string_at(places[2], 4 * size * size), np.float32)
    if not (found.reshape(size, size) == a @ b).all():
        raise AssertionError("matmul is wrong")
    return Work(launch, made.instructions)


def side(name: str, work: Work, effort: Effort) -> Side:
    """The seconds of one thread-instruction."""
    once = block_side(name, work.launch)
    warm = 1 if effort.rounds == QUICK.rounds else 20
    for _ in range(warm):  # until the kernel has its fast code
        work.launch()
    return Side(name, lambda: once.sample() / work.instructions)


def speeds(effort: Effort, size: int, width: int) -> Table:
    """Both kernels with each choice of checks."""
    rows = []
    for name, make, count in (("saxpy", saxpy, size), ("tiled matmul", matmul, width)):
        sides = [side(each, make(checks, count), effort) for each, checks in CHECKS.items()]
        rows.append(measure(name, sides, effort))
    title = "One thread-instruction on one core"
    return Table(title, Unit("ps", 1e12), tuple(rows), ("memory", "none"))


def with_threads(count: int, launch: Callable[[], None]) -> Callable[[], None]:
    """A launch on so many threads."""

    def run() -> None:
        os.environ[THREADS] = str(count)
        launch()
        os.environ[THREADS] = "1"

    return run


def on_cores(effort: Effort, width: int) -> Table:
    """A launch of many blocks that have nothing to do with each other."""
    counts = {"one": 1, "all": os.cpu_count() or 1}
    sides = []
    for name, count in counts.items():
        launch = with_threads(count, matmul("memory", width).launch)
        for _ in range(3):
            launch()
        sides.append(block_side(name, launch))
    return Table("Cores", MS, (measure("tiled matmul", sides, effort),), ("one", "all"))


def launches(effort: Effort) -> Table:
    """One block of 256 threads."""
    work = saxpy("memory", 256)
    row = measure("saxpy", [call_side("one block", work.launch, (), effort)], effort)
    return Table("A launch", US, (row,))


def translations(effort: Effort) -> Table:
    """From text to code: of a kernel that is new, and of one that is known."""
    number = iter(range(1 << 30))

    def new() -> None:
        load(long_kernel(300, next(number) + 1))

    def load(text: str) -> None:
        gpu, kernel = loaded(text, "memory")
        place = gpu.memory.allocate(4096)
        kernel.launch((1, 1, 1), (32, 1, 1), smem=0, parameters=struct.pack("<Q", place))

    known = long_kernel(300, 0)
    load(known)
    sides = [block_side("new", new), block_side("known", lambda: load(known))]
    return Table("A kernel of 300 instructions", MS, (measure("to its end", sides, effort),))


def result(quick: bool) -> Result:
    effort = QUICK if quick else FULL.fewer(2)
    speed = speeds(effort, 1 << 12 if quick else 1 << 20, 32 if quick else 128)
    one, texts = launches(effort), translations(effort)
    cores = on_cores(effort, 32 if quick else 512)
    goals = [
        Goal(f"{row.name}, checks: {name}", LIMITS[name], _median(row, name, 1e12), "ps")
        for row in speed.rows
        for name in CHECKS
    ]
    goals.append(Goal("a launch of one block", 30, _median(one.rows[0], "one block", 1e6), "us"))
    goals.append(Goal("a new kernel of 300", 60, _median(texts.rows[0], "new", 1e3), "ms"))
    return Result((speed, cores, one, texts), tuple(goals))


def _median(row: Row, name: str, scale: float) -> float | None:
    found = row.side(name)
    return None if found is None else found.median * scale


def main(given: argparse.Namespace) -> None:
    os.environ[THREADS] = "1"
    finish("emulated", result(given.quick), given)


if __name__ == "__main__":
    main(arguments(__doc__))

"""Random kernels whose threads go over neighbours of their own, in tensors that may be one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import interpreter
import numpy as np
from cpu_machine import compile_program
from draws import seeded
from interpreter import Memory
from neighbour_programs import GRID, MOST_WIDE, SIZES, THREADS, neighbour_kernels

from ferrule.language.ir import ops
from ferrule.language.ir.printer import print_program
from fuzz.campaigns import Case, Failure

UNIT: Final = "programs"
CALLS: Final = ((0, 1, 2), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 0, 0))
"""Which memory each of the three tensors is."""


def run(seed: int) -> Iterator[int | Failure]:
    """One kernel, called with tensors that are apart, and with some that are one."""
    case = {"seed": seed, "most": 3 + seed % 8}
    problem = replay(case)
    yield Failure(case, problem) if problem else 1


def replay(case: Case) -> str | None:
    """What compiled code leaves otherwise; the kernel is made of its seed again."""
    return disagreement(seeded(neighbour_kernels(most=case["most"]), case["seed"]))


def disagreement(program: ops.Program) -> str | None:
    """In which call compiled code leaves other numbers than the program's ops one by one."""
    compiled = compile_program(program)
    for number, which in enumerate(CALLS):
        wanted, found = _memory(), _memory()
        offset, rows = number % 2, GRID * THREADS
        count = rows if _is_wide(program) else wanted[0].size
        arrays = [Memory.of(wanted[each]) for each in which]
        symbols = dict.fromkeys(program.symbols, count)
        interpreter.run(program, [*arrays, offset, *SIZES], symbols, interpreter.upwards)
        assert compiled(*(found[each] for each in which), offset, *SIZES, count) == 0
        for ours, theirs in zip(found, wanted, strict=True):
            if not np.array_equal(ours, theirs):
                at = np.flatnonzero(ours != theirs)
                return f"{print_program(program)}\ntensors {which}: {ours[at]}\nwanted {theirs[at]}"
    return None


def _is_wide(program: ops.Program) -> bool:
    """Whether its tensors have two dims, the first of which has an element for each thread."""
    return len(program.host.params[0].tensor.shape) == 2


def _memory() -> Sequence[Any]:
    """Three arrays with numbers, with room for each thread's elements."""
    draw = np.random.default_rng(7)
    size = GRID * THREADS * MOST_WIDE
    return [draw.integers(-99, 99, size, dtype=np.int32) for _ in range(3)]

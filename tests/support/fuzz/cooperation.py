"""Random kernels whose threads wait for each other: as phases, as coroutines, and interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from unittest.mock import patch

import interpreter
import numpy as np
from cooperative_programs import THREADS, cooperative_kernels
from cpu_machine import compile_program
from draws import seeded
from interpreter import Memory

from ferrule.language.codegen.cpu.cooperate import blocks
from ferrule.language.ir import ops
from ferrule.language.ir.printer import print_program
from fuzz.campaigns import Case, Failure

UNIT: Final = "programs"
BLOCKS: Final = 2
SIZES: Final = (BLOCKS, 1, 1, THREADS, 1, 1)


def run(seed: int) -> Iterator[int | Failure]:
    """One kernel."""
    case = {"seed": seed, "most": 1 + seed % 4, "depth": seed % 3}
    problem = replay(case)
    yield Failure(case, problem) if problem else 1


def replay(case: Case) -> str | None:
    """What the ways to run it do otherwise; the kernel is made of its seed again."""
    program = seeded(cooperative_kernels(most=case["most"], depth=case["depth"]), case["seed"])
    wanted = interpreted(program, interpreter.upwards)
    found = {
        "threads downwards": interpreted(program, interpreter.downwards),
        "compiled": compiled(program),
    }
    with patch.object(blocks, "split", lambda kernel, launched, flat: None):
        found["as coroutines"] = compiled(program)
    for way, result in found.items():
        if not np.array_equal(result, wanted):
            return f"{print_program(program)}\n{way}: {result}\nwanted {wanted}"
    return None


def numbers() -> Any:
    """What the kernels read."""
    return np.random.default_rng(5).integers(-9, 9, BLOCKS * THREADS, dtype=np.int32)


def compiled(program: ops.Program) -> Any:
    """What compiled code leaves."""
    a, out = numbers(), np.zeros(BLOCKS * THREADS, np.int32)
    assert compile_program(program)(a, out, *SIZES, a.size) == 0
    return out


def interpreted(program: ops.Program, order: interpreter.Order) -> Any:
    """What the interpreter leaves."""
    a, out = numbers(), np.zeros(BLOCKS * THREADS, np.int32)
    symbols = dict.fromkeys(program.symbols, a.size)
    interpreter.run(program, [Memory.of(a), Memory.of(out), *SIZES], symbols, order)
    return out

"""Random kernels whose threads work together: in phases, as coroutines, and interpreted."""

from __future__ import annotations

from typing import Any

import interpreter
import numpy as np
import pytest
from cooperative_programs import THREADS, cooperative_kernels
from cpu_machine import compile_program
from hypothesis import HealthCheck, given, settings
from interpreter import Memory

from ferrule.language.codegen.cpu.cooperate import blocks
from ferrule.language.ir import ops

BLOCKS = 2
SIZES = (BLOCKS, 1, 1, THREADS, 1, 1)


def numbers() -> Any:
    return np.random.default_rng(5).integers(-9, 9, BLOCKS * THREADS, dtype=np.int32)


def compiled(program: ops.Program) -> Any:
    a, out = numbers(), np.zeros(BLOCKS * THREADS, np.int32)
    assert compile_program(program)(a, out, *SIZES, a.size) == 0
    return out


def interpreted(program: ops.Program, order: interpreter.Order) -> Any:
    a, out = numbers(), np.zeros(BLOCKS * THREADS, np.int32)
    symbols = dict.fromkeys(program.symbols, a.size)
    interpreter.run(program, [Memory.of(a), Memory.of(out), *SIZES], symbols, order)
    return out


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(program=cooperative_kernels(most=4, depth=1))
def test_all_forms_agree(program: ops.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = interpreted(program, interpreter.upwards)
    np.testing.assert_array_equal(interpreted(program, interpreter.downwards), wanted)
    np.testing.assert_array_equal(compiled(program), wanted)
    with monkeypatch.context() as patch:
        patch.setattr(blocks, "split", lambda kernel, flat, threads: None)
        np.testing.assert_array_equal(compiled(program), wanted, "as coroutines")

"""Whole-tensor expressions where they cannot stand: the error says what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.errors import CompileError


def chosen_by_a_number(a, b, o, n: fe.Int32):
    o[:] = a[:] if n > 0 else b[:]


def chosen_by_a_tensor(a, b, o, n: fe.Int32):
    o[:] = a[:] if a[:] > 0 else b[:]


def between(a, b, o, n: fe.Int32):
    o[:] = fe.where(1 < a[:] < 2, a[:], b[:])


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (chosen_by_a_number, r"choose each element: fe\.where\(n > 0, x, y\)"),
        (chosen_by_a_tensor, r"fe\.where\(a\[:\] > 0, x, y\) chooses each element"),
        (between, "combine whole tensors with & and |"),
    ],
)
def test_the_error_names_where(function: Any, hint: str) -> None:
    n = fe.sym_int()
    tensors = [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(3)]
    with pytest.raises(CompileError, match=hint):
        fe.compile(fe.jit(function), *tensors, 1, options="--target cpu")


def test_what_the_hints_say() -> None:
    @fe.jit
    def chosen(a, o, n: fe.Int32):
        o[:] = fe.where(n > 0, a[:], -a[:])

    n = fe.sym_int()
    tensors = [fe.make_fake_compact_tensor(fe.Float32, (n,)) for _ in range(2)]
    compiled = fe.compile(chosen, *tensors, 1, options="--target cpu")
    a, o = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    compiled(a, o, 1)
    assert o.tolist() == [0, 1, 2]
    compiled(a, o, 0)
    assert o.tolist() == [0, -1, -2]

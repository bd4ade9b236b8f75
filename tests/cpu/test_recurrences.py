"""Recurrences of smallest and largest numbers: the short way round has the same bits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language import stages
from ferrule.language.ir import ops

DTYPES = [fe.Int8, fe.Uint8, fe.Int32, fe.Int64]


@fe.jit
def smallest(s: fe.Tensor, a: fe.Tensor, out: fe.Tensor, first: fe.Tensor, c: fe.Constexpr):
    x = first[0]
    for i in range(s.shape[0]):
        x = min(s[i], min(x, a[i]) + c)
        out[i] = x


@fe.jit
def largest(s: fe.Tensor, a: fe.Tensor, out: fe.Tensor, first: fe.Tensor, c: fe.Constexpr):
    x = first[0]
    for i in range(s.shape[0]):
        x = max(max(a[i], x) - c, s[i])
        out[i] = x


@fe.jit
def limited(s: fe.Tensor, a: fe.Tensor, out: fe.Tensor, first: fe.Tensor, c: fe.Constexpr):
    x = s.element_type(5)
    for i in range(s.shape[0]):
        x = max(max(s[i], 5), max(x, a[i]) - c)
        out[i] = x


FUNCTIONS = {
    "smallest": (smallest, lambda s, x, a, c: np.minimum(s, np.minimum(x, a) + c)),
    "largest": (largest, lambda s, x, a, c: np.maximum(s, np.maximum(x, a) - c)),
    "limited": (limited, lambda s, x, a, c: np.maximum(max(s, 5), np.maximum(x, a) - c)),
}


@cache
def edges(name: str) -> Any:
    """Numbers near the ends of a dtype, and around zero."""
    info = np.iinfo(name)
    near = [*range(8), 60, 100]
    low = [info.min + x for x in near] + [info.max - x for x in near]
    return np.array([*low, *(x for x in (-3, -2, -1, 0, 1, 2, 3) if x >= info.min)], name)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("c", [1, 3])
def test_the_same_bits(function: str, dtype: Any, c: int) -> None:
    program, one = FUNCTIONS[function]
    draw = np.random.default_rng(c)
    s, a = (draw.choice(edges(dtype.name), 3000) for _ in range(2))
    x = np.full(1, 5, dtype.name) if function == "limited" else draw.choice(edges(dtype.name), 1)
    vector = [fe.row_major((fe.sym_int(),), dtype) for _ in range(4)]
    out = np.zeros_like(s)
    fe.compile(program, *vector, c, options="--target cpu")(s, a, out, x)
    step = s.dtype.type(c)
    with np.errstate(over="ignore"):
        for i in range(len(s)):
            x = one(s[i : i + 1], x, a[i : i + 1], step)
            assert out[i] == x[0], (s[i], a[i], out[i], x[0])


@fe.jit
def edit_distance(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    for i in range(a.shape[0]):
        corner, left = row[0], fe.Int32(i + 1)
        row[0] = left
        for j in range(b.shape[0]):
            above = row[j + 1]
            left = min(corner + (a[i] != b[j]), min(left, above) + 1)
            row[j + 1] = left
            corner = above


@fe.jit
def no_recurrence(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    x = row[0]
    for i in range(a.shape[0]):
        x = min(x + b[i], min(x, a[i]) + 1)
        x = min(a[i], min(x, x + 2) + 1)
    row[0] = x


def branches(function: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """The rare branches that a function is compiled with."""
    found: list[int] = []
    whole = stages._for_cpu

    def seen(program: ops.Program) -> ops.Program:
        made = whole(program)
        found.append(sum(op.rare for op in made.host.facts.each(ops.If)))
        return made

    monkeypatch.setattr(stages, "_for_cpu", seen)
    vector = [fe.row_major((fe.sym_int(),), fe.Int32) for _ in range(3)]
    fe.compile(function, *vector, options="--target cpu --no-cache")
    return found[-1]


def test_where_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert branches(edit_distance, monkeypatch) == 1
    assert branches(no_recurrence, monkeypatch) == 0

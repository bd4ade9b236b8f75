"""Recurrences of smallest and largest numbers: the short way round has the same bits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler import targets
from ferrule.language import stages
from ferrule.language.ir import ops

DTYPES = [fe.Int8, fe.Uint8, fe.Int32, fe.Uint32, fe.Int64]


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


def worst(name: str, function: str) -> Any:
    """Numbers near the end where steps wrap, so that the others decide."""
    info = np.iinfo(name)
    least = info.max - 8 if function == "smallest" else info.min
    return np.arange(least, least + 8).astype(name)


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
    compiled = fe.compile(program, *vector, c, options="--target cpu")
    compiled(s, a, out, x)
    step = s.dtype.type(c)
    compare(one, (s, a, out, x), step)
    # Short loops, of which many begin without a number that is near the end, or have one late.
    for length in range(1, 200):
        s, a = (draw.choice(edges(dtype.name), length % 9 + 1) for _ in range(2))
        if length % 2:
            s = draw.choice(worst(dtype.name, function), len(s))
        far = a.dtype.type(50)
        a[: draw.integers(0, len(a) + 1)] = far if function == "smallest" else ~far
        x = (
            np.full(1, 5, dtype.name)
            if function == "limited"
            else draw.choice(edges(dtype.name), 1)
        )
        out = np.zeros_like(s)
        compiled(s, a, out, x)
        compare(one, (s, a, out, x), step)


def compare(one: Any, arrays: tuple[Any, ...], step: Any) -> None:
    """What a loop wrote, with one step after the other by NumPy, which wraps around too."""
    s, a, out, x = arrays
    with np.errstate(over="ignore"):
        for i in range(len(s)):
            x = one(s[i : i + 1], x, a[i : i + 1], step)
            assert out[i] == x[0], (s, a, out, x[0])


@fe.jit
def edit_distance(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    for i in range(a.shape[0]):
        corner, left = row[0], row.element_type(i + 1)
        row[0] = left
        for j in range(b.shape[0]):
            above = row[j + 1]
            left = min(corner + (a[i] != b[j]), min(left, above) + 1)
            row[j + 1] = left
            corner = above


@fe.jit
def alignment(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    best = row.element_type(0)
    for i in range(a.shape[0]):
        corner, left = row.element_type(0), row.element_type(0)
        for j in range(b.shape[0]):
            above = row[j + 1]
            same = corner + (row.element_type(2) if a[i] <= b[j] else row.element_type(1))
            left = max(max(same, 0), max(left, above) - 1)
            row[j + 1] = left
            best = max(best, left)
            corner = above
    row[0] = best


@fe.jit
def three_ways(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    for i in range(a.shape[0]):
        corner, left, letter = row[0], row[0] + 1, a[i]
        row[0] = left
        for j in range(b.shape[0]):
            above = row[j + 1]
            cost = row.element_type(0) if letter == b[j] else row.element_type(1)
            left = min(min(left + 1, above + 1), corner + cost)
            row[j + 1] = left
            corner = above


@fe.kernel
def one_thread(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    for i in range(a.shape[0]):
        corner, left = row[0], row[0] + 1
        row[0] = left
        for j in range(b.shape[0]):
            above = row[j + 1]
            cost = row.element_type(2) if a[i] > b[j] else row.element_type(1)
            left = min(corner + cost, min(left, above) + 1)
            row[j + 1] = left
            corner = above


@fe.jit
def launched(a: fe.Tensor, b: fe.Tensor, row: fe.Tensor):
    one_thread(a, b, row).launch(grid=1, block=1)


def by_rows(function: str, a: Any, b: Any, row: Any) -> Any:
    """The last row by NumPy, in which numbers of 64 bits do not wrap."""
    row = row.astype(np.int64)
    best = 0
    for i, letter in enumerate(a):
        first = row[0] if function == "launched" or function == "three_ways" else i
        corner, left = row[0], first + 1
        if function == "alignment":
            corner = left = 0
        else:
            row[0] = left
        for j, other in enumerate(b):
            above = row[j + 1]
            match function:
                case "edit_distance":
                    left = min(corner + (letter != other), min(left, above) + 1)
                case "alignment":
                    same = corner + (2 if letter <= other else 1)
                    left = max(same, 0, max(left, above) - 1)
                case "three_ways":
                    left = min(left + 1, above + 1, corner + (letter != other))
                case _:
                    left = min(corner + (2 if letter > other else 1), min(left, above) + 1)
            row[j + 1], corner, best = left, above, max(best, left)
    if function == "alignment":
        row[0] = best
    return row


PROGRAMS = {
    "edit_distance": edit_distance,
    "alignment": alignment,
    "three_ways": three_ways,
    "launched": launched,
}


@pytest.mark.parametrize("dtype", [fe.Int32, fe.Uint32], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("function", PROGRAMS)
def test_tables(function: str, dtype: Any, tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    vector = [fe.row_major((fe.sym_int(),), dtype) for _ in range(3)]
    native = fe.compile(PROGRAMS[function], *vector, options="--target cpu")
    native.export_to_c(tmp_path / "k.o")  # for any CPU of this architecture, without SSE 4.1
    exported = getattr(fe.runtime.load_module(tmp_path / "k.o"), function)
    for length in (0, 1, 2, 33):
        a, b = (draw.integers(0, 4, size).astype(dtype.name) for size in (9, length))
        row = np.arange(length + 1).astype(dtype.name)
        wanted = by_rows(function, a, b, row)
        for call in (native, exported):
            found = row.copy()
            call(a, b, found)
            assert found.tolist() == wanted.tolist()


def test_registers_of_vectors_where_the_cpu_compares_in_them() -> None:
    vector = [fe.row_major((fe.sym_int(),), fe.Int32) for _ in range(3)]
    compiled = fe.compile(edit_distance, *vector, options="--target cpu --no-cache")
    text = compiled.inspect_asm()
    if "+sse4.1" in targets.host().features.split(","):
        assert "pminsd" in text


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

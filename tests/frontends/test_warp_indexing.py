"""By what a kernel of Warp indexes its arrays, as its text says it; Warp is not needed."""

from __future__ import annotations

import ast
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ferrule.frontends.warp.indexing import Indices, indices_of, numbers_of

ONE = "i = wp.tid()\n"
TWO = "i, j = wp.tid()\n"


@pytest.mark.parametrize(
    ("text", "rank", "launched", "least", "unknown"),
    [
        (f"{ONE}a[i] = a[0]", 1, {(0, 0)}, {0: 1}, set()),
        ("a[wp.tid()] = 1", 1, {(0, 0)}, {}, set()),
        (f"{TWO}a[j, i] = b[a[3][i], a.shape[0]]", 2, {(0, 1), (1, 0)}, {0: 4}, set()),
        (f"{TWO}wp.atomic_add(a, 7, j, a[0, 5])", 2, {(1, 1)}, {0: 8, 1: 6}, set()),
        (f"{ONE}a[i] = a[i + 1]", 1, {(0, 0)}, {}, {0}),
        (f"{ONE}a[b[i]] = a[-1]", 1, set(), {}, {0}),
        (f"{ONE}a[i] = 1\nb = a[i]", 2, {(0, 0)}, {}, {1}),
        (f"{ONE}a[i][2] = 1", 1, {(0, 0)}, {}, set()),
        (f"{ONE}i = i + 1\na[i] = 1", 1, set(), {}, {0}),
        (f"{ONE}i += 1\na[i] = 1", 1, set(), {}, {0}),
        (f"{ONE}for i in range(3):\n  a[i] = 1", 1, set(), {}, {0}),
        (f"{ONE}wp.atomic_cas(a, i, 0, 1)", 1, set(), {}, {0}),
        (f"{ONE}f(a)\na[i] = 1", 1, {(0, 0)}, {}, {0}),
        (f"{ONE}b = a\nb[i] = 1", 1, set(), {}, {0}),
        (f"{ONE}b[i] = float(a.shape[0])", 1, set(), {}, set()),
        ("i = wp.tid() * 2\na[i] = 1", 1, set(), {}, {0}),
        ("i = tid(x)\na[i] = 1", 1, set(), {}, {0}),
        ("def kernel(a: wp.array(dtype=float)):\n  a[wp.tid()] = 1", 1, {(0, 0)}, {}, set()),
    ],
)
def test_indices(text: str, rank: int, launched: set, least: dict, unknown: set) -> None:
    assert indices_of(ast.parse(text), "a", rank) == Indices(launched, least, unknown)


@pytest.mark.parametrize(
    ("text", "launched", "unknown"),
    [
        ("o.a[i] = o.b[0]", {(0, 0)}, set()),
        ("f(o)\no.a[i] = 1", {(0, 0)}, {0}),
        ("p.o.a[3] = a[3]", set(), set()),
        ("o.a.shape[0]", set(), set()),
    ],
)
def test_arrays_in_structs(text: str, launched: set, unknown: set) -> None:
    found = indices_of(ast.parse(f"{ONE}{text}"), "o.a", 1)
    assert (found.launched, found.unknown) == (launched, unknown)


def test_without_a_text_nothing_is_known() -> None:
    assert indices_of(None, "a", 2) == Indices(unknown={0, 1})


NUMBERS = {"N": 5, "m.K": 3, "Z": -1, "a": 9}


@pytest.mark.parametrize(
    ("text", "least", "unknown"),
    [
        ("a[N]", {0: 6}, set()),
        ("a[2*3]", {0: 7}, set()),
        ("a[N * m.K + 1] = a[int(N)]", {0: 17}, set()),
        ("a[(1 << N) // 4 % 7 - -2]", {0: 4}, set()),
        ("a[-Z]", {0: 2}, set()),
        ("a[Z]", {}, {0}),
        ("a[Z // 2 + 9]", {}, {0}),
        ("a[m.other]", {}, {0}),
        ("N = 3\na[N]", {}, {0}),
        ("def kernel(N: int):\n  a[N]", {}, {0}),
        ("m = f()\na[m.K]", {}, {0}),
        ("a[N // 0]", {}, {0}),
        ("a[1 << 31]", {}, {0}),
        ("a[1 << 3000000]", {}, {0}),
        ("a[N * 1000000000]", {}, {0}),
        ("a[N / 2]", {}, {0}),
    ],
)
def test_numbers_are_computed(text: str, least: dict, unknown: set) -> None:
    assert indices_of(ast.parse(text), "a", 1, NUMBERS) == Indices(set(), least, unknown)


SIZE, WIDE, RATIO, YES = 5, np.int64(7), 0.5, True
SETTINGS = ModuleType("settings")
SETTINGS.K = 3  # type: ignore[attr-defined]


def test_the_numbers_that_a_kernel_reads_are_known() -> None:
    inner = 4

    def kernel(a: Any) -> None:
        a[SIZE + WIDE + inner] = RATIO + YES + SETTINGS.K  # type: ignore[attr-defined]

    assert numbers_of(SimpleNamespace(func=kernel)) == {
        "SIZE": 5, "WIDE": 7, "inner": 4, "SETTINGS.K": 3,
    }  # fmt: skip

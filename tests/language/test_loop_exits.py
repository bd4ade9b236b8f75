"""Loops that end in several ways, in all combinations, against Python.

Their bound, a limit that is read again in each iteration and what they look for end them. LLVM
has optimised such an exit away where another one ended the function.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import ferrule as fe

HEADERS: Final = {
    "up": "for i in range(n):",
    "from a start": "for i in range(first, n):",
    "by two": "for i in range(0, n, 2):",
    "small": "for i in range(n % 9):",
    "down": "for i in range(n - 1, -1, -1):",
    "while": "i = fe.{dtype}(0) - 1\n    while i + 1 < n:\n        i += 1",
    "while both": "i = fe.{dtype}(0) - 1\n    while i + 1 < n and out[9] != k:\n        i += 1",
}
LIMITS: Final = {
    "raise": "if i >= limit[0]:\n            raise IndexError('too far')",
    "assert": "assert i < limit[0]",
    "break": "if i >= limit[0]:\n            break",
    "return": "if i >= limit[0]:\n            return 100",
}
FINDS: Final = {
    "break": "if a[i] == k:\n            break",
    "return": "if a[i] == k:\n            return count",
    "none": "",
}
_TEXT: Final = """
def search(a, limit, out, n: fe.{dtype}, k: fe.Int64, first: fe.{dtype}):
    count = fe.Int64(0)
    {header}
        {limit}
        out[i] = 7
        {find}
        count += 1
    return count
"""
CASES: Final = [
    (n, limit, k, first)
    for n, limit, k in ((3, 50, 6), (3, 2, 6), (5, 50, 2), (0, 5, 1), (8, 4, 4), (1, 1, 9))
    for first in (0, 2)
]


def _function(text: str, path: Path) -> Callable[..., Any]:
    """The function of a text, whose source can be read from a file."""
    path.write_text(text, encoding="utf-8")
    scope: dict[str, Any] = {"fe": fe}
    exec(compile(text, str(path), "exec"), scope)
    found: Callable[..., Any] = scope["search"]
    return found


def _outcome(function: Callable[..., Any], case: tuple[int, ...]) -> tuple[Any, list[int]]:
    n, limit, k, first = case
    out = np.zeros(16, np.int64)
    try:
        got: Any = int(function(np.arange(16), np.array([limit]), out, n, k, first))
    except (IndexError, AssertionError) as error:
        got = type(error)
    return got, out.tolist()


@pytest.mark.parametrize(
    ("dtype", "header"),
    [*itertools.product(["Int64"], HEADERS), ("Int32", "up"), ("Int32", "while")],
)
def test_every_exit_is_taken(dtype: str, header: str, tmp_path: Path) -> None:
    sixteen, one = (fe.make_fake_tensor(fe.Int64, (n,), stride=(1,)) for n in (16, 1))
    for limit, find in itertools.product(LIMITS, FINDS):
        text = _TEXT.format(
            dtype=dtype,
            header=HEADERS[header].format(dtype=dtype),
            limit=LIMITS[limit],
            find=FINDS[find],
        )
        number = getattr(fe, dtype)
        built = fe.compile(
            _function(text, tmp_path / f"{limit}_{find}.py"),
            sixteen,
            one,
            sixteen,
            number,
            fe.Int64,
            number,
            options="--target cpu",
        )
        plain = _function(re.sub(r"fe\.Int..\(0\)", "0", text), tmp_path / "plain.py")
        for case in CASES:
            assert _outcome(built, case) == _outcome(plain, case), f"{text}\n{case}"


@fe.kernel
def squared_kernel(out: fe.Tensor, start: fe.Float32):
    x, steps = 0, 0
    while steps < 9 and x < 4:
        x = x * x + start
        steps += 1
    out[0] = steps


@fe.jit
def squared(out: fe.Tensor, start: fe.Float32):
    squared_kernel(out, start).launch(grid=1, block=1)


def test_a_kernel_whose_loop_makes_a_float_of_an_int() -> None:
    out = np.zeros(1, np.int32)
    fe.compile(squared, fe.row_major((1,), fe.Int32), 1.0, options="--target cpu")(out, 1.0)
    assert out[0] == 3

"""Long programs compile in a time that grows with their length, and compute the same."""

from __future__ import annotations

import linecache
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

VECTOR = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))


def straight(lines: int, folder: Path) -> Any:
    """A launch of a kernel of so many lines, each of which needs the one before."""
    path = folder / f"straight_{lines}.py"
    body = "    x = x * c + a[i] * d\n" * lines
    path.write_text(
        "import ferrule as fe\n"
        "@fe.kernel\n"
        "def kernel(a: fe.Tensor, c: fe.Float32, d: fe.Float32):\n"
        "    i = fe.arch.thread_idx()[0]\n"
        f"    x = a[i]\n{body}    a[i] = x\n"
        "@fe.jit\n"
        "def function(a: fe.Tensor, c: fe.Float32, d: fe.Float32):\n"
        "    kernel(a, c, d).launch(grid=1, block=a.shape[0])\n"
    )
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    linecache.checkcache(str(path))
    return namespace["function"]


def seconds(function: Any) -> float:
    """Of the processor, so that other work of the machine does not count."""
    begin = time.process_time()
    fe.compile(function, VECTOR, 1.0, 1.0, options="--target cpu")
    return time.process_time() - begin


def test_ten_times_the_lines_take_about_ten_times_as_long(tmp_path: Path) -> None:
    functions = {lines: straight(lines, tmp_path) for lines in (10, 250, 2500)}
    seconds(functions[10])  # imports
    short = min(seconds(functions[250]) for _ in range(2))
    assert seconds(functions[2500]) < 22 * short


@pytest.mark.parametrize("lines", (100, 2500))
def test_a_long_kernel_computes_what_a_short_one_does(lines: int, tmp_path: Path) -> None:
    function = fe.compile(straight(lines, tmp_path), VECTOR, 1.0, 1.0, options="--target cpu")
    a = np.linspace(0.5, 1.5, 37, dtype=np.float32)
    x, start = a.copy(), a.copy()
    for _ in range(lines):
        x = x * np.float32(0.5) + start * np.float32(0.25)
    function(a, 0.5, 0.25)
    assert np.array_equal(a, x)


def test_ten_thousand_unrolled_steps_compile() -> None:
    @fe.kernel
    def kernel(a):
        i = fe.arch.thread_idx()[0]
        x = a[i]
        for j in fe.range_constexpr(10_000):
            x = x + j % 3
        a[i] = x

    def function(a):
        kernel(a).launch(grid=1, block=a.shape[0])

    built = fe.compile(function, VECTOR, options="--target cpu")
    a = np.zeros(5, np.float32)
    built(a)
    assert (a == sum(j % 3 for j in range(10_000))).all()

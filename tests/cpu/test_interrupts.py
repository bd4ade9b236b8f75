"""Ctrl-C in loops of host functions: they end with KeyboardInterrupt, and the next call works."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from plain_python import i32

import ferrule as fe


def spins(out: fe.Tensor, n: fe.Int64):
    x, steps = fe.Int64(1), fe.Int64(0)
    while steps < n:
        x = x * 3 + 1
        steps += 1
    out[0] = x


def nested(out: fe.Tensor, n: fe.Int64):
    for _ in range(n):
        for j in range(100):
            out[0] = out[0] * 3 + j


def allocates(out: fe.Tensor, n: fe.Int64):
    for i in range(n):
        scratch = fe.zeros((100,), fe.Int64)
        for j in range(100):
            scratch[j] = i
        out[0] += scratch[99]


@pytest.mark.parametrize(
    ("function", "steps"),
    [(spins, 10**11), (nested, 10**9), (allocates, 10**9)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_signal_ends_a_long_loop(
    function: Callable[..., Any], steps: int, interruptible: None
) -> None:
    out = np.zeros(1, np.int64)
    compiled = fe.compile(function, out, fe.Int64, options="--target cpu")
    compiled(out, 4)
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        compiled(out, steps)
    timer.join()
    assert time.monotonic() - begin < 5
    compiled(out, 4)


def test_asking_changes_no_result() -> None:
    def steps(a, out):
        for i in range(a.shape[0]):
            x, n = a[i], 0
            while x != 1:
                x = x // 2 if x % 2 == 0 else 3 * x + 1
                n += 1
            out[i] = n

    run_all_ways(steps, (i32(*range(1, 60)), i32(*[0] * 59)))

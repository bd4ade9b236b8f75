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
from lowered import vector as vector_of
from plain_python import i32

import ferrule as fe


def vector() -> fe.FakeTensor:
    return vector_of(fe.Int64)


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


@fe.kernel
def device_long(seen: fe.Tensor, rounds: fe.Int64):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    value = seen[i]
    for _ in range(rounds):
        value = value * 3 + 1
    seen[i] = value


@fe.jit
def long_blocks(seen: fe.Tensor, rounds: fe.Int64):
    device_long(seen, rounds).launch(grid=(seen.shape[0],), block=(1,))


@fe.jit
def short_then_long(seen: fe.Tensor, rounds: fe.Int64):
    device_uneven(seen, rounds).launch(grid=(seen.shape[0],), block=(1,))


@fe.jit
def launches_of_one_block(seen: fe.Tensor, rounds: fe.Int64):
    for _ in range(seen.shape[0]):
        device_long(seen, rounds).launch(grid=(1,), block=(1,))


@fe.jit
def strips(seen: fe.Tensor, rounds: fe.Int64):
    device_long(seen, rounds).launch(grid=(seen.shape[0] // 4,), block=(4,))


@fe.kernel
def device_uneven(seen: fe.Tensor, rounds: fe.Int64):
    i = fe.arch.block_idx()[0]
    value = seen[i]
    for _ in range(rounds * i // 100):
        value = value * 3 + 1
    seen[i] = value


@fe.kernel
def device_waits(seen: fe.Tensor, rounds: fe.Int64):
    i, t = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    shared = fe.make_tensor(fe.arch.alloc_smem(fe.Int64, 4), fe.make_layout(4))
    value = seen[i]
    for _ in range(rounds // 32):
        shared[t] = value
        fe.arch.sync_threads()
        value = shared[(t + 1) % 4] * 3 + 1
        fe.arch.sync_threads()
    seen[i] = value


@fe.jit
def cooperative(seen: fe.Tensor, rounds: fe.Int64):
    device_waits(seen, rounds).launch(grid=(seen.shape[0],), block=(4,))


_BLOCK = 0.1
"""Seconds of a block, about."""


def rounds_of_a_block(compiled: Callable[..., Any]) -> int:
    """How many rounds last about so long, here and now."""
    seen, rounds = np.ones(4, np.int64), 1 << 16
    compiled(seen, 1)  # the first call takes longer
    while True:
        begin = time.monotonic()
        compiled(seen, rounds)
        each = (time.monotonic() - begin) / 4
        if each > _BLOCK / 20:
            return int(rounds * _BLOCK / each)
        rounds *= 2


@pytest.mark.parametrize("team", ["1", "2"])
@pytest.mark.parametrize(
    "function", [long_blocks, short_then_long, launches_of_one_block, strips, cooperative]
)
def test_a_signal_waits_for_a_block_and_not_for_more(
    function: fe.JitFunction, team: str, interruptible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch of a hundred blocks of a tenth of a second ends within some of these."""
    monkeypatch.setenv("FERRULE_NUM_THREADS", team)
    seen = np.ones(400, np.int64)
    options = "--target cpu"
    compiled = fe.compile(function, vector(), fe.Int64, options=options)
    one_block = fe.compile(long_blocks, vector(), fe.Int64, options=options)
    rounds = rounds_of_a_block(one_block)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        compiled(seen, rounds)
    timer.join()
    took, begin = time.monotonic() - begin, time.monotonic()
    one_block(np.ones(int(team), np.int64), rounds)
    in_time = took < 0.3 + 0.2 + 12 * max(_BLOCK, time.monotonic() - begin)
    # The machine may be busy, and blocks longer than they are now: then they are counted.
    ran = np.count_nonzero(seen != 1) // (4 if function is strips else 1)
    assert in_time or (ran < 30 and function is not launches_of_one_block)
    compiled(np.ones(4, np.int64), 1)


def test_a_handlers_own_error_ends_a_launch_and_a_handler_without_one_does_not(
    interruptible: None,
) -> None:
    compiled = fe.compile(long_blocks, vector(), fe.Int64, options="--target cpu")
    rounds = rounds_of_a_block(compiled) // 10
    handled: list[int] = []

    class Stop(Exception):
        pass

    def counts(number: int, _frame: object) -> None:
        handled.append(number)
        if len(handled) == 3:
            raise Stop

    former = signal.signal(signal.SIGTERM, counts)
    try:
        for wait in (0.05, 0.25, 0.45):
            threading.Timer(wait, signal.raise_signal, [signal.SIGTERM]).start()
        with pytest.raises(Stop):
            compiled(np.ones(4000, np.int64), rounds)
        assert handled == [signal.SIGTERM] * 3
    finally:
        signal.signal(signal.SIGTERM, former)


def test_a_launch_of_another_thread_goes_on(interruptible: None) -> None:
    """Signals are the main thread's, in Python too."""
    compiled = fe.compile(long_blocks, vector(), fe.Int64, options="--target cpu")
    rounds, seen = rounds_of_a_block(compiled) // 10, np.ones(60, np.int64)
    wanted = np.ones(1, np.int64)
    compiled(wanted, rounds)
    thread = threading.Thread(target=compiled, args=(seen, rounds))
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        thread.join()
        timer.join()
        time.sleep(1)
    thread.join()
    assert (seen == wanted[0]).all()

"""Ctrl-C in launches and in loops of host functions: they end, and the next call works.

How soon is measured in the processor's time of the calling thread, and in blocks: on a busy machine
the clock goes on while nothing runs, and looks for signals are made by the clock.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
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


class Interruption:
    """Ctrl-C when the calling thread has worked for some time; what the thread did after it."""

    def __init__(self, after: float, seen: np.ndarray[Any, Any] | None = None) -> None:
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._due = self._worked() + after
        self._seen = np.ones(1) if seen is None else seen
        self._raised = 0.0
        self._thread = threading.Thread(target=self._raise)

    def __enter__(self) -> Interruption:
        self._former = signal.signal(signal.SIGINT, self._handle)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        signal.signal(signal.SIGINT, self._former)
        self.blocks_after = self._changed() - self._handled

    def _worked(self) -> float:
        return time.clock_gettime(self._clock)

    def _changed(self) -> int:
        return np.count_nonzero(self._seen != 1)

    def _raise(self) -> None:
        while self._worked() < self._due:
            time.sleep(0.002)
        self._raised = self._worked()
        signal.raise_signal(signal.SIGINT)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.waited, self._handled = self._worked() - self._raised, self._changed()
        signal.default_int_handler(number, frame)


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
    with Interruption(after=0.05) as interruption, pytest.raises(KeyboardInterrupt):
        compiled(out, steps)
    assert interruption.waited < 0.2
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


_BLOCK = 0.03
"""Seconds of a block, about."""

_TOGETHER = 16
"""So many threads of the grid run as vectors at most, and end together."""


def rounds_of_a_block(compiled: Callable[..., Any]) -> int:
    """How many rounds last about so long, in the processor's time."""
    rounds = 1 << 16
    worked(compiled, 1, 1)  # the first call takes longer
    while True:
        each = worked(compiled, 1, rounds)
        if each > _BLOCK / 10:
            return int(rounds * _BLOCK / each)
        rounds *= 2


def worked(compiled: Callable[..., Any], count: int, rounds: int) -> float:
    """How long this thread works for a launch."""
    seen, begin = np.ones(count, np.int64), time.thread_time()
    compiled(seen, rounds)
    return time.thread_time() - begin


@pytest.mark.parametrize("team", [1, 2])
@pytest.mark.parametrize(
    "function", [long_blocks, short_then_long, launches_of_one_block, strips, cooperative]
)
def test_a_signal_waits_for_a_block_and_not_for_more(
    function: fe.JitFunction, team: int, interruptible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a launch of some hundred blocks: the caller looks, and then all threads end.

    The blocks that run together are measured; half as much again is for a core that others slow.
    """
    options = "--target cpu"
    monkeypatch.setenv("FERRULE_NUM_THREADS", "1")
    alone = fe.compile(long_blocks, vector(), fe.Int64, options=options)
    rounds = rounds_of_a_block(alone)
    together = worked(alone, _TOGETHER, rounds)
    monkeypatch.setenv("FERRULE_NUM_THREADS", str(team))
    compiled = fe.compile(function, vector(), fe.Int64, options=options)
    compiled(np.ones(4, np.int64), 1)
    seen = np.ones(400, np.int64)
    with Interruption(2 * together, seen) as interruption, pytest.raises(KeyboardInterrupt):
        compiled(seen, rounds)
    assert interruption.waited < 0.2 + 1.5 * together
    # Each other thread works on some, and may have taken as many more while the handler ran.
    assert interruption.blocks_after <= 2 * (team - 1) * _TOGETHER
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

    def raises() -> None:
        """Three signals, each when the one before was handled: two at once would be one."""
        for count in range(3):
            signal.raise_signal(signal.SIGTERM)
            while len(handled) == count:
                time.sleep(0.005)

    former = signal.signal(signal.SIGTERM, counts)
    thread = threading.Thread(target=raises)
    try:
        with pytest.raises(Stop):
            thread.start()
            compiled(np.ones(40_000, np.int64), rounds)
        thread.join()
        assert handled == [signal.SIGTERM] * 3
    finally:
        signal.signal(signal.SIGTERM, former)


def test_a_launch_of_another_thread_goes_on(interruptible: None) -> None:
    """Signals are the main thread's, in Python too."""
    compiled = fe.compile(long_blocks, vector(), fe.Int64, options="--target cpu")
    rounds, seen = rounds_of_a_block(compiled) // 5, np.ones(60, np.int64)
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

"""What `--enable-checks` finds around a `block_reduction`, whose own memory nobody watches.

No program has a name for that memory, so a fault is in the values, in `op`, or in who comes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe

arch = fe.arch
BLOCK = 64


def run(kernel: Any) -> np.ndarray:
    """What a checked kernel of one block makes of zeros."""

    @fe.jit
    def host(out: fe.Tensor):
        kernel(out).launch(grid=1, block=BLOCK)

    out = np.zeros(BLOCK, np.int32)
    fe.compile(host, out, options="--target cpu --enable-checks")(out)
    return out


def test_reductions_after_each_other_are_no_races() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        total = 0
        for k in range(3):
            total += arch.block_reduction(t + k, lambda x, y: x + y)
            total += arch.block_reduction((t, k), lambda x, y: x if x[0] > y[0] else y)[0]
        out[t] = total

    assert (run(kernel) == 3 * (2016 + 63) + 3 * 64).all()


def test_a_race_in_its_values() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, BLOCK)
        row[t] = t
        out[t] = arch.block_reduction(row[63 - t], lambda x, y: x + y)

    with pytest.raises(fe.RaceError, match="element 32 of shared memory is written"):
        run(kernel)


def test_a_race_of_what_it_gives() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, BLOCK)
        row[t // 2] = arch.block_reduction(t, lambda x, y: x + y)
        out[t] = row[t // 2]

    with pytest.raises(fe.RaceError, match="element 0 of shared memory is written"):
        run(kernel)


def test_its_barriers_separate_what_is_before_from_what_is_after() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, BLOCK)
        row[t] = t
        arch.block_reduction(t, lambda x, y: x + y)
        out[t] = row[63 - t]

    assert run(kernel).tolist() == list(range(63, -1, -1))


def test_an_index_and_a_race_of_its_function() -> None:
    @fe.kernel
    def past(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, BLOCK)
        row[t] = t
        arch.sync_threads()
        out[t] = arch.block_reduction(t, lambda x, y: row[x + y])

    @fe.kernel
    def written(out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, BLOCK)

        def op(x, y):
            row[0] = x
            return x + y

        out[t] = arch.block_reduction(t, op)

    with pytest.raises(IndexError, match="past: element 80 is out of range for shared"):
        run(past)
    with pytest.raises(fe.RaceError, match="written: element 0 of shared memory"):
        run(written)


def test_threads_that_do_not_come() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if t != 5:
            out[t] = arch.block_reduction(t, lambda x, y: x + y)

    with pytest.raises(fe.DivergenceError, match=r"thread \(5, 0, 0\)"):
        run(kernel)

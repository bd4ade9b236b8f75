"""Tuples, named tuples and dataclasses in reductions, scans, shuffles, shared memory and fragments:
each compiled and interpreted, against NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)


@dataclass(frozen=True)
class Moments:
    """Count, mean and sum of squared differences, as Welford joins them."""

    mean: fe.Float32
    m2: fe.Float32
    count: fe.Int32

    def joined(self, other):
        n = self.count + other.count
        d = other.mean - self.mean
        part = fe.Float32(other.count) / n
        return Moments(self.mean + d * part, self.m2 + other.m2 + d * d * (self.count * part), n)


class Best(NamedTuple):
    value: fe.Float32
    at: fe.Int32


class Segment(NamedTuple):
    total: fe.Int32
    starts: fe.Boolean


@dataclass(frozen=True)
class Nested:
    best: Best
    pair: tuple


def larger(x, y):
    first = (x.value > y.value) | ((x.value == y.value) & (x.at < y.at))
    return x if first else y


def appended(x, y):
    return Segment(y.total if y.starts else x.total + y.total, x.starts | y.starts)


def launched(kernel: Any, *arguments: Any, block: Any) -> Any:
    def host(*args):
        kernel(*args).launch(grid=1, block=block)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


def numbers(count: int) -> Any:
    return np.round(np.sin(np.arange(count) * 1.7) * 50).astype(np.float32)


@pytest.mark.parametrize("block", [100, 64])
def test_reductions_and_scans_of_a_block(block: int) -> None:
    @fe.kernel
    def kernel(a, ints, out):
        t = arch.thread_idx()[0]
        best = arch.block_reduction(Best(a[t], t), larger)
        least = arch.block_reduction((a[t], t), lambda x, y: x if x[0] <= y[0] else y)
        moments = arch.block_reduction(Moments(a[t], 0.0, 1), Moments.joined)
        inside = arch.block_scan(Segment(ints[t], t % 7 == 0), appended)
        before = arch.block_scan_exclusive(
            (ints[t], 1), lambda x, y: (x[0] + y[0], x[1] + y[1]), (5, 0)
        )
        out[t, 0], out[t, 1], out[t, 2] = best.value, best.at, least[0]
        out[t, 3], out[t, 4], out[t, 5] = moments.mean, moments.m2, moments.count
        out[t, 6], out[t, 7], out[t, 8] = inside.total, before[0], before[1]

    a, ints = numbers(block), np.arange(block, dtype=np.int32) * 3 % 11
    found = launched(kernel, a, ints, np.zeros((block, 9)), block=block)
    assert (found[:, 0] == a.max()).all() and (found[:, 1] == a.argmax()).all()
    assert (found[:, 2] == a.min()).all() and (found[:, 5] == block).all()
    np.testing.assert_allclose(found[:, 3], a.mean(), rtol=1e-5)
    np.testing.assert_allclose(found[:, 4], a.var() * block, rtol=1e-4)
    runs = [ints[i - i % 7 : i + 1].sum() for i in range(block)]
    np.testing.assert_array_equal(found[:, 6], runs)
    np.testing.assert_array_equal(found[:, 7], 5 + np.cumsum(ints) - ints)
    np.testing.assert_array_equal(found[:, 8], np.arange(block))


@pytest.mark.parametrize("block", [64, 46])
def test_reductions_scans_and_shuffles_of_a_warp(block: int) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        best = arch.warp_reduction(Best(a[t], t), larger, 16)
        scan = arch.warp_scan(Best(a[t], t), larger)
        moved = arch.shuffle_sync_bfly(Nested(Best(a[t], t), (t + 1, 7)), 1)
        chosen = fe.where(t % 2 == 0, (a[t], t), (0.0, -1))
        vector = arch.block_reduction(fe.full((2,), a[t], fe.Float32), max)
        out[t, 0], out[t, 1] = best.at, scan.at
        out[t, 2], out[t, 3], out[t, 4] = moved.best.at, moved.pair[0], moved.pair[1]
        out[t, 5], out[t, 6], out[t, 7] = chosen[0], chosen[1], vector[1]

    a = numbers(block)
    found = launched(kernel, a, np.zeros((block, 8)), block=block)
    for t in range(block):
        group = slice(t // 16 * 16, t // 16 * 16 + 16)
        warp = slice(t // 32 * 32, t + 1)
        other = t ^ 1
        assert found[t, 0] == a[group].argmax() + group.start
        assert found[t, 1] == a[warp].argmax() + warp.start
        assert found[t, 2:5].tolist() == [other, other + 1, 7]
        assert found[t, 5:8].tolist() == ([a[t], t] if t % 2 == 0 else [0, -1]) + [a.max()]


def test_shared_memory_and_fragments_have_a_place_for_each_number() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        shared = arch.alloc_smem(Best, 64)
        rows = fe.make_tensor(arch.alloc_smem((fe.Float32, (fe.Int32, fe.Int8)), 64), (8, 8))
        own = fe.make_fragment((2, 3), Nested(Best(fe.Float32, fe.Int32), (fe.Int64,)))
        own.fill(Nested(Best(0.5, 1), (2,)))
        shared[t] = Best(a[t], t)
        rows[t % 8, t // 8] = a[t], (t, 3)
        own[1, 2] = Nested(Best(a[t], t), (t * 2,))
        arch.sync_threads()
        last = shared
        for i in fe.range_constexpr(3):
            last = last + i
        best, (x, (y, z)) = last[60 - t // 2], rows[None, 7 - t // 8][7 - t % 8]
        both = own[1, 2].best.at + own[0, 0].pair[0]
        out[t, 0], out[t, 1], out[t, 2], out[t, 3] = best.value, best.at, x, y
        out[t, 4], out[t, 5] = z, both + rows.shape[0]

    a = numbers(64)
    found = launched(kernel, a, np.zeros((64, 6)), block=64)
    t = np.arange(64)
    at, back = 63 - t // 2, 63 - t
    np.testing.assert_array_equal(found, np.stack([a[at], at, a[back], back, t * 0 + 3, t + 10], 1))


def _refused(body: Any) -> str:
    @fe.kernel
    def kernel(a):
        body(a, arch.thread_idx()[0])

    def host(a: fe.Tensor):
        kernel(a).launch(grid=1, block=32)

    with pytest.raises(fe.CompileError) as caught:
        fe.compile(host, np.zeros(32, np.float32), options="--target cpu")
    assert caught.value.diagnostic.span.file.endswith("test_several_numbers.py")
    assert not any("collectives" in note for note in caught.value.diagnostic.notes)
    return str(caught.value)


def test_messages_are_at_the_line_of_the_user() -> None:
    def concatenated(a, t):
        arch.block_reduction((a[t], t), fe.ReductionOp.ADD)

    def another(a, t):
        arch.warp_scan((a[t], t), lambda x, y: (x[0] + y[0], x[0]))

    def float_of_int(a, t):
        arch.block_scan(t, lambda x, y: x / y)

    def text_(a, t):
        arch.block_reduction((a[t], "x"), max)

    def empty(a, t):
        arch.shuffle_sync((), 0)

    def initial(a, t):
        arch.block_scan_exclusive((a[t], t), lambda x, y: x, (0.0, 0.0))

    def group(a, t):
        arch.warp_reduction(a[t], max, 5)

    def store(a, t):
        arch.alloc_smem((fe.Float32, fe.Int32), 4)[0] = a[t]

    def unannotated(a, t):
        arch.alloc_smem(Nested, 4)

    def part(a, t):
        fe.make_fragment((2, 2), (fe.Float32, fe.Int32))[None, 0] = (1.0, 2)

    def attribute(a, t):
        fe.printf(arch.alloc_smem((fe.Float32, fe.Int32), 4).shape)

    def chosen(a, t):
        fe.where(t > 3, (a[t], t), (a[t], t, t))

    assert (
        "op gives (float32, int32, float32, int32) for two values of (float32, int32)"
        in _refused(concatenated)
    )
    assert "op gives (float32, float32) for two values of (float32, int32)" in _refused(another)
    assert "op gives a run-time float32 for two values of int32" in _refused(float_of_int)
    assert "block_reduction takes numbers, but [1] is 'x' (str)" in _refused(text_)
    assert "shuffle_sync takes numbers, but the value has none" in _refused(empty)
    assert "initial is (0.0, 0.0) (tuple), and not (float32, int32)" in _refused(initial)
    assert "threads_in_group is one of (1, 2, 4, 8, 16, 32): 5" in _refused(group)
    assert "an element of smem is a run-time float32, and not (float32, int32)" in _refused(store)
    assert "is Nested, whose field 'pair' is annotated with <class 'tuple'>" in _refused(
        unannotated
    )
    assert "a part of fragment is assigned to" in _refused(part)
    assert "the pointer smem of several numbers has no attribute 'shape'" in _refused(attribute)
    assert "where chooses between a tuple of 2 values and a tuple of 3 values" in _refused(chosen)

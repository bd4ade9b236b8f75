"""Guards of the threads of a block that follow each other: a phase for each."""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways

import ferrule as fe
from ferrule.language.codegen.cpu.cooperate import guarded, phases, unread
from ferrule.language.ir import ops

arch = fe.arch
EACH, THREADS = 4, 64


@fe.kernel
def sums(x, out, n: fe.Int32):
    """Elements of a row in parts, of which the last may be missing."""
    t, row = arch.thread_idx()[0], arch.block_idx()[0]
    own = fe.make_fragment((EACH,), fe.Float32)
    own.fill(-1.0)
    total, parts = fe.Float32(0.5), fe.Int32(0)
    for k in fe.range_constexpr(EACH):
        if k * THREADS + t < n:
            own[k] = x[row, k * THREADS + t]
            total += own[k]
            parts += 1
    whole = arch.block_reduction(total, operator.add)
    for k in fe.range_constexpr(EACH):
        j = k * THREADS + t
        if n > j:
            out[row, j] = own[k] * 2 + whole + parts


@fe.kernel
def reversed_ends(x, out, n: fe.Int32):
    """Guards from below, else branches, and what a thread had before a guard, read behind it."""
    t, row = arch.thread_idx()[0], arch.block_idx()[0]
    first = fe.Float32(1.0)
    if t >= n - THREADS:
        first = x[row, t]
    second = first
    if t + THREADS > n:
        second = x[row, t + THREADS] + first
    arch.sync_threads()
    out[row, t] = second - first
    if t + THREADS <= n + 3:
        out[row, t + THREADS] = first


@cache
def host(kernel: Any) -> Any:
    @fe.jit
    def launched(x, out, n: fe.Int32):
        kernel(x, out, n).launch(grid=x.shape[0], block=THREADS)

    return launched


@pytest.mark.parametrize("kernel", [sums, reversed_ends])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200, 256, 300, -5])
def test_threads_do_what_they_did_one_after_the_other(kernel: Any, n: int) -> None:
    x = np.random.default_rng(2).standard_normal((2, EACH * THREADS), np.float32)
    run_all_ways(host(kernel), (x, np.zeros_like(x), n), plain=False)


@fe.kernel
def filled(x, out, n: fe.Int32, way: fe.Constexpr):
    """Elements that are read behind the guard that they were stored behind, but for one `way`."""
    t, row = arch.thread_idx()[0], arch.block_idx()[0]
    own = fe.make_fragment((EACH,), fe.Float32)
    if way == "stored before":
        for k in fe.range_constexpr(EACH):
            if k * THREADS + t < n:
                own[k] = x[row, k * THREADS + t]
    own.fill(-1.0)
    total = fe.Float32(0)
    for k in fe.range_constexpr(EACH):
        if k * THREADS + t < n:
            if way == "read first":
                total += own[k]
            if way != "stored before":
                own[k] = x[row, k * THREADS + t]
            total += own[k]
    if way == "filled again":
        own.fill(-2.0)
    whole = arch.block_reduction(total, operator.add)
    for k in fe.range_constexpr(EACH):
        j = k * THREADS + t
        if way == "another guard":
            if j < n + 7:
                total += own[k]
        elif way == "the other side":
            if j < n:
                total += 1
            else:
                total += own[k]
        elif way == "no guard":
            total += own[k]
        elif way == "in a loop":
            for _ in range(n):
                total += own[k]
        elif j < n:
            total += own[k] * own[k] - whole
    for k in fe.range_constexpr(EACH):
        out[row, k * THREADS + t] = total + k


WAYS = ("plain", "stored before", "read first", "filled again", "another guard")
WAYS += ("the other side", "no guard", "in a loop")


@cache
def host_of(way: str) -> Any:
    @fe.jit
    def launched(x, out, n: fe.Int32):
        filled(x, out, n, way).launch(grid=x.shape[0], block=THREADS)

    return launched


@pytest.mark.parametrize("way", WAYS)
def test_what_nobody_reads_is_not_stored(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is anything else left out."""
    x = np.random.default_rng(3).standard_normal((2, EACH * THREADS), np.float32)
    for n in (0, 1, 65, 130, 256):
        run_all_ways(host_of(way), (x, np.zeros_like(x), n), plain=False)
    left_out: list[int] = []

    def seen(kernel: ops.Function) -> ops.Function:
        made = unread.without_unread(kernel)
        left_out.append(len(kernel.body.ops) - len(made.body.ops))
        return made

    monkeypatch.setattr(phases, "without_unread", seen)
    fe.compile(host_of(way), x, x, 3, options="--target cpu --no-cache")
    assert max(left_out) == (EACH if way == "plain" else 0)


@pytest.mark.parametrize("function", [host(sums), host_of("plain")])
def test_each_guard_ends_its_loop(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the row ends, the loop does: nothing is left for masks, of own elements neither."""
    x = np.zeros((2, EACH * THREADS), np.float32)

    def ends() -> int:
        text = fe.compile(function, x, x, 3, options="--target cpu").inspect_llvm()
        return text.count('call i64 @"llvm.smin.i64"')

    many = ends()
    monkeypatch.setattr(guarded, "FEWEST", THREADS + 1)
    assert many == ends() + 2 * EACH


def test_places_of_a_reduction_are_side_by_side() -> None:
    """A vector reads neighbours: behind the masks of `warp * 32 + lane` LLVM would gather."""

    @fe.kernel
    def kernel(x, out):
        t = arch.thread_idx()[0]
        total = arch.block_reduction(x[t], operator.add)
        if t == 0:
            out[0] = total

    @fe.jit
    def launched(x, out):
        kernel(x, out).launch(grid=1, block=256)

    x, out = np.ones(256, np.float32), np.zeros(1, np.float32)
    function = fe.compile(launched, x, out, options="--target cpu")
    assert 'asm ""' not in function.inspect_llvm() and "gather" not in function.inspect_asm()
    function(x, out)
    assert out[0] == 256

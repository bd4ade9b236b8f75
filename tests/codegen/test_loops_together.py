"""Loops that the threads of a block make together, wherever they are: the results are those of the
interpreter, and the threads are lanes of vectors."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from llvmlite import binding as llvm

import ferrule as fe

arch = fe.arch
BLOCK = 40
RNG = np.random.default_rng(3)


@fe.kernel
def in_a_loop(x, o, n: fe.Int32, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s = fe.Float32(0)
    for c in range(2):
        for i in range(t, n, BLOCK):
            s += x[g * 7 + c + i]
    o[g * BLOCK + t] = s


@fe.kernel
def in_a_loop_of_the_call(x, o, n: fe.Int32, w: fe.Int32):
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    s, first = fe.Float32(0), fe.Float32(0)
    for c in range(w):
        first = x[t] * 2 + c
        for i in range(t + c, n, BLOCK):
            s += x[i] * first
    o[g * BLOCK + t] = s + first


@fe.kernel
def in_a_branch(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    s = fe.Float32(1)
    if w > 3:
        for i in range(t, n, BLOCK):
            s = s * 0.5 + x[i]
    else:
        s = x[t] - 1
    o[arch.block_idx()[0] * BLOCK + t] = s


@fe.kernel
def in_a_branch_of_some(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    s = fe.Float32(1)
    if t % w == 1:
        for i in range(t, n, BLOCK):
            s += x[i]
    o[arch.block_idx()[0] * BLOCK + t] = s


@fe.kernel
def over_the_grid(x, o, n: fe.Int32, w: fe.Int32):
    first = arch.block_idx()[0] * arch.block_dim()[0] + arch.thread_idx()[0]
    for i in range(first, n, arch.block_dim()[0] * arch.grid_dim()[0]):
        o[i] = x[i] * 2 + 1


@fe.kernel
def by_a_step_of_the_call(x, o, n: fe.Int32, w: fe.Int32):
    """Upwards; or downwards, or not at all."""
    t = arch.thread_idx()[0]
    s = fe.Float32(0)
    for i in range(t + 20, n, w):
        s += x[i]
    o[arch.block_idx()[0] * BLOCK + t] = s


@fe.kernel
def by_quotients(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    s = fe.Float32(0)
    for i in range(t, n, BLOCK):
        if w != 0:
            s += x[(i // w) * w + i % w] * x[i // 8 + i % 8]
    o[arch.block_idx()[0] * BLOCK + t] = s


@fe.kernel
def of_pairs(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    s, m = fe.Float32(0), fe.Float32(-1)
    for i in range(t, n // 2, BLOCK):
        for j in fe.range_constexpr(2):
            v = x[2 * i + j]
            if v > 0:
                s += v
            m = fe.math.max(m, v)
    o[arch.block_idx()[0] * BLOCK + t] = s + m


@fe.kernel
def by_a_table(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    for i in range(t, n, BLOCK):
        o[i] = x[fe.Int32(x[i] * x[i]) % n]


@fe.kernel
def one_after_the_other(x, o, n: fe.Int32, w: fe.Int32):
    """A thread reads in the second loop what it wrote in the first."""
    t = arch.thread_idx()[0]
    for k in range(3):
        for i in range(t, n, BLOCK):
            o[i] = x[i] + k if k == 0 else o[i] * 2
        for i in range(t, n, BLOCK):
            o[i] += o[i]


@fe.kernel
def with_own_memory(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    kept = fe.make_fragment(2, fe.Float32)
    kept[0], kept[1] = x[t], fe.Float32(0)
    for k in range(2):
        s = fe.Float32(0)
        for i in range(t, n, BLOCK):
            s += x[i]
        kept[k] += s
    o[t] = kept[0] - kept[1] * 2


@fe.kernel
def with_atomics(x, o, n: fe.Int32, w: fe.Int32):
    t = arch.thread_idx()[0]
    for k in range(2):
        s = fe.Float32(0)
        for i in range(t, n, BLOCK):
            s += x[i]
        arch.atomic_add(o.iterator + k, fe.Float32(fe.Int32(s)))


@fe.kernel
def solved(x, o, n: fe.Int32, w: fe.Int32):
    """Columns of a triangular system: o = L^-1 x, with w rows of BLOCK columns."""
    t = arch.thread_idx()[0]
    if t < n:
        for i in range(w):
            s = x[i * 8 + t]
            for k in range(i):
                s -= x[300 + i * 8 + k] * o[k * BLOCK + t]
            o[i * BLOCK + t] = s * 0.5


@fe.kernel
def relaxed(x, o, n: fe.Int32, w: fe.Int32):
    """Sweeps in which each thread has an element, and reads what it wrote."""
    t, g = arch.thread_idx()[0], arch.block_idx()[0]
    for sweep in range(w):
        for k in range(n):
            o[g * BLOCK + t] = o[g * BLOCK + t] * 0.5 + x[k + t]
        if sweep % 2 == 0:
            o[g * BLOCK + t] += 1


@fe.kernel
def by_rows(x, o, n: fe.Int32, w: fe.Int32):
    """A loop in which each thread has a number of iterations of its own."""
    t = arch.thread_idx()[0]
    for i in range(w):
        s = fe.Float32(0)
        for k in range(t % 5):
            s += x[i + k] * x[t]
        o[i * BLOCK + t] = s


VECTORS = (
    *(in_a_loop, in_a_loop_of_the_call, in_a_branch, over_the_grid, by_quotients, of_pairs),
    *(one_after_the_other, with_own_memory, with_atomics, solved, relaxed),
)
OTHERS = (by_rows, in_a_branch_of_some, by_a_step_of_the_call, by_a_table)


@cache
def host_of(kernel: Any, grid: int = 2) -> Callable[..., None]:
    def host(x: fe.Tensor, o: fe.Tensor, n: fe.Int32, w: fe.Int32):
        kernel(x, o, n, w).launch(grid=grid, block=BLOCK)

    return host


@pytest.mark.parametrize("kernel", [*VECTORS, *OTHERS], ids=lambda k: k.__name__)
@pytest.mark.parametrize(("n", "w"), [(97, 7), (33, 40), (1, 3), (0, 4), (-5, 1)])
def test_results_are_those_of_the_interpreter(kernel: Any, n: int, w: int) -> None:
    x = RNG.integers(-9, 9, 400).astype(np.float32)
    alone = (by_a_table, one_after_the_other, with_own_memory, solved, by_rows, relaxed)
    grid, w = (1, min(w, 9)) if kernel in alone else (2, w)
    run_all_ways(fe.jit(host_of(kernel, grid)), (x, np.zeros(400, np.float32), n, w), plain=False)


@pytest.mark.parametrize(("start", "n", "w"), [(0, 3, -5), (0, 3, 0), (9, 200, 1), (9, 200, 64)])
def test_a_step_of_the_call_goes_where_it_goes(start: int, n: int, w: int) -> None:
    x = RNG.integers(-9, 9, 400).astype(np.float32)
    host = fe.jit(host_of(by_a_step_of_the_call))
    run_all_ways(host, (x, np.zeros(400, np.float32), n, w), plain=False)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="it reads x86's code")
@pytest.mark.parametrize("kernel", VECTORS, ids=lambda k: k.__name__)
def test_threads_are_lanes(kernel: Any) -> None:
    if kernel is by_quotients and not llvm.get_host_cpu_features().get("avx512f"):
        pytest.skip("LLVM loads vectors from several places only where the CPU has AVX-512")
    vector = fe.make_fake_compact_tensor("float32", (fe.sym_int(symbol="m"),))
    function = fe.compile(host_of(kernel), vector, vector, fe.Int32, fe.Int32,
                          options="--target cpu")  # fmt: skip
    assert re.search(r"\bv?(?:add|mul|fmadd\w*)ps\b", function.inspect_asm())


# ---- quotients ----


EDGES = np.array([0, 1, -1, 2, -2, 3, 7, -8, 1000, 2**30, 2**31 - 1, -(2**31), -(2**31) + 1])


@fe.kernel
def divided(x, q, r, w: fe.Int32):
    t = arch.thread_idx()[0]
    for i in range(t, x.shape[0], BLOCK):
        q[i] = x[i] // w
        r[i] = x[i] % w


@fe.jit
def dividing(x: fe.Tensor, q: fe.Tensor, r: fe.Tensor, w: fe.Int32):
    divided(x, q, r, w).launch(grid=1, block=BLOCK)


def test_quotients_are_exact() -> None:
    """Beside the multiples of the divisor, where a product with its reciprocal is rounded."""
    vector = fe.make_fake_compact_tensor("int32", (fe.sym_int(symbol="m"),))
    function = fe.compile(dividing, vector, vector, vector, fe.Int32, options="--target cpu")
    for w in (*EDGES.tolist(), *RNG.integers(-(2**31), 2**31, 40), *RNG.integers(-99, 99, 40)):
        most = 2**31 // max(abs(int(w)), 1)
        multiples = RNG.integers(-most, most + 1, 300) * int(w)
        x = np.concatenate([EDGES, *(multiples + d for d in (-1, 0, 1)),
                            RNG.integers(-(2**31), 2**31, 300)])  # fmt: skip
        x = np.clip(x, -(2**31), 2**31 - 1)
        q, r = np.full((2, len(x)), 7, np.int32)
        function(x.astype(np.int32), q, r, int(w))
        wanted = (0 * x, 0 * x) if w == 0 else np.divmod(x, int(w))
        np.testing.assert_array_equal(q, wanted[0].astype(np.int32))
        np.testing.assert_array_equal(r, wanted[1])

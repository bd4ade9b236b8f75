"""A thread's own accesses, in the order of its program, where LLVM makes vectors of threads.

LLVM moves accesses of neighbours together, and takes every move in a loop that is marked as
parallel for legal: decision 77.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from draws import seeded
from fuzz.neighbours import disagreement
from neighbour_programs import neighbour_kernels

import ferrule as fe

COUNT: Final = 1000


@fe.kernel
def pairs(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < n:
        y[2 * i] = x[2 * i + 1] + 1.0
        y[2 * i + 1] = x[2 * i] * 2.0


@fe.kernel
def triples(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < n:
        y[3 * i] = x[3 * i + 2] + 1.0
        y[3 * i + 2] = x[3 * i + 1] + x[3 * i]
        y[3 * i + 1] = x[3 * i + 2] * 2.0


@fe.kernel
def guarded(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < n:
        if x[2 * i + 1] > 5.0:
            y[2 * i] = x[2 * i + 1] + 1.0
            y[2 * i + 1] = x[2 * i] * 2.0


def swapped(x: Any, y: Any) -> None:
    y[0::2] = x[1::2] + 1
    y[1::2] = x[0::2] * 2


def turned(x: Any, y: Any) -> None:
    y[0::3] = x[2::3] + 1
    y[2::3] = x[1::3] + x[0::3]
    y[1::3] = x[2::3] * 2


def swapped_where_large(x: Any, y: Any) -> None:
    large = x[1::2] > 5
    y[0::2] = np.where(large, x[1::2] + 1, y[0::2])
    y[1::2] = np.where(large, x[0::2] * 2, y[1::2])


CASES: Final = (
    (pairs, swapped, 2),
    (triples, turned, 3),
    (guarded, swapped_where_large, 2),
)


@pytest.mark.parametrize(("kernel", "model", "width"), CASES, ids=["pairs", "triples", "guarded"])
@pytest.mark.parametrize("in_place", [True, False])
def test_neighbours_of_a_thread(
    kernel: Any, model: Callable[[Any, Any], None], width: int, in_place: bool
) -> None:
    @fe.jit
    def host(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
        kernel(x, y, n).launch(grid=(n + 127) // 128, block=128)

    fake = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    compiled = fe.compile(host, fake, fake, fe.Int32, options="--target cpu")
    x = np.arange(width * COUNT, dtype=np.float32)
    y = x if in_place else np.zeros_like(x)
    wanted_x = x.copy()
    wanted = wanted_x if in_place else y.copy()
    model(wanted_x, wanted)
    compiled(x, y, COUNT)
    np.testing.assert_array_equal(y, wanted)


@fe.kernel
def from_an_offset(x: fe.Tensor, y: fe.Tensor, p: fe.Int32, q: fe.Int32):
    i = fe.arch.block_idx()[0] * 100 + fe.arch.thread_idx()[0]
    first = x[2 * i + q + 1]
    x[2 * i + p] = first * 3.0
    y[i] = first + x[2 * i + q]


@fe.jit
def launches_from_an_offset(x: fe.Tensor, y: fe.Tensor, p: fe.Int32, q: fe.Int32):
    from_an_offset(x, y, p, q).launch(grid=10, block=100)


@pytest.mark.parametrize("at", [0, 1])
def test_places_that_only_the_call_knows(at: int) -> None:
    fakes = (fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),)) for _ in range(2))
    compiled = fe.compile(
        launches_from_an_offset, *fakes, fe.Int32, fe.Int32, options="--target cpu"
    )
    x, y = np.arange(2 * COUNT + 2, dtype=np.float32), np.zeros(COUNT, np.float32)
    model, own = x.copy(), 2 * np.arange(COUNT) + at
    model[own] = model[own + 1] * 3
    compiled(x, y, at, at)
    np.testing.assert_array_equal(x, model)
    np.testing.assert_array_equal(y, model[own + 1] + model[own])


@pytest.mark.parametrize("length", [2, 3, 4, 16])
def test_two_updates_of_an_element_by_threads_in_rows(length: int) -> None:
    threads = 128 - 128 % length

    @fe.kernel
    def kernel(x: fe.Tensor):
        t, b = fe.arch.thread_idx()[0], fe.arch.block_idx()[0]
        s = fe.arch.alloc_smem(fe.Int32, 256)
        row, column = t // length, t % length
        s[row * length + column] = row
        fe.arch.sync_threads()
        z = s[row * length + (length - 1 - column)]
        x[b * threads + t] += 1
        x[b * threads + t] += z

    @fe.jit
    def host(x: fe.Tensor):
        kernel(x).launch(grid=2, block=threads)

    compiled = fe.compile(host, fe.make_fake_compact_tensor(fe.Int32, (300,)))
    x = (np.arange(300) % 97).astype(np.int32)
    wanted = x.copy()
    wanted[: 2 * threads] += 1 + np.arange(2 * threads, dtype=np.int32) % threads // length
    compiled(x)
    np.testing.assert_array_equal(x, wanted)


@fe.kernel
def adds_numbers(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
    i = fe.arch.block_idx()[0] * 100 + fe.arch.thread_idx()[0]
    before = x[i]
    y[i] = before + z[i]
    z[i] = x[i] * before


def test_complex_numbers_in_place() -> None:
    """A complex number is two neighbours."""

    @fe.jit
    def host(x: fe.Tensor, y: fe.Tensor, z: fe.Tensor):
        adds_numbers(x, y, z).launch(grid=5, block=100)

    fake = fe.make_fake_compact_tensor(fe.Complex64, (500,))
    compiled = fe.compile(host, fake, fake, fake)
    x, z = (np.arange(500) * (1 + step * 1j) for step in (1, 2))
    x, z = x.astype(np.complex64), z.astype(np.complex64)
    after = x + z
    compiled(x, x, z)
    np.testing.assert_array_equal(x, after)
    np.testing.assert_allclose(z, after * (after - np.arange(500) * (1 + 2j)), rtol=1e-6)


MET: Final = (45, 79, 101, 125)
"""Seeds whose kernels were wrong while all loops over threads were marked."""


@pytest.mark.parametrize("seed", [*MET, *range(2)])
def test_random_kernels_over_neighbours(seed: int) -> None:
    assert disagreement(seeded(neighbour_kernels(most=3 + seed % 8), seed)) is None


@fe.kernel
def swaps(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
    i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
    if i < n:
        first, second = x[2 * i], x[2 * i + 1]
        y[2 * i] = second
        y[2 * i + 1] = first


@pytest.mark.parametrize(("kernel", "marked"), [(swaps, True), (pairs, False)])
def test_only_loops_in_which_nothing_can_move_are_marked(kernel: Any, marked: bool) -> None:
    """Where all loads are before all stores, LLVM needs no tests before the loop."""

    @fe.jit
    def host(x: fe.Tensor, y: fe.Tensor, n: fe.Int32):
        kernel(x, y, n).launch(grid=(n + 127) // 128, block=128)

    fake = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    text = fe.compile(host, fake, fake, fe.Int32, options="--target cpu").inspect_llvm()
    assert ("llvm.loop.parallel_accesses" in text) is marked

"""Kernels whose threads work together on the CPU: their form, their errors, and what they leave."""

from __future__ import annotations

import re
import resource
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm

import ferrule as fe

arch = fe.arch
TILE = 16


def built(kernel: Any, *arguments: Any, block: Any, grid: Any = 1, options: str = "") -> Any:
    """The compiled launch of a kernel."""

    def host(*args):
        kernel(*args).launch(grid=grid, block=block)

    return fe.compile(host, *arguments, options=f"--target cpu {options}")


def i32(*shape: int) -> Any:
    return np.zeros(shape, np.int32)


def runs_in_phases(function: Any) -> bool:
    """Whether no thread is a coroutine."""
    return "llvm.coro" not in function.inspect_llvm()


@fe.kernel
def reverse(a, out):
    t, n = arch.thread_idx()[0], arch.block_dim()[0]
    row = arch.alloc_smem(fe.Int32, 1024)
    row[t] = a[t]
    arch.sync_threads()
    out[t] = row[n - 1 - t]


@fe.kernel
def reverse_after_a_guard(a, out):
    t, n = arch.thread_idx()[0], arch.block_dim()[0]
    row = arch.alloc_smem(fe.Int32, 1024)
    if t < a.shape[0]:
        row[t] = a[t]
        arch.sync_threads()
        out[t] = row[n - 1 - t]


# ---- the form ----


def test_barriers_that_all_threads_reach_need_no_coroutines() -> None:
    assert runs_in_phases(built(reverse, i32(64), i32(64), block=64))


def test_a_barrier_behind_a_test_of_the_thread_does() -> None:
    function = built(reverse_after_a_guard, i32(64), i32(64), block=64)
    assert not runs_in_phases(function)
    out = i32(64)
    function(np.arange(64, dtype=np.int32), out)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_coroutines_run_at_every_level(level: int) -> None:
    a, out = np.arange(64, dtype=np.int32), i32(64)
    options = f"--opt-level {level}"
    built(reverse_after_a_guard, a, out, block=64, options=options)(a, out)
    np.testing.assert_array_equal(out, a[::-1])


def test_the_end_of_a_coroutine_has_the_result_that_this_llvm_gives_it() -> None:
    text = built(reverse_after_a_guard, i32(8), i32(8), block=8).inspect_llvm()
    found = re.search(r"declare (\w+) @\"llvm.coro.end\"", text)
    assert found is not None
    assert found[1] == ("void" if llvm.llvm_version_info[0] >= 22 else "i1")


def test_warps_that_part_and_wait_within_themselves_need_no_coroutines() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if arch.warp_idx() == 1:
            out[t] = arch.warp_reduction_sum(t)

    out = i32(96)
    function = built(kernel, out, block=96)
    assert runs_in_phases(function)
    function(out)
    assert set(out[:32]) == set(out[64:]) == {0} and set(out[32:64]) == {sum(range(32, 64))}


def test_a_branch_on_what_all_threads_read_alike_after_a_barrier_is_one_for_the_block() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        flag = arch.alloc_smem(fe.Int32, 1)
        if t == 0:
            flag[0] = a[0]
        arch.sync_threads()
        if flag[0] > 0:
            arch.sync_threads()
            out[t] = flag[0]

    out = i32(40)
    function = built(kernel, i32(1), out, block=40)
    assert runs_in_phases(function)
    function(np.array([7], np.int32), out)
    assert set(out) == {7}


def test_what_a_thread_itself_wrote_since_the_barrier_is_read_by_itself() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[0] = 3
        if out[0] == 3:
            arch.sync_warp()
            out[t] = 5

    out = i32(32)
    built(kernel, out, block=32)(out)
    assert set(out) == {5}


def test_the_inner_loop_of_a_tiled_product_becomes_vectors() -> None:
    @fe.kernel
    def kernel(a, b, c):
        x, y, _ = arch.thread_idx()
        layout = fe.make_layout((TILE, TILE), stride=(TILE, 1))
        left = fe.make_tensor(arch.alloc_smem(fe.Float32, TILE * TILE), layout)
        right = fe.make_tensor(arch.alloc_smem(fe.Float32, TILE * TILE), layout)
        total = fe.Float32(0)
        for start in range(0, a.shape[1], TILE):
            left[y, x], right[y, x] = a[y, start + x], b[start + y, x]
            arch.sync_threads()
            for k in range(TILE):
                total += left[y, k] * right[k, x]
            arch.sync_threads()
        c[y, x] = total

    a = np.random.default_rng(1).random((TILE, 64), np.float32)
    b, c = a.T.copy(), np.zeros((TILE, TILE), np.float32)
    function = built(kernel, a, b, c, block=(TILE, TILE))
    function(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    text = function.inspect_asm()
    wide = ("mulps", "vmulps", "vfmadd", "fmla", "fmul\tv")
    assert any(word in text for word in wide)


# ---- errors ----


def test_divergence_is_an_error_of_its_own_class_and_the_next_call_works() -> None:
    function = built(reverse_after_a_guard, i32(50), i32(64), block=64)
    with pytest.raises(
        fe.DivergenceError, match=r"by 50 of 64 .* is thread \(50, 0, 0\)"
    ) as caught:
        function(i32(50), i32(64))
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(fe.DivergenceError):
        function(i32(50), i32(64))


def test_the_block_of_a_divergence_is_named() -> None:
    @fe.kernel
    def kernel(out):
        if arch.block_idx()[1] < 2 or arch.thread_idx()[2] > 0:
            arch.sync_threads()

    function = built(kernel, i32(1), block=(2, 3, 2), grid=(1, 3))
    words = r"by 6 of 12 threads of block \(0, 2, 0\): .* thread \(0, 0, 0\)"
    with pytest.raises(fe.DivergenceError, match=words):
        function(i32(1))


def test_a_lane_that_takes_another_branch_is_missing() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if t != 37:
            out[t] = arch.shuffle_sync(t, 0)

    function = built(kernel, i32(64), block=64)
    assert runs_in_phases(function)
    with pytest.raises(fe.DivergenceError, match=r"by 31 of 32 .* thread \(37, 0, 0\)"):
        function(i32(64))


@pytest.mark.parametrize("kernel_ends", [True, False])
def test_a_failed_check_ends_the_call_between_barriers(kernel_ends: bool) -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        arch.sync_threads()
        assert a[t] < 5, f"found {a[t]}"
        if kernel_ends or t < 64:
            arch.sync_threads()
        out[t] = a[t]

    function = built(kernel, i32(64), i32(64), block=64)
    function(i32(64), i32(64))
    a = i32(64)
    a[9] = 8
    with pytest.raises(AssertionError, match="found 8"):
        function(a, i32(64))


def test_no_call_leaves_memory_behind() -> None:
    fine = built(reverse_after_a_guard, i32(512), i32(512), block=512)
    failing = built(reverse_after_a_guard, i32(500), i32(512), block=512)

    def call() -> None:
        fine(i32(512), i32(512))
        with pytest.raises(fe.DivergenceError):
            failing(i32(500), i32(512))

    for _ in range(50):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(400):
        call()
    # Each call takes about 100 kB; 400 that stayed would be 40 MB and more.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


# ---- atomics ----


@pytest.mark.parametrize("dtype", [fe.Int32, fe.Float32, fe.Float64, fe.Float16])
def test_atomics_of_many_blocks_lose_nothing(dtype: Any) -> None:
    @fe.kernel
    def kernel(out):
        arch.atomic_add(out.iterator, dtype(1))

    out = np.zeros(1, np.float16 if dtype is fe.Float16 else dtype.name)
    count = 2048 if dtype is fe.Float16 else 1 << 16
    built(kernel, out, block=64, grid=count // 64)(out)
    assert out[0] == count


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
def test_atomics_of_every_order(sem: str) -> None:
    @fe.kernel
    def kernel(out):
        arch.atomic_max(out.iterator, arch.thread_idx()[0], sem=sem)
        arch.atomic_cas(out.iterator + 1, 0, 9, sem=sem)

    out = i32(2)
    built(kernel, out, block=64)(out)
    assert list(out) == [63, 9]

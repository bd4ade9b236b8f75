"""Barriers in shared memory, and the copies that arrive at them."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ptxas
import pytest
from agreement import run_all_ways
from lowered import vector

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)


def outcome(kernel: Any, *arguments: Any) -> Any:
    """What a launch of a kernel with 64 threads leaves behind."""

    def host(*args):
        kernel(*args).launch(grid=1, block=64)

    return run(host, arguments)


def launched(kernel: Any, *arguments: Any) -> Any:
    """The last argument after a launch."""
    result = outcome(kernel, *arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


@fe.kernel
def pipelined(a, out):
    """The sum of rows of 64, which one thread has brought while the others add the one before."""
    t, rows = arch.thread_idx()[0], a.shape[0] // 64
    arrived = arch.alloc_smem(fe.Int64, 2)
    buffers = arch.alloc_smem(fe.Float32, 128)
    if t == 0:
        for i in fe.range_constexpr(2):
            arch.mbarrier_init(arrived + i, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    total = fe.Float32(0.0)
    for step in range(rows + 1):
        if t == 0 and step < rows:
            there = step % 2
            arch.mbarrier_arrive_and_expect_tx(arrived + there, 256)
            place = a.iterator + step * 64
            arch.cp_async_bulk(buffers + there * 64, place, 256, arrived + there)
        if step > 0:
            here = (step - 1) % 2
            arch.mbarrier_wait(arrived + here, (step - 1) // 2 % 2)
            total += buffers[here * 64 + (t ^ 1)]
        arch.sync_threads()
    out[t] = total


def test_rows_that_one_thread_brings_for_all() -> None:
    a = np.arange(7 * 64, dtype=np.float32)
    found = launched(pipelined, a, np.zeros(64, np.float32))
    np.testing.assert_array_equal(found.reshape(32, 2)[:, ::-1].ravel(), a.reshape(7, 64).sum(0))


def test_one_warp_gives_and_the_other_takes() -> None:
    """Each waits for the other at a barrier of its own, whose phase changes each time."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        full, empty = arch.alloc_smem(fe.Int64, 1), arch.alloc_smem(fe.Int64, 1)
        row = arch.alloc_smem(fe.Int32, 32)
        if t == 0:
            arch.mbarrier_init(full, 32)
            arch.mbarrier_init(empty, 32)
        arch.sync_threads()
        if t < 32:
            for step in range(a.shape[0] // 32):
                if step > 0:
                    arch.mbarrier_wait(empty, (step + 1) % 2)
                row[t] = a[step * 32 + t]
                arch.mbarrier_arrive(full)
        else:
            for step in range(a.shape[0] // 32):
                arch.mbarrier_wait(full, step % 2)
                out[step * 32 + t - 32] = row[63 - t] * 10
                arch.mbarrier_arrive(empty)

    a = np.arange(160, dtype=np.int32)
    found = launched(kernel, a, np.zeros_like(a))
    np.testing.assert_array_equal(found, a.reshape(5, 32)[:, ::-1].ravel() * 10)


def test_a_phase_waits_for_the_bytes_that_it_was_told_to_expect() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        arrived = arch.alloc_smem(fe.Int64, 1)
        row = arch.alloc_smem(fe.Int32, 64)
        if t == 0:
            arch.mbarrier_init(arrived, 64)
            arch.mbarrier_init_fence()
            arch.mbarrier_expect_tx(arrived, 256)
        arch.sync_threads()
        arch.mbarrier_arrive(arrived)
        if t == 63:
            for part in range(2):
                at = part * 32
                arch.cp_async_bulk(row + at, a.iterator + at, fe.Int32(128), arrived)
        arch.mbarrier_wait(arrived, 0)
        out[t] = row[63 - t]

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(launched(kernel, a, np.zeros_like(a)), a[::-1])


def test_a_phase_that_cannot_end_is_an_error() -> None:
    @fe.kernel
    def kernel(a):
        t = arch.thread_idx()[0]
        arrived = arch.alloc_smem(fe.Int64, 1)
        if t == 0:
            arch.mbarrier_init(arrived, 64)
        arch.sync_threads()
        if t != 5:
            arch.mbarrier_arrive(arrived)
        if t > 2:
            arch.mbarrier_wait(arrived, 0)
        a[t] = 1.0

    kind, message = outcome(kernel, np.zeros(64, np.float32)).error
    assert kind == "DivergenceError"
    assert message.endswith(
        " waits for a phase that cannot end any more: 61 of 64 threads of block (0, 0, 0) wait "
        "there, the first is thread (3, 0, 0)"
    )
    assert "kernel: mbarrier_wait() at " in message


def test_fences_and_registers_mean_nothing_on_a_cpu() -> None:
    @fe.kernel
    def kernel(a):
        arch.setmaxregister_decrease(40)
        for kind in ("alias", "async", "async.global"):
            arch.fence_proxy(kind)
        arch.fence_proxy("async.shared", space="cta")
        a[arch.thread_idx()[0]] = 1.0

    np.testing.assert_array_equal(launched(kernel, np.zeros(64, np.float32)), np.ones(64))


# ---- what is refused ----


def in_global(a, h, b):
    arch.mbarrier_init(a.iterator, 1)


def of_floats(a, h, b):
    arch.mbarrier_arrive(arch.alloc_smem(fe.Float32, 2))


def for_nobody(a, h, b):
    arch.mbarrier_init(b, 0)


def of_a_third_phase(a, h, b):
    arch.mbarrier_wait(b, 2)


def of_a_float_phase(a, h, b):
    arch.mbarrier_wait(b, a[0])


def of_odd_bytes(a, h, b):
    arch.cp_async_bulk(arch.alloc_smem(fe.Float32, 64), a.iterator, 24, b)


def of_halves(a, h, b):
    arch.cp_async_bulk(arch.alloc_smem(fe.Float32, 64), h.iterator, 32, b)


def of_no_proxy(a, h, b):
    arch.fence_proxy("async.shared")


def of_odd_registers(a, h, b):
    arch.setmaxregister_increase(100)


@pytest.mark.parametrize(
    "begin, message",
    [
        (in_global, "^mbarrier_init of the pointer a"),
        (of_floats, "whose elements are float32.*\n.*\n.*\n.*\n.*expected: a pointer to int64"),
        (for_nobody, "^the cnt of mbarrier_init is 0"),
        (of_a_third_phase, "^the phase of mbarrier_wait is 2"),
        (of_a_float_phase, "^the phase of mbarrier_wait is a run-time float32"),
        (of_odd_bytes, "^cp_async_bulk of 24 bytes"),
        (of_halves, "^cp_async_bulk copies float16 to float32"),
        (of_no_proxy, '"async.shared" with space="cta" or "cluster"'),
        (of_odd_registers, "^setmaxregister_increase of 100 registers"),
    ],
)
def test_what_there_is_not(begin: Any, message: str) -> None:
    @fe.kernel
    def kernel(a, h):
        begin(a, h, arch.alloc_smem(fe.Int64, 1))

    def host(a, h):
        kernel(a, h).launch(grid=1, block=64)

    with pytest.raises(fe.CompileError, match=message):
        fe.compile(host, vector(), vector(fe.Float16, "k"), options="--target cpu")


# ---- PTX ----


def ptx(kernel: Any, gpu: str, *given: Any) -> str:
    def host(*args):
        kernel(*args).launch(grid=1, block=64)

    return fe.compile(host, *given, options=f"--target cuda --gpu-arch {gpu}").inspect_ptx()


def test_the_instructions() -> None:
    text = ptx(pipelined, "sm_90a", vector(), vector(symbol="m"))
    found = re.findall(r"(?<!\w)(?:mbarrier|cp\.async\.bulk|fence\.mbarrier)[.\w:]*", text)
    assert set(found) == {
        "mbarrier.init.shared.b64",
        "fence.mbarrier_init.release.cluster",
        "mbarrier.arrive.expect_tx.shared.b64",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "mbarrier.try_wait.parity.shared.b64",
    }


def test_older_gpus_have_no_such_barriers() -> None:
    with pytest.raises(fe.CompileError, match=r"arch\.mbarrier is known to GPUs from sm_90 on"):
        ptx(pipelined, "sm_89", vector(), vector(symbol="m"))


@fe.kernel
def registers(a):
    arch.setmaxregister_increase(232)
    arch.fence_proxy("alias")
    arch.fence_proxy("async")
    arch.fence_proxy("async.global")
    arch.fence_proxy("async.shared", space="cta")
    arch.fence_proxy("async.shared", space="cluster")
    a[arch.thread_idx()[0]] = 1.0


def test_registers_are_given_on_architectures_with_an_a() -> None:
    assert "setmaxnreg.inc.sync.aligned.u32 \t232;" in ptx(registers, "sm_90a", vector())
    with pytest.raises(fe.CompileError, match="architectures with an a, from sm_90a on"):
        ptx(registers, "sm_90", vector())


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("gpu", ptxas.ARCHS[1:])
def test_newer_architectures_take_all_of_them(gpu: str, tmp_path: Path) -> None:
    """The tests for all of `ARCHS` leave out kernels that the oldest one has no instruction for."""
    ptxas.assemble(ptx(pipelined, gpu, vector(), vector(symbol="m")), gpu, tmp_path)
    if gpu.endswith("a"):
        ptxas.assemble(ptx(registers, gpu, vector()), gpu, tmp_path)


def test_who_tries_to_wait_goes_on_when_the_phase_has_ended() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        arrived, row = arch.alloc_smem(fe.Int64, 1), arch.alloc_smem(fe.Int32, 64)
        if t == 0:
            arch.mbarrier_init(arrived, 64)
        arch.sync_threads()
        row[t] = a[t]
        arch.mbarrier_arrive(arrived, 0)
        ended = arch.mbarrier_try_wait(arrived, 0)
        while not ended:
            ended = arch.mbarrier_try_wait(arrived, 0)
        out[t] = row[63 - t]

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(launched(kernel, a, np.zeros_like(a)), a[::-1])


@pytest.mark.needs_ptxas
def test_a_peers_barrier_is_found_in_its_block(tmp_path: Path) -> None:
    @fe.kernel
    def kernel(a):
        arrived = arch.alloc_smem(fe.Int64, 1)
        if arch.thread_idx()[0] == 0:
            arch.mbarrier_init(arrived, 1)
            arch.mbarrier_arrive(arrived, arch.block_in_cluster_idx()[0] ^ 1)
        if arch.mbarrier_try_wait(arrived, 1):
            arch.barrier_arrive(1, 64)
        a[0] = arch.rcp_approx(a[1])
        a[2] = arch.fmax(a[1], a[2]) + arch.fmin(a[1], a[2])

    def host(a):
        kernel(a).launch(grid=2, block=64, cluster=(2, 1, 1))

    options = "--target cuda --gpu-arch sm_90a"
    ptx = fe.compile(fe.jit(host), vector(fe.Float32), options=options).inspect_ptx()
    for wanted in (
        "mapa.shared::cluster",
        "mbarrier.arrive.release.cluster.shared::cluster.b64",
        "rcp.approx",
        "bar.arrive",
    ):
        assert wanted in ptx or (wanted == "bar.arrive" and "barrier.arrive" in ptx), wanted
    ptxas.assemble(ptx, "sm_90a", tmp_path)


def test_named_arrivals_are_of_gpus_alone() -> None:
    @fe.kernel
    def kernel(a):
        arch.barrier_arrive(1, 64)

    def host(a):
        kernel(a).launch(grid=1, block=64)

    with pytest.raises(fe.CompileError, match="arch.barrier_arrive is known to GPUs alone"):
        fe.compile(fe.jit(host), vector(fe.Float32), options="--target cpu")


def test_of_two_numbers_the_one_that_is_none_does_not_count() -> None:
    @fe.kernel
    def kernel(a, b, out):
        t = arch.thread_idx()[0]
        out[t] = arch.fmax(a[t], b[t])
        out[t + 64] = arch.fmin(a[t], b[t])
        out[t + 128] = arch.rcp_approx(b[t])

    a, b = (np.resize(np.array(x, np.float32), 64) for x in ([1, 2, np.nan, 5, np.nan], [3, -2, 7]))
    b[3] = np.nan
    found = launched(kernel, a, b, np.zeros(192, np.float32))
    np.testing.assert_array_equal(found[:64], np.fmax(a, b))
    np.testing.assert_array_equal(found[64:128], np.fmin(a, b))
    np.testing.assert_allclose(found[128:], 1 / b, rtol=1e-6)


def test_copies_of_threads_arrive_by_themselves() -> None:
    """Groups that the thread made or did not make; it goes on before they are there."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        arrived, row = arch.alloc_smem(fe.Int64, 1), arch.alloc_smem(fe.Float32, 128)
        if t == 0:
            arch.mbarrier_init(arrived, 64)
        arch.sync_threads()
        arch.cp_async(row + t, a.iterator + t, 1)
        arch.cp_async_commit_group()
        arch.cp_async(row + (64 + t), a.iterator + (64 + t), 1)
        arch.cp_async_mbarrier_arrive_noinc(arrived)
        arch.mbarrier_wait(arrived, 0)
        out[t] = row[t ^ 1] + row[127 - t]

    a = np.arange(128, dtype=np.float32)
    wanted = a[:64].reshape(32, 2)[:, ::-1].ravel() + a[64:][::-1]
    np.testing.assert_array_equal(launched(kernel, a, np.zeros(64, np.float32)), wanted)

"""Clusters of blocks: what a kernel asks of its own; on a CPU each block is one."""

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


@fe.kernel
def coordinates(a):
    places = arch.cluster_idx(), arch.cluster_dim()
    places += arch.block_in_cluster_idx(), arch.block_in_cluster_dim()
    block = arch.block_idx()[0] + arch.grid_dim()[0] * arch.block_idx()[1]
    for row in fe.range_constexpr(4):
        for axis in fe.range_constexpr(3):
            a[block * 12 + row * 3 + axis] = places[row][axis]


def test_on_a_cpu_each_block_is_a_cluster() -> None:
    def host(a):
        coordinates(a).launch(grid=(3, 2), block=1)

    result = run(host, (np.full(72, -1, np.int32),))
    found = result.arguments[0].reshape(2, 3, 4, 3)
    for y in range(2):
        for x in range(3):
            np.testing.assert_array_equal(found[y, x], [(x, y, 0), (3, 2, 1), (0,) * 3, (1,) * 3])


@fe.kernel
def meeting(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    row[t] = a[t]
    arch.cluster_arrive()
    arch.cluster_wait()
    a[t] = row[63 - t]
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()


def test_the_threads_of_a_cluster_wait_for_each_other() -> None:
    def host(a):
        meeting(a).launch(grid=1, block=64)

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(run(host, (a,)).arguments[0], a[::-1])


def ptx(kernel: Any, gpu: str) -> str:
    def host(a):
        kernel(a).launch(grid=4, block=64)

    options = f"--target cuda --gpu-arch {gpu}"
    return fe.compile(host, vector(fe.Int32), options=options).inspect_ptx()


def test_gpus_with_clusters_have_registers_for_them() -> None:
    found = set(re.findall(r"%(\w*cluster\w*)\.x", ptx(coordinates, "sm_90")))
    assert found == {"clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"}
    assert "cluster" not in ptx(coordinates, "sm_80")


@pytest.mark.needs_ptxas
def test_ptxas_takes_them(tmp_path: Path) -> None:
    """The tests for all of `ARCHS` leave out what the oldest one has no instruction for."""
    for kernel in (coordinates, meeting):
        ptxas.assemble(ptx(kernel, "sm_90a"), "sm_90a", tmp_path)


def test_the_barrier_of_a_cluster_is_in_halves() -> None:
    found = re.findall(r"barrier\.cluster[.\w]*", ptx(meeting, "sm_90a"))
    arrive, wait = "barrier.cluster.arrive", "barrier.cluster.wait"
    assert found == [arrive, wait, f"{arrive}.relaxed", wait]


def test_a_block_reads_and_writes_the_memory_of_another() -> None:
    """On a CPU of its own, for a cluster is one block there."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        own, other = arch.alloc_smem(fe.Float16, 64), arch.alloc_smem(fe.Boolean, 64)
        peer = arch.block_in_cluster_dim()[0] - 1 - arch.block_in_cluster_idx()[0]
        arch.store_peer(own + t, a[t], peer)
        arch.store_peer(other + t, a[t] > 3, peer)
        arch.cluster_arrive()
        arch.cluster_wait()
        if arch.load_peer(other + (63 - t), peer):
            out[t] = arch.load_peer(own + (63 - t), peer)
        arch.cluster_arrive()
        arch.cluster_wait()

    def host(a, out):
        kernel(a, out).launch(grid=1, block=64)

    a = np.arange(64).astype(np.float16)
    result = run_all_ways(host, (a, np.zeros_like(a)), plain=False)
    assert result.error is None, result.error
    np.testing.assert_array_equal(result.arguments[-1], np.where(a > 3, a, 0)[::-1])


@pytest.mark.needs_ptxas
def test_the_memory_of_another_block_is_mapped(tmp_path: Path) -> None:
    @fe.kernel
    def kernel(a):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 32)
        arch.store_peer(row + t, a[t], 1)
        arch.cluster_arrive()
        arch.cluster_wait()
        a[t] = arch.load_peer(row + (t ^ 1), 0)

    def host(a):
        kernel(a).launch(grid=2, block=32, cluster=(2, 1, 1))

    def compiled(arch_: str) -> str:
        options = f"--target cuda --gpu-arch {arch_}"
        text: str = fe.compile(fe.jit(host), vector(fe.Float32), options=options).inspect_ptx()
        return text

    ptx = compiled("sm_90")
    for wanted in ("mapa.shared::cluster", "ld.shared::cluster.b32", "st.shared::cluster.b32"):
        assert wanted in ptx
    ptxas.assemble(ptx, "sm_90", tmp_path)


def test_of_a_multicast_the_own_block_is_the_first_bit() -> None:
    @fe.kernel
    def kernel(a, out, mask):
        t = arch.thread_idx()[0]
        arrived = arch.alloc_smem(fe.Int64, 1)
        tile = arch.alloc_smem(fe.Float32, 64, alignment=128)
        tile[t] = -1.0
        arch.sync_threads()
        if t == 0:
            arch.mbarrier_init(arrived, 1)
            arch.mbarrier_arrive_and_expect_tx(arrived, fe.where(mask % 2 == 1, 256, 0))
            arch.prefetch_tensor_map(a)
            arch.prefetch_tensor(a, 0)
            arch.cp_async_bulk_tensor(tile, a, 0, arrived, multicast_mask=mask)
        arch.sync_threads()
        arch.mbarrier_wait(arrived, 0)
        out[t] = tile[t]

    def host(a, out, mask):
        kernel(arch.make_tensor_map(a, 64), out, mask).launch(grid=1, block=64)

    a = np.arange(64, dtype=np.float32)
    for mask, wanted in ((3, a), (2, np.full(64, -1))):
        result = run(host, (a, np.zeros_like(a), mask))
        assert result.error is None, result.error
        np.testing.assert_array_equal(result.arguments[1], wanted)

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

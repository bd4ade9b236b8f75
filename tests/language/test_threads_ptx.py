"""Threads that work together, as PTX: which instruction each construct becomes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ptxas
import pytest
from lowered import vector

import ferrule as fe

arch = fe.arch

COLLECTIVE = re.compile(
    r"\b(?:bar|barrier|shfl|vote|match|atom|fence|membar|red)\.[^;]*;|\b(?:ld|st)\.shared[^;]*;"
)


def ptx(body: Callable[..., Any], gpu: str = "sm_80", smem: Any = None) -> str:
    """The PTX of a kernel of a float32 vector, an int32 one and a float16 one."""
    kernel = fe.kernel(body)

    def host(a, n, h):
        if smem is None:
            kernel(a, n, h).launch(grid=1, block=64)
        else:
            kernel(a, n, h).launch(grid=1, block=64, smem=smem)

    given = (vector(), vector(fe.Int32, "m"), vector(fe.Float16, "k"))
    return fe.compile(host, *given, options=f"--target cuda --gpu-arch {gpu}").inspect_ptx()


def instructions(body: Callable[..., Any], gpu: str = "sm_80", smem: Any = None) -> list[str]:
    """The instructions by which threads work together, without their registers."""
    found = COLLECTIVE.findall(ptx(body, gpu, smem))
    return [re.split(r"[\s;]", each)[0] for each in found]


def test_barriers_and_fences() -> None:
    def kernel(a, n, h):
        for _ in range(n.shape[0]):
            arch.sync_threads()
        arch.barrier(barrier_id=2)
        arch.sync_warp(0xFF)
        arch.fence_acq_rel_cta()
        arch.fence_acq_rel_gpu()
        arch.fence_acq_rel_sys()

    text = ptx(kernel)
    assert re.search(r"bar\.sync \t0;", text)
    assert re.search(r"bar\.sync \t2;", text)
    assert re.search(r"bar\.warp\.sync \t255;", text)
    fences = [word for word in instructions(kernel) if word.startswith("fence")]
    assert fences == ["fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys"]


def test_a_barrier_that_a_warp_may_reach_at_two_places_says_so() -> None:
    def kernel(a, n, h):
        if a[arch.thread_idx()[0]] > 0:
            arch.sync_threads()
        else:
            arch.barrier(barrier_id=n[0], number_of_threads=32)

    text = ptx(kernel)
    assert re.search(r"barrier\.sync \t0;", text)
    assert re.search(r"barrier\.sync \t%r\d+, 32;", text)


def test_shuffles_are_of_words() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        a[t] = arch.shuffle_sync(a[t], 3)
        n[t] = arch.shuffle_sync_up(n[t], 1)
        h[t] = arch.shuffle_sync_down(h[t], 1)
        a[t + 64] = arch.shuffle_sync_bfly(fe.Float64(a[t]), 1)

    wanted = ["idx", "up", "down", "bfly", "bfly"]
    assert instructions(kernel) == [f"shfl.sync.{op}.b32" for op in wanted]


def test_what_is_uniform_in_a_warp_is_taken_from_its_first_thread() -> None:
    def kernel(a, n, h):
        n[arch.thread_idx()[0]] = arch.make_warp_uniform(arch.warp_idx())

    assert re.search(r"shfl\.sync\.idx\.b32 \t%r\d+, %r\d+, 0, 31, -1;", ptx(kernel))


def test_votes_and_matches() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        n[t] = arch.vote_all_sync(a[t] > 0)
        n[t + 64] = arch.vote_any_sync(a[t] > 0)
        n[t + 128] = arch.vote_uni_sync(a[t] > 0)
        n[t + 192] = fe.Int32(arch.vote_ballot_sync(a[t] > 0))
        n[t + 256] = fe.Int32(arch.match_any_sync(n[t]))
        n[t + 320] = fe.Int32(arch.match_all_sync(fe.Float64(a[t])))

    assert instructions(kernel) == [
        "vote.sync.all.pred",
        "vote.sync.any.pred",
        "vote.sync.uni.pred",
        "vote.sync.ballot.b32",
        "match.any.sync.b32",
        "match.all.sync.b64",
    ]


def test_atomics_are_one_instruction_where_there_is_one() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        n[t] = arch.atomic_add(n.iterator, 1)
        n[t] = arch.atomic_min(n.iterator, n[t])
        n[t] = arch.atomic_exch(n.iterator, n[t])
        n[t] = arch.atomic_cas(n.iterator, 0, n[t])
        a[t] = arch.atomic_add(a.iterator, 1.0)
        h[t] = arch.atomic_add(h.iterator, 1.0)
        own = arch.alloc_smem(fe.Uint32, 1)
        n[t] = fe.Int32(arch.atomic_inc(own, 7))
        n[t] = fe.Int32(arch.atomic_xor(own, 7))

    assert instructions(kernel) == [
        "atom.global.add.u32",
        "atom.global.min.s32",
        "atom.global.exch.b32",
        "atom.relaxed.gpu.global.cas.b32",
        "atom.global.add.f32",
        "atom.global.add.noftz.f16",
        "atom.shared.inc.u32",
        "atom.shared.xor.b32",
    ]


def test_an_order_is_fences_around_the_atomic() -> None:
    def acquire(a, n, h):
        n[1] = arch.atomic_add(n.iterator, 1, sem="acquire")

    def release(a, n, h):
        n[1] = arch.atomic_add(n.iterator, 1, sem="release", scope="cta")

    def both(a, n, h):
        n[1] = arch.atomic_add(n.iterator, 1, sem="acq_rel")

    add = "atom.global.add.u32"
    assert instructions(acquire) == [add, "fence.acq_rel.gpu"]
    assert instructions(release) == ["fence.acq_rel.cta", add]
    assert instructions(both) == ["fence.acq_rel.gpu", add, "fence.acq_rel.gpu"]


def test_an_atomic_for_the_system_says_so() -> None:
    """LLVM drops the scope of what it makes one instruction of, but keeps it in a swap."""

    def kernel(a, n, h):
        n[1] = arch.atomic_add(n.iterator, 1, scope="sys")

    assert instructions(kernel) == ["atom.relaxed.sys.global.cas.b32"]


def test_the_extremum_of_floats_is_a_loop_of_swaps() -> None:
    def kernel(a, n, h):
        a[1] = arch.atomic_max(a.iterator, a[2])

    assert instructions(kernel) == ["atom.relaxed.gpu.global.cas.b32"]


def test_shared_memory_is_named_and_aligned() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        other = arch.alloc_smem(fe.Float16, 3, alignment=128)
        row[t] = a[t]
        other[t % 3] = h[t]
        arch.get_dyn_smem(fe.Int32)[t] = n[t]
        arch.sync_threads()
        a[t] = row[t ^ 1] + other[1] + arch.get_dyn_smem(fe.Int32)[3]

    text = ptx(kernel, smem=256)
    declared = re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d*)\];", text)
    assert sorted(declared) == [
        ("1024", "kernel_dynamic", ""),
        ("128", "kernel_shared_1", "6"),
        ("16", "kernel_shared_0", "256"),
    ]
    assert instructions(kernel, smem=256).count("bar.sync") == 1
    assert "ld.shared.b32" in text and "st.shared.b32" in text


def test_shared_memory_is_read_again_after_a_barrier() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        row[t] = 1.0
        arch.sync_threads()
        a[t] = row[t]
        arch.sync_threads()
        a[t + 64] = row[t]

    once = ["st.shared.b32", "bar.sync", "ld.shared.b32", "bar.sync", "ld.shared.b32"]
    assert instructions(kernel) == once


def test_sixteen_bytes_of_shared_memory_are_read_at_once() -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        tile = fe.make_tensor(
            arch.alloc_smem(fe.Float32, 256), fe.make_layout((64, 4), stride=(4, 1))
        )
        arch.sync_threads()
        own = fe.local_tile(tile, (1, 4), (t, 0)).load()
        a[t] = own.reduce(fe.ReductionOp.ADD, 0.0, 0)

    assert instructions(kernel) == ["bar.sync", "ld.shared.v4.b32"]


@pytest.mark.parametrize("gpu", ["sm_50", "sm_62"])
def test_older_gpus_are_refused(gpu: str) -> None:
    """LLVM would end the process, which finds no instruction."""

    def kernel(a, n, h):
        a[0] = arch.shuffle_sync(a[1], 3)

    with pytest.raises(fe.CompileError, match=f"from sm_70 on, but the architecture is {gpu}"):
        ptx(kernel, gpu)


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("gpu", ptxas.ARCHS)
def test_every_architecture_takes_it(gpu: str, tmp_path: Path) -> None:
    def kernel(a, n, h):
        t = arch.thread_idx()[0]
        total = arch.block_reduction(a[t], max) + arch.block_scan(a[t], lambda x, y: x + y)
        for scope in ("cta", "cluster", "gpu", "sys"):
            arch.atomic_add(a.iterator, total, sem="acq_rel", scope=scope)
            arch.atomic_min(h.iterator, h[t], scope=scope)
            arch.atomic_cas(h.iterator, h[t], h[t + 1], scope=scope)
        arch.get_dyn_smem(fe.BFloat16)[t] = fe.BFloat16(total)
        arch.atomic_add(arch.get_dyn_smem(fe.BFloat16) + 1, fe.BFloat16(total))
        n[t] = fe.Int32(arch.match_any_sync(n[t]) + arch.vote_ballot_sync(a[t] > 0))

    ptxas.assemble(ptx(kernel, gpu, 4096), gpu, tmp_path)

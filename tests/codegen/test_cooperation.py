"""How a kernel is cut into phases, as text of the kernel IR."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
from agreement import lowered, run_all_ways
from plain_python import examples

import ferrule as fe
from ferrule.language.codegen.cpu.cooperate.phases import Split, split
from ferrule.language.codegen.passes.decided import decided
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.mlir.module import host_text

arch = fe.arch


def cut(kernel: Any, *arguments: Any, block: Any = 64) -> Split | None:
    """The phases of a kernel."""

    def host(*args):
        kernel(*args).launch(grid=1, block=block)

    program = decided(lowered(host, *examples(*arguments)).program)
    return split(program.kernels[0], flat=not isinstance(block, tuple))


def phases(found: Split | None) -> list[ops.Parallel]:
    assert found is not None
    return [op for op in all_ops(found.body) if isinstance(op, ops.Parallel)]


def count(region: ops.Region, kind: type[Any]) -> int:
    return sum(isinstance(op, kind) for op in all_ops(region))


def f32(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def test_a_barrier_makes_two_phases_that_need_nothing_of_each_other() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        row[t] = a[t]
        arch.sync_threads()
        out[t] = row[63 - t]

    found = cut(kernel, f32(64), f32(64))
    assert len(phases(found)) == 2
    assert found is not None and not found.slots, "the thread's number is made again"


def test_what_was_loaded_is_kept() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        element = a[t]
        arch.sync_threads()
        out[t] = element + element

    found = cut(kernel, f32(64), f32(64))
    assert found is not None and len(found.slots) == 1


def test_what_is_the_same_for_all_threads_is_done_once_for_a_block() -> None:
    @fe.kernel
    def kernel(a, out):
        t, row = arch.thread_idx()[0], arch.block_idx()[0]
        first = a[row] * 2
        arch.sync_threads()
        out[t] = first

    found = cut(kernel, f32(64), f32(64))
    assert found is not None and not found.slots
    assert [count(each.body, ops.Load) for each in phases(found)] == [0]


def test_a_loop_around_a_barrier_is_outside_of_the_phases() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float32, 64)
        total = a[t]
        for i in range(10):
            row[t] = total
            arch.sync_threads()
            total += row[t ^ i]
            arch.sync_threads()
        out[t] = total

    found = cut(kernel, f32(64), f32(64))
    assert found is not None
    (loop,) = (op for op in found.body.ops if isinstance(op, ops.For))
    # The second phase leaves the new total where the old one was: there is no phase that copies.
    assert count(loop.body, ops.Parallel) == 2 and len(found.slots) == 1


def test_a_barrier_that_depends_on_the_thread_cannot_be_cut_at() -> None:
    @fe.kernel
    def in_branch(out):
        if arch.thread_idx()[0] < 5:
            arch.sync_threads()

    @fe.kernel
    def in_loop(out):
        for _ in range(arch.thread_idx()[0]):
            arch.sync_warp()

    @fe.kernel
    def behind_its_own_store(out):
        t = arch.thread_idx()[0]
        out[0] = t
        if out[0] > 3:
            arch.sync_threads()

    @fe.kernel
    def of_some_threads(out):
        arch.barrier(barrier_id=1, number_of_threads=32)

    for kernel in (in_branch, in_loop, behind_its_own_store, of_some_threads):
        assert cut(kernel, np.zeros(64, np.int32)) is None


def test_masks_are_checked_where_threads_part_once_for_a_branch() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        if arch.warp_idx() == 0:
            out[t] = arch.warp_reduction_sum(t)

    found = cut(kernel, np.zeros(64, np.int32))
    assert found is not None
    assert count(found.body, ops.Check) == 2, "that its own lane and all others are there"


def test_a_branch_that_the_size_of_the_block_decides_is_gone() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[t] = arch.warp_reduction_sum(t)
        if arch.block_dim()[0] > 64:
            out[t] = 0

    def branches(block: Any) -> int:
        found = cut(kernel, np.zeros(64, np.int32), block=block)
        assert found is not None
        return count(found.body, ops.If)

    assert branches((64, 1, 1)) == 0
    assert branches((33, 1, 1)) == 0, "where lanes are missing, they are selected"


def test_a_branch_of_launches_with_blocks_of_several_sizes_stays() -> None:
    @fe.kernel
    def kernel(out):
        if arch.block_dim()[0] > 64:
            out[arch.thread_idx()[0]] = 1

    def host(out):
        kernel(out).launch(grid=1, block=64)
        kernel(out).launch(grid=1, block=65)

    program = lowered(host, *examples(np.zeros(65, np.int32))).program
    assert decided(program) == program
    out = run_all_ways(host, (np.zeros(65, np.int32),), plain=False).arguments[0]
    np.testing.assert_array_equal(out, 1)


def test_whole_warps_need_no_check() -> None:
    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        out[t] = arch.warp_reduction_sum(t)

    found = cut(kernel, np.zeros(64, np.int32))
    assert found is not None and count(found.body, ops.Check) == 0


def test_a_loop_in_steps_of_the_block_goes_side_by_side() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        total = fe.Float32(0)
        for i in range(t, a.shape[0], 64):
            total += a[i]
        arch.sync_threads()
        out[t] = total

    found = cut(kernel, f32(1000), f32(64))
    assert found is not None
    (loop,) = (op for op in found.body.ops if isinstance(op, ops.For))
    assert count(loop.body, ops.Parallel) == 1
    assert all(count(each.body, ops.For) == 0 for each in phases(found))


def test_loops_in_steps_agree_at_every_size() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        total = fe.Float32(0)
        for i in range(t + 3, a.shape[0], arch.block_dim()[0]):
            total = total * 0.5 + a[i]
        arch.sync_threads()
        out[t] = total

    def host(a, out):
        kernel(a, out).launch(grid=1, block=40)

    for size in (3, 43, 44, 200):
        a = np.arange(size, dtype=np.float32)
        run_all_ways(host, (a, f32(40)), plain=False)


def test_a_tensor_of_the_thread_lives_across_barriers() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        own = fe.make_rmem_tensor((4,), fe.Float32)
        for i in fe.range_constexpr(4):
            own[i] = a[t] * i
        arch.sync_threads()
        for i in range(4):
            out[t, 3 - i] = own[i] + own[0]

    def host(a, out):
        kernel(a, out).launch(grid=1, block=33)

    run_all_ways(host, (np.arange(33, dtype=np.float32), f32(33, 4)), plain=False)


def test_the_ops_of_a_kernel_keep_their_places_in_the_text() -> None:
    """Phases are made of the kernel's own ops, so faults and locations are the same."""

    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        arch.sync_threads()
        assert a[t] > 0, "small"
        out[t] = a[t]

    def host(a, out):
        kernel(a, out).launch(grid=1, block=8)

    program = lowered(host, *examples(f32(8), f32(8))).program
    (check,) = (op for op in all_ops(program.kernels[0].body) if isinstance(op, ops.Check))
    found = split(program.kernels[0])
    assert found is not None
    (same,) = (op for op in all_ops(found.body) if isinstance(op, ops.Check))
    assert replace(same) is not same and same.fault == check.fault


def test_the_text_for_mlir_of_a_reduction_over_a_block():
    """It needs no package with MLIR.  Reductions are loops there, and vectors without MLIR."""

    @fe.kernel
    def kernel(a, out):
        total = arch.block_reduction(a[arch.thread_idx()[0]], operator.add)
        if arch.thread_idx()[0] == 0:
            out[0] = total

    def host(a, out):
        kernel(a, out).launch(grid=1, block=128)

    program = decided(lowered(host, *examples(f32(128), f32(1))).program)
    found = split(program.kernels[0])
    assert found is not None and found.trees
    assert "arith.addf" in host_text(program).text

"""The ops that copy boxes, store matrices and reach other blocks: their text and their rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cpu_machine import host
from lowered import text

import ferrule as fe
from ferrule.compiler.cuda.tilings import DataType, Tiling
from ferrule.language.ir import ops
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, DType, Float16, Float32, Int32, Int64, Uint32

arch = fe.arch


def test_the_text_of_every_op(golden: Callable[[str, str], None]) -> None:
    @fe.kernel
    def kernel(a, b):
        t = arch.thread_idx()[0]
        tile = arch.alloc_smem(fe.Float16, 512, alignment=1024)
        barrier = arch.alloc_smem(fe.Int64, 1)
        arch.prefetch_tensor_map(a)
        arch.prefetch_tensor(a, (t, 0))
        arch.cp_async_bulk_tensor(tile, a, (t, 8), barrier, multicast_mask=t)
        arch.cp_async_bulk_tensor(a, tile, (t, 8))
        arch.cp_async_bulk(b.iterator, tile, 64)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(1)
        arch.cp_async_bulk_wait_group(0, read=True)
        arch.stmatrix(tile, arch.ldmatrix(tile), transpose=True)
        arch.mbarrier_arrive(barrier, t)
        if arch.mbarrier_try_wait(barrier, 1):
            arch.barrier_arrive(1, 64)
        arch.store_peer(tile, arch.load_peer(tile + 1, t), 0)

    def boxes(a, b):
        map_ = arch.make_tensor_map(a, (8, 64), swizzle="128B")
        kernel(map_, b).launch(grid=1, block=32)

    shape = (fe.sym_int(), fe.sym_int(divisibility=8))
    a = fe.make_fake_compact_tensor(fe.Float16, shape, stride_order=(1, 0))
    golden("boxes.ir", text(boxes, a, a))


# ---- rules ----


def tensor(space: AddressSpace, dtype: DType, *shape: int) -> ops.Value:
    strides = tuple(1 for _ in shape[1:]) + (1,)
    return ops.Value(TensorType(dtype, shape, strides, 16, space), "t")


SMEM, RMEM, GMEM = AddressSpace.smem, AddressSpace.rmem, AddressSpace.gmem
N, MASK = ops.Value(Int32, "i"), ops.Value(Uint32, "mask")
TILE, BARRIER = tensor(SMEM, Float16, 512), tensor(SMEM, Int64, 1)
FRAGMENT = tensor(RMEM, Float16, 8)
A, WORDS = tensor(GMEM, Float16, 64, 64), tensor(GMEM, Float16, 64)
BOXES = ops.Boxes(Tiling(DataType.FLOAT16, (8, 8)), (1, 0))
LOAD = ops.TensorCopy("load", A, BOXES, (N, N), TILE, BARRIER)


def check(op: Any) -> None:
    """Verifies a kernel with an op."""
    made: list[ops.Op] = [ops.Constant(N, 1), ops.Constant(MASK, 1), ops.Fragment(FRAGMENT)]
    made += [ops.Shared(TILE), ops.Shared(BARRIER)]
    kernel = ops.Function("k", "kernel", (A, WORDS), ops.Region((*made, op)))
    verify(replace(host("of_one_op", (), ops.Region()), kernels=(kernel,)))


RIGHT = (
    LOAD,
    replace(LOAD, mask=N),
    ops.TensorCopy("store", A, BOXES, (N, N), TILE),
    ops.TensorCopy("prefetch", A, BOXES, (N, N)),
    ops.TensorCopy("prefetch_map", A, BOXES),
    ops.BulkStore(WORDS, TILE, N),
    ops.StoreMatrix(TILE, FRAGMENT, True, MASK),
)


def test_right_ones_pass() -> None:
    for op in RIGHT:
        check(op)


COPIES = {
    "of a tensor in global memory": replace(LOAD, tensor=TILE),
    "the dims of its tensor": replace(LOAD, boxes=replace(BOXES, order=(1, 1))),
    "coordinates of a TensorCopy": replace(LOAD, coordinates=(N,)),
    "operands of a TensorCopy load": replace(LOAD, barrier=None),
    "operands of a TensorCopy prefetch_map": replace(LOAD, kind="prefetch_map", coordinates=()),
    "operands of a TensorCopy store": replace(LOAD, kind="store"),
    "shared memory of the dtype of its tensor": replace(LOAD, shared=BARRIER),
    "an int64 in shared memory": replace(LOAD, barrier=TILE),
    "only a load goes to several blocks": replace(LOAD, kind="store", barrier=None, mask=N),
    "the mask of a TensorCopy": replace(LOAD, mask=MASK),
}


@pytest.mark.parametrize("rule", COPIES)
def test_rules_of_copies_of_boxes(rule: str) -> None:
    with pytest.raises(VerifierError, match=rule):
        check(COPIES[rule])


OTHERS = {
    "a BulkStore reads shared memory": ops.BulkStore(TILE, WORDS, N),
    "the size of a BulkStore": ops.BulkStore(WORDS, TILE, MASK),
    "masks": ops.StoreMatrix(TILE, FRAGMENT, False, N),
    "a tensor in registers": ops.StoreMatrix(TILE, TILE, False, MASK),
    "a StoreMatrix writes to shared memory": ops.StoreMatrix(WORDS, FRAGMENT, False, MASK),
    "a StoreMatrix keeps the dtype": ops.StoreMatrix(BARRIER, FRAGMENT, False, MASK),
    "numbers of a BarrierArrive": ops.BarrierArrive(N, MASK),
    "only an arrive is at the barrier of a peer": ops.MBarrier("init", BARRIER, N, N),
    "the peer of an mbarrier": ops.MBarrier("arrive", BARRIER, None, MASK),
    "a PeerStore writes to shared memory": ops.PeerStore(WORDS, N, N),
    "a store to a peer": ops.PeerStore(TILE, N, N),
    "a load of a peer": ops.PeerLoad(ops.Value(Float32, "x"), TILE, N),
    "the phase and result of a try": ops.MBarrierTry(ops.Value(Int32, "x"), BARRIER, N),
    "an mbarrier is an int64": ops.MBarrierTry(ops.Value(fe.Boolean, "x"), TILE, N),
}


@pytest.mark.parametrize("rule", OTHERS)
def test_rules_of_the_others(rule: str) -> None:
    with pytest.raises(VerifierError, match=rule):
        check(OTHERS[rule])

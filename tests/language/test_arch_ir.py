"""The ops of tensor cores and of work in the background: their text and their rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cpu_machine import host
from lowered import lower, text, vector

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import (
    AddressSpace,
    BFloat16,
    DType,
    Float16,
    Float32,
    Int8,
    Int32,
    Int64,
    Uint32,
)

arch = fe.arch


def test_the_text_of_every_op(golden: Callable[[str, str], None]) -> None:
    @fe.kernel
    def kernel(a, h):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Float16, 512)
        arch.griddepcontrol_wait()
        arch.cp_async(row + t * 8, h.iterator + t * 8, 8, cache="global", pred=t < 5)
        arch.cp_async(row, h.iterator, 2)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        left = arch.ldmatrix(row + t * 8)
        right = arch.ldmatrix(row + t * 8, 2, transpose=True)
        own = fe.make_fragment(4, fe.Float32)
        own.store(arch.mma(left, right, fe.full(4, 0.0, fe.Float32)))
        a[t] = own[0]
        arch.griddepcontrol_launch_dependents()
        barrier = arch.alloc_smem(fe.Int64, 1)
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        arch.fence_proxy("async.shared", space="cta")
        arch.mbarrier_arrive_and_expect_tx(barrier, 64)
        arch.mbarrier_arrive(barrier)
        arch.cp_async_bulk(row, h.iterator, 64, barrier)
        arch.mbarrier_wait(barrier, 1)
        arch.setmaxregister_increase(232)

    def matrices(a, h):
        kernel(a, h).launch(grid=1, block=32)

    golden("matrices_1d.ir", text(matrices, vector(), vector(fe.Float16, "m")))


def test_a_product_stays_though_nobody_uses_it() -> None:
    """Other lanes wait for the one that makes it."""

    @fe.kernel
    def kernel(a):
        arch.mma(*(fe.full(n, 0, kind) for n, kind in ((8, fe.Int8), (4, fe.Int8), (4, fe.Int32))))

    def unused(a):
        kernel(a).launch(grid=1, block=32)

    program = lower(unused, vector())
    assert any(isinstance(op, ops.Mma) for op in all_ops(program.kernels[0].body))


# ---- rules ----


def tensor(space: AddressSpace, dtype: DType, size: int, stride: int = 1) -> ops.Value:
    return ops.Value(TensorType(dtype, (size,), (stride,), 16, space), "t")


def own(dtype: DType, size: int, stride: int = 1) -> ops.Value:
    return tensor(AddressSpace.rmem, dtype, size, stride)


MASK, WRONG = ops.Value(Uint32, "mask"), ops.Value(Int32, "i")


def refused(rule: str, op: Any, *used: ops.Value) -> None:
    """The tensors in registers and shared memory are made before the op."""
    made: list[ops.Op] = [ops.Constant(MASK, 1), ops.Constant(WRONG, 1)]
    for value in dict.fromkeys(used):
        made.append(ops.Fragment(value) if value.tensor.is_own else ops.Shared(value))
    kernel = ops.Function("k", "kernel", (), ops.Region((*made, op)))
    with pytest.raises(VerifierError, match=rule):
        verify(replace(host("broken", (), ops.Region()), kernels=(kernel,)))


def test_only_kernels_have_them() -> None:
    with pytest.raises(VerifierError, match="only a kernel has threads"):
        verify(host("broken", (), ops.Region((ops.Control("griddepcontrol_wait"),))))


def test_rules_of_products() -> None:
    d, a, b = own(Float32, 4), own(Float16, 8), own(Float16, 4)

    def mma(rule: str, *given: ops.Value, mask: ops.Value = MASK) -> None:
        refused(rule, ops.Mma(*given, mask), *given)

    mma("masks", d, a, b, d, mask=WRONG)
    shared = tensor(AddressSpace.smem, Float16, 8)
    mma("a tensor in registers", d, shared, b, d)
    mma("compact tensor of one dim", d, own(Float16, 8, stride=2), b, d)
    mma("no mma of float16 and bfloat16 to float32", d, a, own(BFloat16, 4), d)
    mma("no mma of float32 and float32 to float32", d, own(Float32, 4), own(Float32, 2), d)
    mma("no mma of int8 and int8 to float32", d, own(Int8, 16), own(Int8, 8), d)
    mma("no mma of float16 and float16 to float32", d, a, b, own(Float16, 4))
    mma("2 or 4 words of A", d, a, own(Float16, 2), d)
    mma("2 or 4 words of A", own(Float32, 8), a, b, d)


def test_rules_of_loads_of_matrices() -> None:
    target, source = own(Float16, 8), tensor(AddressSpace.smem, Float16, 64)

    def load(
        rule: str, to: ops.Value, of: ops.Value, mask: ops.Value = MASK, *, turned: bool = False
    ) -> None:
        refused(rule, ops.LoadMatrix(to, of, turned, mask), to, of)

    load("masks", target, source, WRONG)
    load("reads shared memory", target, own(Float16, 8))
    load("keeps the dtype", own(BFloat16, 8), source)
    load("1, 2 or 4 matrices", own(Float16, 6), source)
    load("only 2-byte", own(Int8, 16), tensor(AddressSpace.smem, Int8, 64), turned=True)


def test_rules_of_copies() -> None:
    shared, far = (tensor(s, Float16, 64) for s in (AddressSpace.smem, AddressSpace.gmem))

    def copy(rule: str, op: ops.AsyncCopy) -> None:
        of_kernel = ops.Function("k", "kernel", (far,), ops.Region((ops.Shared(shared), flag, op)))
        with pytest.raises(VerifierError, match=rule):
            verify(replace(host("broken", (), ops.Region()), kernels=(of_kernel,)))

    flag = ops.Constant(ops.Value(Int32, "flag"), 1)
    copy("writes to shared memory", ops.AsyncCopy(far, far, 8))
    copy("reads global memory", ops.AsyncCopy(shared, shared, 8))
    copy("4, 8 or 16 bytes", ops.AsyncCopy(shared, far, 3))
    copy("always cached", ops.AsyncCopy(shared, far, 4, "global"))
    copy("the condition of an AsyncCopy", ops.AsyncCopy(shared, far, 8, holds=flag.result))


def test_rules_of_numbers() -> None:
    refused("number of cp_async_commit_group is 2", ops.Control("cp_async_commit_group", 2))
    refused("number of cp_async_wait_group is -1", ops.Control("cp_async_wait_group", -1))


def test_rules_of_barriers_in_shared_memory() -> None:
    barrier, number = tensor(AddressSpace.smem, Int64, 1), WRONG
    narrow = tensor(AddressSpace.smem, Int32, 1)
    refused("an int64 in shared memory", ops.MBarrier("arrive", narrow), narrow)
    mine = own(Int64, 1)
    refused("an int64 in shared memory", ops.MBarrierWait(mine, number), mine)
    refused("number of an mbarrier's init", ops.MBarrier("init", barrier), barrier)
    refused("number of an mbarrier's arrive", ops.MBarrier("arrive", barrier, number), barrier)
    refused("numbers", ops.MBarrier("init", barrier, MASK), barrier)
    refused("phases", ops.MBarrierWait(barrier, MASK), barrier)
    target = tensor(AddressSpace.smem, Float16, 64)
    copy = ops.BulkCopy(target, target, number, barrier)
    refused("a BulkCopy reads global memory", copy, barrier, target)

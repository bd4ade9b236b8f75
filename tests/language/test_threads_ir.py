"""The ops by which threads work together: their text, their rules, and that they stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cpu_machine import host
from lowered import lower, text, vector

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.effects import written_params
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Boolean, Float32, Int8, Int32, Int64, Uint32

arch = fe.arch


def test_the_text_of_every_op(golden: Callable[[str, str], None]) -> None:
    @fe.kernel
    def kernel(a):
        t = arch.thread_idx()[0]
        own = arch.alloc_smem(fe.Float32, 64)
        own[t] = arch.get_dyn_smem(fe.Float32)[t]
        arch.sync_threads()
        arch.barrier(barrier_id=1, number_of_threads=64)
        arch.sync_warp(0xFF)
        arch.fence_acq_rel_gpu()
        a[t] = arch.shuffle_sync_up(own[t], 1)
        arch.vote_ballot_sync(a[t] > 0)
        arch.match_any_sync(a[t])
        arch.atomic_add(a.iterator + t, 1.0, sem="release", scope="cta")
        arch.atomic_cas(own, 0.0, 1.0)

    def threads(a):
        kernel(a).launch(grid=1, block=64, smem=256)

    golden("threads_1d.ir", text(threads, vector()))


def test_what_waits_or_writes_stays_though_nobody_uses_it() -> None:
    @fe.kernel
    def kernel(a):
        t = arch.thread_idx()[0]
        arch.shuffle_sync(t, 0)
        arch.vote_any_sync(t == 0)
        arch.match_all_sync(t)
        arch.atomic_add(a.iterator, 1.0)
        arch.alloc_smem(fe.Float32, 4)

    def threads(a):
        kernel(a).launch(grid=1, block=64)

    program = lower(threads, vector())
    kinds = {type(op) for op in all_ops(program.kernels[0].body)}
    assert kinds >= {ops.Shuffle, ops.Vote, ops.Match, ops.Atomic}
    assert ops.Shared not in kinds


def test_an_atomic_writes_to_its_tensor() -> None:
    @fe.kernel
    def kernel(a, b):
        arch.atomic_add(b.iterator + 3, a[0])

    def threads(a, b):
        kernel(a, b).launch(grid=1, block=64)

    program = lower(threads, vector(), vector(symbol="m"))
    assert {value.hint for value in written_params(program)} == {"b"}


# ---- rules ----


def value(type_: ops.Type, hint: str = "v") -> ops.Value:
    return ops.Value(type_, hint)


def tensor(space: AddressSpace, dtype: Any = Float32, size: Any = 4) -> ops.Value:
    return value(TensorType(dtype, (size,), (1,), 4, space))


def constants(*dtypes: Any) -> tuple[tuple[ops.Value, ...], tuple[ops.Op, ...]]:
    results = tuple(value(dtype) for dtype in dtypes)
    return results, tuple(ops.Constant(result, 1) for result in results)


def refused(rule: str, *made: ops.Op) -> None:
    kernel = ops.Function("k", "kernel", (), ops.Region(made))
    with pytest.raises(VerifierError, match=rule):
        verify(replace(host("broken", (), ops.Region()), kernels=(kernel,)))


@pytest.mark.parametrize("op", [ops.Barrier(), ops.Fence("block"), ops.Shared(value(Int32))])
def test_only_kernels_have_them(op: ops.Op) -> None:
    with pytest.raises(VerifierError, match="only a kernel has threads"):
        verify(host("broken", (), ops.Region((op,))))


def test_rules_of_shared_memory() -> None:
    n = fe.sym_int(symbol="n")
    for space in (AddressSpace.gmem, AddressSpace.rmem):
        refused("shared memory is a tensor in smem", ops.Shared(tensor(space)))
        refused("shared memory is a tensor in smem", ops.DynamicShared(tensor(space)))
    shared = tensor(AddressSpace.smem)
    refused("an offset from 0 on", ops.DynamicShared(shared, -1))
    refused("no symbol|constant sizes", ops.Shared(tensor(AddressSpace.smem, size=n)))
    outside = ops.View(tensor(AddressSpace.gmem), shared)
    refused("a view is where its tensor is", ops.Shared(shared), outside)
    param = ops.Value(shared.type, "p")
    kernel = ops.Function("k", "kernel", (param,), ops.Region())
    sizes, made = constants(*[Int64] * 6)
    given = value(shared.type)
    launch = ops.Launch("k", sizes[:3], sizes[3:], (given,))
    program = host("broken", (given,), ops.Region((*made, launch)))
    with pytest.raises(VerifierError, match="no tensor in registers or shared memory"):
        verify(replace(program, kernels=(kernel,)))


def test_rules_of_waiting() -> None:
    (i, wide, mask, flag), made = constants(Int32, Int64, Uint32, Boolean)
    refused("number and count of a barrier", *made, ops.Barrier(wide))
    refused("number and count of a barrier", *made, ops.Barrier(i, mask))
    refused("masks", *made, ops.WarpBarrier(i))
    refused("result of a shuffle", *made, ops.Shuffle(value(Int64), "up", i, i, mask, i))
    refused("operands of a shuffle", *made, ops.Shuffle(value(Int32), "up", i, wide, mask, i))
    refused("operands of a shuffle", *made, ops.Shuffle(value(Int32), "up", i, i, i, i))
    refused("operands of a vote", *made, ops.Vote(value(Boolean), "any", i, mask))
    refused("result of a vote", *made, ops.Vote(value(Boolean), "ballot", flag, mask))
    refused("32 or 64 bits", *made, ops.Match(value(Uint32), "any", flag, mask))
    refused("mask and result of a match", *made, ops.Match(value(Int32), "any", i, mask))


def test_rules_of_atomics() -> None:
    (i, small), made = constants(Int32, Int8)
    whole, narrow, own = (
        tensor(AddressSpace.smem, Int32),
        tensor(AddressSpace.smem, Int8),
        tensor(AddressSpace.rmem, Int32),
    )
    made = (*made, ops.Shared(whole), ops.Shared(narrow), ops.Fragment(own))

    def atomic(op: Any, at: ops.Value, new: ops.Value, compare: Any = None) -> ops.Atomic:
        return ops.Atomic(value(at.tensor.dtype), op, at, (i,), new, compare)

    refused("no atomic add of int8", *made, atomic("add", narrow, small))
    refused("no atomic inc of int32", *made, atomic("inc", whole, i))
    refused("elements have the wrong types", *made, atomic("add", whole, small))
    refused("memory that threads share", *made, atomic("add", own, i))
    refused("cas has what it compares with", *made, atomic("cas", whole, i))
    refused("cas has what it compares with", *made, atomic("add", whole, i, i))
    refused("what an atomic compares with", *made, atomic("cas", whole, i, small))

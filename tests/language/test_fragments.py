"""Tensors in registers: what a thread has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import interpreted, lowered
from cpu_machine import BASELINE, compile_program
from interpreter import Unwritten, upwards
from lowered import lower, text, vector
from parts import ramp, run

import ferrule as fe

ADD = fe.ReductionOp.ADD


def test_a_fragment_holds_what_a_thread_writes_to_it() -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        own = fe.make_fragment(4, fe.Float32)
        own.fill(0.0)
        for j in range(a.shape[1]):
            own[j % 4] += a[i, j]
        fe.local_tile(c, (4,), (i,)).store(own.load())

    def host(a, c):
        device(a, c).launch(grid=1, block=a.shape[0])

    a = ramp(40, 8)
    _, c = run(host, a, np.zeros(160, np.float32))
    np.testing.assert_array_equal(c.reshape(40, 4), a.reshape(40, 2, 4).sum(1))


def test_fragments_have_layouts() -> None:
    seen = []

    def host(a, c):
        for wanted in (6, (2, 3), fe.make_layout((2, 3), stride=(4, 1)), ((2, 2), 3)):
            fragment = fe.make_rmem_tensor(wanted, fe.Int16)
            seen.append(str(fragment.layout))
        like = fe.make_fragment_like(
            fe.make_tensor(a.iterator, fe.make_layout((2, 3), stride=(9, 2)))
        )
        seen.append((str(like.layout), like.element_type))
        other = fe.make_fragment_like(like.layout, fe.Float64)
        seen.append((str(other.layout), other.element_type))
        other.fill(1.5)
        c[0] = other[1, 2]

    lower(host, vector(), vector())
    assert seen == [
        "(6):(1)",
        "(2,3):(1,2)",
        "(2,3):(4,1)",
        "((2,2),3):((1,2),4)",
        ("(2,3):(3,1)", fe.Float32),
        ("(2,3):(3,1)", fe.Float64),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64])
def test_fragments_of_other_dtypes(dtype: Any) -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        own = fe.make_fragment_like(fe.local_tile(a, (3,), (i,)))
        fe.autovec_copy(fe.local_tile(a, (3,), (i,)), own)
        for j in range(3):
            c[i * 3 + j] = own[2 - j]

    def host(a, c):
        device(a, c).launch(grid=1, block=a.shape[0] // 3)

    a = (ramp(12) % 5).astype(dtype)
    _, c = run(host, a, np.zeros(12, dtype))
    np.testing.assert_array_equal(c, a.reshape(4, 3)[:, ::-1].ravel())


def test_fragments_can_be_cut_viewed_and_pointed_to() -> None:
    def host(c):
        own = fe.make_fragment((2, 4), fe.Int32)
        own.fill(0)
        own[1, None].store(fe.full_like(own[0, None].load(), 5))
        row = own[0, None]
        row[2] = 7
        own.iterator[0] = 9
        half = own.recast(fe.Int16)
        flat = fe.coalesce(own)
        for n in range(8):
            c[n] = flat[n]
        c[8] = half[2, 1] + 100

    (c,) = run(host, np.zeros(9, np.int32))
    np.testing.assert_array_equal(c, [9, 5, 0, 5, 7, 5, 0, 5, 105])


def test_a_fragment_with_static_indices_is_in_registers() -> None:
    @fe.kernel
    def device(a, c):
        own = fe.make_fragment(4, fe.Float32)
        own.fill(1.0)
        i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            for k in fe.range_constexpr(4):
                own[k] = own[k] + a[i] * float(k)
            c[i] = own.load().reduce(ADD, 0.0, 0)

    def host(a, c):
        device(a, c).launch(grid=(a.shape[0] + 63) // 64, block=64)

    optimised = compile_program(lower(host, vector(), vector()), BASELINE).optimised
    assert "fadd <4 x float>" in optimised
    kernel = optimised.partition("@blocks_device(")[2].partition("\n}")[0]
    assert kernel and "alloca" not in kernel
    assert "masked" not in optimised
    options = "--target cuda --gpu-arch sm_90a"
    ptx = fe.compile(host, vector(), vector(), options=options).inspect_ptx()
    assert ".local" not in ptx
    a = ramp(100)
    _, c = run(host, a, np.zeros(100, np.float32))
    np.testing.assert_array_equal(c, a * 6 + 4)


def test_threads_of_a_vectorised_loop_do_not_share_a_fragment() -> None:
    @fe.kernel
    def device(a, k, c):
        i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            own = fe.make_fragment(2, fe.Float32)
            own[0] = 0.0
            own[1] = 0.0
            own[k[i]] = a[i]
            c[i] = own[0] - own[1]

    def host(a, k, c):
        device(a, k, c).launch(grid=(a.shape[0] + 63) // 64, block=64)

    a, k = ramp(200), np.arange(200, dtype=np.int32) % 2
    *_, c = run(host, a, k, np.zeros(200, np.float32))
    np.testing.assert_array_equal(c, np.where(k, -a, a))


def test_what_was_not_written_is_undefined_to_the_interpreter() -> None:
    def host(c):
        own = fe.make_fragment(2, fe.Float32)
        own[0] = 1.0
        c[0] = own[1]

    with pytest.raises(Unwritten, match="byte 4"):
        interpreted(lowered(host, vector()), upwards, np.zeros(1, np.float32))


def test_a_fragment_begins_anew_in_every_iteration() -> None:
    def host(n: fe.Int32, c):
        for i in range(n):
            own = fe.make_fragment(2, fe.Int32)
            own.fill(0)
            own[i % 2] = i
            c[i] = own[0] * 10 + own[1]

    (c,) = run(host, 4, np.zeros(4, np.int32))
    np.testing.assert_array_equal(c, [0, 1, 20, 3])


def test_the_text_of_a_fragment() -> None:
    def host(c):
        own = fe.make_fragment((2, 2), fe.Float32)
        own.fill(0.0)
        c[0] = own[1, 1]

    printed = text(host, vector())
    assert "%fragment = fragment : tensor<[2, 2]:[1, 2], float32, align 16, rmem>" in printed

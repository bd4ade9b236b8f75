"""Threads that compute several neighbouring elements of a whole-tensor expression."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from lowered import lower

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.passes.collapse import collapse
from ferrule.language.ir.passes.outline import outline
from ferrule.language.ir.rules.verifier import verify
from ferrule.runtime import make_fake_compact_tensor, make_fake_tensor

CUDA = "--target cuda --gpu-arch sm_90a"
N = fe.sym_int(symbol="n")


def many(dtype: Any, align: int | None = None, rank: int = 1) -> Any:
    sizes = (N, fe.sym_int(symbol="m"))[:rank]
    order = tuple(reversed(range(rank)))
    return make_fake_compact_tensor(dtype, sizes, stride_order=order, assumed_align=align)


def scaled(c, a):
    c[:] = a[:] * 2


def added(c, a, b):
    c[:] = a[:] + b[:]


def kernel_of(function: Callable[..., Any], *examples: Any) -> ops.Function:
    program = outline(collapse(lower(function, *examples)), wide=True)
    verify(program)
    (kernel,) = program.kernels
    return kernel


def count_of(kernel: ops.Function) -> int:
    """How many elements a thread takes."""
    stores = sum(isinstance(op, ops.Store) for op in all_ops(kernel.body))
    return 1 if stores == 1 else stores - 1  # one more is for single elements


@pytest.mark.parametrize(
    ("dtype", "count"),
    [
        (fe.Float32, 4),
        (fe.Float16, 8),
        (fe.BFloat16, 8),
        (fe.Float64, 2),
        (fe.Int64, 2),
        (fe.Int8, 16),
        (fe.Complex64, 1),
        (fe.Boolean, 16),
    ],
)
def test_sixteen_bytes_of_a_tensor(dtype: Any, count: int) -> None:
    def copied(c, a):
        c[:] = a[:]

    assert count_of(kernel_of(copied, many(dtype), many(dtype))) == count


def test_the_widest_dtype_decides() -> None:
    def converted(c, a):
        c[:] = fe.Float32(1) * a[:]

    assert count_of(kernel_of(converted, many(fe.Float32), many(fe.Int8))) == 4


def test_instructions_are_no_long_bodies() -> None:
    def short(c, a):
        x = -a[:]
        for _ in fe.range_constexpr(8):
            x = fe.math.floor(fe.math.sqrt(-x)) + 1
        c[:] = x

    def powers(c, a):
        c[:] = a[:] ** a[:] + (a[:] + 1) ** a[:] + (a[:] + 2) ** a[:]

    assert count_of(kernel_of(short, many(fe.Float32), many(fe.Float32))) == 4
    assert count_of(kernel_of(powers, many(fe.Float32), many(fe.Float32))) == 2


def test_long_bodies_take_fewer() -> None:
    def long(c, a):
        c[:] = fe.math.tanh(fe.math.exp(a[:])) + fe.math.sin(a[:]) * fe.math.cos(a[:])

    assert count_of(kernel_of(long, many(fe.Float32), many(fe.Float32))) == 2
    assert count_of(kernel_of(long, many(fe.Float16), many(fe.Float16))) == 1


def test_compact_tensors_of_two_axes_are_one() -> None:
    assert count_of(kernel_of(added, *[many(fe.Float32, rank=2)] * 3)) == 4


def test_strides_take_one_after_the_other() -> None:
    strided = make_fake_tensor(fe.Float32, (N,), (fe.sym_int(),))
    assert count_of(kernel_of(added, many(fe.Float32), many(fe.Float32), strided)) == 1
    assert count_of(kernel_of(scaled, strided, many(fe.Float32))) == 1


@pytest.mark.parametrize(
    ("dtype", "bits", "words"), [(fe.Float32, 32, 4), (fe.Float16, 16, 8), (fe.Int8, 8, 16)]
)
def test_aligned_tensors_are_accessed_sixteen_bytes_at_once(
    dtype: Any, bits: int, words: int
) -> None:
    for align in (None, 16):
        examples = [many(dtype, align)] * 3
        text = fe.compile(fe.jit(added), *examples, options=CUDA).inspect_ptx()
        assert isinstance(text, str)
        wide = re.findall(r"(ld|st)\.global\.(?:v(\d)\.)?b(\d+)", text)
        total = [int(count or 1) * int(size) for _, count, size in wide]
        assert sorted(total).count(128) == 3, (align, total)
        assert bits in total or words == 1
        # What the signature promises is not looked at again.
        assert ("and.b64" in text or "or.b64" in text) or align is not None


def test_the_launch_has_fewer_blocks() -> None:
    program = outline(collapse(lower(added, *[many(fe.Float32)] * 3)), wide=True)
    (launch,) = program.host.facts.each(ops.Launch)
    sizes = {op.result: op.dim for op in program.host.facts.each(ops.Size)}
    assert sizes[launch.grid[0]] == fe.ceil_div(N, 1024)

"""`fe.range(unroll=…, vectorize=…)`: the same loop, with wishes in the IR and for LLVM."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import lower, text, vector
from plain_python import f32, zeros

import ferrule as fe
from ferrule.language.codegen import lower_cpu


def hinted(a, b):
    total = 0.0
    for i in fe.range(a.shape[0], unroll=4):
        total += a[i]
    for i in fe.range(1, 9, 2, unroll_full=True):
        total += i
    for i in fe.range(a.shape[0], unroll=1, vectorize=True, prefetch_stages=2):
        b[i] = total
    for i in fe.range(a.shape[0], vectorize=8):
        b[i] += 1
    for i in fe.range(a.shape[0], vectorize=False, at_least_once=True):
        b[i] *= 2
    for i in fe.range(a.shape[0], unroll=2):
        if b[i] > 1000:
            break
        b[i] -= 1


def test_the_loops_mean_the_same() -> None:
    run_all_ways(hinted, (f32(*range(20)), zeros(20)))


def test_the_wishes_are_in_the_text() -> None:
    heads = [line for line in text(hinted, vector(), vector()).splitlines() if " for " in line]
    found = [line[line.index(" step ") :] for line in heads]
    assert ["unroll(4)" in f for f in found] == [True, False, False, False, False]
    assert "unroll(full)" in found[1] and "unroll(1) vectorize(True)" in found[2]
    assert "vectorize(8)" in found[3] and "vectorize(False)" in found[4]


@pytest.mark.parametrize(
    "metadata",
    [
        '"llvm.loop.unroll.count", i32 4',
        '"llvm.loop.unroll.full"',
        '"llvm.loop.unroll.disable"',
        '"llvm.loop.vectorize.enable", i1 0',
        '"llvm.loop.vectorize.width", i32 8',
    ],
)
def test_llvm_gets_them(metadata: str) -> None:
    assert f"!{metadata}" in lower_cpu(lower(hinted, vector(), vector())).text


def test_outside_it_is_pythons_range() -> None:
    assert fe.range(2, 9, 3, unroll=2) == range(2, 9, 3)
    assert fe.const_expr(np.int64(3)) == 3
    with pytest.raises(AssertionError, match="no"):
        fe.static_assert(False, "no")


def nested(a, b):
    for i in fe.range(a.shape[0], unroll=4, vectorize=True):
        for j in fe.range(i, unroll_full=True):
            a[j] += 1
        b[i] = a[i]
    for i in fe.range(a.shape[0], unroll=4):
        b[i] = a[i] // b[0]


def test_a_wish_that_cannot_be_fulfilled_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    for function, dtype in ((nested, fe.Int32), (hinted, fe.Float32)):
        fe.compile(function, vector(dtype), vector(dtype), options="--target cpu")
    assert capfd.readouterr().err == ""

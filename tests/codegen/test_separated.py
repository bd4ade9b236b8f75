"""Loops that add up costly functions: in two parts, with the bits of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.codegen.passes import separated as module
from ferrule.language.codegen.passes.separated import CHUNK

m = fe.math


def sums(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        s += m.exp(x[i])
    o[0] = s


def several(x, o, n: fe.Int32):
    """Sums, a product, a maximum, an index and a condition; from a number on, inside of a loop."""
    for k in range(2):
        s, p, top, where = fe.Float32(k), fe.Float32(1), fe.Float32(-9), fe.Int32(-1)
        for i in range(k * 3 - 1, n):
            v = m.tanh(x[i + 1]) * 0.5
            w = m.log(x[0] + i * i)
            is_new = v > 0.1
            p = p * (1.0 + v)
            s -= w * p
            where = max(where, i * fe.Int32(is_new & (v > top)))
            top = m.max(top, v)
        o[4 * k], o[4 * k + 1], o[4 * k + 2], o[4 * k + 3] = s, p, top, where


def wide(x, o, n: fe.Int32):
    s, c = fe.Float64(0), fe.Int64(0)
    for i in range(fe.Int64(n)):
        s = s * 0.99 + m.sin(fe.Float64(x[i]))
        c += fe.Int64(m.exp(x[i]) * 3)
    o[0], o[1] = fe.Float32(s), fe.Float32(c)


@fe.kernel
def one_thread(x, o, n):
    s = fe.Float32(0)
    for i in range(n):
        s += m.rsqrt(x[i] + 1)
    o[0] = s


def in_a_kernel(x, o, n: fe.Int32):
    one_thread(x, o, n).launch(grid=1, block=1)


TAKEN = (sums, several, wide, in_a_kernel)


def writes(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        s += m.exp(x[i])
        o[i] = s


def reads_what_it_wrote(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        o[i] = s
        s += m.exp(o[i])
    o[0] = s


def depends(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        s = m.exp(s * x[i]) * 0.25
    o[0] = s


def cheap(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        s += x[i] * x[i]
    o[0] = s


def few(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(4):
        s += m.exp(x[i])
    o[0] = s


def hinted(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in fe.range(n, unroll=2):
        s += m.exp(x[i])
    o[0] = s


def in_any_order(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in fe.range(n, reassociate=True):
        s += m.exp(x[i])
    o[0] = s


def by_steps(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(0, n, 2):
        s += m.exp(x[i])
    o[0] = s


def downwards(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n - 1, -1, -1):
        s += m.exp(x[i])
    o[0] = s


def with_a_branch(x, o, n: fe.Int32):
    s = fe.Float32(0)
    for i in range(n):
        if x[i] > 0:
            s += m.exp(x[i])
    o[0] = s


@fe.kernel
def many_threads(x, o, n):
    s = fe.Float32(0)
    for i in range(n):
        s += m.exp(x[i])
    o[fe.arch.thread_idx()[0]] = s


def in_many(x, o, n: fe.Int32):
    many_threads(x, o, n).launch(grid=1, block=32)


LEFT = (writes, reads_what_it_wrote, depends, cheap, few, hinted, in_any_order, by_steps, downwards,
        with_a_branch, in_many)  # fmt: skip


def vector() -> Any:
    return fe.make_fake_compact_tensor("float32", (fe.sym_int(symbol="m"),))


def compiled(function: Any, options: str = "") -> Any:
    options = f"--target cpu --no-cache {options}"
    return fe.compile(function, vector(), vector(), fe.Int32, options=options)


@pytest.mark.parametrize("function", [*TAKEN, *LEFT], ids=lambda f: f.__name__)
def test_the_bits_are_those_of_one_loop(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    two = compiled(function)
    monkeypatch.setattr(module, "separated", lambda program: program)
    one = compiled(function)
    taken = two.inspect_asm() != one.inspect_asm()
    assert taken == (function in TAKEN)
    rng = np.random.default_rng(1)
    for n in (0, 1, 15, CHUNK - 1, CHUNK, CHUNK + 1, 200, -3):
        x = rng.standard_normal(400).astype(np.float32)
        x[0] = 1e4
        found, wanted = np.zeros((2, 400), np.float32)
        with np.errstate(all="ignore"):
            two(x, found, n)
            one(x, wanted, n)
        np.testing.assert_array_equal(found, wanted)
    assert not np.isnan(wanted).all()


def test_an_index_near_the_end_of_its_dtype_does_not_wrap() -> None:
    def last(o, n: fe.Int32):
        s = fe.Float64(0)
        for i in range(n, 2147483647):
            s += m.log(fe.Float64(i))
        o[0] = s

    one = fe.make_fake_compact_tensor("float64", (1,))
    function = fe.compile(last, one, fe.Int32, options="--target cpu")
    out = np.zeros(1)
    for n in (2147483640, 2147483647 - CHUNK, 2147483500):
        function(out, n)
        np.testing.assert_allclose(out[0], np.log(np.arange(n, 2147483647.0)).sum(), rtol=1e-12)


def test_checks_keep_their_order() -> None:
    function = compiled(sums, "--enable-checks")
    x = np.ones(10, np.float32)
    with pytest.raises(IndexError, match="index 10 is out of range"):
        function(x, np.zeros(10, np.float32), 11)

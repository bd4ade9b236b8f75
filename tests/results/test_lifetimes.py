"""Nothing that a call makes is lost, and nothing is released twice."""

from __future__ import annotations

import ctypes
import gc
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe

CALLS = 100_000
CPU = "--target cpu"


def grown(call: Callable[[], object], calls: int = CALLS) -> int:
    """By how many bytes the process has grown after so many calls, past the first few."""
    for _ in range(1000):
        call()
    gc.collect()
    before = _resident()
    for _ in range(calls):
        call()
    gc.collect()
    return _resident() - before


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def strong_count(handle: int) -> int:
    """How many references an object of tvm-ffi has."""
    return ctypes.c_uint32.from_address(handle).value


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


LIMIT = 4 << 20
"""Bytes: what a hundredth of the calls would lose with an object of a few hundred bytes each."""


def test_strings_tuples_and_shapes() -> None:
    @fe.jit
    def several(k: fe.Int32):
        return (k, "a string that is too long to be small" * 20), b"bytes" * 100, (k, (k, k))

    function = compiled(several, fe.Int32)
    assert grown(lambda: function(3), CALLS // 10) < LIMIT


def test_returned_tensors() -> None:
    @fe.jit
    def made(k: fe.Int32):
        return fe.empty((k,), fe.Float32)

    function = compiled(made, fe.Int32)
    assert grown(lambda: function(1000)) < LIMIT
    found = function(5)
    assert strong_count(found.__chandle__()) == 1


def test_scratch_tensors() -> None:
    @fe.jit
    def scratch(a: fe.Tensor):
        t, u = fe.zeros((256,), fe.Float32), fe.zeros((256,), fe.Float32)
        a[0] = t[0] + u[1]

    function, array = compiled(scratch, vector()), np.ones(1, np.float32)
    assert grown(lambda: function(array)) < LIMIT


def test_scratch_tensors_of_loops() -> None:
    @fe.jit
    def loop(n: fe.Int32):
        total = fe.Float32(0)
        for i in range(n):
            t = fe.full((1024,), i, fe.Float32)
            total += t[i]
        return total

    function = compiled(loop, fe.Int32)
    assert function(4) == 6
    assert grown(lambda: function(1000), CALLS // 1000) < LIMIT


@pytest.mark.parametrize("value", [-1, 2**30])
def test_scratch_tensors_of_calls_that_fail(value: int) -> None:
    @fe.kernel
    def nothing():
        pass

    @fe.jit
    def failing(k: fe.Int32):
        t = fe.full((1024,), k, fe.Int32)
        assert k >= 0, "negative"
        nothing().launch(grid=(1, k), block=1)
        return t, "never"

    function = compiled(failing, fe.Int32)

    def call() -> None:
        with pytest.raises((AssertionError, fe.LaunchError)):
            function(value)

    assert grown(call, CALLS // 20) < LIMIT


def test_tensors_whose_successor_fails() -> None:
    @fe.jit
    def failing(k: fe.Int64):
        t = fe.full((1024,), 1, fe.Int32)
        u = fe.empty((k,), fe.Int64)
        return t, u

    function = compiled(failing, fe.Int64)

    def call() -> None:
        with pytest.raises((MemoryError, ValueError)):
            function(2**60)

    assert grown(call, CALLS // 20) < LIMIT


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    @fe.jit
    def made(a: fe.Tensor):
        scratch = fe.empty_like(a)
        scratch[:] = a[:]
        t = fe.empty_like(a)
        t[:] = scratch[:]
        return t

    function, a = compiled(made, vector()), torch.ones(1024)
    assert grown(lambda: function(a), CALLS // 2) < LIMIT


def test_objects_that_are_handed_back() -> None:
    @fe.jit
    def same(f, k: fe.Int32):
        if k == 1:
            return f, (f, f)
        return f, (f, f)

    function = compiled(same, fe.specs.params.Function("f"), fe.Int32)
    callback = tvm_ffi.convert(lambda: None)
    handle = callback.__chandle__()
    before = strong_count(handle)
    for _ in range(CALLS // 4):
        function(callback, 1)
    assert strong_count(handle) == before
    kept = function(callback, 2)
    gc.collect()
    assert strong_count(handle) == before + 3
    del kept
    gc.collect()
    assert strong_count(handle) == before


@pytest.mark.needs_wide_ints
def test_numbers_past_64_bits() -> None:
    @fe.jit
    def pair(k: fe.Uint64):
        return k, (k, "a string that is not small" * 10)

    function = compiled(pair, fe.Uint64)
    assert function(2**64 - 1)[0] == 2**64 - 1
    assert grown(lambda: function(2**64 - 1), CALLS // 10) < LIMIT

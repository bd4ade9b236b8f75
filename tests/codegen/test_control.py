"""Control flow, sizes, checks and addresses on the CPU, against plain Python."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest
from cpu_machine import EMPTY, compile_program, host, vector
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.passes.collapse import loop_order
from ferrule.language.ir.types import TensorType
from ferrule.specs import (
    Boolean,
    DType,
    Float32,
    Int8,
    Int32,
    Int64,
    Sym,
    Uint32,
    Uint64,
    evaluate,
    sym_int,
)
from ferrule.specs.expr import ExprOp, make

ROOM = 64


def range_program(dtype: DType, step: int | None) -> ops.Program:
    """Writes the first indices of `range(start, stop, step)` and the number of iterations.

    It leaves the loop's work, not the loop, after `ROOM` iterations, so ranges must be short.
    """
    b = Builder()
    out, count = ops.Value(vector(dtype, ROOM), "out"), ops.Value(vector(Int64, 1), "count")
    start, stop = ops.Value(dtype, "start"), ops.Value(dtype, "stop")
    by = ops.Value(dtype, "step")
    index, carried, result = ops.Value(dtype, "i"), ops.Value(Int64, "n"), ops.Value(Int64, "n")
    with b.region() as body:
        with b.region() as inner:
            b.store(out, (carried,), index)
            more = b.binary("add", carried, b.constant(Int64, 1))
        zero = b.constant(Int64, 0)
        chosen = by if step is None else b.constant(dtype, step)
        b.append(
            ops.For((result,), index, start, stop, chosen, (zero,), (carried,), inner.freeze(more))
        )
        b.store(count, (zero,), result)
    return host("ranges", [out, count, start, stop, by], body.freeze())


RANGE_TYPES = [Int8, Int32, Int64, Uint32, Uint64]


@pytest.mark.parametrize("dtype", RANGE_TYPES)
@pytest.mark.parametrize("constant", [None, 1, 3, -1])
def test_range_is_pythons(dtype: DType, constant: int | None) -> None:
    low, high = dtype.range
    if constant is not None and constant < low:
        pytest.skip("an unsigned step is positive")
    edges = [x for x in (low, low + 1, low + 7, -3, 0, 2, 9, high - 5, high - 1, high) if x >= low]
    steps = [x for x in (1, 2, 5, -1, -4, high, low) if low <= x and x != 0]
    compiled = compile_program(range_program(dtype, constant))
    for start, stop in itertools.product(edges, edges):
        for step in steps if constant is None else [constant]:
            wanted = range(start, stop, step)
            if abs(stop - start) // abs(step) >= ROOM:
                continue
            out, count = np.zeros(ROOM, dtype.name), np.zeros(1, np.int64)
            assert compiled(out, count, start, stop, step) == 0
            assert out[: count[0]].tolist() == list(wanted), (start, stop, step)


def test_a_step_of_zero_has_no_iterations() -> None:
    out, count = np.zeros(ROOM, np.int32), np.zeros(1, np.int64)
    compile_program(range_program(Int32, None))(out, count, 0, 5, 0)
    assert count[0] == 0


def collatz() -> ops.Program:
    """The number of steps until 1: a While with two carried values and an If inside."""
    b = Builder()
    out, given = ops.Value(vector(Int64, 1), "out"), ops.Value(Int64, "x")
    x, n = ops.Value(Int64, "x"), ops.Value(Int64, "n")
    results = ops.Value(Int64, "x"), ops.Value(Int64, "n")
    with b.region() as body:
        zero, one, two = (b.constant(Int64, number) for number in (0, 1, 2))
        with b.region() as test:
            goes = b.compare("gt", x, one)
        with b.region() as loop:
            even = b.compare("eq", b.binary("mod", x, two), zero)
            with b.region() as then:
                half = b.binary("floordiv", x, two)
            with b.region() as otherwise:
                three = b.binary("mul", x, b.constant(Int64, 3))
                grown = b.binary("add", three, one)
            (following,) = b.if_(even, then.freeze(half), otherwise.freeze(grown), ("x",))
            more = b.binary("add", n, one)
        b.append(
            ops.While(
                results, (given, zero), (x, n), test.freeze(goes), loop.freeze(following, more)
            )
        )
        b.store(out, (zero,), results[1])
    return host("collatz", [out, given], body.freeze())


def test_while_and_if() -> None:
    compiled, out = compile_program(collatz()), np.zeros(1, np.int64)
    for start, steps in ((1, 0), (2, 1), (27, 111), (97, 118)):
        compiled(out, start)
        assert out[0] == steps


def test_deep_nesting() -> None:
    """As deep as it gets, no stack of Python's grows with it."""
    b = Builder()
    out, x = ops.Value(vector(Int32, 1), "out"), ops.Value(Int32, "x")
    nested = ops.Region()
    for depth in reversed(range(1500)):
        with b.region() as region:
            with b.region() as then:
                number = b.constant(Int32, depth)
                b.store(out, (b.constant(Int32, 0),), number)
            b.if_(b.compare("eq", x, b.constant(Int32, depth)), then.freeze(), nested, ())
        nested = region.freeze()
    compiled = compile_program(host("deep", [out, x], nested))
    result = np.zeros(1, np.int32)
    for wanted in (0, 700, 1499):
        compiled(result, wanted)
        assert result[0] == wanted


def check_program() -> ops.Program:
    b = Builder()
    out, x = ops.Value(vector(Int32, 1), "out"), ops.Value(Int32, "x")
    with b.region() as body:
        zero, ten = b.constant(Int32, 0), b.constant(Int32, 10)
        b.check(b.compare("ne", x, zero), Fault("ZeroDivisionError", "no {}"), x)
        below = b.compare("lt", x, ten)
        b.check(below, Fault("ValueError", "{} and {} and {}"), x, ten, below)
        b.check(b.compare("ge", x, zero), Fault("ZeroDivisionError", "no {}"), x)
        b.store(out, (zero,), x)
    return host("check", [out, x], body.freeze())


def test_checks_end_the_call() -> None:
    compiled, out = compile_program(check_program()), np.zeros(1, np.int32)
    assert [fault.kind for fault in compiled.body.faults] == ["ZeroDivisionError", "ValueError"]
    assert compiled(out, 5) == 0
    assert out[0] == 5
    assert compiled(out, 0) == 1
    assert compiled(out, 12) == 2
    assert compiled.values[:3] == (12, 10, 0)
    assert compiled(out, -1) == 1  # one number for equal faults
    assert compiled.values[0] == -1
    assert out[0] == 5


M, N = sym_int(symbol="m"), sym_int(64, symbol="n")
SIZES = st.recursive(
    st.one_of(st.sampled_from([M, N]), st.integers(-(1 << 40), 1 << 40), st.integers(-3, 3)),
    lambda inner: st.builds(make, st.sampled_from(get_args(ExprOp)), inner, inner),
    max_leaves=6,
)


def size_program(dim: Any, dtype: DType, fault: Fault | None) -> ops.Program:
    b, out = Builder(), ops.Value(vector(dtype, 1), "out")
    with b.region() as body:
        b.store(out, (b.constant(Int32, 0),), b.size(dtype, dim, fault))
    return host("sizes", [out], body.freeze(), M, N)


@given(SIZES, st.sampled_from([Int32, Int64]))
@settings(max_examples=60, deadline=None)
def test_checked_sizes(dim: Any, dtype: DType) -> None:
    compiled = compile_program(size_program(dim, dtype, Fault("LaunchError", "too large")))
    low, high = dtype.range
    edges = (0, 1, -1, 7, 1 << 62, -(1 << 63))
    for m, n in itertools.product((0, 1, -1, 1 << 30, -(1 << 31)), edges):
        out = np.zeros(1, dtype.name)
        try:
            wanted = evaluate(dim, {M: m, N: n})
        except (OverflowError, ZeroDivisionError):
            wanted = None
        if wanted is None or not low <= wanted <= high:
            assert compiled(out, m, n) == 1
        else:
            assert (compiled(out, m, n), int(out[0])) == (0, wanted)


def test_a_failing_size_tells_its_symbols() -> None:
    compiled = compile_program(size_program(N * M * N, Int64, Fault("LaunchError", "{}, {}")))
    assert compiled(np.zeros(1, np.int64), 3, 1 << 40) == 1
    assert compiled.values[:2] == (1 << 40, 3)


def copy_program(source: TensorType, target: TensorType, *symbols: Sym) -> ops.Program:
    """`out[i, …] = a[i, …]` over the shape of the target."""
    b = Builder()
    a, out = ops.Value(source, "a"), ops.Value(target, "out")
    indices = tuple(ops.Value(Int64, name) for name, _ in zip("ijk", target.shape, strict=False))
    with b.region() as body:
        extents = tuple(b.size(Int64, dim) for dim in target.shape)
        with b.region() as inner:
            b.store(out, indices, b.load(a, indices))
        b.append(ops.Parallel(indices, extents, inner.freeze()))
    return host("copy", [a, out], body.freeze(), *symbols)


def test_strides_and_loop_order() -> None:
    m, n = sym_int(symbol="m"), sym_int(symbol="n")
    rows = TensorType(Float32, (m, n), (n, 1), 4)
    columns = TensorType(Float32, (m, n), (1, m), 4)
    program = copy_program(rows, columns, m, n)
    (parallel,) = (op for op in program.host.body.ops if isinstance(op, ops.Parallel))
    assert loop_order(parallel) == (1, 0)
    a, out = np.arange(35, dtype="f4").reshape(5, 7), np.zeros((7, 5), "f4")
    compile_program(program)(a, out, 5, 7)
    np.testing.assert_array_equal(out.T, a)
    compile_program(program)(a, out, 0, 7)


def test_loop_order_of_three_dims() -> None:
    m, n, k = (sym_int(symbol=name) for name in "mnk")
    columns = TensorType(Float32, (m, n, k), (1, m, m * n), 4)
    program = copy_program(columns, columns, m, n, k)
    (parallel,) = (op for op in program.host.body.ops if isinstance(op, ops.Parallel))
    assert loop_order(parallel) == (2, 1, 0)
    a = np.arange(60, dtype="f4")
    out = np.zeros_like(a)
    compile_program(program)(a, out, 3, 4, 5)
    np.testing.assert_array_equal(out, a)


def test_negative_strides_and_unaligned_elements() -> None:
    source = TensorType(Float32, (8,), (-1,), 1)
    a = np.zeros(33, np.uint8)
    a[1:].view(np.float32)[:] = np.arange(8)
    out = np.zeros(8, "f4")
    compiled = compile_program(copy_program(source, vector(Float32, 8)))
    assert "align 1" in compiled.body.text
    compiled(a.ctypes.data + 1 + 28, out)
    assert out.tolist() == list(range(7, -1, -1))


def test_scalar_tensor() -> None:
    point = TensorType(Float32, (), (), 4)
    out = np.zeros(1, "f4")
    compile_program(copy_program(point, point))(np.array([3.5], "f4"), out)
    assert out[0] == 3.5


def test_bool_parameters() -> None:
    b = Builder()
    out, x = ops.Value(vector(Boolean, 2), "out"), ops.Value(Boolean, "x")
    with b.region() as body:
        b.store(out, (b.constant(Int32, 0),), x)
        with b.region() as then:
            b.store(out, (b.constant(Int32, 1),), b.constant(Boolean, True))
        b.if_(x, then.freeze(), EMPTY, ())
    compiled, result = compile_program(host("flags", [out, x], body.freeze())), np.zeros(2, "u1")
    compiled(result, 0)
    assert result.tolist() == [0, 0]
    compiled(result, 2)
    assert result.tolist() == [1, 1]

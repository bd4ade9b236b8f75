"""What guarded kernels write, compared with running every thread; and that it is seen at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from cpu_machine import BASELINE, EMPTY, Compiled, add_one, compile_program, threads
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.language.codegen.facts import guards
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import DType, Float32, Int32, Int64, Uint8, sym_int

INT32 = 1 << 32


def wrap(value: int, dtype: DType) -> int:
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


# A kernel counts its visits: `seen[linear thread number] += 1` where its guard holds.  All
# variants compare x = base + thread number (one axis) with a limit, and are given both.


@dataclass(frozen=True)
class Variant:
    """How a guard is written, and what it means."""

    name: str
    dtype: DType
    guard: Callable[[Builder, ops.Value, ops.Value, ops.Value], ops.Value]
    holds: Callable[[int, int, int], bool]
    negated: bool = False


def times(b: Builder, x: ops.Value, factor: int) -> ops.Value:
    return b.binary("mul", x, b.constant(x.type, factor))


def twice(b: Builder, found: ops.Value) -> ops.Value:
    return b.binary("and", found, found)


VARIANTS = [
    Variant("lt", Int32, lambda b, x, n, k: b.compare("lt", x, n), lambda x, n, k: x < n),
    Variant("le", Int32, lambda b, x, n, k: b.compare("le", x, n), lambda x, n, k: x <= n),
    Variant("gt", Int32, lambda b, x, n, k: b.compare("gt", n, x), lambda x, n, k: n > x),
    Variant("ge", Int64, lambda b, x, n, k: b.compare("ge", n, x), lambda x, n, k: n >= x),
    Variant("from", Int32, lambda b, x, n, k: b.compare("ge", x, n), lambda x, n, k: x >= n),
    Variant("above", Int64, lambda b, x, n, k: b.compare("gt", x, n), lambda x, n, k: x > n),
    Variant("equal", Int32, lambda b, x, n, k: b.compare("eq", x, n), lambda x, n, k: x == n),
    Variant("same", Int64, lambda b, x, n, k: b.compare("eq", n, x), lambda x, n, k: n == x),
    Variant(
        "not_different",
        Int32,
        lambda b, x, n, k: b.compare("ne", x, n),
        lambda x, n, k: x == n,
        negated=True,
    ),
    Variant(
        "multiple_equal",
        Int32,
        lambda b, x, n, k: b.compare("eq", times(b, x, 3), n),
        lambda x, n, k: wrap(3 * x, Int32) == n,
    ),
    Variant(
        "equal_below",
        Int32,
        lambda b, x, n, k: b.binary("and", b.compare("eq", x, n), b.compare("lt", x, k)),
        lambda x, n, k: x == n and x < k,
    ),
    Variant(
        "twice",
        Int32,
        lambda b, x, n, k: twice(b, b.compare("lt", x, n)),
        lambda x, n, k: x < n,
    ),
    Variant(
        "between",
        Int32,
        lambda b, x, n, k: b.binary("and", b.compare("lt", x, n), b.compare("le", k, x)),
        lambda x, n, k: k <= x < n,
    ),
    Variant(
        "neither",
        Int32,
        lambda b, x, n, k: b.binary("or", b.compare("ge", x, n), b.compare("lt", x, k)),
        lambda x, n, k: k <= x < n,
        negated=True,
    ),
    Variant(
        "not",
        Int32,
        lambda b, x, n, k: b.unary("not", b.compare("ge", x, n)),
        lambda x, n, k: x < n,
    ),
    Variant(
        "moved",
        Int32,
        lambda b, x, n, k: b.compare("lt", b.binary("add", x, k), b.binary("sub", n, k)),
        lambda x, n, k: wrap(x + k, Int32) < wrap(n - k, Int32),
    ),
    Variant(
        "either",
        Int32,
        lambda b, x, n, k: b.binary("or", b.compare("lt", x, n), b.compare("eq", x, k)),
        lambda x, n, k: x < n or x == k,
    ),
    Variant(
        "widened",
        Int32,
        lambda b, x, n, k: b.compare("lt", b.cast(Int64, x), b.cast(Int64, n)),
        lambda x, n, k: x < n,
    ),
    *(
        Variant(
            f"{dtype.__name__.lower()}_times_{factor}",
            dtype,
            lambda b, x, n, k, f=factor: b.compare("lt", times(b, x, f), n),
            lambda x, n, k, f=factor, t=dtype: wrap(x * f, t) < n,
        )
        for dtype, factor in ((Int32, 4), (Int64, 4), (Int32, 4096), (Int32, 4097), (Int32, -2))
    ),
    Variant(
        "multiple_from",
        Int32,
        lambda b, x, n, k: b.compare("ge", b.binary("add", times(b, x, 3), k), n),
        lambda x, n, k: wrap(3 * x + k, Int32) >= n,
    ),
    Variant(
        "multiples_between",
        Int32,
        lambda b, x, n, k: b.binary(
            "and", b.compare("le", k, b.binary("add", x, times(b, x, 2))), b.compare("lt", x, n)
        ),
        lambda x, n, k: k <= wrap(3 * x, Int32) and x < n,
    ),
    Variant(
        "shifted_less",
        Int32,
        lambda b, x, n, k: b.compare(
            "le", b.binary("sub", b.binary("shl", x, b.constant(Int32, 3)), x), n
        ),
        lambda x, n, k: wrap(7 * x, Int32) <= n,
    ),
    Variant(
        "widened_multiple",
        Int32,
        lambda b, x, n, k: b.compare("gt", b.cast(Int64, n), b.cast(Int64, times(b, x, 5))),
        lambda x, n, k: n > wrap(5 * x, Int32),
    ),
    Variant(
        "multiple_of_wide",
        Int32,
        lambda b, x, n, k: b.compare("lt", times(b, b.cast(Int64, x), 6), b.cast(Int64, n)),
        lambda x, n, k: 6 * x < n,
    ),
]
SEEN = TensorType(Uint8, (1 << 14,), (1,), 1)


def kernel(variant: Variant, axis: int) -> ops.Function:
    b, dtype = Builder(), variant.dtype
    seen = ops.Value(SEEN, "seen")
    base, limit, other = (ops.Value(dtype, name) for name in ("base", "limit", "other"))
    with b.region() as body:
        block = b.binary("mul", b.special("block_idx", axis), b.special("block_dim", axis))
        thread = b.binary("add", block, b.special("thread_idx", axis))
        x = b.binary("add", b.cast(dtype, thread), base)
        condition = variant.guard(b, x, limit, other)
        with b.region() as guarded:
            one = b.constant(Uint8, 1)
            b.store(seen, (thread,), b.binary("add", b.load(seen, (thread,)), one))
        if variant.negated:
            b.if_(condition, EMPTY, guarded.freeze(), ())
        else:
            b.if_(condition, guarded.freeze(), EMPTY, ())
    return ops.Function("guarded", "kernel", (seen, base, limit, other), body.freeze())


COMPILED: dict[tuple[str, int], Compiled] = {}


def compiled_variant(variant: Variant, axis: int) -> Compiled:
    key = (variant.name, axis)
    if key not in COMPILED:
        sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
        COMPILED[key] = compile_program(threads(kernel(variant, axis), sizes))
    return COMPILED[key]


def near(dtype: DType) -> st.SearchStrategy[int]:
    low, high = dtype.range
    around = [low, -(1 << 20), 0, 1 << 20, high]
    return st.builds(
        lambda centre, offset: min(max(centre + offset, low), high),
        st.sampled_from(around),
        st.integers(-300, 300),
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_exactly_the_guarded_threads_run(variant: Variant, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, 2), "axis")
    grid, block = data.draw(st.integers(0, 6), "grid"), data.draw(st.integers(1, 64), "block")
    base, limit, other = (data.draw(near(variant.dtype)) for _ in range(3))
    sizes = [1, 1, 1, 1, 1, 1]
    sizes[axis], sizes[axis + 3] = grid, block
    seen = np.zeros(grid * block + 1, np.uint8)
    compiled_variant(variant, axis)(seen, base, limit, other, *sizes)
    wanted = [
        int(variant.holds(wrap(base + thread, variant.dtype), limit, other))
        for thread in range(grid * block)
    ]
    assert seen.tolist() == [*wanted, 0]


def plane_kernel() -> ops.Function:
    """`if row < m: if col < n: seen[row * 64 + col] += 1`, rows along y and columns along x."""
    b = Builder()
    seen, m, n = ops.Value(SEEN, "seen"), ops.Value(Int32, "m"), ops.Value(Int32, "n")
    with b.region() as body:
        row, col = (
            b.binary(
                "add",
                b.binary("mul", b.special("block_idx", axis), b.special("block_dim", axis)),
                b.special("thread_idx", axis),
            )
            for axis in (1, 0)
        )
        with b.region() as outer:
            at = b.binary("add", b.binary("mul", row, b.constant(Int32, 64)), col)
            with b.region() as inner:
                one = b.constant(Uint8, 1)
                b.store(seen, (at,), b.binary("add", b.load(seen, (at,)), one))
            b.if_(b.compare("lt", col, n), inner.freeze(), EMPTY, ())
        b.if_(b.compare("lt", row, m), outer.freeze(), EMPTY, ())
    return ops.Function("plane", "kernel", (seen, m, n), body.freeze())


def test_two_axes() -> None:
    sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
    plane = compile_program(threads(plane_kernel(), sizes))
    for m, n, block in ((5, 7, (4, 2)), (0, 9, (8, 8)), (16, 16, (16, 1)), (3, 50, (32, 4))):
        seen = np.zeros((64, 64), np.uint8)
        grid = (-(-n // block[0]), -(-m // block[1]))
        plane(seen, m, n, *grid, 1, *block, 1)
        wanted = np.zeros_like(seen)
        wanted[:m, :n] = 1
        np.testing.assert_array_equal(seen, wanted)


def test_plan_of_two_axes() -> None:
    x, y, z = guards.plan(plane_kernel(), (None, None, None))
    assert [bound.limit.hint for bound in x.bounds] == ["n"]
    assert [bound.limit.hint for bound in y.bounds] == ["m"]
    assert (bool(x.fused), bool(y.fused), z) == (True, True, guards.AxisPlan(2))


@pytest.mark.parametrize(("factor", "known"), [(1, 1), (7, 7), (4096, 4096), (4097, 0), (-1, 0)])
def test_multiples_are_bounds_up_to_a_limit(factor: int, known: int) -> None:
    variant = Variant(
        "times",
        Int32,
        lambda b, x, n, k: b.compare("lt", times(b, x, factor), n),
        lambda x, n, k: wrap(x * factor, Int32) < n,
    )
    found = guards.plan(kernel(variant, 0), (None, None, None))[0]
    assert [bound.factor for bound in found.bounds] == ([known] if known else [])
    assert all(found.points[bound.value] == known for bound in found.bounds)


def coordinates_kernel(uses: Callable[[Builder, ops.Value, ops.Value], ops.Value]) -> ops.Function:
    b, out = Builder(), ops.Value(TensorType(Int32, (64,), (1,), 4), "out")
    with b.region() as body:
        bid, tid = b.special("block_idx", 0), b.special("thread_idx", 0)
        value = uses(b, bid, tid)
        at = b.binary("add", b.binary("mul", bid, b.constant(Int32, 8)), tid)
        b.store(out, (at,), value)
    return ops.Function("coordinates", "kernel", (out,), body.freeze())


def test_blocks_are_fused_only_where_nothing_else_reads_the_coordinates() -> None:
    alone = coordinates_kernel(lambda b, bid, tid: b.constant(Int32, 1))
    assert guards.plan(alone, (8, 1, 1))[0].fused
    assert not guards.plan(alone, (9, 1, 1))[0].fused
    assert not guards.plan(alone, (None, 1, 1))[0].fused
    for other in (lambda b, bid, tid: tid, lambda b, bid, tid: bid):
        assert not guards.plan(coordinates_kernel(other), (8, 1, 1))[0].fused


def test_all_coordinates() -> None:
    """block_idx, thread_idx, block_dim and grid_dim of every axis, for every thread."""
    b, out = Builder(), ops.Value(TensorType(Int32, (1 << 14,), (1,), 4), "out")
    with b.region() as body:
        number = b.constant(Int32, 0)
        for register, size in (("block_idx", "grid_dim"), ("thread_idx", "block_dim")):
            for axis in (2, 1, 0):
                extent = b.special("grid_dim" if size == "grid_dim" else "block_dim", axis)
                at = b.special("block_idx" if register == "block_idx" else "thread_idx", axis)
                number = b.binary("add", b.binary("mul", number, extent), at)
        b.store(out, (number,), b.binary("add", number, b.constant(Int32, 1)))
    sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
    kernel_ = ops.Function("numbers", "kernel", (out,), body.freeze())
    compiled = compile_program(threads(kernel_, sizes))
    result = np.zeros(2 * 3 * 4 * 5 * 2 * 3 + 1, np.int32)
    compiled(result, 2, 3, 4, 5, 2, 3)
    assert result.tolist() == [*range(1, len(result)), 0]
    for axis in range(3):
        grid = [2, 3, 4]
        grid[axis] = 0
        result[:] = 0
        compiled(result, *grid, 5, 2, 3)
        assert not result.any()


def test_an_effect_before_the_guard_is_kept() -> None:
    b, seen = Builder(), ops.Value(SEEN, "seen")
    limit = ops.Value(Int32, "limit")
    with b.region() as body:
        tid = b.special("thread_idx", 0)
        b.store(seen, (tid,), b.constant(Uint8, 1))
        with b.region() as guarded:
            b.store(seen, (tid,), b.constant(Uint8, 2))
        b.if_(b.compare("lt", tid, limit), guarded.freeze(), EMPTY, ())
    function = ops.Function("effects", "kernel", (seen, limit), body.freeze())
    assert not guards.plan(function, (None, None, None))[0].bounds
    sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
    result = np.zeros(8, np.uint8)
    compile_program(threads(function, sizes))(result, 3, 1, 1, 1, 8, 1, 1)
    assert result.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("cpu", [None, BASELINE])
def test_the_guarded_loop_is_vectorised_without_masks(cpu: str | None) -> None:
    compiled = compile_program(add_one(Float32), cpu)
    assert "vector.body" in compiled.optimised
    assert "masked" not in compiled.optimised
    assert "memcheck" not in compiled.optimised
    for n in (0, 1, 127, 128, 129, 5000):
        a = np.arange(n, dtype="f4")
        out = np.zeros(n + 1, "f4")
        compiled(a, out, n)
        np.testing.assert_array_equal(out[:n], a + 1)
        assert out[n] == 0
        compiled(a, a, n)
        np.testing.assert_array_equal(a, out[:n])


def test_symbols_in_kernels() -> None:
    n, b = sym_int(64, symbol="n"), Builder()
    out = ops.Value(TensorType(Int64, (n,), (n,), 8), "out")
    with b.region() as body:
        tid = b.special("thread_idx", 0)
        b.store(out, (tid,), b.size(Int64, n * 2 + 1))
    function = ops.Function("sizes", "kernel", (out,), body.freeze())
    sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
    result = np.zeros(9, np.int64)
    compile_program(threads(function, sizes, [n]))(result, 1, 1, 1, 3, 1, 1, 4)
    assert result.tolist() == [9, 0, 0, 0, 9, 0, 0, 0, 9]


@pytest.mark.parametrize("block", [1, 7, 32, 96, 1000])
def test_constant_blocks(block: int) -> None:
    compiled = compile_program(add_one(Float32, block))
    for n in (-5, 0, 1, block - 1, block, block + 1, 10 * block + 3):
        a, out = np.arange(abs(n) + 1, dtype="f4"), np.zeros(abs(n) + 2, "f4")
        compiled(a, out, n)
        written = max(n, 0)
        np.testing.assert_array_equal(out[:written], a[:written] + 1)
        assert not out[written:].any()


def test_pieces_are_left_out_only_where_no_counter_wraps() -> None:
    """With blocks of 128 the last thread is 2**31 - 1; with blocks of 96 it may be beyond."""
    assert "piece" not in compile_program(add_one(Float32, 128)).body.text
    assert "piece" in compile_program(add_one(Float32, 96)).body.text


def test_a_guard_of_thread_idx_alone() -> None:
    b, seen, limit = Builder(), ops.Value(SEEN, "seen"), ops.Value(Int32, "limit")
    with b.region() as body:
        tid = b.special("thread_idx", 0)
        with b.region() as guarded:
            one = b.constant(Uint8, 1)
            b.store(seen, (tid,), b.binary("add", b.load(seen, (tid,)), one))
        b.if_(b.compare("lt", tid, limit), guarded.freeze(), EMPTY, ())
    function = ops.Function("first", "kernel", (seen, limit), body.freeze())
    sizes = [ops.Value(Int64, name) for name in ("gx", "gy", "gz", "bx", "by", "bz")]
    compiled = compile_program(threads(function, sizes))
    assert "piece" not in compiled.body.text
    for bound in (-(1 << 31), 0, 3, 8, (1 << 31) - 1):
        seen_by = np.zeros(9, np.uint8)
        compiled(seen_by, bound, 3, 1, 1, 8, 1, 1)
        runs = min(max(bound, 0), 8)
        assert seen_by.tolist() == [3] * runs + [0] * (9 - runs)

"""Numbers: which dtype an operation has, explicit conversions, and what constants become."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import lower, vector
from plain_python import f32, i32, zeros

import ferrule as fe
from ferrule import specs
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.specs import DType

SCALARS = [
    dtype
    for dtype in specs.ALL_DTYPES
    if dtype.kind in ("bool", "int", "uint", "float") and dtype.bits >= 8
    if not (dtype.kind == "float" and dtype.bits < 16) and dtype is not fe.TFloat32
]
PAIRS = list(itertools.product(SCALARS, SCALARS))
WIDE_UNSIGNED = (fe.Uint16, fe.Uint32, fe.Uint64)


def promoted(left: DType, right: DType) -> DType | None:
    try:
        return promote(left, right)
    except NoCommonType:
        return None


# ---- promotion ----


@pytest.mark.needs_torch
def test_promotion_is_torchs_for_every_pair_that_torch_promotes() -> None:
    import torch

    unknown = set()
    for left, right in PAIRS:
        names = (left.name, right.name)
        try:
            theirs = torch.promote_types(*(getattr(torch, name) for name in names))
        except RuntimeError:
            unknown.add((left, right))
            continue
        found = promoted(left, right)
        assert found is not None and f"torch.{found.name}" == str(theirs), names
    # Torch has no answer for its newer unsigned types beside other integers and bools.
    assert unknown == {
        pair
        for pair in PAIRS
        if pair[0] is not pair[1] and all(d.kind != "float" for d in pair)
        if any(d in WIDE_UNSIGNED for d in pair)
    }


def test_integers_promote_to_the_smallest_type_that_holds_both() -> None:
    integers = [dtype for dtype in SCALARS if dtype.is_integer]
    for left, right in itertools.product(integers, integers):
        low, high = (pick(left.range[i], right.range[i]) for i, pick in enumerate((min, max)))
        fits = [d for d in integers if d.range[0] <= low and high <= d.range[1]]
        smallest = min((d.bits for d in fits), default=0)
        found = promoted(left, right)
        if not fits:
            assert found is None
        else:
            assert found in fits and found.bits == smallest


def test_promotion_takes_no_notice_of_order() -> None:
    for left, right in PAIRS:
        assert promoted(left, right) is promoted(right, left)


@pytest.mark.parametrize(
    ("number", "other", "wanted"),
    [
        (1, None, fe.Int32),
        (1.5, None, fe.Float32),
        (True, None, fe.Boolean),
        (1, fe.Int8, fe.Int8),
        (1, fe.Uint64, fe.Uint64),
        (1, fe.Float16, fe.Float16),
        (1, fe.Boolean, fe.Int32),
        (1.5, fe.Int64, fe.Float32),
        (1.5, fe.BFloat16, fe.BFloat16),
        (1.5, fe.Float64, fe.Float64),
        (True, fe.Float64, fe.Float64),
    ],
)
def test_python_numbers_are_weak(number: Any, other: DType | None, wanted: DType) -> None:
    assert weak(number, other) is wanted


def dtype_of(function: Any, *examples: Any) -> str:
    """The dtype of what a function stores, before the store converts it."""
    program = lower(function, *examples)
    source = {op.result: op for op in program.host.body.ops if hasattr(op, "result")}
    stored = program.host.body.ops[-1]
    made = source[stored.value]
    operand = getattr(made, "operand", None)
    value = operand if type(made).__name__ == "Cast" and operand in source else stored.value
    return value.type.name


@pytest.mark.parametrize(("left", "right"), PAIRS, ids=lambda d: d.name)
def test_every_pair_of_dtypes_adds_and_divides(left: DType, right: DType) -> None:
    def add(a, b, c):
        c[0] = a[0] + b[0]

    def divide(a, b, c):
        c[0] = a[0] / b[0]

    examples = (vector(left), vector(right), vector(fe.Float64))
    wanted = promoted(left, right)
    if wanted is None:
        with pytest.raises(fe.CompileError, match="no type holds both operands"):
            lower(add, *examples)
        return
    assert dtype_of(add, *examples) == ("int32" if wanted is fe.Boolean else wanted.name)
    assert dtype_of(divide, *examples) == (wanted.name if wanted.kind == "float" else "float32")


# ---- conversions ----


def conversions(a, b, out, wide):
    x, n = a[0], b[0]
    wide[0] = fe.Int8(n)
    wide[1] = fe.Uint8(n)
    wide[2] = x.to(fe.Int16)
    wide[3] = fe.Int32(x).to(fe.Int8).to(fe.Int64)
    wide[4] = fe.Boolean(n)
    wide[5] = fe.Int32(2.9) + fe.Int32(-2.9).to(fe.Int64) + fe.Boolean(7)
    out[0] = fe.Float16(x).to(fe.Float32)
    out[1] = fe.BFloat16(1.0) + x.to(fe.BFloat16)
    out[2] = n.to(fe.Float32) / 2
    out[3] = fe.Float32(3) / 2


def test_conversions() -> None:
    a, b, out, wide = f32(1000.7), i32(300), zeros(4), zeros(6, dtype=np.int64)
    run_all_ways(conversions, (a, b, out, wide), plain=False)
    fe.compile(
        conversions,
        *(vector(x.dtype.name, s) for x, s in ((a, "n"), (b, "m"), (out, "k"), (wide, "l"))),
        options="--target cpu",
    )(a, b, out, wide)
    assert wide.tolist() == [44, 44, 1000, -24, 1, 1]
    assert out.tolist() == [1000.5, 1000.0, 150.0, 1.5]


def typed(a, b):
    x: fe.Int64 = 3
    y: fe.Float32 = a[0]
    z: fe.Int64 = fe.Int32(4)
    assert x.dtype is fe.Int64 and z.dtype is fe.Int64 and y.dtype is fe.Float32
    b[0] = x * y + z


def test_annotations_convert_as_stores_do() -> None:
    run_all_ways(typed, (i32(5), zeros(1)), plain=False)

    def narrows(a):
        x: fe.Int32 = a[0]
        a[0] = x

    with pytest.raises(fe.CompileError, match="'x' is annotated as Int32, but gets a run-time fl"):
        lower(narrows, vector())


# ---- arithmetic that only plain Python has more of ----


def powers(a, n, out, m: fe.Int32):
    out[0] = a[0] ** 2 + a[1] ** 0.5 + a[0] ** 7 + a[1] ** a[2]
    out[1] = 2 ** a[0] + a[1] ** m + a[1] ** -1
    n[0] = n[0] ** 0 + n[1] ** 5
    n[1] = n[1] ** 2


def test_powers() -> None:
    arguments = (f32(1.5, 2, 3), i32(3, 4), zeros(2), 3)
    run_all_ways(powers, arguments, tolerance=1e-5)


def folds(a, out):
    out[0] = sum([a[0], a[1], 3]) + sum((a[0], a[2]), 10)
    out[1] = any([a[0] > 100, a[1] > 0, False]) + 2 * all(x > 0 for x in (a[0], a[1], a[2]))
    out[2], out[3] = divmod(a[2], a[1])


def test_functions_of_several_values() -> None:
    run_all_ways(folds, (i32(5, 3, -7), zeros(4, dtype=np.int32)))


def test_operators_on_typed_constants_keep_the_dtype() -> None:
    @fe.jit
    def constants(a: fe.Tensor, x: fe.Int32):
        a[0] = fe.Int64(fe.Uint8(200) + 100)
        low = fe.Int8(100)
        if x > 0:
            low = low + low
        a[1] = fe.Int64(low)
        a[2] = fe.Int64(-fe.Int8(-128))
        a[3] = fe.Int64(~fe.Uint16(1))
        a[4] = fe.Int64(fe.Float32(0.1) + 0.2 == fe.Float32(0.3))
        a[5] = fe.Int64(fe.Int32(1) << 40)
        a[6] = fe.Int64(fe.Int8(-4) >> 1)
        for i in fe.range_constexpr(fe.Int32(2) * 2):
            a[7] = i
        a[8] = max(fe.Int8(-100), fe.Int32(70000), 3)
        a[9] = abs(fe.Int8(-128))

    example = fe.make_fake_tensor(fe.Int64, (10,), (1,))
    found = np.zeros(10, np.int64)
    fe.compile(constants, example, fe.Int32, options="--target cpu")(found, 1)
    same = np.float32(0.1) + np.float32(0.2) == np.float32(0.3)
    assert found.tolist() == [44, -56, -128, 65534, int(same), 0, -2, 3, 70000, -128]


@pytest.mark.parametrize("dtype", [fe.Float32, fe.Float64], ids=lambda dtype: dtype.name)
def test_floor_division_of_floats_is_pythons(dtype: DType) -> None:
    @fe.kernel
    def divide_kernel(a: fe.Tensor, b: fe.Tensor, quotient: fe.Tensor, rest: fe.Tensor):
        i, _, _ = fe.arch.thread_idx()
        quotient[i] = a[i] // b[i]
        rest[i] = a[i] % b[i]

    @fe.jit
    def divide(a: fe.Tensor, b: fe.Tensor, quotient: fe.Tensor, rest: fe.Tensor):
        divide_kernel(a, b, quotient, rest).launch(grid=(1,), block=(a.shape[0],))

    numbers = (0.0, -0.0, 1.0, -1.0, 0.5, 7.25, -7.25, 0.1, 1e3, float("inf"), float("nan"))
    pairs = [(x, y) for x in numbers for y in (*numbers[2:], -0.3)]
    a, b = (np.array(each, dtype=dtype.name) for each in zip(*pairs, strict=True))
    quotient, rest = np.zeros_like(a), np.zeros_like(a)
    examples = [fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),)) for _ in range(4)]
    fe.compile(divide, *examples, options="--target cpu")(a, b, quotient, rest)
    wanted = [divmod(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    for found, each in ((quotient, [q for q, _ in wanted]), (rest, [r for _, r in wanted])):
        expected = np.array(each, dtype=dtype.name)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            np.signbit(found[found == 0]), np.signbit(expected[found == 0])
        )


def test_floor_division_of_floats_by_zero_is_that_of_ieee_754() -> None:
    @fe.jit
    def by_zero(a: fe.Tensor, x: fe.Float32):
        a[0] = x // (x - x)
        a[1] = x % (x - x)

    found = np.zeros(2, np.float32)
    example = fe.make_fake_tensor(fe.Float32, (2,), (1,))
    fe.compile(by_zero, example, fe.Float32, options="--target cpu")(found, -2.0)
    assert found[0] == -np.inf and np.isnan(found[1])

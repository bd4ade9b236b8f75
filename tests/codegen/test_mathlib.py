"""The maths library: error bounds, special values, and that nothing is left to expand."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, elementwise

from ferrule.language.codegen import CodegenError, lower_cpu
from ferrule.language.codegen.mathlib import expand_maths
from ferrule.language.ir import ops
from ferrule.specs import BFloat16, DType, Float16, Float32, Float64

CPUS = pytest.mark.parametrize("cpu", [None, BASELINE])
DIGITS = decimal.Context(prec=40, Emin=-9999, Emax=9999)


def program(op: ops.UnaryOp, dtype: DType) -> ops.Program:
    return elementwise(lambda b, x: b.unary(op, x), [dtype], dtype)


def run(op: ops.UnaryOp, dtype: DType, values: Any, cpu: str | None = None) -> Any:
    out = np.zeros_like(values)
    compile_program(program(op, dtype), cpu)(values, out, len(values))
    return out


def exp_samples32() -> Any:
    rng = np.random.default_rng(7)
    parts = [np.linspace(-104, 88.722, 1_000_001), np.linspace(-1, 1, 200_001)]
    return np.concatenate([*parts, rng.uniform(-2e-3, 2e-3, 50_000)]).astype("f4")


@CPUS
def test_exp_float32_is_within_2_ulp(cpu: str | None) -> None:
    values = exp_samples32()
    exact = np.exp(values.astype("f8"))
    ulp = np.maximum(np.spacing(exact.astype("f4")), np.float32(2.0**-149)).astype("f8")
    error = np.abs(run("exp", Float32, values, cpu).astype("f8") - exact) / ulp
    assert error.max() <= 1.1


@CPUS
def test_exp_float64_is_within_2_ulp(cpu: str | None) -> None:
    rng = np.random.default_rng(7)
    parts = [np.linspace(-745.1, 709.78, 2_001), rng.uniform(-1, 1, 2_000)]
    values = np.concatenate([*parts, rng.uniform(-40, 40, 2_000)])
    worst = 0.0
    for x, got in zip(values, run("exp", Float64, values, cpu), strict=True):
        exact = decimal.Decimal(float(x)).exp(DIGITS)
        ulp = decimal.Decimal(math.ulp(float(exact)))
        worst = max(worst, float(abs(decimal.Decimal(float(got)) - exact) / ulp))
    assert worst <= 2


SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e30, -1e30]


@CPUS
@pytest.mark.parametrize("dtype", [Float32, Float64])
def test_exp_of_special_values(dtype: DType, cpu: str | None) -> None:
    largest = math.log(float(np.finfo(dtype.name).max))
    least = math.log(float(np.finfo(dtype.name).smallest_subnormal))
    edges = [*SPECIAL, largest + 1e-4, largest - 1e-4, least + 0.01, least - 0.7]
    out = run("exp", dtype, np.array(edges, dtype.name), cpu)
    wanted = [math.nan, math.inf, 0.0, 1.0, 1.0, math.inf, 0.0, math.inf]
    np.testing.assert_array_equal(out[:8], np.array(wanted, dtype.name))
    assert np.isfinite(out[8])
    assert out[9] == np.finfo(dtype.name).smallest_subnormal
    assert out[10] == 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exp_of_every_float16() -> None:
    values = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    out = run("exp", Float16, values)
    exact = np.exp(values.astype("f8")).astype(np.float16)
    differ = ~((out == exact) | (np.isnan(out) & np.isnan(exact)))
    assert differ.sum() <= 8  # where float32 was just on the other side of a middle
    neighbours = out.view(np.int16).astype(int) - exact.view(np.int16).astype(int)
    assert np.abs(neighbours[differ]).max(initial=0) <= 1


@CPUS
@pytest.mark.parametrize("dtype", [Float32, Float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rsqrt(dtype: DType, cpu: str | None) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([SPECIAL, rng.uniform(1e-30, 1e30, 1000), rng.uniform(0, 4, 1000)])
    values = values.astype(dtype.name)
    out = run("rsqrt", dtype, values, cpu)
    np.testing.assert_array_equal(out, np.divide(1, np.sqrt(values), dtype=dtype.name))


def test_bfloat16_goes_through_float32() -> None:
    values = np.array([1.0, -2.5, 80.0, math.nan], "f4")
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    out = (run("exp", BFloat16, bits).astype(np.uint32) << 16).view("f4")
    np.testing.assert_allclose(out, np.exp(values), rtol=2.0**-8)


def test_the_cpu_target_takes_only_expanded_programs() -> None:
    with pytest.raises(CodegenError, match="exp"):
        lower_cpu(program("exp", Float32))


def test_exp_is_vectorised() -> None:
    for dtype in (Float32, Float64, Float16):
        assert "vector.body" in compile_program(program("exp", dtype)).optimised


def test_values_keep_their_identity() -> None:
    before = program("exp", Float32)
    after = expand_maths(before)
    assert after.host.params == before.host.params
    (parallel,) = (op for op in after.host.body.ops if isinstance(op, ops.Parallel))
    assert isinstance(parallel.body.ops[-1], ops.Store)
    original = before.host.body.ops[-1]
    assert isinstance(original, ops.Parallel)
    assert parallel.body.ops[-1] is original.body.ops[-1]

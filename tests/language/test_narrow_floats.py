"""Floats of 8 bits in the kernel language; `narrow_float_runs` has what is exhaustive."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nightly import is_nightly

import ferrule as fe
from ferrule.specs import DType, narrow
from ferrule.specs.dtypes import as_dtype

ml_dtypes = pytest.importorskip("ml_dtypes", reason="arrays of these elements need ml_dtypes")
runs = pytest.importorskip("narrow_float_runs")
E4M3 = fe.Float8E4M3FN
NAMES = tuple(narrow.FORMATS)
EACH = pytest.mark.parametrize("dtype", runs.FLOATS, ids=lambda dtype: dtype.name)
QUIET = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def vector(dtype: DType) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))


def build(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options="--target cpu")


@QUIET
@pytest.mark.parametrize("name", NAMES)
def test_the_formats(name: str) -> None:
    """The numbers of all bits, and the bits of numbers around them, are those of ml_dtypes."""
    form, own = narrow.FORMATS[name], np.dtype(getattr(ml_dtypes, name))
    width = form.exponent + form.mantissa + form.signed
    every = np.arange(1 << width, dtype=np.uint8)
    decoded = np.array([narrow.decode(form, int(bits)) for bits in every], np.float32)
    np.testing.assert_array_equal(decoded, every.view(own).astype(np.float32))
    numbers = np.unique(np.abs(decoded[np.isfinite(decoded)]))
    near = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, [np.inf, numbers[-1] * 2]])
    near = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.inf)])
    near = np.concatenate([near, -near]).astype(np.float32)
    encoded = np.array([narrow.encode(form, float(x)) for x in near], np.uint8)
    runs.same(encoded.view(own), near.astype(own), name)


@QUIET
@EACH
def test_conversions(dtype: DType) -> None:
    runs.check(dtype, "cpu")


@QUIET
@EACH
def test_arithmetic_and_comparisons_of_all_pairs(dtype: DType) -> None:
    runs.check_arithmetic(dtype, "cpu")


# Integer code computes the same on the CPU, where every run tests it.
@pytest.mark.parametrize("arch", [pytest.param("sm_80", marks=pytest.mark.nightly), "sm_90a"])
def test_on_an_emulated_gpu(arch: str) -> None:
    """By integer code, and by instructions; by day those of the dtypes that have some."""
    names = [] if is_nightly() else ["float8_e4m3fn", "float8_e5m2"]
    folder = str(Path(__file__).parents[1] / "support")
    path = os.pathsep.join([folder, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "narrow_float_runs", arch, *names],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYTHONPATH": path, "FERRULE_GPU": ""},
    )
    assert done.stdout == "right\n", done.stderr


@QUIET
@EACH
def test_through_mlir(dtype: DType) -> None:
    pytest.importorskip("torch_mlir", reason="no package with MLIR's Python bindings")
    runs.check(dtype, "cpu --pipeline mlir")
    runs.check_arithmetic(dtype, "cpu --pipeline mlir")


@pytest.mark.parametrize(
    ("arch", "version"), [("sm_80", "7.0"), ("sm_89", "8.1"), ("sm_90a", "8.0"), ("sm_100a", "")]
)
def test_instructions_where_there_are_some(arch: str, version: str) -> None:
    options = f"--target cuda --gpu-arch {arch}"
    forms = [(fe.Float32, E4M3), (E4M3, fe.Float32)]
    texts = [
        fe.compile(runs.convert, *map(vector, form), options=options).inspect_ptx()
        for form in forms
    ]
    words = ("cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.f16x2.e4m3x2")
    for text, word in zip(texts, words, strict=True):
        assert (word in text) == (arch != "sm_80")
        assert f".version {version}" in text


# ---- what the language says of them ----


@fe.kernel
def together_kernel(first: E4M3, out: fe.Tensor):
    t = fe.arch.thread_idx()[0]
    parts = fe.make_fragment(4, E4M3)
    parts.fill(first)
    doubled = parts.load() + parts.load()
    shared = fe.arch.alloc_smem(E4M3, 32)
    shared[t] = E4M3(t)
    fe.arch.sync_threads()
    out[t] = fe.arch.shuffle_sync_down(shared[31 - t] + doubled[1], 1)


@fe.jit
def together(a: fe.Tensor, out: fe.Tensor):
    together_kernel(a[0], out).launch(grid=1, block=32)


@pytest.mark.parametrize("options", ["", " --enable-checks"])
def test_parameters_vectors_and_shared_memory(options: str) -> None:
    own = runs.kind(E4M3)
    out = np.zeros(32, own)
    target = f"--target cpu{options}"
    fe.compile(together, vector(E4M3), vector(E4M3), options=target)(np.array([-3], own), out)
    sums = (np.arange(31, -1, -1).astype(own) + np.array(-6).astype(own)).astype(own)
    wanted = np.append(sums[1:], sums[-1:])
    np.testing.assert_array_equal(out, wanted)


@fe.jit
def functions(a: fe.Tensor, out: fe.Tensor):
    x, y = a[0], a[1]
    out[0] = -x
    out[1] = abs(x)
    out[2] = fe.math.exp(y)
    out[3] = fe.math.sqrt(y)
    out[4] = x // y
    out[5] = x % y
    out[6] = fe.math.fma(x, y, y)
    out[7] = y**2
    out[8] = fe.math.copysign(y, x)
    out[9] = E4M3(x < y)
    out[10] = not x
    out[11] = fe.max(a[:])
    out[12] = fe.sum(a[:])
    out[13] = y * 2.0


def test_functions_are_rounded_once() -> None:
    own = runs.kind(E4M3)
    x, y = np.array([-3.0, 1.75], np.float32)
    wanted = [3, 3, np.exp(y), np.sqrt(y), x // y, x % y, x * y + y, y * y, -y, 1, 0, y, x + y]
    out = np.zeros(14, np.float32)
    build(functions, vector(E4M3), vector(fe.Float32))(np.array([x, y]).astype(own), out)
    exact = np.array([*wanted, 2 * y], np.float32).astype(own).astype(np.float32)
    np.testing.assert_array_equal(out, exact)


@fe.jit
def fused(a: fe.Tensor, out: fe.Tensor):
    out[0] = fe.math.fma(a[0], a[1], a[2])


def test_a_fused_multiplication_rounds_once() -> None:
    """In float32 the sum would be a tie: 1.125 * 1.25 * 2**14, and something below its digits."""
    own = runs.kind(fe.Float8E5M2)
    product = 1.25 * 2.0**7 * (1.5 * 2.0**6)
    results = []
    for least in (2.0**-16, -(2.0**-16)):
        out = np.zeros(1, np.float32)
        given = np.array([1.25 * 2.0**7, 1.5 * 2.0**6, least]).astype(own)
        build(fused, vector(fe.Float8E5M2), vector(fe.Float32))(given, out)
        results.append(float(out[0]))
    assert results == [2.0**14, 1.75 * 2.0**13] and product == 1.875 * 2.0**13


@fe.jit
def constants(out: fe.Tensor):
    third = E4M3(0.3)
    out[0] = third
    out[1] = third + third
    out[2] = fe.Float32(1000.0).to(E4M3, saturate=True)
    out[3] = (-1e9).to(fe.Float8E5M2, saturate=True)
    out[4] = third.bitcast(fe.Uint8)
    out[5] = fe.Uint8(0x7E).bitcast(E4M3)
    out[6] = fe.math.exp(third)


def test_typed_constants() -> None:
    own = runs.kind(E4M3)
    third, out = np.array(0.3).astype(own), np.zeros(7, np.float32)
    build(constants, vector(fe.Float32))(out)
    grown = np.exp(third.astype(np.float32)).astype(own)
    wanted = [third, third + third, 448, -57344, third.view(np.uint8), 448, grown]
    np.testing.assert_array_equal(out, np.array([float(x) for x in wanted], np.float32))


def test_numbers_of_the_host() -> None:
    assert float(E4M3(0.3)) == 0.3125 and repr(E4M3(0.3)) == "Float8E4M3FN(0.3)"
    assert fe.Float32(1e9).to(E4M3, saturate=True) == E4M3(448.0)
    assert np.isnan(float(fe.Float32(1e9).to(E4M3)))
    with pytest.raises(TypeError, match="saturate is for floats of 8 bits"):
        fe.Float32(1e9).to(fe.Int8, saturate=True)


# ---- bitcasts ----


@fe.jit
def bits_of(x: fe.Tensor, y: fe.Tensor, back: fe.Tensor):
    y[:] = x[:].bitcast(y.element_type)
    part = fe.make_fragment(1, y.element_type)
    for i in range(x.shape[0]):
        back[i] = y[i].bitcast(x.element_type)
        part[0] = y[i]
        back[i] = part.load().bitcast(x.element_type)[0]


PAIRS = [
    (fe.Float32, fe.Uint32), (fe.Float32, fe.Int32), (fe.Float16, fe.Int16),
    (fe.BFloat16, fe.Uint16), (fe.BFloat16, fe.Float16), (fe.Float64, fe.Int64), (E4M3, fe.Int8),
    (fe.Float8E5M2, fe.Uint8), (fe.Float8E8M0FNU, fe.Float8E5M2), (fe.Int32, fe.Uint32),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "other"), PAIRS, ids=lambda dtype: dtype.name)
def test_bitcasts(dtype: DType, other: DType) -> None:
    random = np.random.default_rng(3).integers(0, 256, 64 * dtype.bits // 8, np.uint8)
    x = random.view(runs.kind(dtype))
    y, back = np.zeros(64, runs.kind(other)), np.zeros_like(x)
    build(bits_of, vector(dtype), vector(other), vector(dtype))(x, y, back)
    assert y.tobytes() == random.tobytes() == back.tobytes()


# ---- parameters and results ----


@dataclass
class Scaled:
    x: fe.Float8E5M2
    n: fe.Int32


@fe.jit
def passed(x: E4M3, pair: Scaled, out: fe.Tensor):
    fe.static_assert(x.dtype is E4M3)
    fe.static_assert(pair.x.dtype is fe.Float8E5M2)
    out[0] = x.bitcast(fe.Uint8)
    return x, pair.x, fe.Float6E3M2FN(1.3)


@fe.jit
def annotated(x: fe.Float32) -> E4M3:
    return x.to(E4M3)


@pytest.mark.parametrize("example", [E4M3, 1.0, E4M3(1.0)], ids=str)
def test_parameters_and_results_are_floats_of_the_call(example: Any) -> None:
    function = build(passed, example, Scaled(fe.Float8E5M2, fe.Int32), vector(fe.Uint8))
    assert "x: float64" in str(function)
    bits, tie = np.zeros(1, np.uint8), 1.0625 + 2.0**-40  # which a float32 would not tell
    assert function(tie, Scaled(tie, 1), bits) == (1.125, 1.0, 1.25)
    assert bits.view(ml_dtypes.float8_e4m3fn)[0] == 1.125
    assert math.isnan(function(1e300, Scaled(1e300, 1), bits)[0])
    assert function(1.0, Scaled(1e300, 1), bits)[1] == math.inf
    assert build(annotated, 1.0)(0.3) == 0.3125


@fe.jit
def in_bytes(bits: fe.Tensor, out: fe.Tensor, dtype: fe.Constexpr):
    for i in range(bits.shape[0]):
        x = bits[i].bitcast(dtype)
        out[0, i] = x
        out[1, i] = (fe.Float32(x) * 1.01).to(dtype).bitcast(fe.Uint8)
        out[2, i] = x * 2


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"])
def test_numbers_of_fewer_bits(name: str) -> None:
    """Their bits are the lower ones of a byte."""
    dtype, own = as_dtype(name), getattr(ml_dtypes, name)
    function = build(in_bytes, vector(fe.Uint8), fe.row_major((3, fe.sym_int()), "float32"), dtype)
    every, out = np.arange(256, dtype=np.uint8), np.zeros((3, 256), np.float32)
    function(every, out)
    x = (every % (1 << dtype.bits)).view(own).astype(np.float32)
    np.testing.assert_array_equal(out[0], x)
    np.testing.assert_array_equal(out[1], (x * np.float32(1.01)).astype(own).view(np.uint8))
    np.testing.assert_array_equal(out[2], (x * 2).astype(own).astype(np.float32))


# ---- what is refused ----


@fe.jit
def wide_constant(a, n):
    a[0] = a[0] * 1000.0


@fe.jit
def stored_constant(a, n):
    a[0] = 449 * 2


@fe.jit
def with_an_integer(a, n):
    a[0] = a[0] + n


@fe.jit
def with_another(a, n):
    a[0] = a[0] + fe.Float8E5M2(n)


@fe.jit
def wide_typed_constant(a, n):
    a[0] = E4M3(1000.0)


@fe.jit
def saturating_integer(a, n):
    a[0] = a[0].to(fe.Int8, saturate=True)


@fe.jit
def other_size(a, n):
    a[0] = a[0].bitcast(fe.Float32)


@fe.jit
def truth(a, n):
    a[0] = fe.Boolean(n).bitcast(fe.Uint8)


@fe.jit
def bare_number(a, n):
    a[0] = (1.5).bitcast(fe.Int32)


@fe.jit
def no_dtype(a, n):
    a[0] = n.bitcast(3)


@fe.jit
def packed(a, n):
    a[0] = n.bitcast(fe.Float4E2M1FN)


@fe.jit
def large_six(a, n):
    a[0] = fe.Float6E2M3FN(100.0)


@fe.jit
def large_four(a, n):
    a[0] = fe.Uint8(n).bitcast(fe.Float4E2M1FN) + 9.0


REFUSED = [
    (wide_constant, "the constant 1000.0 does not fit float8_e4m3fn"),
    (stored_constant, "the constant 898 does not fit float8_e4m3fn"),
    (with_an_integer, r"no type holds both operands of \+: float8_e4m3fn and int32"),
    (with_another, r"no type holds both operands of \+: float8_e4m3fn and float8_e5m2"),
    (wide_typed_constant, r"1000.0 is out of the range of float8_e4m3fn, \[-448, 448\]"),
    (saturating_integer, "saturate is for floats of 8 bits, but the dtype is int8"),
    (other_size, "from float8_e4m3fn to float32, which have 8 and 32 bits"),
    (truth, "from bool to uint8: the bits of a bool are not its own"),
    (bare_number, "a Python number has no size"),
    (no_dtype, "bitcast takes one dtype"),
    (packed, "from int32 to float4_e2m1fn, which have 32 and 8 bits"),
    (large_six, r"100.0 is out of the range of float6_e2m3fn, \[-7.5, 7.5\]"),
    (large_four, "the constant 9.0 does not fit float4_e2m1fn"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=lambda each: str(each)[:30])
def test_refused(function: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        build(function, vector(E4M3), fe.Int32)

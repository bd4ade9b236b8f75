"""`fe.math` in compiled functions: of elements, whole tensors, constants, and what is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lowered import text, vector
from maths_reference import NUMPY

import ferrule as fe
from ferrule.language.faces import maths

ONE = [name for name in NUMPY if name not in ("pow", "atan2", "fmod")]
FUNCTIONS = tuple(getattr(fe.math, name) for name in ONE)
VALUES = np.array([0.0, 0.25, 0.5, 0.9, 1.0], np.float32)


def compiled(function: Any, *arrays: Any) -> fe.Function:
    return fe.compile(function, *arrays, options="--target cpu")


@fe.kernel
def device_every(a: fe.Tensor, out: fe.Tensor):
    i, _, _ = fe.arch.thread_idx()
    for row, function in enumerate(FUNCTIONS):
        out[row, i] = function(a[i])


@fe.jit
def every(a: fe.Tensor, out: fe.Tensor):
    device_every(a, out).launch(grid=(1,), block=(a.shape[0],))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_function_of_elements(dtype: str) -> None:
    values, out = VALUES.astype(dtype), np.zeros((len(ONE), len(VALUES)), dtype)
    compiled(every, values, out)(values, out)
    for name, row in zip(ONE, out, strict=True):
        wanted = NUMPY[name](values.astype("f8"))
        np.testing.assert_allclose(row, wanted, rtol=3e-7, atol=1e-7, err_msg=name)


def test_whole_tensors_and_broadcast_numbers() -> None:
    @fe.jit
    def whole(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        c[:] = fe.math.pow(fe.math.exp(a[:]), 2) + fe.math.fma(a[:], b[:], 0.5)

    a, b, c = VALUES, VALUES[::-1].copy(), np.zeros_like(VALUES)
    compiled(whole, a, b, c)(a, b, c)
    np.testing.assert_allclose(c, np.exp(a) ** 2 + a * b + 0.5, rtol=1e-6)


def test_functions_of_two_numbers() -> None:
    @fe.jit
    def two(a: fe.Tensor, out: fe.Tensor):
        x, y = a[0], a[1]
        out[0] = fe.math.atan2(x, y)
        out[1] = fe.math.fmod(y, x)
        out[2] = fe.math.copysign(x, -1)
        out[3] = fe.math.pow(2, y)
        out[4] = fe.math.max(x, y)
        out[5] = fe.math.min(x, y)

    a, out = np.array([0.3, 1.7], np.float32), np.zeros(6, np.float32)
    compiled(two, a, out)(a, out)
    x, y = a
    wanted = [np.arctan2(x, y), np.fmod(y, x), -x, np.float32(2) ** y, y, x]
    np.testing.assert_allclose(out, wanted, rtol=1e-6)


def test_operands_promote_and_integers_become_float32() -> None:
    @fe.jit
    def mixed(h: fe.Tensor, d: fe.Tensor, i: fe.Tensor, out: fe.Tensor):
        x, y, n = fe.math.pow(h[0], d[0]), fe.math.exp(h[0]), fe.math.atan2(i[0], 2)
        fe.static_assert(x.dtype is fe.Float64)
        fe.static_assert(y.dtype is fe.Float16)
        fe.static_assert(n.dtype is fe.Float32)
        fe.static_assert(fe.math.fma(h[0], 2, 1.5).dtype is fe.Float16)
        out[0] = x
        out[1] = n

    h, d = np.array([1.5], np.float16), np.array([2.0])
    i, out = np.array([3], np.int64), np.zeros(2)
    compiled(mixed, h, d, i, out)(h, d, i, out)
    np.testing.assert_allclose(out, [2.25, np.arctan2(3, 2)], rtol=1e-7)


def test_questions_and_bits() -> None:
    @fe.jit
    def ask(a: fe.Tensor, n: fe.Tensor, flags: fe.Tensor, counts: fe.Tensor):
        flags[0] = fe.math.isnan(a[0])
        flags[1] = fe.math.isnan(a[1])
        flags[2] = fe.math.isinf(a[1])
        flags[3] = fe.math.isinf(n[0])
        fe.static_assert(fe.math.popc(n[0]).dtype is fe.Int32)
        counts[0] = fe.math.popc(n[0])
        counts[1] = fe.math.clz(n[0])

    a, n = np.array([math.nan, -math.inf], np.float32), np.array([0xF0], np.uint8)
    flags, counts = np.zeros(4, bool), np.zeros(2, np.int32)
    compiled(ask, a, n, flags, counts)(a, n, flags, counts)
    assert flags.tolist() == [True, False, True, False]
    assert counts.tolist() == [4, 0]


def test_fast_is_in_the_ir_under_both_names() -> None:
    def fast(a: fe.Tensor, b: fe.Tensor):
        b[0] = fe.math.exp(a[0], fast=True)
        b[1] = fe.math.tanh(a[0], fastmath=True)
        b[2] = fe.math.pow(a[0], a[1], fast=True)
        b[3] = fe.math.log(a[0], fast=False)

    shown = text(fe.jit(fast).function, vector(), vector())
    assert "exp.fast" in shown and "tanh.fast" in shown and "pow.fast" in shown
    assert "log.fast" not in shown


def test_a_gpu_rounds_every_operation_as_a_cpu_does() -> None:
    values = fe.make_fake_compact_tensor(fe.Float32, (5,))
    out = fe.make_fake_compact_tensor(fe.Float32, (len(ONE), 5), stride_order=(1, 0))
    options = "--target cuda --gpu-arch sm_80 --fmad=false"
    ptx = fe.compile(every, values, out, options=options).inspect_ptx()
    found = set(re.findall(r"\b((?:add|sub|mul|div|sqrt|fma|mad|rcp)(?:\.\w+)*\.f(?:32|64))", ptx))
    assert found and {name.split(".", 1)[1] for name in found} == {"rn.f32", "rn.f64"}
    # fma gives the error of a product, which a CPU finds in several exact steps.
    assert not any(name.startswith("mad") for name in found)


# ---- constants ----

CONSTANTS: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (maths.exp, (1.0,), math.e),
    (maths.exp2, (0.5,), math.sqrt(2)),
    (maths.log, (math.e,), 1.0),
    (maths.cbrt, (27,), 3.0),
    (maths.cbrt, (-0.001,), -0.1),
    (maths.rsqrt, (4,), 0.5),
    (maths.sigmoid, (-1000.0,), 0.0),
    (maths.sigmoid, (0,), 0.5),
    (maths.pow, (2, 10), 1024.0),
    (maths.fma, (0.1, 10.0, -1.0), 5.551115123125783e-17),
    (maths.floor, (-0.5,), -1.0),
    (maths.ceil, (-0.5,), -0.0),
    (maths.round, (2.5,), 2.0),
    (maths.trunc, (math.inf,), math.inf),
    (maths.fabs, (-3,), 3.0),
    (maths.copysign, (1, -0.0), -1.0),
    (maths.atan2, (1, -1), 3 * math.pi / 4),
    (maths.erfc, (fe.Float32(0.5),), fe.Float32(0.47950011)),
    (maths.isnan, (math.nan,), True),
    (maths.isinf, (1.0,), False),
    (maths.popc, (-1,), 32),
    (maths.popc, (fe.Int8(-1),), fe.Int32(8)),
    (maths.clz, (fe.Uint64(1),), fe.Int32(63)),
    (maths.clz, (0,), 32),
]
FOUND: list[Any] = []


def keep(value: Any) -> None:
    FOUND.append(value)


@fe.jit
def constant_functions(a: fe.Tensor):
    for function, operands, _ in CONSTANTS:
        keep(function(*operands))


def test_constants_are_computed_at_compile_time() -> None:
    FOUND.clear()
    compiled(constant_functions, np.zeros(1, np.float32))
    assert FOUND == [wanted for _, _, wanted in CONSTANTS]
    assert [type(value) for value in FOUND] == [type(wanted) for _, _, wanted in CONSTANTS]
    assert math.copysign(1, FOUND[11]) == -1


# ---- mistakes ----


def no_operand(a: fe.Tensor):
    a[0] = fe.math.exp()


def whole_tensor_without_brackets(a: fe.Tensor):
    a[0] = fe.math.exp(a)


def one_of_two(a: fe.Tensor):
    a[0] = fe.math.pow(a[0])


def unknown_keyword(a: fe.Tensor):
    a[0] = fe.math.sin(a[0], fats=True)


def keyword_of_an_exact_function(a: fe.Tensor):
    a[0] = fe.math.floor(a[0], fast=True)


def run_time_keyword(a: fe.Tensor):
    a[0] = fe.math.exp(a[0], fast=a[0] > 1)


def bits_of_a_float(a: fe.Tensor):
    a[0] = fe.math.popc(a[0])


def constant_out_of_the_domain(a: fe.Tensor):
    a[0] = fe.math.log(0)


def constant_too_large_for_bits(a: fe.Tensor):
    a[0] = fe.math.clz(1 << 40)


def string(a: fe.Tensor):
    a[0] = fe.math.pow(a[0], "2")


MISTAKES: list[tuple[Any, str, str]] = [
    (no_operand, "math.exp takes 1 operand, but got 0", ""),
    (
        whole_tensor_without_brackets,
        "expected a number, but got the tensor a",
        "hint: read an element, a[i], or in a host function the whole tensor, a[:]",
    ),
    (one_of_two, "math.pow takes 2 operands, but got 1", ""),
    (unknown_keyword, "math.sin has no keyword 'fats'", "hint: its keyword is fast=True"),
    (
        keyword_of_an_exact_function,
        "math.floor has no keyword 'fast'",
        "hint: give its operands by position",
    ),
    (run_time_keyword, "fast must be a bool known at compile time, but got a run-time bool", ""),
    (
        bits_of_a_float,
        "math.popc takes integers, but got a run-time float32",
        "hint: convert it, fe.Int32(x)",
    ),
    (constant_out_of_the_domain, "ValueError at compile time: math domain error", ""),
    (constant_too_large_for_bits, "the constant 1099511627776 does not fit int32", ""),
    (string, "expected a number, but got '2' (str)", ""),
]


@pytest.mark.parametrize(
    ("function", "message", "hint"), MISTAKES, ids=[each[0].__name__ for each in MISTAKES]
)
def test_mistakes(function: Any, message: str, hint: str) -> None:
    with pytest.raises(fe.CompileError) as caught:
        compiled(fe.jit(function), np.zeros(3, np.float32))
    lines = str(caught.value).splitlines()
    assert lines[0] == message
    assert any("fe.math" in line for line in lines) and any("^^^" in line for line in lines)
    assert hint in str(caught.value)

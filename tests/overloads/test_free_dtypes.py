"""Free dtypes: one function, a body for each dtype, and the call chooses."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"
N = fe.sym_int(symbol="n")


def compiled(function: Any, *examples: Any, options: str = CPU) -> fe.Function:
    return fe.compile(function, *examples, options=options)


def vector(dtype: Any, **options: Any) -> Any:
    return fe.make_fake_compact_tensor(dtype, (N,), **options)


@fe.kernel
def doubling_kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0] * 32 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i] + a[i]


@fe.jit
def doubled(a: fe.Tensor, b: fe.Tensor):
    """Twice a."""
    doubling_kernel(a, b).launch(grid=fe.ceil_div(a.shape[0], 32), block=32)


@fe.jit
def words(a: fe.Tensor):
    if a.dtype == fe.Float16:
        return "half"
    if a.dtype == fe.Float32:
        return "float"
    return "whole", a.dtype


@fe.jit
def converted(a: fe.Tensor, dtype: fe.Constexpr):
    return a[0].to(dtype) / 2


@fe.jit
def mixed(a: fe.Tensor, b: fe.Tensor):
    return a.dtype, b.dtype


WIDE_OR_HALF = fe.sym_dtype(fe.Float16, fe.Int64)


class Pair(NamedTuple):
    x: Any
    y: Any


def refusal(function: Any, *args: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*args)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_each_dtype_has_a_body_of_its_own():
    either = compiled(words, vector((fe.Float16, fe.Float32, fe.Int32)))
    found = [either(np.zeros(1, dtype)) for dtype in (np.float16, np.float32, np.int32)]
    assert found == ["half", "float", ("whole", "int32")]


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_parameters_that_share_a_dtype_agree_and_so_do_kernels(dtype):
    t = fe.sym_dtype(fe.Int8, fe.Float32, fe.Float64)
    double = compiled(doubled, vector(t), vector(t))
    a, b = np.arange(50).astype(dtype), np.zeros(50, dtype)
    double(a, b)
    assert (b == a + a).all()


def test_its_text_names_the_dtypes_once():
    t = fe.sym_dtype(fe.Float16, fe.Float32)
    double = compiled(doubled, vector(t), vector(t))
    text = "doubled(a: Tensor([n], T), b: Tensor([n], T)) where T: float16 | float32"
    assert str(double.signature) == text
    assert double.__doc__ == f"{text}\n\nTwice a."
    annotation = inspect.signature(double).parameters["a"].annotation
    assert annotation == "Tensor([n], float16) | Tensor([n], float32)"
    named = fe.sym_dtype(fe.Float16, fe.Int8, symbol="E")
    other = compiled(mixed, vector((fe.Float16, fe.Float32)), vector(named))
    assert str(other.signature) == (
        "mixed(a: Tensor([n], T), b: Tensor([n], E)) -> Tuple[dtype, dtype] "
        "where T: float16 | float32, E: float16 | int8"
    )


HEAD = "when calling: `doubled(a: Tensor([n], T), b: Tensor([n], T)) where T: float16 | float32`"


def test_an_error_is_that_of_the_body_that_the_first_tensors_choose():
    t = fe.sym_dtype(fe.Float16, fe.Float32)
    double = compiled(doubled, vector(t), vector(t))
    halves, floats = np.zeros(3, np.float16), np.zeros(3, np.float32)
    assert refusal(double, np.zeros(3), halves) == (
        f"ValueError: Mismatched Tensor on argument #0 {HEAD}, expected dtype=float16 or float32, "
        "but got dtype=float64"
    )
    assert refusal(double, floats, halves) == (
        f"ValueError: Mismatched Tensor on argument #1 {HEAD}, expected dtype=float32 like a, "
        "but got dtype=float16"
    )
    assert refusal(double, halves, np.zeros(4, np.float16)) == (
        f"ValueError: Mismatched b.shape[0] on argument #1 {HEAD}, "
        "expected to match a.shape[0] = 3, but got 4"
    )
    assert refusal(double, halves, "b") == (
        f"TypeError: Mismatched type on argument #1 {HEAD}, expected Tensor, but got str"
    )


def test_two_free_dtypes_make_all_combinations():
    either = (fe.Float16, fe.Int32, fe.BFloat16)
    both = compiled(mixed, vector(either), vector(either))
    arrays = [np.zeros(2, np.float16), np.zeros(2, np.int32)]
    found = [both(a, b) for a in arrays for b in arrays]
    assert found == [(x, y) for x in ("float16", "int32") for y in ("float16", "int32")]
    assert "expected dtype=float16, int32 or bfloat16, but got dtype=int8" in refusal(
        both, arrays[1], np.zeros(2, np.int8)
    )


def test_int8_and_uint8_are_told_apart_where_both_are_listed():
    either = compiled(words, vector((fe.Int8, fe.Uint8)))
    assert [either(np.zeros(1, d))[1] for d in (np.uint8, np.int8)] == ["uint8", "int8"]
    alone = compiled(words, vector((fe.Int8, fe.Int16)))
    assert alone(np.zeros(1, np.uint8))[1] == "int8"


def test_numbers_and_parts_of_tuples_can_have_the_free_dtype():
    t = WIDE_OR_HALF

    @fe.jit
    def scaled(pair, factor: WIDE_OR_HALF, k):
        fe.static_assert(factor.dtype == pair.x.dtype == k.dtype == pair.y[0].dtype)
        return pair.x[0] * factor + k

    scale = compiled(scaled, Pair(vector(t), [vector(t), fe.Int32(1)]), 1, t)
    whole, halves = np.full(2, 1 << 40), np.full(2, 0.5, np.float16)
    assert scale(Pair(whole, (whole, 1)), 3, 1) == 3 * 2**40 + 1
    assert scale(Pair(halves, (halves, 1)), 3.0, 0.25) == 1.75
    assert "expected dtype=int64 like pair[0], but got dtype=float16" in refusal(
        scale, Pair(whole, (halves, 1)), 3, 1
    )


def test_a_parameter_that_is_known_while_compiling_can_be_the_dtype():
    t = fe.sym_dtype(fe.Float64, fe.Float32)
    f = compiled(converted, vector(t), t)
    assert [f(np.ones(1, dtype)) for dtype in (np.float32, np.float64)] == [0.5, 0.5]
    assert "-> T" in str(f.signature)


def test_an_optional_tensor_can_have_the_free_dtype():
    t = fe.sym_dtype(fe.Float16, fe.Float32)

    @fe.jit
    def either(a: fe.Tensor, b: fe.Tensor | None):
        if b is None:
            return 0
        return b[0]

    f = compiled(either, vector(t), vector(t))
    floats, halves = np.ones(2, np.float32), np.ones(2, np.float16)
    assert [f(floats, None), f(halves, None), f(floats, floats), f(halves, halves)] == [0, 0, 1, 1]
    assert "like a" in refusal(f, floats, halves)


def test_alignment_is_that_of_each_dtype():
    either = compiled(words, vector((fe.Float16, fe.Float32)))
    odd = np.zeros(9, np.uint8)[1:].view(np.float16)
    assert "alignment" in refusal(either, odd)
    wide = compiled(words, vector((fe.Float16, fe.Float32), assumed_align=16))
    memory = np.zeros(64, np.uint8)
    start = -memory.ctypes.data % 16
    assert wide(memory[start : start + 16].view(np.float16)) == "half"
    assert "alignment" in refusal(wide, memory[start + 4 : start + 20].view(np.float32))


def test_for_a_gpu_every_dtype_has_a_kernel():
    t = fe.sym_dtype(fe.Float16, fe.Float32, fe.Float64)
    options = "--target cuda --gpu-arch sm_90a"
    double = compiled(doubled, vector(t), vector(t), options=options)
    ptx = double.inspect_ptx()
    assert ptx.count(".entry") == 3
    assert all(re.search(rf"add(\.rn)?\.{kind}\b", ptx) for kind in ("f32", "f64"))


def test_an_error_while_compiling_says_for_which_dtype_it_is():
    @fe.jit
    def wrong(a: fe.Tensor, k):
        fe.static_assert(a.dtype != fe.Float16)

    with pytest.raises(fe.CompileError) as caught:
        compiled(wrong, vector((fe.Float32, fe.Float16)), vector(T_OF_ONE))
    assert str(caught.value).endswith("note: compiled for U = float16, T = int8")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fe.sym_dtype(), ValueError, "needs dtypes to choose from"),
        (lambda: fe.sym_dtype(fe.Int8, "int8"), ValueError, "int8 stands in the list twice"),
        (lambda: fe.sym_dtype(fe.Int8, symbol="1"), ValueError, "must be an identifier"),
        (lambda: fe.sym_dtype(8), TypeError, "expected a dtype"),
        (lambda: vector(()), ValueError, "needs dtypes to choose from"),
        (lambda: fe.jit(mixed.function)(vector(("int8", "int16")), 1), fe.CompileError, "is free"),
        (
            lambda: compiled(mixed, vector(fe.specs.ALL_DTYPES[:9]), vector(tuple(NUMBERS))),
            fe.CompileError,
            "have 81 combinations",
        ),
        (
            lambda: compiled(mixed, vector(fe.Int8), T_OF_ONE),
            fe.CompileError,
            "no tensor has the free dtype T, so a call cannot choose it",
        ),
        (
            lambda: compiled(mixed, vector(T_OF_ONE), vector(T_OF_TWO)),
            fe.CompileError,
            "two free dtypes are called T",
        ),
    ],
)
def test_wrong_free_dtypes_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


NUMBERS = (
    *(fe.Int8, fe.Int16, fe.Int32, fe.Int64, fe.Float16, fe.Float32, fe.Float64),
    *(fe.BFloat16, fe.Uint16),
)
T_OF_ONE = fe.sym_dtype(fe.Int8, symbol="T")
T_OF_TWO = fe.sym_dtype(fe.Int8, fe.Int16, symbol="T")

"""Dtypes of arithmetic in functions of `cutlass.cute.jit`, which are those of CuTe DSL 4.8.1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.cutlass import cute

PAIRS = [
    # What CuTe DSL gives, and ferrule's own functions: of `x + y` and of `x + 1`, `x + 2.0`.
    (("Int8", "Uint8"), ("Uint8", "Int16")),
    (("Int8", "Uint16"), ("Uint16", "Int32")),
    (("Int16", "Uint8"), ("Int16", "Int16")),
    (("Uint32", "Int32"), ("Uint32", "Int64")),
    (("Uint32", "Int64"), ("Int64", "Int64")),
    (("Float16", "BFloat16"), ("Float16", "Float32")),
    (("Float16", "Int16"), ("Float16", "Float16")),
    (("Int16", "BFloat16"), ("Float16", "BFloat16")),
    (("Float16", "Int32"), ("Float32", "Float16")),
    (("Float32", "Int64"), ("Float64", "Float32")),
    (("Float32", "Float16"), ("Float32", "Float32")),
    (("Boolean", "Int8"), ("Int8", "Int8")),
    (("Uint8", 1), ("Int32", "Uint8")),
    (("Int64", 1), ("Int64", "Int64")),
    (("Uint32", 1), ("Uint32", "Uint32")),
    (("Uint8", True), ("Uint8", "Uint8")),
    (("Float16", 1), ("Float32", "Float16")),
    (("Float16", 2.0), ("Float32", "Float16")),
    (("BFloat16", 2.0), ("Float32", "BFloat16")),
    (("Int32", 2.0), ("Float32", "Float32")),
    (("Int64", 2.0), ("Float64", "Float32")),
    (("Uint64", 0xFFFFFFFFFF), ("Uint64", "Uint64")),
]


def of_numbers(a: fe.Tensor, out: fe.Tensor, s: fe.Constexpr, t: fe.Constexpr):
    x = a[0].to(getattr(fe, s))
    y = a[1].to(getattr(fe, t)) if isinstance(t, str) else t
    out[0] = (x + y).dtype is KINDS[0]
    out[1] = (y + x).dtype is KINDS[0]
    v = fe.make_tensor(a.iterator, fe.make_layout((2,))).load().to(getattr(fe, s))
    out[2] = (v + y).dtype is KINDS[0]


KINDS: list[Any] = [None]


@pytest.mark.parametrize(("given", "wanted"), PAIRS)
def test_results_have_the_dtypes_of_cute_dsl(given: Any, wanted: tuple[str, str]) -> None:
    a, out = np.array([1, 2], np.float32), np.zeros(3, np.int32)
    for jit, kind in zip((cute.jit, fe.jit), wanted, strict=True):
        KINDS[0] = getattr(fe, kind)
        jit(of_numbers)(a, out, *given)
        assert out.tolist() == [1, 1, 1], (jit, kind)


@fe.kernel
def shifted_kernel(a: fe.Tensor, out: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    out[i] = a[i] - 5
    part = fe.zipped_divide(a, (4,))[None, 0].load()
    fe.zipped_divide(out, (4,))[None, 1].store((part * 100).to(fe.Int32))


def shifted(a: fe.Tensor, out: fe.Tensor):
    shifted_kernel(a, out).launch(grid=1, block=4)


def test_kernels_have_them_too_and_the_same_function_may_be_compiled_both_ways() -> None:
    a, out = np.array([0, 3, 5, 250], np.uint8), np.zeros(8, np.int32)
    for _ in range(2):
        cute.jit(shifted)(a, out)
        assert out.tolist() == [-5, -2, 0, 245, 0, 300, 500, 25000]
        fe.jit(shifted)(a, out)
        assert out.tolist() == [251, 254, 0, 245, *(int(x) * 100 % 256 for x in a)]


def test_sums_of_halves_are_exact_where_cute_dsl_has_floats() -> None:
    def scaled(a: fe.Tensor, out: fe.Tensor):
        out[0] = (a[0] * 3.0 + 1) * 3000

    a, out = np.array([11], np.float16), np.zeros(1, np.float32)
    cute.jit(scaled)(a, out)
    assert out[0] == 102000
    fe.jit(scaled)(a, out)
    assert out[0] == np.inf


@fe.jit(promotion="cute")
def folded(out: fe.Tensor):
    out[0] = fe.Int8(100) + 100
    out[1] = fe.Uint8(3) - 5
    out[2] = fe.Int8(100) + fe.Int8(100)


def test_typed_constants_have_them() -> None:
    out = np.zeros(3, np.int32)
    folded(out)
    assert out.tolist() == [200, -2, -56]


def test_masks_and_comparisons_are_as_before() -> None:
    @cute.jit
    def masked(x: fe.Uint32, n: fe.Int32, out: fe.Tensor):
        out[0] = x & ~(1 << 31)
        out[1] = x & 0xFFFFFFFF
        out[2] = n < x
        out[3] = min(n, 3)

    out = np.zeros(4, np.uint32)
    masked(0xDEADBEEF, -1, out)
    assert out.tolist() == [0x5EADBEEF, 0xDEADBEEF, 1, (1 << 32) - 1]


def test_python_numbers_alone_have_their_own_dtypes() -> None:
    @cute.jit
    def moved(out: fe.Tensor):
        def inner(place):
            x, y = place
            return x, y + 1

        layout = fe.make_composed_layout(inner, (1, 0), fe.make_identity_layout((8, 4)))
        out[0] = layout(0)[0] * 10 + layout(9)[1]
        places = fe.make_identity_tensor((4, 2))
        out[1] = places[1, 1][0] + 2 * places[1, 1][1] - True

    out = np.zeros(2, np.int32)
    moved(out)
    assert out.tolist() == [12, 2]


def test_another_promotion_is_an_error() -> None:
    with pytest.raises(fe.CompileError, match='promotion of shifted must be "ferrule" or "cute"'):
        fe.jit(promotion="c")(shifted)  # type: ignore[call-overload]

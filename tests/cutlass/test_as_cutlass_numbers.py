"""Numbers of CuTe programs: powers, Booleans beside Python's, and floats of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
import ferrule.cutlass as cutlass
from ferrule.cutlass import cute

ml_dtypes = pytest.importorskip("ml_dtypes")


def stored(compute: Any, dtype: Any, *given: Any) -> Any:
    """What a compiled CuTe function stores of `compute(*given)`."""

    @cute.jit
    def function(out, *values):
        out[0] = compute(*values)

    out = np.zeros(1, dtype)
    fe.compile(function, out, *given, options="--target cpu")(out, *(x.value for x in given))
    return out[0]


def test_powers_are_computed_in_32_bits_at_least() -> None:
    assert stored(lambda x: x**2, np.int32, cutlass.Int8(-100)) == 10000
    assert stored(lambda x: x**3, np.int32, cutlass.Uint8(200)) == 8_000_000
    assert stored(lambda x: x**2, np.float32, cutlass.Float16(400.0)) == 160_000
    large = stored(lambda x, y: x**y, np.float64, cutlass.Uint64(7), cutlass.Float16(100.0))
    assert large == pytest.approx(7.0**100)
    assert stored(lambda x: x**2, np.int64, cutlass.Int64(1 << 20)) == 1 << 40
    assert stored(lambda x: x**0, np.int32, cutlass.Int8(5)) == 1


def test_ferrule_s_own_functions_keep_the_dtype() -> None:
    @fe.jit
    def function(out, x: fe.Int8):
        out[0] = x**2

    out = np.zeros(1, np.int32)
    fe.compile(function, out, fe.Int8, options="--target cpu")(out, -100)
    assert out[0] == 16


def test_a_python_bool_beside_a_boolean_is_a_number() -> None:
    assert stored(lambda x: (x < 0) + True, np.int32, cutlass.Int32(-7)) == 2
    assert stored(lambda x: True + (x < 0), np.int32, cutlass.Int32(-7)) == 2


def test_arithmetic_of_two_booleans_is_a_boolean() -> None:
    assert stored(lambda x: (x > 0) * (x < 9) + (x > 1), np.int32, cutlass.Int32(5)) == 1
    assert stored(lambda x: (x > 0) - (x < 0), np.int32, cutlass.Int32(-7)) == 1


@pytest.mark.parametrize("dtype", [cutlass.Float8E4M3FN, cutlass.Float8E5M2])
@pytest.mark.parametrize("x", [500.0, 1e6, -1e9, float("inf"), float("-inf"), 3.3, float("nan")])
def test_floats_of_8_bits_end_at_the_largest(dtype: Any, x: float) -> None:
    largest = float(ml_dtypes.finfo(dtype.name).max)
    found = stored(lambda v: dtype(v).to(cutlass.Float32), np.float32, cutlass.Float32(x))
    by_method = stored(lambda v: v.to(dtype).to(cutlass.Float32), np.float32, cutlass.Float32(x))
    wanted = np.array(np.clip(x, -largest, largest)).astype(dtype.name).astype(np.float32)
    np.testing.assert_array_equal([found, by_method], [wanted, wanted])

"""TFloat32 in kernels: float32 in memory, rounded when it is read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"
N = fe.sym_int(symbol="n")
TF32, F32 = (fe.make_fake_compact_tensor(kind, (N,)) for kind in (fe.TFloat32, fe.Float32))
ONE, STEP = 1.0, 2.0**-10
VALUES = np.array([ONE, ONE + STEP, ONE + STEP / 2, ONE + 3 * STEP / 2, -3.25], np.float32)
ROUNDED = np.array([ONE, ONE + STEP, ONE, ONE + 2 * STEP, -3.25], np.float32)


def run(function: Any, *examples: Any) -> Any:
    return fe.compile(function, *examples, options=CPU)


def test_elements_are_rounded_when_they_are_read() -> None:
    def copy(a, b):
        for i in range(a.shape[0]):
            b[i] = a[i]

    compiled = run(copy, TF32, F32)
    assert str(compiled.signature) == "copy(a: Tensor([n], tfloat32), b: Tensor([n], float32))"
    out = np.zeros_like(VALUES)
    compiled(VALUES, out)
    np.testing.assert_array_equal(out, ROUNDED)


def test_elements_are_rounded_when_they_are_written() -> None:
    def copy(a, b):
        b[:] = a[:]

    out = np.zeros_like(VALUES)
    run(copy, F32, TF32)(VALUES, out)
    np.testing.assert_array_equal(out, ROUNDED)


def test_operators_compute_in_float32() -> None:
    def compute(a, out):
        out[0] = a[0] + a[1]
        out[1] = a[0] * 0.1
        out[2] = -a[1]
        out[3] = fe.math.sqrt(a[1])
        out[4] = abs(a[4])

    out = np.zeros_like(VALUES)
    run(compute, TF32, F32)(VALUES, out)
    x = ROUNDED
    wanted = [x[0] + x[1], x[0] * np.float32(0.1), -x[1], np.sqrt(x[1]), -x[4]]
    np.testing.assert_array_equal(out, np.array(wanted, np.float32))


def test_conversions_are_explicit() -> None:
    def compute(a, out, alpha: fe.TFloat32):
        product = a[2] * a[2]
        out[0] = fe.TFloat32(product)
        out[1] = alpha
        out[2] = fe.TFloat32(0.1)
        out[3] = fe.Float32(alpha) + 1

    compiled = run(compute, F32, F32, 0.1)
    out = np.zeros_like(VALUES)
    compiled(VALUES, out, 0.1)
    tenth = tf32(0.1)
    np.testing.assert_array_equal(
        out[:4], [tf32(VALUES[2] * VALUES[2]), tenth, tenth, np.float32(tenth + 1)]
    )


def tf32(value: float) -> np.float32:
    """The nearest one of a number that is no tie."""
    bits = np.float32(value).view(np.uint32) + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def test_a_tensor_of_another_dtype_is_refused() -> None:
    def nothing(a):
        pass

    compiled = run(nothing, TF32)
    compiled(VALUES)
    with pytest.raises(ValueError, match="expected dtype=float32, but got dtype=float64"):
        compiled(VALUES.astype(np.float64))


def test_force_tf32_as_an_example() -> None:
    def copy(a, b):
        b[:] = a[:]

    held = fe.from_dlpack(VALUES, force_tf32=True).mark_layout_dynamic()
    out = np.zeros_like(VALUES)
    run(copy, held, fe.from_dlpack(out))(VALUES, out)
    np.testing.assert_array_equal(out, ROUNDED)

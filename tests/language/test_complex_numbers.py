"""Complex numbers in the kernel language; `complex_runs` has what is compared with NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import complex_runs as runs
import numpy as np
import pytest

import ferrule as fe


def test_on_the_cpu() -> None:
    runs.check("cpu")


def test_on_an_emulated_gpu() -> None:
    folder = str(Path(__file__).parents[1] / "support")
    path = os.pathsep.join([folder, *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "complex_runs", "sm_80"],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYTHONPATH": path, "FERRULE_GPU": ""},
    )
    assert done.stdout == "right\n", done.stderr


def test_through_mlir() -> None:
    pytest.importorskip("torch_mlir", reason="no package with MLIR's Python bindings")
    runs.check("cpu --pipeline mlir")


def test_both_parts_are_one_access_on_a_gpu() -> None:
    matrix = runs.fake(fe.Complex64, 2)
    examples = (runs.fake(fe.Complex64), runs.fake(fe.Complex64), matrix, runs.fake(fe.Float32))
    ptx = fe.compile(
        runs.operators, *examples, options="--target cuda --gpu-arch sm_80"
    ).inspect_ptx()
    assert "ld.global.v2.b32" in ptx
    assert "st.global.v2.b32" in ptx


def test_numbers_of_the_dtypes() -> None:
    z = fe.Complex64(0.1, 2)
    assert repr(z) == "Complex64(0.1, 2.0)"
    assert (z.real, z.imag) == (fe.Float32(0.1), fe.Float32(2))
    assert z.conjugate() == fe.Complex64(0.1, -2)
    assert complex(fe.Complex128(z)) == complex(np.float32(0.1), 2)
    assert fe.Complex64(fe.Complex128(1e300, 1)).value == complex(np.inf, 1)
    for wrong, words in [
        (lambda: fe.Float32(z), "is complex: float32 takes one part, z.real or z.imag"),
        (lambda: fe.Complex64("1"), "complex64 takes a number, but got '1'"),
        (lambda: fe.Complex64(np.ones(2)), "complex64 takes a number, but got array"),
        (lambda: fe.Complex64(1j, 2), "float32 takes a number, but got 1j"),
    ]:
        with pytest.raises(TypeError, match=words):
            wrong()


LINES = {
    "f[0] = z[0]": "a complex number is stored to f, whose elements are float32",
    "f[:] = z[:]": "a complex number is stored to f, whose elements are float32",
    "f[0] = fe.Float32(z[0])": "a run-time complex64 is converted to float32, which holds one",
    "f[0] = z[0].to(fe.Float32)": "a run-time complex64 is converted to float32, which holds one",
    "x: fe.Float32 = z[0]": "'x' is annotated as Float32, but gets a run-time complex64",
    "f[0] = z[0] < z[1]": "complex numbers are compared by order, and have none",
    "z[0] = max(z[0], 1j)": "max of complex numbers, which have no order",
    "z[0] = z[0] // 2": "// of complex numbers, which have no order",
    "z[0] = z[0] & 1": "& of complex numbers",
    "z[0] = ~z[0]": "~ takes integers and bools, but got a run-time complex64",
    "f[0] = fe.max(z[:])": "fe.max of complex numbers, which have no order",
    "z[0] = fe.math.exp(z[0])": "expected a number, but got a run-time complex64",
    "z[0] = z[0] ** 0.5": "expected a number, but got a run-time complex64",
    "z[0] = z[0] * fe.Float8E5M2(1)": "no type holds both operands of *",
    "z[0] = fe.Complex64(z[0], 1)": "Complex64 takes two real numbers, but got a run-time",
    "z[0] = fe.Complex64(1, 2, 3)": "Complex64 takes one value, or two parts, but got 3",
    "z[0] = complex(f[0], 1)": "complex is ordinary Python and cannot be called with a run-time",
    "f[0] = z[0].abs": "a run-time complex64 has no attribute 'abs'",
    "z[z[0]] = 1": "expected a number, but got a run-time complex64",
    "x, y = z[0]": "a run-time complex64 cannot be unpacked",
    "z[0] = z[0] if f[0] > 0 else f[0]": "this value changes its type: it is complex64 on one way",
    "return z[0]": "g returns a complex number, which no kind of result holds",
    "return fe.sum(z[:])": "g returns a complex number, which no kind of result holds",
}


@pytest.mark.parametrize("line", LINES)
def test_what_is_refused(line: str) -> None:
    text = f"@fe.jit\ndef g(z: fe.Tensor, f: fe.Tensor):\n    {line}\n"
    function = fe.from_source(text, {"fe": fe})["g"]
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(function, runs.fake(fe.Complex64), runs.fake(fe.Float32), options="--target cpu")
    assert str(caught.value).startswith(LINES[line])


@fe.kernel
def atomic_kernel(z: fe.Tensor):
    fe.arch.atomic_add(z.iterator, 1j)


@fe.jit
def atomic(z: fe.Tensor):
    atomic_kernel(z).launch(grid=1, block=1)


@fe.jit
def scalar(z: fe.Complex64, out: fe.Tensor):
    out[0] = z


def test_what_holds_no_complex_numbers() -> None:
    with pytest.raises(fe.CompileError, match="complex64"):
        fe.compile(atomic, runs.fake(fe.Complex64), options="--target cpu")
    for example in (1j, fe.Complex64, fe.Complex64(1, 2)):
        with pytest.raises(
            fe.CompileError, match="take its parts, two float32, and make Complex64"
        ):
            fe.compile(scalar, example, runs.fake(fe.Complex64), options="--target cpu")


@fe.jit
def kept_dtypes(z: fe.Tensor, d: fe.Tensor, h: fe.Tensor, n: fe.Int64):
    fe.static_assert((z[0] * d[0]).dtype is fe.Complex128)
    fe.static_assert((z[0] * h[0]).dtype is fe.Complex64)
    fe.static_assert((z[0] + n).dtype is fe.Complex64)
    fe.static_assert((d[0] + 1j).dtype is fe.Complex128)
    fe.static_assert((h[0] + 1j).dtype is fe.Complex64)
    fe.static_assert((n * 1j).dtype is fe.Complex64)
    fe.static_assert((z[:] / d[:]).real.dtype is fe.Float64)
    total: Any = 0
    product, pair = fe.Complex64(1), (1j, 0.0)
    for i in range(n):
        total += z[i]
        product *= z[i]
        pair = pair[0] * z[i], pair[1] + abs(z[i])
    z[0], z[1], z[2], z[3] = total, product, pair[0], pair[1]
    z[4] = z[4] ** 3 if n > 2 else 1
    z[5] = fe.Complex64(imag=n, real=2)


def test_dtypes_and_carried_values() -> None:
    fakes = [runs.fake(dtype) for dtype in (fe.Complex64, fe.Float64, fe.Float16)]
    function = fe.compile(kept_dtypes, *fakes, fe.Int64, options="--target cpu")
    z = runs.numbers(6, fe.Complex64)
    wanted = [z[:4].sum(), z[:4].prod(), z[:4].prod() * 1j, abs(z[:4]).sum(), z[4] ** 3, 2 + 4j]
    function(z, np.ones(6), np.ones(6, np.float16), 4)
    np.testing.assert_allclose(z, wanted, rtol=1e-5)


def test_moved_in_place_is_refused_and_the_same_place_is_not() -> None:
    @fe.jit
    def turned(a: fe.Tensor):
        a[:] = a.transpose()[:].conj()

    square = fe.row_major((fe.sym_int(symbol="n"),) * 2, fe.Complex64)
    with pytest.raises(fe.CompileError, match="while the same memory is read in another layout"):
        fe.compile(turned, square, options="--target cpu")

    @fe.jit
    def kept(a: fe.Tensor):
        a[:] = a[:].conj() * 1j

    a = runs.numbers((3, 3), fe.Complex64)
    wanted = a.conj() * 1j
    fe.compile(kept, square, options="--target cpu")(a)
    np.testing.assert_array_equal(a, wanted)


TYPED = [fe.Complex128(1e-300, 2), fe.Complex128(3)]
PAIRS = [(1, 2j), (3, 4.5j)]


@fe.jit
def from_lists(out: fe.Tensor):
    for i in range(2):
        count, z = PAIRS[i]
        out[i] = TYPED[i] + z * count
        out[count // 2] += 0


def test_tables_of_python_numbers() -> None:
    out = np.zeros(2, np.complex128)
    fe.compile(from_lists, runs.fake(fe.Complex128), options="--target cpu")(out)
    assert out.tolist() == [1e-300 + 4j, 3 + 13.5j]

"""Complex numbers of MLIR: arguments and results are two floats each."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir

MIXED = """
func.func @caller(%z: complex<f32>, %x: memref<?xcomplex<f32>>, %w: complex<f64>) {
  %n = arith.constant 7 : i32
  %a, %b, %c = func.call @mixed(%n, %z, %x, %w)
      : (i32, complex<f32>, memref<?xcomplex<f32>>, complex<f64>)
      -> (complex<f32>, i32, complex<f64>)
  return
}
func.func @mixed(%n: i32 {ferrule.unsigned}, %z: complex<f32>, %x: memref<?xcomplex<f32>>,
                 %w: complex<f64>)
    -> (complex<f32>, i32 {ferrule.unsigned}, complex<f64>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %x[%c0] : memref<?xcomplex<f32>>
  %b = complex.mul %a, %z : complex<f32>
  memref.store %b, %x[%c0] : memref<?xcomplex<f32>>
  return %b, %n, %w : complex<f32>, i32, complex<f64>
}
"""
"""The caller of the second function is not compiled."""
UNARY: dict[str, Callable[[complex], complex]] = {
    "conj": lambda z: z.conjugate(),
    "cos": cmath.cos,
    "exp": cmath.exp,
    "expm1": lambda z: cmath.exp(z) - 1,
    "log": cmath.log,
    "log1p": lambda z: cmath.log(1 + z),
    "neg": lambda z: -z,
    "rsqrt": lambda z: 1 / cmath.sqrt(z),
    "sign": lambda z: z / abs(z),
    "sin": cmath.sin,
    "sqrt": cmath.sqrt,
    "tan": cmath.tan,
    "tanh": cmath.tanh,
}
BINARY: dict[str, Callable[[complex, complex], complex]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
}


def test_complex_arguments_and_results_are_two_floats_each() -> None:
    function = fe.frontends.mlir.compile(MIXED, "mixed")
    numbers = "z_re: float32, z_im: float32"
    said = f"mixed(n: uint32, {numbers}, x: Tensor([n0], complex64), w_re: float64, w_im: float64)"
    assert str(function.signature).startswith(said)
    x = np.array([1 + 2j], np.complex64)
    assert function(7, 3.0, -1.0, x, 0.5, 0.25) == (5.0, 5.0, 7, 0.5, 0.25)
    assert x[0] == 5 + 5j


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_operations_on_complex_numbers(kind: str) -> None:
    lines = [f"%{name} = complex.{name} %z : complex<{kind}>" for name in UNARY]
    lines += [f"%{name} = complex.{name} %z, %y : complex<{kind}>" for name in BINARY]
    names = [f"%{name}" for name in (*UNARY, *BINARY)]
    types = ", ".join(f"complex<{kind}>" for _ in names)
    text = "\n".join(
        [
            f"func.func @f(%z: complex<{kind}>, %y: complex<{kind}>) -> ({types}) {{",
            *lines,
            f"return {', '.join(names)} : {types}",
            "}",
        ]
    )
    function = fe.frontends.mlir.compile(text)
    for z, y in ((0.6 + 0.3j, 1.2 - 0.4j), (-2.5 + 0.1j, 0.5 + 2j)):
        wanted = [f(z) for f in UNARY.values()] + [f(z, y) for f in BINARY.values()]
        found = function(z.real, z.imag, y.real, y.imag)
        pairs = [complex(*each) for each in list(pairwise(found))[::2]]
        np.testing.assert_allclose(pairs, wanted, rtol=1e-4 if kind == "f32" else 1e-12)


def test_a_function_of_complex_numbers_that_calls_itself_is_refused() -> None:
    text = """
    func.func @f(%z: complex<f32>) -> complex<f32> {
      %r = func.call @f(%z) : (complex<f32>) -> complex<f32>
      return %r : complex<f32>
    }
    """
    with pytest.raises(CompileError, match="@f calls itself, and takes or returns complex numbers"):
        fe.frontends.mlir.compile(text)

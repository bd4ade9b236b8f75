"""Functions of JAX: `jax.jit(f).lower(x)`, through the passes of jaxlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.frontends.mlir.passes.scatter import Scatter, scatter_text
from ferrule.frontends.mlir.passes.sort import sort_text

pytestmark = needs_mlir

LESS = """
func.func private @ferrule_less_0(
    %a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
  %x = tensor.extract %a[] : tensor<f32>
  %y = tensor.extract %b[] : tensor<f32>
  %less = arith.cmpf olt, %x, %y : f32
  %result = tensor.from_elements %less : tensor<i1>
  return %result : tensor<i1>
}
func.func @sort(%keys: tensor<3x7x2xf32>, %values: tensor<3x7x2xi32>)
    -> (tensor<3x7x2xf32>, tensor<3x7x2xi32>) {
  %a, %b = func.call @ferrule_sort_0(%keys, %values)
      : (tensor<3x7x2xf32>, tensor<3x7x2xi32>) -> (tensor<3x7x2xf32>, tensor<3x7x2xi32>)
  return %a, %b : tensor<3x7x2xf32>, tensor<3x7x2xi32>
}
"""


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_sort_is_stable_along_each_axis(axis: int) -> None:
    """Needs no JAX."""
    text = LESS + sort_text(0, (3, 7, 2), ("f32", "i32"), axis)
    rng = np.random.default_rng(axis)
    keys = rng.integers(0, 3, (3, 7, 2)).astype(np.float32)
    values = rng.integers(0, 1000, (3, 7, 2)).astype(np.int32)
    found = [np.from_dlpack(each) for each in fe.frontends.mlir.compile(text)(keys, values)]
    order = np.argsort(keys, axis=axis, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(keys, order, axis))
    np.testing.assert_array_equal(found[1], np.take_along_axis(values, order, axis))


UPDATE = """
func.func private @ferrule_update_0(%there: tensor<f32>, %new: tensor<f32>) -> tensor<f32> {
  %a = tensor.extract %there[] : tensor<f32>
  %b = tensor.extract %new[] : tensor<f32>
  %sum = arith.addf %a, %b : f32
  %result = tensor.from_elements %sum : tensor<f32>
  return %result : tensor<f32>
}
func.func @scatter(%x: tensor<5x6xf32>, %at: tensor<4x2xi32>, %u: tensor<4x2x3xf32>)
    -> tensor<5x6xf32> {
  %y = func.call @ferrule_scatter_0(%x, %at, %u)
      : (tensor<5x6xf32>, tensor<4x2xi32>, tensor<4x2x3xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}
"""


def test_a_scatter_adds_windows_that_fit() -> None:
    """Needs no JAX."""
    scatter = Scatter(
        (5, 6), (4, 2), (4, 2, 3), ("f32",), "i32", (1, 2), (), (), (), (1, 0), index_vector_dim=1
    )
    x = matrix().repeat(2, axis=0)[:5].repeat(2, axis=1)[:, :6].copy()
    at = np.array([[0, 3], [3, 0], [4, 0], [0, -1]], np.int32)  # column, row
    updates = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    wanted = x.copy()
    for (column, row), update in list(zip(at, updates, strict=True))[:2]:  # the others do not fit
        wanted[row : row + 2, column : column + 3] += update
    found = fe.frontends.mlir.compile(UPDATE + scatter_text(0, scatter))(x, at, updates)
    np.testing.assert_array_equal(np.from_dlpack(found), wanted)


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed")


def matrix() -> Any:
    return np.random.default_rng(3).random((3, 4), np.float32)


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a product": lambda jax, x: jax.numpy.tanh(x @ x.T).sum(axis=0),
    "a softmax": lambda jax, x: jax.nn.softmax(x, axis=-1),
    "complex numbers": lambda jax, x: jax.numpy.abs(x + 1j * x),
    "erf": lambda jax, x: jax.scipy.special.erf(x),
    "a loop in a loop": lambda jax, x: jax.lax.fori_loop(
        0, 3, lambda i, a: jax.lax.fori_loop(0, 2, lambda j, b: b * 1.5 + i * j, a), x
    ),
    "a loop until": lambda jax, x: jax.lax.while_loop(
        lambda c: c[1].sum() < 1000, lambda c: (c[0] + 1, c[1] * 2), (0, x)
    ),
    "a scan": lambda jax, x: jax.lax.scan(lambda c, r: (c + r, c * r), x[0], x),
    "a branch": lambda jax, x: jax.lax.cond(x.sum() > 1, lambda a: a * 2, lambda a: a - 1, x),
    "a choice of three": lambda jax, x: jax.lax.switch(
        (x[0, 0] * 9).astype(int) - 4, [lambda a: a, lambda a: -a, lambda a: a * 3], x
    ),
    "a sort": lambda jax, x: jax.numpy.sort(x, axis=0),
    "the order": lambda jax, x: jax.numpy.argsort(x),
    "two sorts": lambda jax, x: jax.numpy.median(x, axis=0) + jax.lax.top_k(x, 2)[0][0, 0],
    "unsigned integers": lambda jax, x: (x * 99).astype("uint32") // jax.numpy.uint32(7),
    "random numbers": lambda jax, x: x + jax.random.uniform(jax.random.key(3), (3, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_jax_gives_what_jax_says(name: str, jax: Any) -> None:
    def f(x: Any) -> Any:
        return FUNCTIONS[name](jax, x)

    x = matrix()
    function = fe.frontends.mlir.compile(jax.jit(f).lower(x))
    assert str(function.signature).startswith("f(x: Tensor([3, 4], float32)) -> ")
    got, wanted = function(x), jax.tree.leaves(jax.jit(f)(x))
    for one, other in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        assert np.from_dlpack(one).dtype == other.dtype
        np.testing.assert_allclose(np.from_dlpack(one), np.asarray(other), rtol=1e-5)


def test_an_unsigned_argument_stays_one(jax: Any) -> None:
    x = np.array([1, 2**32 - 1, 2**31], np.uint32)
    lowered = jax.jit(lambda x: (x // 3, x.astype("float32"))).lower(x)
    function = fe.frontends.mlir.compile(lowered.compiler_ir("stablehlo"), name="thirds")
    assert str(function.signature).startswith("thirds(x: Tensor([3], uint32))")
    for one, other in zip(function(x), (x // 3, x.astype(np.float32)), strict=True):
        np.testing.assert_array_equal(np.from_dlpack(one), other)


def test_what_stays_stablehlo_is_refused_with_what_to_do(jax: Any) -> None:
    said = "stablehlo.fft is left by the passes of jaxlib, which lower StableHLO to linalg"
    with pytest.raises(CompileError, match=said):
        fe.frontends.mlir.compile(jax.jit(jax.numpy.fft.fft).lower(matrix()))
    said = 'stablehlo.custom_call of "lapack_[a-z_]*" is left by the passes of jaxlib'
    with pytest.raises(CompileError, match=said):
        fe.frontends.mlir.compile(jax.jit(jax.numpy.linalg.inv).lower(np.eye(3)))


def test_without_jaxlib_the_error_says_what_lowers_stablehlo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Needs no JAX."""
    from ferrule.frontends.mlir import stablehlo

    monkeypatch.setattr(stablehlo, "_PACKAGE", "jaxlib_of_nobody")
    text = """func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
      %y = stablehlo.add %x, %x : tensor<3xf32>
      return %y : tensor<3xf32>
    }"""
    with pytest.raises(CompileError, match="(?s)Dialect `stablehlo' not found.*jaxlib"):
        fe.frontends.mlir.compile(text)

"""Operations of torch-mlir's dialect `tm_tensor`, with the bindings that know it."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir import bindings
from ferrule.frontends import mlir

pytestmark = [
    needs_mlir,
    pytest.mark.skipif(
        importlib.util.find_spec("torch_mlir") is None
        or bindings.open_mlir().package != "torch_mlir",
        reason="the bindings are not torch-mlir's, which know tm_tensor",
    ),
]

SCAN = """
func.func @sums(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %row = tensor.empty(%m) : tensor<?xf32>
  %rows = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %r:2 = tm_tensor.scan dimension(1) inclusive(true) ins(%x : tensor<?x?xf32>)
    outs(%e, %rows : tensor<?x?xf32>, tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tm_tensor.yield %s : f32
  } -> tensor<?x?xf32>, tensor<?xf32>
  %twice = arith.addf %x, %x : tensor<?x?xf32>
  return %r#0, %twice : tensor<?x?xf32>, tensor<?x?xf32>
}
"""
SORT = """
func.func @sorted(%x: tensor<?xf32>, %i: tensor<?xi64>) -> (tensor<?xf32>, tensor<?xi64>) {
  %r:2 = tm_tensor.sort dimension(0) outs(%x, %i : tensor<?xf32>, tensor<?xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
    %less = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %less : i1
  } -> tensor<?xf32>, tensor<?xi64>
  return %r#0, %r#1 : tensor<?xf32>, tensor<?xi64>
}
"""
SCATTER = """
func.func @put(%x: tensor<?x3xf32>, %at: tensor<?x1xi64>, %v: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %r = tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(true)
    ins(%v, %at : tensor<?x3xf32>, tensor<?x1xi64>) outs(%x : tensor<?x3xf32>) {
  ^bb0(%new: f32, %old: f32):
    %sum = arith.addf %new, %old : f32
    tm_tensor.yield %sum : f32
  } -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
"""


def floats(*shape: int) -> Any:
    return np.random.default_rng(5).random(shape, np.float32)


def test_a_scan_and_what_stands_beside_it() -> None:
    x = floats(4, 5)
    sums, twice = map(np.from_dlpack, mlir.compile(SCAN)(x))
    np.testing.assert_allclose(sums, np.cumsum(x, 1), rtol=1e-6)
    np.testing.assert_array_equal(twice, x + x)


def test_a_sort_leaves_its_arguments_as_they_are() -> None:
    fn = mlir.compile(SORT)
    x, index = floats(7), np.arange(7)
    before = x.copy()
    values, order = map(np.from_dlpack, fn(x, index))
    assert (values == np.sort(before)).all() and (order == np.argsort(before)).all()
    assert (x == before).all() and (index == np.arange(7)).all()


def test_operands_of_a_sort_that_differ_in_size_are_an_error() -> None:
    with pytest.raises(RuntimeError, match="sorted: memref.load in line 3 .* out-of-bounds"):
        mlir.compile(SORT)(floats(7), np.arange(6))


def test_a_scatter_keeps_to_its_tensor() -> None:
    fn = mlir.compile(SCATTER)
    x, v = floats(5, 3), floats(2, 3)
    wanted = x.copy()
    wanted[[4, 1]] += v
    got = fn(x, np.array([[4], [1]]), v)
    np.testing.assert_allclose(np.from_dlpack(got), wanted, rtol=1e-6)
    for wrong in (5, -1, 10**12):
        with pytest.raises(RuntimeError, match="put: memref.load in line 3 .* out-of-bounds"):
            fn(x, np.array([[4], [wrong]]), v)
    with pytest.raises(RuntimeError, match="out-of-bounds"):
        fn(x, np.array([[4]]), v)


def test_what_has_no_loops_is_named() -> None:
    text = """
    func.func @f(%x: tensor<3x4xf32>, %v: tensor<3x2xf32>, %i: tensor<3x2xi64>)
        -> tensor<3x2xf32> {
      %r:2 = tm_tensor.topk dimension(1) ins(%x : tensor<3x4xf32>)
        outs(%v, %i : tensor<3x2xf32>, tensor<3x2xi64>) {
      ^bb0(%a: f32, %b: f32):
        %more = arith.cmpf ogt, %a, %b : f32
        tm_tensor.yield %more : i1
      } -> tensor<3x2xf32>, tensor<3x2xi64>
      return %r#0 : tensor<3x2xf32>
    }
    """
    with pytest.raises(CompileError, match="tm_tensor.topk"):
        mlir.compile(text)

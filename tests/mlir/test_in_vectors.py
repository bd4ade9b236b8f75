"""Memrefs of vectors: tensors whose last dims are those of the vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.compiler.errors import CompileError

pytestmark = needs_mlir

TEXT = """
func.func @f(%a: memref<?xvector<8xf32>>, %b: memref<2x?xvector<2x4xi32>>, %o: memref<2xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xvector<8xf32>>
  %z = arith.constant dense<0.0> : vector<8xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (vector<8xf32>) {
    %v = memref.load %a[%i] : memref<?xvector<8xf32>>
    %t = arith.addf %s, %v : vector<8xf32>
    memref.store %t, %a[%i] : memref<?xvector<8xf32>>
    scf.yield %t : vector<8xf32>
  }
  %r = vector.reduction <add>, %s : vector<8xf32> into f32
  memref.store %r, %o[%c0] : memref<2xf32>
  %w = memref.load %b[%c1, %c1] : memref<2x?xvector<2x4xi32>>
  memref.store %w, %b[%c0, %c0] : memref<2x?xvector<2x4xi32>>
  return
}
"""


def test_vectors_are_the_last_dims_of_tensors() -> None:
    """They need no more alignment than their elements, and sizes are those of the types."""
    function = fe.frontends.mlir.compile(TEXT)
    said = "f(a: Tensor([n0, 8], float32), b: Tensor([2, n1, 2, 4], int32), o: Tensor([2], float32)"
    assert str(function.signature).startswith(said)
    memory = np.zeros(4 * 24 + 64, np.uint8)
    start = -memory.ctypes.data % 32 + 4
    a = memory[start : start + 4 * 24].view(np.float32).reshape(3, 8)
    a[:] = np.arange(24).reshape(3, 8)
    b, o = np.arange(48, dtype=np.int32).reshape(2, 3, 2, 4), np.zeros(2, np.float32)
    sums, moved = a.cumsum(axis=0), b.copy()
    moved[0, 0] = b[1, 1]
    function(a, b, o)
    np.testing.assert_array_equal(a, sums)
    np.testing.assert_array_equal(b, moved)
    assert o[0] == sums[-1].sum()
    with pytest.raises(ValueError, match=r"expected shape\[1\]=8|expected a.shape\[1\]|shape"):
        function(a[:, :4].copy(), b, o)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("memref<4xvector<3xf32>>", "a vector in an array is one of a power of two of floats"),
        ("memref<4xvector<4xi1>>", "a vector in an array is one of a power of two of floats"),
        ("memref<4xvector<[4]xf32>>", "a vector in an array is one of a power of two of floats"),
        ("memref<?xvector<4xf32>, strided<[2]>>", "memrefs of vectors are compact arguments"),
    ],
)
def test_other_vectors_are_refused(kind: str, said: str) -> None:
    with pytest.raises(CompileError, match=re.escape(f"the argument 'x' of @f is {kind}: {said}")):
        fe.frontends.mlir.compile(f"func.func @f(%x: {kind}) {{ return }}")


def test_a_spec_must_ensure_the_alignment_of_a_gpu() -> None:
    kernel = """gpu.module @m {
      gpu.func @k(%x: memref<?xvector<4xf32>>) kernel { gpu.return }
    }"""
    spec = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), 4), stride_order=(1, 0))
    said = "the spec of 'x' does not fit .*: expected an alignment of 16 bytes for its vectors"
    with pytest.raises(CompileError, match=said):
        fe.frontends.mlir.compile(kernel, "k", specs={"x": spec}, grid=1, block=1, target="sm_90")

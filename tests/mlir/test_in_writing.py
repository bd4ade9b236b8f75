"""Arguments of MLIR functions that specs say to be only read: none that the module writes to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlir_functions import needs_mlir

from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends import mlir

pytestmark = needs_mlir

N = specs.sym_int64(symbol="n")
X = specs.Tensor("x", (N,), "float32", read_only=True)

STORE = "%c = arith.constant 0 : index\n memref.store %v, {0}[%c] : {1}"
STRIDED = "memref<?xf32, strided<[1], offset: ?>>"
WRITES = {
    "store": STORE.format("%x", "memref<?xf32>"),
    "copy": "memref.copy %y, %x : memref<?xf32> to memref<?xf32>",
    "outs": "linalg.fill ins(%v : f32) outs(%x : memref<?xf32>)",
    "generic outs": """linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,
        affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%y : memref<?xf32>) outs(%x : memref<?xf32>) {
        ^bb0(%a: f32, %b: f32):
          linalg.yield %a : f32
        }""",
    "subview": f"""%s = memref.subview %x[%i][%i][1] : memref<?xf32> to {STRIDED}
        {STORE.format("%s", STRIDED)}""",
    "cast": f"""%s = memref.cast %x : memref<?xf32> to {STRIDED}
        {STORE.format("%s", STRIDED)}""",
    "reinterpret_cast": f"""%s = memref.reinterpret_cast %x to offset: [0], sizes: [%i],
        strides: [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
        {STORE.format("%s", "memref<?xf32, strided<[1]>>")}""",
    "callee": "func.call @put(%x, %v) : (memref<?xf32>, f32) -> ()",
    "result of a callee": f"""%s = func.call @same(%x) : (memref<?xf32>) -> memref<?xf32>
        {STORE.format("%s", "memref<?xf32>")}""",
    "select": f"""%k = arith.cmpi eq, %i, %i : index
        %s = arith.select %k, %x, %y : memref<?xf32>
        {STORE.format("%s", "memref<?xf32>")}""",
    "loop": f"""%0 = arith.constant 0 : index
        %1 = arith.constant 1 : index
        %s = scf.for %j = %0 to %i step %1 iter_args(%b = %y) -> memref<?xf32> {{
          scf.yield %x : memref<?xf32>
        }}
        {STORE.format("%s", "memref<?xf32>")}""",
    "branch": f"""cf.br ^bb1(%x : memref<?xf32>)
        ^bb1(%s: memref<?xf32>):
        {STORE.format("%s", "memref<?xf32>")}""",
    "atomic": "%r = memref.atomic_rmw addf %v, %x[%i] : (f32, memref<?xf32>) -> f32",
    "vector": """%w = vector.broadcast %v : f32 to vector<4xf32>
        vector.store %w, %x[%i] : memref<?xf32>, vector<4xf32>""",
    "unknown": "func.call @unknown(%x) : (memref<?xf32>) -> ()",
}
MODULE = """
func.func private @unknown(%x: memref<?xf32>)
func.func private @put(%x: memref<?xf32>, %v: f32) {
  %c = arith.constant 0 : index
  memref.store %v, %x[%c] : memref<?xf32>
  return
}
func.func private @same(%x: memref<?xf32>) -> memref<?xf32> {
  return %x : memref<?xf32>
}
func.func @f(%x: memref<?xf32>, %y: memref<?xf32>, %v: f32, %i: index) {
  BODY
  return
}
"""


@pytest.mark.parametrize("which", WRITES)
def test_a_spec_that_is_only_read_is_refused_for_what_the_module_writes(which: str) -> None:
    with pytest.raises(CompileError, match=r"'x' says that it is only read .* @f writes to it"):
        mlir.compile(MODULE.replace("BODY", WRITES[which]), specs={"x": X})


def test_the_error_says_what_writes_and_where() -> None:
    text = MODULE.replace("BODY", WRITES["callee"])
    with pytest.raises(CompileError, match=r"memref\.store in line 5 of the module"):
        mlir.compile(text, specs={"x": X})


def test_a_signature_is_held_to_the_same() -> None:
    text = "func.func @f(%x: memref<?xf32>, %v: f32) {\n" + WRITES["store"] + "\nreturn }"
    given = specs.Signature("f", (X, specs.Scalar("v", "float32")))
    with pytest.raises(CompileError, match=r"read_only=True"):
        mlir.compile(text, signature=given)


def test_a_tensor_that_is_written_in_place_is_not_only_read() -> None:
    text = """func.func @f(%x: tensor<?xf32> {bufferization.writable = true}) -> tensor<?xf32> {
      return %x : tensor<?xf32> }"""
    with pytest.raises(CompileError, match=r"bufferization\.writable"):
        mlir.compile(text, specs={"x": X})


READS = {
    "copy": "memref.copy %x, %y : memref<?xf32> to memref<?xf32>",
    "generic": WRITES["generic outs"].replace("%x", "%t").replace("%y", "%x").replace("%t", "%y"),
    "load": "%l = memref.load %x[%i] : memref<?xf32>\n memref.store %l, %y[%i] : memref<?xf32>",
    "part": """%0 = arith.constant 0 : index
        %n = memref.dim %x, %0 : memref<?xf32>
        %s = memref.subview %x[0][%n][1] : memref<?xf32> to memref<?xf32, strided<[1]>>
        %t = func.call @same(%x) : (memref<?xf32>) -> memref<?xf32>
        memref.copy %s, %y : memref<?xf32, strided<[1]>> to memref<?xf32>""",
}


@pytest.mark.parametrize("which", READS)
def test_what_the_module_only_reads_may_be_said_to_be_so(which: str) -> None:
    text = MODULE.replace("BODY", READS[which]).replace(
        "func.func private @unknown(%x: memref<?xf32>)", ""
    )
    fn = mlir.compile(text, "f", specs={"x": X, "y": specs.Tensor("y", (N,), "float32")})
    x: Any = np.ones(3, np.float32)
    x.flags.writeable = False
    y = np.zeros(3, np.float32)
    fn(x, y, 2.0, 1)
    assert y[1] == 1.0


KERNEL = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @put(%x: memref<?xf32>, %v: f32) kernel {
    %c = arith.constant 0 : index
    memref.store %v, %x[%c] : memref<?xf32>
    gpu.return
  }
}
func.func @f(%x: memref<?xf32>, %v: f32) {
  %1 = arith.constant 1 : index
  gpu.launch_func @kernels::@put blocks in (%1, %1, %1) threads in (%1, %1, %1)
    args(%x : memref<?xf32>, %v : f32)
  return
}
}
"""


def test_what_a_kernel_writes_is_written() -> None:
    with pytest.raises(CompileError, match=r"@f writes to it, or may: memref\.store in line 6"):
        mlir.compile(KERNEL, specs={"x": X}, target="sm_80")

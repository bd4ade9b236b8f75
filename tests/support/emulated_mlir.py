"""Functions of MLIR on an emulated GPU: `python emulated_mlir.py` prints what was right.

A process of its own, because a process has one CUDA driver, and other tests have a fake one.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

import ferrule as fe

sys.path.insert(0, str(Path(__file__).parents[1] / "mlir"))
FOLDER = Path(__file__).parents[2] / "examples"
REDUCE = """
func.func @f(%x: memref<32x{kind}>, %y: memref<32x{kind}>) {{
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %g = %c1)
             threads(%tx, %i, %j) in (%k = %c32, %l = %c1, %m = %c1) {{
    %v = memref.load %x[%tx] : memref<32x{kind}>
    %s = gpu.subgroup_reduce {how} : ({kind}) -> {kind}
    memref.store %s, %y[%tx] : memref<32x{kind}>
    gpu.terminator
  }}
  return
}}
"""
REDUCED: dict[str, tuple[str, str, Any]] = {
    "f32": ("f4", "add %v uniform", lambda x: np.full(32, x.sum(dtype="f8"))),
    "i64": ("i8", "maxsi %v", lambda x: np.full(32, x.max())),
    "i8": ("i1", "xor %v", lambda x: np.full(32, np.bitwise_xor.reduce(x))),
    "f16": ("f2", "minimumf %v", lambda x: np.full(32, x.min())),
    "i32": (
        "i4",
        "add %v cluster(size = 4, stride = 2)",
        lambda x: np.tile(x.reshape(4, 4, 2).sum(1)[:, None], (1, 4, 1)).reshape(32),
    ),
}
STEPS = """
func.func @f(%n: index, %many: i1, %m: index, %more: i32 {ferrule.unsigned}, %x: memref<?xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %high = arith.constant 100 : i32
  %size = memref.dim %x, %c0 : memref<?xi32>
  %fits = index.cmp sle(%n, %size)
  cf.assert %fits, "at most {the size} %s"
  scf.if %many {
    scf.for %i = %c1 to %m step %c2 {
      %other = arith.cmpi ne, %i, %c5 : index
      cf.assert %other, "not five"
      scf.for %j = %c0 to %i step %c1 {
        %k = arith.addi %i, %j : index
        %l = arith.index_cast %k : index to i32
        gpu.launch blocks(%b, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
                   threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
          %v = memref.load %x[%b] : memref<?xi32>
          %w = arith.addi %v, %l : i32
          memref.store %w, %x[%b] : memref<?xi32>
          gpu.terminator
        }
      }
    }
  } else {
    %wide = arith.extui %more : i32 to i64
    %blocks = arith.index_cast %wide : i64 to index
    %few = arith.minui %blocks, %size : index
    gpu.launch blocks(%b, %by, %bz) in (%gx = %few, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      memref.store %high, %x[%b] : memref<?xi32>
      gpu.terminator
    }
  }
  return
}
"""
"""Branches, loops and assertions around launches."""
VECTORS = """
gpu.module @kernels {
  gpu.func @doubled(%x: memref<?xvector<4xf32>>) kernel {
    %i = gpu.block_id x
    %v = memref.load %x[%i] : memref<?xvector<4xf32>>
    %w = arith.addf %v, %v : vector<4xf32>
    memref.store %w, %x[%i] : memref<?xvector<4xf32>>
    gpu.return
  }
}
func.func @f(%x: memref<?xvector<4xf32>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xvector<4xf32>>
  gpu.launch_func @kernels::@doubled blocks in (%n, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%x : memref<?xvector<4xf32>>)
  return
}
"""
"""A kernel and its launch with memory of vectors."""
WIDE = """
gpu.module @kernels {
  gpu.func @stored(%x: memref<1xi32> {ferrule.unsigned}, %n: i32 {ferrule.unsigned}) kernel {
    %c0 = arith.constant 0 : index
    memref.store %n, %x[%c0] : memref<1xi32>
    gpu.return
  }
}
"""
"""A kernel of an unsigned number."""
ASSERTED = """
func.func @f(%x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  gpu.launch blocks(%b, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%b] : memref<?xf32>
    %fine = arith.cmpf oge, %v, %v : f32
    cf.assert %fine, "not a number"
    memref.store %v, %x[%b] : memref<?xf32>
    gpu.terminator
  }
  return
}
"""
"""Its kernel asserts."""
CALLS = {
    (3, True, 5, 0): [13, 14, 15, 3],
    (3, True, -5, 0): [0, 1, 2, 3],
    (3, False, 5, 2): [100, 100, 2, 3],
    (3, False, 5, 2**32 - 1): [100] * 4,
    (5, True, 5, 0): "f: at most {the size} %s",
    (2, True, 9, 0): "f: not five",
}
SHAPES = {
    "matmul": [(33, 17), (17, 9), (33, 9)],
    "swiglu": [(5, 64), (5, 32)],
    "transpose": [(35, 77), (77, 35)],
}


def example(name: str) -> fe.Function:
    """The function of an example, for a GPU."""
    spec = importlib.util.spec_from_file_location(f"again.{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found: fe.Function = module.compiled("--target cuda --gpu-arch sm_90a")
    return found


def ran(function: fe.Function, given: list[Any]) -> Any:
    """The last argument after a call."""
    arguments = [fe.cuda.array(each) for each in given]
    function(*arguments)
    return fe.cuda.to_numpy(arguments[-1])


def reduced(kind: str) -> None:
    """A reduction in a subgroup."""
    dtype, how, wanted = REDUCED[kind]
    function = fe.frontends.mlir.compile(REDUCE.format(kind=kind, how=how), target="sm_90a")
    x = (np.random.default_rng(0).standard_normal(32) * 50).astype(dtype)
    np.testing.assert_allclose(ran(function, [x, np.zeros_like(x)]), wanted(x), rtol=1e-5)


def stepped() -> None:
    """Launches in branches and loops, and failed assertions between them."""
    function = fe.frontends.mlir.compile(STEPS, target="sm_90a")
    for given, wanted in CALLS.items():
        x = fe.cuda.array(np.arange(4, dtype=np.int32))
        try:
            function(*given, x)
        except RuntimeError as error:
            assert str(error) == wanted
        else:
            np.testing.assert_array_equal(fe.cuda.to_numpy(x), wanted)


def asserted() -> None:
    """An assertion of a kernel that fails, after which the GPU is of no use."""
    function = fe.frontends.mlir.compile(ASSERTED, target="sm_90a")
    ran(function, [np.ones(3, np.float32)])
    try:
        ran(function, [np.array([1, np.nan], np.float32)])
    except fe.CudaError as error:
        assert "assertion failed: not a number" in str(error)
        print("assert")


def launched() -> None:
    """A kernel without a host function."""
    from test_in_gpu import KERNELS

    n = fe.sym_int()
    vector = fe.make_fake_compact_tensor(fe.Float32, (n,))
    function = fe.frontends.mlir.compile(
        KERNELS,
        "kernels::axpy",
        specs={"x": vector, "y": vector},
        grid=fe.ceil_div(n, 128),
        target="sm_90a",
    )
    x, y = fe.cuda.array(np.arange(300, dtype=np.float32)), fe.cuda.zeros((300,))
    function(x, y, 2.0)
    np.testing.assert_array_equal(fe.cuda.to_numpy(y), np.arange(300) * 2)


def of_vectors() -> None:
    """A kernel of vectors, by a host function and alone."""
    whole = f"module attributes {{gpu.container_module}} {{ {VECTORS} }}"
    kernel = VECTORS.partition("func.func")[0]
    for function in (
        fe.frontends.mlir.compile(whole, target="sm_90a"),
        fe.frontends.mlir.compile(
            kernel, grid=lambda sig: sig["x"].shape[0], block=1, target="sm_90a"
        ),
    ):
        assert "ld.global.v4.b32" in str(function.inspect_ptx())
        x = np.arange(20, dtype=np.float32).reshape(5, 4)
        np.testing.assert_array_equal(ran(function, [x]), x * 2)


def unsigned() -> None:
    """A number without a sign, all bits of which reach the kernel."""
    function = fe.frontends.mlir.compile(WIDE, grid=fe.frontends.fixed(1), block=1, target="sm_90a")
    x = fe.cuda.zeros((1,), dtype="uint32")
    function(x, 2**32 - 2)
    assert fe.cuda.to_numpy(x)[0] == 2**32 - 2


def again(name: str) -> None:
    """An example, and the function that its text describes."""
    first = example(name)
    second = fe.frontends.mlir.compile(first.inspect_mlir(), target="sm_90a")
    assert str(second.signature) == str(first.signature)
    rng, dtype = np.random.default_rng(3), np.float16 if name == "swiglu" else np.float32
    given = [rng.standard_normal(shape).astype(dtype) for shape in SHAPES[name]]
    np.testing.assert_array_equal(ran(first, given), ran(second, given))


if __name__ == "__main__":
    with fe.emulated_gpu("sm_90a"):
        for kind in REDUCED:
            reduced(kind)
            print(kind)
        stepped()
        print("steps")
        launched()
        print("kernel")
        of_vectors()
        print("vectors")
        unsigned()
        print("unsigned")
        for name in SHAPES:
            again(name)
            print(name)
        asserted()

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
        for name in SHAPES:
            again(name)
            print(name)

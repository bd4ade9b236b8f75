"""A pipeline of Halide as a function that checks its arguments: a 3 × 3 box blur.

    python examples/halide_pipeline.py

It needs Halide, `pip install halide`, to compile the pipeline; what is built needs nothing of it.

A pipeline that Halide compiles ahead of time is a C function that takes the address of a
`halide_buffer_t` for each image: a struct with the address of an array of structs, one for each
dim.  ferrule makes these structs in every call, from tensors that it has checked, so the pipeline
is compiled without Halide's own checks and without its runtime.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import NULL, Array, CFunction, HostCode, Reference, Struct, cast

try:
    import halide as hl
except ImportError:
    raise SystemExit("this example needs Halide: pip install halide") from None

MACHINES = {"x86_64": "x86-64", "aarch64": "arm-64"}
"""What Halide calls the processors; without more, a pipeline runs on all of a kind."""
Spec = specs.Tensor | specs.Scalar
KINDS = {"int": 0, "uint": 1, "float": 2, "bfloat": 3}


# ---- the adapter ----


def halide_buffer(tensor: specs.Tensor) -> Reference:
    """The address of the `halide_buffer_t` of a tensor; Halide's first dim is the innermost."""
    dims = [
        Struct([cast(0, "int32"), cast(size, "int32"), cast(stride, "int32"), cast(0, "uint32")])
        for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True)
    ]
    kind = "bfloat" if tensor.dtype.name == "bfloat16" else tensor.dtype.kind
    lanes = cast(1, "uint16")
    type_ = Struct([cast(KINDS[kind], "uint8"), cast(tensor.dtype.bits, "uint8"), lanes])
    rank, listed = cast(len(dims), "int32"), Reference(Array(dims)) if dims else NULL
    buffer = Struct([0, NULL, tensor.data, 0, type_, rank, listed, NULL])
    return Reference(buffer, discards=True)  # Halide changes its flags


def build(
    name: str, func: hl.Func, inputs: Sequence[tuple[Any, Spec]], out: specs.Tensor
) -> fe.Function:
    """The function of a pipeline: `inputs` has each ImageParam and Param with its spec."""
    target = hl.Target(
        f"{MACHINES[platform.machine()]}-linux-no_asserts-no_bounds_query-no_runtime"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pipeline.o"
        func.compile_to_object(str(file), [each for each, _ in inputs], name, target)
        code = HostCode.from_object(file)
    params = [spec for _, spec in inputs]
    arguments = [
        halide_buffer(each) if isinstance(each, specs.Tensor) else each for each in (*params, out)
    ]
    call = CFunction(name, arguments, returns="status", code=code)
    return compiler.build(specs.Signature(name, params), call, results=[out])


# ---- a pipeline ----


def blur() -> fe.Function:
    """The mean of each 3 × 3 neighbourhood, times a gain; rows may have gaps between them."""
    x, y = hl.Var("x"), hl.Var("y")
    image, gain = hl.ImageParam(hl.Float(32), 2, "image"), hl.Param(hl.Float(32), "gain")
    inside = hl.BoundaryConditions.repeat_edge(image)
    rows, blurred = hl.Func("rows"), hl.Func("blurred")
    rows[x, y] = inside[x - 1, y] + inside[x, y] + inside[x + 1, y]
    blurred[x, y] = (rows[x, y - 1] + rows[x, y] + rows[x, y + 1]) * (gain / 9)
    # Nothing is written outside of an image that is narrower than a vector.
    blurred.vectorize(x, 8, hl.TailStrategy.GuardWithIf)

    height, width = specs.sym_int(symbol="height"), specs.sym_int(symbol="width")
    pitch = specs.sym_int64(symbol="pitch")
    given = specs.Tensor("image", (height, width), "float32", strides=(pitch, 1), read_only=True)
    out = specs.Tensor("blurred", (height, width), "float32")
    inputs = [(image, given), (gain, specs.Scalar("gain", "float32", default=1.0))]
    return build("blur", blurred, inputs, out)


def reference(image: np.ndarray[Any, Any], gain: float) -> np.ndarray[Any, Any]:
    """The same in NumPy."""
    height, width = image.shape
    wide = np.pad(image, 1, mode="edge")
    parts = [wide[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return sum(parts) * np.float32(gain / 9)


def main() -> None:
    """Compare with NumPy, also for a part of an image, and show an error."""
    function = blur()
    print(function.signature)
    whole = np.random.default_rng(0).random((48, 100), np.float32)
    for image in (whole, whole[3:20, 5:12], whole[:1, :1]):
        blurred = np.from_dlpack(function(image, gain=2.0))
        assert np.allclose(blurred, reference(image, 2.0), rtol=1e-5)
        print(f"{image.shape}: equals NumPy's result")
    try:
        function(whole.T)
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()

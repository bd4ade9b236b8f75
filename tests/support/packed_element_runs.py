"""Elements of 4 bits in kernels and whole tensors, on the CPU or an emulated GPU."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

import ferrule as fe
from ferrule.specs import DType

DTYPES: tuple[DType, ...] = (fe.Int4, fe.Uint4, fe.Float4E2M1FN)
BYTES = np.arange(256, dtype=np.uint8)
"""Each pair of elements."""


@fe.kernel
def read_kernel(q: fe.Tensor, out: fe.Tensor):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < q.shape[0]:
        out[i] = q[i]


@fe.jit
def read(w: fe.Tensor, out: fe.Tensor, dtype: fe.Constexpr):
    q = w.recast(dtype)
    read_kernel(q, out).launch(grid=fe.ceil_div(q.shape[0], 64), block=64)


@fe.jit
def read_whole(w: fe.Tensor, out: fe.Tensor, dtype: fe.Constexpr):
    out[:] = w.recast(dtype)[:] * 2


@fe.kernel
def pack_kernel(x: fe.Tensor, w: fe.Tensor, dtype: fe.Constexpr):
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < w.shape[0]:
        pairs = fe.zipped_divide(w.recast(dtype), (2,))
        pairs[None, i].store(fe.zipped_divide(x, (2,))[None, i].load())


@fe.jit
def pack(x: fe.Tensor, w: fe.Tensor, dtype: fe.Constexpr):
    pack_kernel(x, w, dtype).launch(grid=fe.ceil_div(w.shape[0], 64), block=64)


def vector(dtype: DType) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))


def values(dtype: DType) -> Any:
    """The elements of `BYTES`."""
    halves = np.stack([BYTES & 15, BYTES >> 4], 1).ravel()
    if dtype is fe.Int4:
        return (halves.astype(np.int32) ^ 8) - 8
    return halves.astype(np.int32) if dtype is fe.Uint4 else halves.view(ml_dtypes.float4_e2m1fn)


def call(function: Any, options: str, given: Any, made: Any, dtype: DType) -> Any:
    """What a function makes of an array."""
    examples = [vector(specified(each)) for each in (given, made)]
    compiled = fe.compile(function, *examples, dtype, options=f"--target {options}")
    if options.startswith("cpu"):
        compiled(given, made)
        return made
    there = [fe.cuda.array(each) for each in (given, made)]
    compiled(*there)
    return fe.cuda.to_numpy(there[1])


def specified(array: Any) -> DType:
    return {"uint8": fe.Uint8, "float32": fe.Float32, "int32": fe.Int32}[array.dtype.name]


def check(options: str) -> None:
    """Reads, and writes in pairs."""
    for dtype in DTYPES:
        wanted, out = values(dtype).astype(np.float32), np.zeros(512, np.float32)
        found = call(read, options, BYTES, out, dtype)
        np.testing.assert_array_equal(found, wanted, str(dtype))
        found = call(read_whole, options, BYTES, out, dtype)
        np.testing.assert_array_equal(found, 2 * wanted, str(dtype))
        back = call(pack, options, values(dtype).astype(_given(dtype)), BYTES * 0, dtype)
        np.testing.assert_array_equal(back, BYTES, str(dtype))
    some = np.random.default_rng(5).normal(0, 3, 4096).astype(np.float32)
    some[:8] = [0.25, 0.75, 2.5, 5, 1e30, -np.inf, -0.25, -0.0]
    halves = some.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    found = call(pack, options, some, np.zeros(2048, np.uint8), fe.Float4E2M1FN)
    np.testing.assert_array_equal(found, halves[::2] | halves[1::2] << 4)


def _given(dtype: DType) -> Any:
    return np.float32 if dtype is fe.Float4E2M1FN else np.int32


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with fe.emulated_gpu(name):
            check(f"cuda --gpu-arch {name}")
    print("right")

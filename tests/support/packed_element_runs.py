"""Elements of 4 and 6 bits in kernels and whole tensors, on the CPU or an emulated GPU."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

import ferrule as fe
from ferrule.specs import DType

DTYPES: tuple[DType, ...] = (
    fe.Int4,
    fe.Uint4,
    fe.Float4E2M1FN,
    fe.Float6E2M3FN,
    fe.Float6E3M2FN,
)
BYTES = np.arange(256, dtype=np.uint8)
"""Each pair of elements of 4 bits."""


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
    count = 2 if dtype.bits == 4 else 4
    if i < x.shape[0] // count:
        groups = fe.zipped_divide(w.recast(dtype), (count,))
        groups[None, i].store(fe.zipped_divide(x, (count,))[None, i].load())


@fe.jit
def pack(x: fe.Tensor, w: fe.Tensor, dtype: fe.Constexpr):
    pack_kernel(x, w, dtype).launch(grid=fe.ceil_div(x.shape[0], 128), block=64)


@fe.jit
def pack_whole(x: fe.Tensor, w: fe.Tensor, dtype: fe.Constexpr):
    w.recast(dtype)[:] = x[:] * 1


def vector(dtype: DType) -> Any:
    """One whose elements fill groups of each width."""
    return fe.row_major((fe.sym_int(divisibility=3 if dtype is fe.Uint8 else 4),), dtype)


def sixes() -> Any:
    """All pairs of 6 bits, as numbers below 64, and the bytes that they fill."""
    pairs = np.stack(np.meshgrid(np.arange(64), np.arange(64)), -1).reshape(-1, 4).astype(np.uint32)
    words = pairs[:, 0] | pairs[:, 1] << 6 | pairs[:, 2] << 12 | pairs[:, 3] << 18
    return pairs.astype(np.uint8).ravel(), words.view(np.uint8).reshape(-1, 4)[:, :3].ravel()


def bytes_of(dtype: DType) -> Any:
    """All pairs of elements in memory."""
    return BYTES[:252] if dtype.bits == 4 else sixes()[1]


def values(dtype: DType) -> Any:
    """The elements of `bytes_of`, or those of 4 bits in `BYTES`."""
    if dtype.bits == 6:
        return sixes()[0].view(getattr(ml_dtypes, dtype.name))
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
    """Reads, and writes in groups."""
    for dtype in DTYPES:
        memory = bytes_of(dtype)
        numbers = values(dtype)[: len(memory) * 8 // dtype.bits]
        wanted = numbers.astype(np.float32)
        out = np.zeros_like(wanted)
        found = call(read, options, memory, out, dtype)
        np.testing.assert_array_equal(found, wanted, str(dtype))
        found = call(read_whole, options, memory, out, dtype)
        np.testing.assert_array_equal(found, 2 * wanted, str(dtype))
        for function in (pack, pack_whole):
            back = call(function, options, numbers.astype(_given(dtype)), memory * 0, dtype)
            np.testing.assert_array_equal(back, memory, str(dtype))
    some = np.random.default_rng(5).normal(0, 3, 4092).astype(np.float32)
    some[:8] = [0.25, 0.75, 2.5, 5, 1e30, -np.inf, -0.25, -0.0]
    halves = some.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    found = call(pack, options, some, np.zeros(2046, np.uint8), fe.Float4E2M1FN)
    np.testing.assert_array_equal(found[:2040], (halves[::2] | halves[1::2] << 4)[:2040])


def _given(dtype: DType) -> Any:
    return np.float32 if dtype.kind == "float" else np.int32


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with fe.emulated_gpu(name):
            check(f"cuda --gpu-arch {name}")
    print("right")

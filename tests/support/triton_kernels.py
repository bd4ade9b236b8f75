"""Small kernels that the tests compile."""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@triton.jit
def wide(x, y, n, BLOCK: tl.constexpr, num_warps: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * num_warps, mask=at < n)


@triton.jit
def every_type(
    x, a8, a16, a32, a64, b8, b16, b32, b64, flag, half, brain: tl.bfloat16, single, double,
    BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.arange(0, BLOCK)
    total = a8 + a16 + a32 + a64 + b8 + b16 + b32 + b64 + flag
    floats = half.to(tl.float32) + brain.to(tl.float32) + single + double.to(tl.float32)
    tl.store(x + at, tl.load(x + at) + total.to(tl.float32) + floats)


@triton.jit
def strided(x, y, rows, columns, stride_row, stride_column, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride_row + at * stride_column, mask=at < columns)
    tl.store(y + row * columns + at, values, mask=at < columns)


@triton.jit
def copy_block(source, target, n, SIZE: tl.constexpr):
    row, column = tl.program_id(0) * SIZE, tl.program_id(1) * SIZE
    values = source.load([row, column])
    at = tl.arange(0, SIZE)[:, None] * n + tl.arange(0, SIZE)[None, :]
    tl.store(target + row * n + column + at, values)


@triton.jit
def copy_through_scratch(source, target, n, SIZE: tl.constexpr):
    # A descriptor that is made on the device is in memory of the launch.
    made = tl.make_tensor_descriptor(source, [n, n], [n, 1], [SIZE, SIZE])
    row, column = tl.program_id(0) * SIZE, tl.program_id(1) * SIZE
    values = made.load([row, column])
    at = tl.arange(0, SIZE)[:, None] * n + tl.arange(0, SIZE)[None, :]
    tl.store(target + row * n + column + at, values)


@triton.jit
def nothing():
    pass


@triton.jit
def clash(x, x_0):
    pass


@triton.jit(do_not_specialize=["n"])
def unspecialised(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 0.0, mask=at < n)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 256}, num_warps=2),
        triton.Config({"BLOCK": 512}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.heuristics({"BLOCK": lambda args: 64 if args["WIDE"] else 32})
@triton.jit
def chosen(x, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, 1.0, mask=at < n)


@triton.heuristics(
    {
        "EVEN": lambda args: args["n"] % args["BLOCK"] == 0,
        "num_warps": lambda args: 2 if args["EVEN"] else 8,
    }
)
@triton.jit
def decided(x, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x + at, 1.0)
    else:
        tl.store(x + at, 1.0, mask=at < n)


@triton.heuristics({"BLOCK": lambda args: args["n"] * 2})
@triton.jit
def undecided(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


@triton.jit
def annotated(x, a: tl.float64, b: tl.bfloat16, c: tl.float32, d: tl.int64, e: tl.uint8):
    tl.store(x, (a + b.to(tl.float64) + c + d + e).to(tl.float32))


class Strided(NamedTuple):
    data: object
    strides: object


@triton.jit
def added(inputs, to, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for i in tl.static_range(len(inputs)):
        total += tl.load(inputs[i].data + at * inputs[i].strides[0])
    tl.store(to.data + at * to.strides[0], total)


@gluon.jit
def gluon_copy(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    gl.store(y + at, gl.load(x + at, mask=at < n), mask=at < n)


@gluon.jit
def gluon_block(source, out, SIZE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.allocate_shared_memory(source.dtype, source.block_type.shape, source.layout)
    at = gl.arange(0, SIZE, layout)
    gl.store(out + at, gl.full([SIZE], 1.0, gl.float16, layout))


@gluon.jit
def gluon_column(source, out, n, h, w, c, down, right, PIXELS: gl.constexpr, WIDE: gl.constexpr):
    # The pixels of images from one on, each moved by `down` and `right`: what im2col is for.
    arrived = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(arrived, count=1)
    block = gl.allocate_shared_memory(source.dtype, source.block_type.shape, source.layout)
    mbarrier.expect(arrived, source.nbytes_per_cta)
    moved = [down.to(gl.int16), right.to(gl.int16)]
    tma.async_load_im2col(source, [n, h, w, c], moved, arrived, block)
    mbarrier.wait(arrived, phase=0)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    row = gl.arange(0, PIXELS, gl.SliceLayout(1, layout))[:, None]
    column = gl.arange(0, WIDE, gl.SliceLayout(0, layout))[None, :]
    gl.store(out + row * WIDE + column, block.load(layout))


@triton.jit
def mixed_matmul(
    a, b, a_scale, b_scale, out, n, k,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    # mxfp8 by mxfp4: on sm_100 the 4-bit elements come through a descriptor that pads them.
    at_m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    at_n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    at_scale = tl.arange(0, TILE_K // 32)[None, :]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for first in range(0, k, TILE_K):
        left = a.load([tl.program_id(0) * TILE_M, first])
        right = b.load([tl.program_id(1) * TILE_N, first // 2])
        step = first // 32 + at_scale
        left_scale = tl.load(a_scale + at_m[:, None] * (k // 32) + step)
        right_scale = tl.load(b_scale + at_n[:, None] * (k // 32) + step)
        total = tl.dot_scaled(left, left_scale, "e4m3", right.T, right_scale, "e2m1", total)
    tl.store(out + at_m[:, None] * n + at_n[None, :], total)


@triton.jit
def defaulted(x, step=1, factor=0.5, BLOCK: tl.constexpr = 64):
    at = tl.arange(0, BLOCK) * step
    tl.store(x + at, tl.load(x + at) * factor)


@triton.jit
def half(x):
    return x + tl.arange(0, 32)


@triton.jit
def misfitting(x):
    tl.store(x, half(tl.arange(0, 64)))


@triton.jit
def rows(source, to, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE
    to.store([at, 0], source.load([at, 0]))


@triton.jit
def counted(x, to, n, BLOCK: tl.constexpr):
    """Adds ones by atomic operations."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    where = tl.load(x + at, mask=inside, other=0)
    tl.atomic_add(to + where, 1, mask=inside)


@triton.jit
def summed(x, to, n, BLOCK: tl.constexpr):
    """Adds to what is there."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    before = tl.load(to + at, mask=inside)
    tl.store(to + at, before + tl.load(x + at, mask=inside), mask=inside)


@triton.jit
def joined(a, b, c, s, t, n, BLOCK: tl.constexpr):
    """The sum of two vectors with strides of their own."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    left = tl.load(a + at * s, mask=inside)
    tl.store(c + at, left + tl.load(b + at * t, mask=inside), mask=inside)


@triton.jit
def shifted(x, y, n, factor, by, BLOCK: tl.constexpr):
    """Adds one number, which is in memory."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n) * factor + tl.load(by)
    tl.store(y + at, values, mask=at < n)


@triton.jit
def row_norm(x, y, columns, eps, scaled, BLOCK: tl.constexpr, SCALED: tl.constexpr = False):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    norm = tl.rsqrt(tl.sum(values * values) / columns + eps)
    if SCALED:
        norm *= scaled
    tl.store(y + row * columns + at, values * norm, mask=at < columns)


@triton.jit
def parted(
    x, y, columns, eps, scaled, BLOCK: tl.constexpr, PARTS: tl.constexpr, SCALED: tl.constexpr
):
    row, total = tl.program_id(0), 0.0
    for part in tl.static_range(PARTS):
        at = part * 1024 + tl.arange(0, 1024)
        total += tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0))
    if SCALED:
        total *= scaled
    at = tl.arange(0, BLOCK)
    tl.store(y + row * columns + at, total + eps, mask=at < columns)

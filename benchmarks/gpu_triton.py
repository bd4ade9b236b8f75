"""The kernels of `gpu.py` as Triton programs, for comparison.  Needs Triton.

Each takes PyTorch's tensors on a GPU, as the functions of ferrule do.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

BLOCK = 1024
TILE = 64


@triton.jit
def device_add(a, b, c, n, block: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = places < n
    total = tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside)
    tl.store(c + places, total, mask=inside)


def add(a: Any, b: Any, c: Any) -> None:
    """c = a + b."""
    device_add[((a.numel() + BLOCK - 1) // BLOCK,)](a, b, c, a.numel(), block=BLOCK)


@triton.jit
def device_softmax(x, y, columns: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * columns + tl.arange(0, columns)
    values = tl.load(x + places)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + places, powers / tl.sum(powers, axis=0))


def softmax(x: Any, y: Any) -> None:
    """y = softmax(x) along the last dim, whose size is a power of two."""
    device_softmax[(x.shape[0],)](x, y, columns=x.shape[1], num_warps=8)


@triton.jit
def device_rms_norm(x, weight, y, eps, columns: tl.constexpr):
    column = tl.arange(0, columns)
    places = tl.program_id(0).to(tl.int64) * columns + column
    values = tl.load(x + places)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    tl.store(y + places, values * scale * tl.load(weight + column))


def rms_norm(x: Any, weight: Any, y: Any, eps: float) -> None:
    """y = x / sqrt(mean(x * x) + eps) * weight along the last dim, whose size is a power of two."""
    device_rms_norm[(x.shape[0],)](x, weight, y, eps, columns=x.shape[1], num_warps=8)


@triton.jit
def device_transpose(a, out, m, n, tile: tl.constexpr):
    rows = (tl.program_id(1) * tile + tl.arange(0, tile)).to(tl.int64)
    columns = (tl.program_id(0) * tile + tl.arange(0, tile)).to(tl.int64)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    values = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside)
    there = (columns[:, None] < n) & (rows[None, :] < m)
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(values), mask=there)


def transpose(a: Any, out: Any) -> None:
    """out = a.T."""
    m, n = a.shape
    grid = (n + TILE - 1) // TILE, (m + TILE - 1) // TILE
    device_transpose[grid](a, out, m, n, tile=TILE)

"""Kernels as libraries of them are written: globals, helpers, options that are constants, arguments
that may be None, annotated strides."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

SAME: tl.constexpr = tl.constexpr(-1)
WIDER = tl.constexpr(0)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit(noinline=True)
def row_of(row, stride):
    return row.to(tl.int64) * stride


@triton.jit
def rms_norm(
    out, out_stride, x, x_stride, weight, rstd, columns, eps, offset,
    casting: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row_of(row, x_stride) + at, mask=inside, other=0)
    dtype = values.dtype
    if casting == WIDER:
        values = values.to(tl.float32)
    scale = libdevice.rsqrt(tl.sum(values * values, axis=0) / columns + eps)
    tl.store(rstd + row, scale)
    gain = tl.load(weight + at, mask=inside, other=0)
    if casting == SAME:
        gain = gain.to(dtype)
    result = (values * scale * (offset + gain)).to(dtype)
    tl.store(out + row_of(row, out_stride) + at, result, mask=inside)


@triton.jit
def cross_entropy(
    x, x_stride, labels, weight, loss, cap, columns, ignored,
    reduction: tl.constexpr, WEIGHTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    label = tl.load(labels + row)
    if label == ignored:
        return
    highest, total = float("-inf"), 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * x_stride + at, mask=at < columns, other=float("-inf"))
        if cap is not None:
            values = cap * libdevice.tanh(values / cap)
        new = tl.maximum(highest, tl.max(values))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(values - new))
        highest = new
    result = highest + tl.log(total)
    if WEIGHTED:
        result *= tl.load(weight + label)
    if reduction == "mean":
        result /= tl.num_programs(0)
    tl.store(loss + row, result)


@triton.heuristics(
    {
        "EVEN_K": lambda args: args["k"] % (args["TILE_K"] * args["SPLIT"]) == 0,
        "BIASED": lambda args: args["bias"] is not None,
    }
)
@triton.jit
def experts(
    a, b, c, bias, rows, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    top: tl.constexpr, dtype: tl.constexpr, activation: tl.constexpr, TILE_M: tl.constexpr,
    TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPLIT: tl.constexpr, EVEN_K: tl.constexpr,
    BIASED: tl.constexpr,
):  # fmt: skip
    row = tl.load(rows + tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    column = (tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)).to(tl.int64) % n
    step = tl.arange(0, TILE_K)
    a += row[:, None] // top * stride_am + step[None, :] * stride_ak
    b += step[:, None] * stride_bk + column[None, :] * stride_bn
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for done in range(0, k, TILE_K):
        if EVEN_K:
            total += tl.dot(tl.load(a), tl.load(b))
        else:
            left = k - done
            tile = tl.load(a, mask=step[None, :] < left, other=0.0)
            total += tl.dot(tile, tl.load(b, mask=step[:, None] < left, other=0.0))
        a += TILE_K * stride_ak
        b += TILE_K * stride_bk
    if BIASED:
        total += tl.load(bias + column)[None, :]
    if activation == "silu":
        total = silu(total)
    tl.store(c + row[:, None] * stride_cm + column[None, :] * stride_cn, total.to(dtype))


@triton.jit
def paged(
    out, q, cache, scale, table, lengths, table_stride: tl.int64, stride: tl.int64, block: tl.int64,
    WIDE: tl.constexpr, PAGE: tl.constexpr, ALIBI: tl.constexpr, slopes=None,
):  # fmt: skip
    row, at = tl.program_id(0), tl.arange(0, WIDE)
    query = tl.load(q + row * stride + at)
    total = tl.zeros([WIDE], tl.float32)
    inner = tl.arange(0, PAGE)[:, None] * WIDE + at[None, :]
    for page in range(tl.cdiv(tl.load(lengths + row), PAGE)):
        start = tl.load(table + row * table_stride + page).to(tl.int64) * block
        keys = tl.load(cache + start + inner).to(tl.float32)
        scores = tl.sum(keys * query[None, :], 1) * scale
        if ALIBI:
            scores += tl.load(slopes + row)
        total += tl.sum(keys * tl.exp2(scores)[:, None], 0)
    tl.store(out + row * stride + at, total)


@triton.jit
def counted(counter, x, n, flag, BLOCK: tl.constexpr = 128):
    tl.device_assert(n > 0, "empty")
    tl.atomic_add(counter, 1, sem="release")
    while tl.atomic_add(counter, 0, sem="acquire") < tl.num_programs(0):
        pass
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(x + at, 1.0 if flag else 2.0, mask=at < n)
    tl.device_print("done", tl.program_id(0))

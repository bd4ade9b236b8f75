"""Host functions around Triton kernels as libraries write them; their kernels only show what they
are launched with."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["s0", "s1", "n", "m"])
def four(x, y, z, out, s0, s1, n, m, p, q, BLOCK: tl.constexpr, FLAG: tl.constexpr):
    at = tl.program_id(0) * s0 + tl.arange(0, BLOCK) * s1
    value = tl.load(x + at, mask=at < n) * p + tl.load(y + at, mask=at < m) * q
    if FLAG:
        value += tl.load(z + at, mask=at < n)
    tl.store(out + at, value, mask=at < n)


@triton.jit(do_not_specialize=["n"])
def one(x, out, n, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * p, mask=at < n)


def settings(n: int) -> tuple[int, int]:
    block = triton.next_power_of_2(n)
    if block > 1 << 16:
        raise RuntimeError("too long a row")
    return block, 16 if block >= 2048 else 8 if block >= 256 else 4


def rms_norm(x, w, eps=1e-6, offset=0.0, mode="llama", in_place=True):
    x = x.view(-1, x.shape[-1])
    rows, n = x.shape
    block, warps = settings(n)
    out = x if in_place else torch.empty_like(x)
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    assert x.shape[1] == w.shape[0]
    four[(rows,)](
        x, w, rstd, out, x.stride(0), w.stride(0), n, rows, eps, offset,
        BLOCK=block, FLAG={"llama": 0, "gemma": 1}[mode], num_warps=warps,
    )  # fmt: skip
    return rstd


def rope(q, cos, base=10000.0, interleaved=False, scaling=None):
    batch, seq, heads, dim = q.shape
    half = dim // 2
    scaling = 1.0 if scaling is None else scaling
    out = torch.empty_like(q)
    block = triton.next_power_of_2(max(half, 16))
    grid = (batch * seq, triton.cdiv(heads, 4))
    four[grid](
        q, cos, cos, out, q.stride(1), q.stride(2), half, seq, 1.0 / base, scaling * 0.5,
        BLOCK=block, FLAG=interleaved, num_warps=4,
    )  # fmt: skip
    return out


def swiglu(a, b, limit=None, alpha=1.702):
    rows, n = a.shape
    out = torch.empty(rows, n)
    block, warps = settings(n)
    limit = limit or 0.0
    four[(rows,)](
        a, b, b, out, a.stride(0), 1, n, n, alpha, limit,
        BLOCK=block, FLAG=limit > 0, num_warps=warps,
    )  # fmt: skip
    return out


def cross_entropy(logits, target, ignore=-100, smoothing=0.0, scale=0.0, cap=None):
    rows, n = logits.shape
    loss = torch.zeros(rows, dtype=torch.float32)
    block = min(1024, triton.next_power_of_2(n))
    has_smoothing = smoothing > 0.0
    eps = smoothing / n if has_smoothing else 0.0
    four[(rows,)](
        logits, target, loss, loss, logits.stride(-2), ignore, n, rows, eps,
        scale if cap is None else cap * scale,
        BLOCK=block, FLAG=has_smoothing, num_warps=8 if not cap else 4,
    )  # fmt: skip
    return loss


def layer_norm_backward(dy, x, w, processors=132, eps=1e-5):
    rows, n = dy.shape
    per_program = math.ceil(rows / processors)
    partial = torch.empty(processors, n, dtype=torch.float32)
    dx = torch.empty_like(dy)
    block, warps = settings(n)
    four[(processors,)](
        dy, x, partial, dx, dy.stride(0), per_program, n, rows, eps, 1 / n,
        BLOCK=block, FLAG=1, num_warps=warps,
    )  # fmt: skip
    one[(triton.cdiv(n, 64),)](partial, w, min(processors, rows), 1.0 / math.sqrt(n), BLOCK=64)
    return dx


def linear_cross_entropy(x, w, smoothing=0.0, softcap=None):
    rows, hidden = x.shape
    classes = w.shape[0]
    factor = triton.cdiv(classes, hidden)
    chunk = triton.next_power_of_2(triton.cdiv(rows, factor))
    chunks = triton.cdiv(rows, chunk)
    loss = torch.zeros(rows, dtype=torch.float32)
    for _ in range(chunks):
        one[(triton.cdiv(rows, chunk),)](x, loss, classes, 1 - smoothing, BLOCK=64)
    return loss


def quantised(x, scale=1.0, bits=8, group=32):
    rows, n = x.shape
    assert n % group == 0, "whole groups"
    most = 2 ** (bits - 1) - 1
    scales = torch.empty(rows, n // group, dtype=torch.float32)
    out = torch.empty(rows, n, dtype=torch.float32)
    inverse = 1.0 / max(scale, 1e-10)
    four[(rows, n // group)](
        x, scales, scales, out, n, group, n, most, inverse, scale * most,
        BLOCK=triton.next_power_of_2(group), FLAG=0, num_warps=1,
    )  # fmt: skip
    return out, scales


def dropout(x, p=0.5, seed=7, training=True):
    n = x.numel()
    out = torch.empty_like(x)
    if not training or p == 0.0:
        one[(triton.cdiv(n, 64),)](x, out, n, 1.0, BLOCK=64)
        return out
    scale = 0.0 if p >= 1 else 1 / (1 - p)
    four[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](
        x, x, x, out, seed, seed % 5, n, n, p, scale, BLOCK=128, FLAG=0
    )
    return out


def attention(q, k, sm_scale=None, causal=False, window=-1, cap=0.0):
    batch, heads, seq, dim = q.shape
    groups = heads // k.shape[1]
    sm_scale = sm_scale if sm_scale is not None else 1 / math.sqrt(dim)
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads, seq), dtype=torch.float32)
    block = 64 if causal or dim > 64 else 128
    grid = lambda meta: (triton.cdiv(seq, meta["BLOCK"]), batch * heads)  # noqa: E731
    four[grid](
        q, k, lse, out, q.stride(2), groups, seq, window if window >= 0 else seq,
        sm_scale * 1.44269504, cap / sm_scale if cap > 0 else 0.0,
        BLOCK=block, FLAG=cap > 0,
    )  # fmt: skip
    return out, lse


def experts(x, w, top=2, block=16, renormalize=True, factor=None):
    rows, n = x.shape
    count = w.shape[0]
    padded = rows * top + count * (block - 1)
    if padded > count * rows:
        padded = min(padded, rows * top * block)
    out = torch.empty(rows * top, n, dtype=torch.float32)
    factor = factor or 1.0
    grid = (triton.cdiv(padded, block) * triton.cdiv(n, 64),)
    four[grid](
        x, w, w, out, x.stride(0), top, padded, rows * top, factor, 1 / top,
        BLOCK=block, FLAG=renormalize,
    )  # fmt: skip
    return out


def adam(x, grad, step=3, rate=0.001, beta=0.9, decay=0.0):
    n = x.numel()
    correction = 1 - beta**step
    four[(triton.cdiv(n, 64),)](
        x, grad, grad, x, step, step + 1, n, n, rate / correction, 1 - rate * decay,
        BLOCK=64, FLAG=decay != 0,
    )  # fmt: skip


def sampled(logits, temperature=1.0, top_k=-1, top_p=1.0, min_p=0.0):
    rows, n = logits.shape
    out = torch.empty_like(logits)
    inverse = 1.0 / temperature if temperature > 1e-5 else 1.0
    top = n if top_k <= 0 else min(top_k, n)
    four[(rows,)](
        logits, logits, logits, out, n, top, n, rows, inverse, math.log(min_p) if min_p else top_p,
        BLOCK=triton.next_power_of_2(n), FLAG=top_p < 1.0 or top < n,
    )  # fmt: skip
    return out


FLOATS = [0.0, -0.0, 0.1, 0.5, 1e-6, 2.0, 1.0, -1.5, 1e-60, math.inf, math.nan]
SIZES = [(3, 40), (4, 50), (5, 64), (8, 48), (40, 40), (6, 36), (2, 56), (35, 63)]
OTHERS = [(3, 104), (9, 32), (1, 1), (300, 50)]
HOSTS: dict[str, tuple[Any, Any, dict[str, list[Any]]]] = {
    "rms_norm": (rms_norm, lambda m, n: [(m, n), (n,)], {
        "eps": [1e-6, 1e-5, *FLOATS], "offset": FLOATS, "mode": ["llama", "gemma"],
        "in_place": [True, False]}),
    "rope": (rope, lambda m, n: [(2, m, 4, n), (m, n)], {
        "base": [10000.0, 500000.0, *FLOATS], "interleaved": [False, True],
        "scaling": [None, 0.5, 1.0, 2.0]}),
    "swiglu": (swiglu, lambda m, n: [(m, n), (m, n)], {
        "limit": [None, 7.0, 0.5, 0.0, -1.0], "alpha": FLOATS}),
    "cross_entropy": (cross_entropy, lambda m, n: [(m, n), (m,)], {
        "ignore": [-100, 0, 5, -1], "smoothing": FLOATS, "scale": FLOATS,
        "cap": [None, 30.0, 0.5, 0.0]}),
    "layer_norm_backward": (layer_norm_backward, lambda m, n: [(m, n), (m, n), (n,)], {
        "processors": [132, 4, 40, 5, 3, 64], "eps": FLOATS}),
    "linear_cross_entropy": (linear_cross_entropy, lambda m, n: [(m, 8), (n, 8)], {
        "smoothing": FLOATS, "softcap": [None, 1.0, 2.0]}),
    "quantised": (quantised, lambda m, n: [(m, n)], {
        "scale": FLOATS, "bits": [8, 4, 2], "group": [32, 8, 16, 40]}),
    "dropout": (dropout, lambda m, n: [(m, n)], {
        "p": FLOATS, "seed": [7, 123, 1 << 33, -5, 3, 40], "training": [True, False]}),
    "attention": (attention, lambda m, n: [(2, 4, m, n), (2, 2, m, n)], {
        "sm_scale": [None, *FLOATS], "causal": [False, True], "window": [-1, 0, 3, 64],
        "cap": [0.0, 30.0, *FLOATS]}),
    "experts": (experts, lambda m, n: [(m, n), (8, n)], {
        "top": [2, 3, 4, 8], "block": [16, 32], "renormalize": [True, False],
        "factor": [None, 0.5, 2.5, 0.0]}),
    "adam": (adam, lambda m, n: [(m, n), (m, n)], {
        "step": [3, 4, 10, 2], "rate": FLOATS, "beta": [0.9, 0.95, 0.5], "decay": FLOATS}),
    "sampled": (sampled, lambda m, n: [(m, n)], {
        "temperature": FLOATS, "top_k": [-1, 5, 40, 50, 7], "top_p": FLOATS,
        "min_p": [0.0, 0.1, 0.2]}),
}  # fmt: skip
"""Host functions, the shapes of their tensors for two sizes, and values of their arguments."""

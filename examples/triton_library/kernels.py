"""Kernels of Triton that work row by row: what the library of `rows.py` is made of.

Everything is computed in float32, whatever the dtype of the tensors, and rounded once at the end.
A row is in memory as it is in its tensor: rows may be apart (`x[:, :n]` of a wider matrix).
"""

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x, weight, y, rstd, x_stride, y_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt_rn(tl.sum(values * values, axis=0) / n + eps)
    tl.store(rstd + row, scale)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * y_stride + column, values * scale * w, mask=inside)


@triton.jit
def rms_norm_backward_kernel(
    grad_y,
    x,
    weight,
    rstd,
    grad_x,
    parts,
    grad_y_stride,
    x_stride,
    grad_x_stride,
    m,
    n,
    BLOCK: tl.constexpr,
):
    """Each program takes every so-manieth row, and sums the weight's gradients over its rows."""
    program = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, m, tl.num_programs(0)):
        g = tl.load(grad_y + row * grad_y_stride + column, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = v * scale
        along = tl.sum(g * w * normal, axis=0) / n
        tl.store(
            grad_x + row * grad_x_stride + column, (g * w - normal * along) * scale, mask=inside
        )
        total += g * normal
    tl.store(parts + program * n + column, total, mask=inside)


@triton.jit
def layer_norm_kernel(
    x, weight, bias, y, mean, rstd, x_stride, y_stride, n, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    values = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    centre = tl.sum(values, axis=0) / n
    apart = tl.where(inside, values - centre, 0.0)
    scale = 1.0 / tl.sqrt_rn(tl.sum(apart * apart, axis=0) / n + eps)
    tl.store(mean + row, centre)
    tl.store(rstd + row, scale)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * y_stride + column, apart * scale * w + b, mask=inside)


@triton.jit
def layer_norm_backward_kernel(
    grad_y,
    x,
    weight,
    mean,
    rstd,
    grad_x,
    weight_parts,
    bias_parts,
    grad_y_stride,
    x_stride,
    grad_x_stride,
    m,
    n,
    BLOCK: tl.constexpr,
):
    """As that of `rms_norm`, with sums for the weight and for the bias."""
    program = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    weight_total = tl.zeros((BLOCK,), tl.float32)
    bias_total = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, m, tl.num_programs(0)):
        g = tl.load(grad_y + row * grad_y_stride + column, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        normal = tl.where(inside, (v - tl.load(mean + row)) * scale, 0.0)
        along = tl.sum(g * w * normal, axis=0) / n
        common = tl.sum(g * w, axis=0) / n
        tl.store(
            grad_x + row * grad_x_stride + column,
            (g * w - normal * along - common) * scale,
            mask=inside,
        )
        weight_total += g * normal
        bias_total += g
    tl.store(weight_parts + program * n + column, weight_total, mask=inside)
    tl.store(bias_parts + program * n + column, bias_total, mask=inside)


@triton.jit
def swiglu_kernel(a, b, y, a_stride, b_stride, y_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < n
    gate = tl.load(a + row * a_stride + column, mask=inside).to(tl.float32)
    value = tl.load(b + row * b_stride + column, mask=inside).to(tl.float32)
    tl.store(y + row * y_stride + column, gate * tl.sigmoid(gate) * value, mask=inside)


@triton.jit
def swiglu_backward_kernel(
    grad_y,
    a,
    b,
    grad_a,
    grad_b,
    grad_y_stride,
    a_stride,
    b_stride,
    grad_a_stride,
    grad_b_stride,
    n,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < n
    g = tl.load(grad_y + row * grad_y_stride + column, mask=inside).to(tl.float32)
    gate = tl.load(a + row * a_stride + column, mask=inside).to(tl.float32)
    value = tl.load(b + row * b_stride + column, mask=inside).to(tl.float32)
    share = tl.sigmoid(gate)
    slope = share * (1.0 + gate * (1.0 - share))
    tl.store(grad_a + row * grad_a_stride + column, g * value * slope, mask=inside)
    tl.store(grad_b + row * grad_b_stride + column, g * gate * share, mask=inside)


@triton.jit
def maximum_or_nan(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def cross_entropy_kernel(
    logits, target, loss, logsum, logits_stride, n, ignore_index, BLOCK: tl.constexpr
):
    """A target that is no class, other than `ignore_index`, has the loss NaN: nothing is read for
    it."""
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * logits_stride
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for first in range(0, n, BLOCK):
        column = first + tl.arange(0, BLOCK)
        values = tl.load(start + column, mask=column < n, other=float("-inf")).to(tl.float32)
        largest = maximum_or_nan(largest, values)
    top = tl.reduce(largest, 0, maximum_or_nan)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        column = first + tl.arange(0, BLOCK)
        values = tl.load(start + column, mask=column < n, other=float("-inf")).to(tl.float32)
        total += tl.exp(values - top)
    log = top + tl.log(tl.sum(total, axis=0))
    tl.store(logsum + row, log)
    which = tl.load(target + row)
    known = (which >= 0) & (which < n)
    own = tl.load(start + which, mask=known, other=float("nan")).to(tl.float32)
    tl.store(loss + row, tl.where(which == ignore_index, 0.0, log - own))


@triton.jit
def cross_entropy_backward_kernel(
    grad_loss,
    logits,
    target,
    logsum,
    grad_logits,
    logits_stride,
    grad_logits_stride,
    n,
    ignore_index,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < n
    which = tl.load(target + row)
    g = tl.load(grad_loss + row)
    values = tl.load(logits + row * logits_stride + column, mask=inside, other=0.0).to(tl.float32)
    share = tl.exp(values - tl.load(logsum + row))
    found = g * (share - tl.where(column == which, 1.0, 0.0))
    known = (which >= 0) & (which < n)
    found = tl.where(known, found, float("nan"))
    found = tl.where(which == ignore_index, 0.0, found)
    tl.store(grad_logits + row * grad_logits_stride + column, found, mask=inside)


@triton.jit
def rope_kernel(
    x,
    cosines,
    sines,
    y,
    x_0,
    x_1,
    x_2,
    y_0,
    y_1,
    y_2,
    s,
    h,
    half,
    BACKWARD: tl.constexpr,
    HEADS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rotates the pairs `(x[..., i], x[..., half + i])`; backwards, by the opposite angle."""
    token = tl.program_id(0).to(tl.int64)
    batch, position = token // s, token % s
    pair = tl.arange(0, BLOCK)
    head = tl.program_id(1).to(tl.int64) * HEADS + tl.arange(0, HEADS)
    inside = (head < h)[:, None] & (pair < half)[None, :]
    cosine = tl.load(cosines + position * half + pair, mask=pair < half)[None, :]
    sine = tl.load(sines + position * half + pair, mask=pair < half)[None, :]
    if BACKWARD:
        sine = -sine
    source = x + batch * x_0 + position * x_1 + (head * x_2)[:, None] + pair[None, :]
    first = tl.load(source, mask=inside).to(tl.float32)
    second = tl.load(source + half, mask=inside).to(tl.float32)
    result = y + batch * y_0 + position * y_1 + (head * y_2)[:, None] + pair[None, :]
    tl.store(result, first * cosine - second * sine, mask=inside)
    tl.store(result + half, second * cosine + first * sine, mask=inside)

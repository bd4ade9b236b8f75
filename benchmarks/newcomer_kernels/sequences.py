"""Sorting, scanning, gathering and dynamic programs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from newcomer_kernels.cases import Case, floats, zeros

import ferrule as fe

arch = fe.arch
POINTS: Final = 1024


def indices(high: int, *shape: int) -> np.ndarray:
    """Random indices below a number."""
    return np.random.default_rng(5).integers(0, high, shape).astype(np.int32)


# ---- FFT, radix 2, with a table ----


def twiddles() -> tuple[np.ndarray, np.ndarray]:
    """cos and -sin of the turns of 1024 points."""
    turns = 2 * np.pi * np.arange(POINTS // 2) / POINTS
    return np.cos(turns).astype(np.float32), (-np.sin(turns)).astype(np.float32)


def reversed_bits() -> np.ndarray:
    """The order in which decimation in time reads."""
    return np.array([int(f"{i:010b}"[::-1], 2) for i in range(POINTS)], np.int32)


@fe.kernel
def fft_kernel(x, order, cos, sin, out):
    """x, out: (signals, 2, 1024), real and imaginary parts; a block of 512 threads for each."""
    signal, thread = arch.block_idx()[0], arch.thread_idx()[0]
    real = arch.alloc_smem(fe.Float32, POINTS)
    imag = arch.alloc_smem(fe.Float32, POINTS)
    for half in fe.range_constexpr(2):
        place = thread + half * 512
        real[place] = x[signal, 0, order[place]]
        imag[place] = x[signal, 1, order[place]]
    arch.sync_threads()
    for stage in fe.range_constexpr(10):
        width = 1 << stage
        place = thread & (width - 1)
        low = ((thread >> stage) << (stage + 1)) + place
        c, s = cos[place << (9 - stage)], sin[place << (9 - stage)]
        a, b = real[low], imag[low]
        p, q = real[low + width], imag[low + width]
        u, v = p * c - q * s, p * s + q * c
        real[low], imag[low] = a + u, b + v
        real[low + width], imag[low + width] = a - u, b - v
        arch.sync_threads()
    for half in fe.range_constexpr(2):
        place = thread + half * 512
        out[signal, 0, place] = real[place]
        out[signal, 1, place] = imag[place]


@fe.jit
def fft(x, order, cos, sin, out):
    fft_kernel(x, order, cos, sin, out).launch(grid=x.shape[0], block=512)


def numba_fft(x, order, cos, sin, out):
    n = x.shape[2]
    for g in range(x.shape[0]):
        for i in range(n):
            out[g, 0, i] = x[g, 0, order[i]]
            out[g, 1, i] = x[g, 1, order[i]]
        width = 1
        while width < n:
            for start in range(0, n, 2 * width):
                for k in range(width):
                    c, s = cos[k * (n // 2 // width)], sin[k * (n // 2 // width)]
                    p, q = out[g, 0, start + k + width], out[g, 1, start + k + width]
                    u, v = p * c - q * s, p * s + q * c
                    a, b = out[g, 0, start + k], out[g, 1, start + k]
                    out[g, 0, start + k] = a + u
                    out[g, 1, start + k] = b + v
                    out[g, 0, start + k + width] = a - u
                    out[g, 1, start + k + width] = b - v
            width *= 2


FFT: Final = Case(
    "FFT, radix 2",
    fft,
    numba_fft,
    "x order cos sin out",
    """
    long n = x2;
    for (long g = 0; g < x0; g++) {
        float *re = out + g * 2 * n, *im = re + n, *in = x + g * 2 * n;
        for (long i = 0; i < n; i++) { re[i] = in[order[i]]; im[i] = in[n + order[i]]; }
        for (long width = 1; width < n; width *= 2)
            for (long start = 0; start < n; start += 2 * width)
                for (long k = 0; k < width; k++) {
                    float c = cos[k * (n / 2 / width)], s = sin[k * (n / 2 / width)];
                    float p = re[start + k + width], q = im[start + k + width];
                    float u = p * c - q * s, v = p * s + q * c;
                    float a = re[start + k], b = im[start + k];
                    re[start + k] = a + u; im[start + k] = b + v;
                    re[start + k + width] = a - u; im[start + k + width] = b - v;
                }
    }""",
    lambda n: (floats(n, 2, POINTS), reversed_bits(), *twiddles(), zeros(n, 2, POINTS)),
    32,
    tolerance=1e-3,
)


# ---- bitonic sort of rows ----


@fe.kernel
def bitonic_kernel(x, out):
    """Rows of 1024; a block of 512 threads for each, which compares a pair each."""
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    held = arch.alloc_smem(fe.Float32, POINTS)
    held[thread], held[thread + 512] = x[row, thread], x[row, thread + 512]
    arch.sync_threads()
    for size in fe.range_constexpr(1, 11):
        for step in fe.range_constexpr(size - 1, -1, -1):
            place = thread & ((1 << step) - 1)
            low = ((thread >> step) << (step + 1)) + place
            high = low + (1 << step)
            a, b = held[low], held[high]
            up = (low >> size) & 1 == 0
            held[low] = min(a, b) if up else max(a, b)
            held[high] = max(a, b) if up else min(a, b)
            arch.sync_threads()
    out[row, thread], out[row, thread + 512] = held[thread], held[thread + 512]


@fe.jit
def bitonic(x, out):
    bitonic_kernel(x, out).launch(grid=x.shape[0], block=512)


def numba_bitonic(x, out):
    n = x.shape[1]
    for row in range(x.shape[0]):
        for i in range(n):
            out[row, i] = x[row, i]
        size = 2
        while size <= n:
            step = size // 2
            while step > 0:
                for start in range(0, n, 2 * step):
                    up = (start & size) == 0
                    for k in range(start, start + step):
                        a, b = out[row, k], out[row, k + step]
                        low, high = min(a, b), max(a, b)
                        out[row, k] = low if up else high
                        out[row, k + step] = high if up else low
                step //= 2
            size *= 2


BITONIC: Final = Case(
    "bitonic sort",
    bitonic,
    numba_bitonic,
    "x out",
    """
    long n = x1;
    for (long row = 0; row < x0; row++) {
        float *o = out + row * n;
        memcpy(o, x + row * n, n * sizeof(float));
        for (long size = 2; size <= n; size *= 2)
            for (long step = size / 2; step > 0; step /= 2)
                for (long start = 0; start < n; start += 2 * step) {
                    int up = (start & size) == 0;
                    for (long k = start; k < start + step; k++) {
                        float a = o[k], b = o[k + step];
                        float low = a < b ? a : b, high = a < b ? b : a;
                        o[k] = up ? low : high;
                        o[k + step] = up ? high : low;
                    }
                }
    }""",
    lambda n: (floats(n, POINTS), zeros(n, POINTS)),
    32,
)


# ---- causal convolution ----


@fe.kernel
def conv_kernel(x, w, out):
    """x: (channels, time); a block for each channel, four taps."""
    channel, thread = arch.block_idx()[0], arch.thread_idx()[0]
    for t in range(thread, x.shape[1], 128):
        total = fe.Float32(0)
        for tap in fe.range_constexpr(4):
            at = t - 3 + tap
            if at >= 0:
                total += w[channel, tap] * x[channel, at]
        out[channel, t] = total / (1.0 + fe.math.exp(-total))


@fe.jit
def conv(x, w, out):
    conv_kernel(x, w, out).launch(grid=x.shape[0], block=128)


def numba_conv(x, w, out):
    for c in range(x.shape[0]):
        for t in range(x.shape[1]):
            total = np.float32(0)
            for tap in range(4):
                if t - 3 + tap >= 0:
                    total += w[c, tap] * x[c, t - 3 + tap]
            out[c, t] = total / (np.float32(1) + np.exp(-total))


CONV: Final = Case(
    "causal convolution",
    conv,
    numba_conv,
    "x w out",
    """
    for (long c = 0; c < x0; c++)
        for (long t = 0; t < x1; t++) {
            float total = 0;
            for (long tap = 0; tap < 4; tap++)
                if (t - 3 + tap >= 0) total += w[c * w1 + tap] * x[c * x1 + t - 3 + tap];
            out[c * x1 + t] = total / (1 + expf(-total));
        }""",
    lambda n: (floats(64, n), floats(64, 4, seed=1), zeros(64, n)),
    1024,
)


# ---- mixture of experts: the best two of each token ----


@fe.kernel
def route_kernel(logits, experts, weights):
    token = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if token < logits.shape[0]:
        first, second = fe.Int32(-1), fe.Int32(-1)
        best, next_ = fe.Float32(-1e30), fe.Float32(-1e30)
        for e in range(logits.shape[1]):
            value = logits[token, e]
            if value > best:
                second, next_ = first, best
                first, best = e, value
            elif value > next_:
                second, next_ = e, value
        share = 1.0 / (1.0 + fe.math.exp(next_ - best))
        experts[token, 0], experts[token, 1] = first, second
        weights[token, 0], weights[token, 1] = share, 1.0 - share


@fe.jit
def route(logits, experts, weights):
    route_kernel(logits, experts, weights).launch(grid=(logits.shape[0] + 63) // 64, block=64)


def numba_route(logits, experts, weights):
    for t in range(logits.shape[0]):
        first, second = -1, -1
        best, other = np.float32(-1e30), np.float32(-1e30)
        for e in range(logits.shape[1]):
            value = logits[t, e]
            if value > best:
                second, other = first, best
                first, best = e, value
            elif value > other:
                second, other = e, value
        share = np.float32(1) / (np.float32(1) + np.exp(other - best))
        experts[t, 0], experts[t, 1] = first, second
        weights[t, 0], weights[t, 1] = share, np.float32(1) - share


ROUTE: Final = Case(
    "routing to two experts",
    route,
    numba_route,
    "logits experts weights",
    """
    for (long t = 0; t < logits0; t++) {
        int first = -1, second = -1;
        float best = -1e30f, other = -1e30f;
        for (long e = 0; e < logits1; e++) {
            float value = logits[t * logits1 + e];
            if (value > best) { second = first; other = best; first = e; best = value; }
            else if (value > other) { second = e; other = value; }
        }
        float share = 1 / (1 + expf(other - best));
        experts[2 * t] = first; experts[2 * t + 1] = second;
        weights[2 * t] = share; weights[2 * t + 1] = 1 - share;
    }""",
    lambda n: (floats(n, 64), zeros(n, 2, dtype=np.int32), zeros(n, 2)),
    2048,
    outputs=2,
)


# ---- sparse matrix times vector ----


def sparse(rows: int) -> tuple[Any, ...]:
    """A matrix with 16 numbers in each row, and a vector."""
    starts = np.arange(rows + 1, dtype=np.int32) * 16
    return starts, indices(rows, rows * 16), floats(rows * 16), floats(rows, seed=1)


@fe.jit
def spmv(starts, columns, values, x, out):
    for i in range(out.shape[0]):
        total = fe.Float32(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total


def numba_spmv(starts, columns, values, x, out):
    for i in range(out.shape[0]):
        total = np.float32(0)
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total


SPMV: Final = Case(
    "sparse matrix times vector",
    spmv,
    numba_spmv,
    "starts columns values x out",
    """
    for (long i = 0; i < out0; i++) {
        float total = 0;
        for (int k = starts[i]; k < starts[i + 1]; k++) total += values[k] * x[columns[k]];
        out[i] = total;
    }""",
    lambda n: (*sparse(n), zeros(n)),
    8192,
)


# ---- embedding bag ----


@fe.kernel
def bag_kernel(table, ids, out):
    bag = arch.block_idx()[0]
    for d in range(arch.thread_idx()[0], table.shape[1], 64):
        total = fe.Float32(0)
        for k in range(ids.shape[1]):
            total += table[ids[bag, k], d]
        out[bag, d] = total


@fe.jit
def bag(table, ids, out):
    bag_kernel(table, ids, out).launch(grid=ids.shape[0], block=64)


def numba_bag(table, ids, out):
    for b in range(ids.shape[0]):
        for d in range(table.shape[1]):
            out[b, d] = 0
        for k in range(ids.shape[1]):
            for d in range(table.shape[1]):
                out[b, d] += table[ids[b, k], d]


BAG: Final = Case(
    "embedding bag",
    bag,
    numba_bag,
    "table ids out",
    """
    for (long b = 0; b < ids0; b++) {
        float *o = out + b * table1;
        for (long d = 0; d < table1; d++) o[d] = 0;
        for (long k = 0; k < ids1; k++)
            for (long d = 0; d < table1; d++) o[d] += table[ids[b * ids1 + k] * table1 + d];
    }""",
    lambda n: (floats(4096, 128), indices(4096, n, 32), zeros(n, 128)),
    256,
)


# ---- triangular systems ----


@fe.kernel
def solve_kernel(a, b, x):
    """a: (systems, n, n), lower; b, x: (systems, n, columns); a thread for each column."""
    system, column = arch.block_idx()[0], arch.thread_idx()[0]
    for i in range(a.shape[1]):
        total = b[system, i, column]
        for k in range(i):
            total -= a[system, i, k] * x[system, k, column]
        x[system, i, column] = total / a[system, i, i]


@fe.jit
def solve(a, b, x):
    solve_kernel(a, b, x).launch(grid=a.shape[0], block=64)


def numba_solve(a, b, x):
    for s in range(a.shape[0]):
        for i in range(a.shape[1]):
            for c in range(b.shape[2]):
                x[s, i, c] = b[s, i, c]
            for k in range(i):
                for c in range(b.shape[2]):
                    x[s, i, c] -= a[s, i, k] * x[s, k, c]
            for c in range(b.shape[2]):
                x[s, i, c] /= a[s, i, i]


def lower(systems: int, n: int) -> np.ndarray:
    """Matrices with large diagonals."""
    return (np.tril(floats(systems, n, n)) * 0.1 + np.eye(n)).astype(np.float32)


SOLVE: Final = Case(
    "triangular systems",
    solve,
    numba_solve,
    "a b x",
    """
    long n = a1, m = b2;
    for (long s = 0; s < a0; s++) {
        float *as = a + s * n * n, *bs = b + s * n * m, *xs = x + s * n * m;
        for (long i = 0; i < n; i++) {
            for (long c = 0; c < m; c++) xs[i * m + c] = bs[i * m + c];
            for (long k = 0; k < i; k++)
                for (long c = 0; c < m; c++) xs[i * m + c] -= as[i * n + k] * xs[k * m + c];
            for (long c = 0; c < m; c++) xs[i * m + c] /= as[i * n + i];
        }
    }""",
    lambda n: (lower(n, 48), floats(n, 48, 64, seed=1), zeros(n, 48, 64)),
    16,
    tolerance=1e-3,
)


# ---- edit distance, and local alignment ----


@fe.jit
def edits(a, b, row, out):
    n = b.shape[0]
    for j in range(n + 1):
        row[j] = j
    for i in range(a.shape[0]):
        corner, letter = row[0], a[i]
        row[0] = i + 1
        left = row[0]
        for j in range(n):
            above = row[j + 1]
            same = corner + (0 if letter == b[j] else 1)
            left = min(same, min(left, above) + 1)
            row[j + 1] = left
            corner = above
    out[0] = row[n]


def numba_edits(a, b, row, out):
    n = b.shape[0]
    for j in range(n + 1):
        row[j] = j
    for i in range(a.shape[0]):
        corner = row[0]
        row[0] = i + 1
        left = row[0]
        for j in range(n):
            above = row[j + 1]
            same = corner + (0 if a[i] == b[j] else 1)
            left = min(same, min(left, above) + 1)
            row[j + 1] = left
            corner = above
    out[0] = row[n]


EDITS: Final = Case(
    "edit distance",
    edits,
    numba_edits,
    "a b row out",
    """
    long n = b0;
    for (long j = 0; j <= n; j++) row[j] = j;
    for (long i = 0; i < a0; i++) {
        int corner = row[0], left = i + 1;
        row[0] = left;
        for (long j = 0; j < n; j++) {
            int above = row[j + 1], same = corner + (a[i] != b[j]);
            int least = left < above ? left : above;
            left = same < least + 1 ? same : least + 1;
            row[j + 1] = left;
            corner = above;
        }
    }
    out[0] = row[n];""",
    lambda n: (
        indices(4, 200),
        indices(4, n),
        zeros(n + 1, dtype=np.int32),
        zeros(1, dtype=np.int32),
    ),
    1000,
)


@fe.jit
def align(a, b, row, out):
    n = b.shape[0]
    for j in range(n + 1):
        row[j] = 0
    best = fe.Int32(0)
    for i in range(a.shape[0]):
        corner, left, letter = fe.Int32(0), fe.Int32(0), a[i]
        for j in range(n):
            above = row[j + 1]
            same = corner + (2 if letter == b[j] else -1)
            left = max(max(same, 0), max(left, above) - 1)
            row[j + 1] = left
            best = max(best, left)
            corner = above
    out[0] = best


def numba_align(a, b, row, out):
    n = b.shape[0]
    for j in range(n + 1):
        row[j] = 0
    best = 0
    for i in range(a.shape[0]):
        corner, left = 0, 0
        for j in range(n):
            above = row[j + 1]
            same = corner + (2 if a[i] == b[j] else -1)
            left = max(max(same, 0), max(left, above) - 1)
            row[j + 1] = left
            best = max(best, left)
            corner = above
    out[0] = best


ALIGN: Final = Case(
    "local alignment",
    align,
    numba_align,
    "a b row out",
    """
    long n = b0;
    int best = 0;
    for (long j = 0; j <= n; j++) row[j] = 0;
    for (long i = 0; i < a0; i++) {
        int corner = 0, left = 0;
        for (long j = 0; j < n; j++) {
            int above = row[j + 1], same = corner + (a[i] == b[j] ? 2 : -1);
            int gap = (left > above ? left : above) - 1;
            left = same > 0 ? same : 0;
            left = left > gap ? left : gap;
            row[j + 1] = left;
            best = best > left ? best : left;
            corner = above;
        }
    }
    out[0] = best;""",
    lambda n: (
        indices(4, 200),
        indices(4, n),
        zeros(n + 1, dtype=np.int32),
        zeros(1, dtype=np.int32),
    ),
    1000,
)


# ---- sums of segments ----


@fe.jit
def segments(x, starts, out):
    total = fe.Float32(0)
    for i in range(x.shape[0]):
        total = x[i] if starts[i] != 0 else total + x[i]
        out[i] = total


def numba_segments(x, starts, out):
    total = np.float32(0)
    for i in range(x.shape[0]):
        total = x[i] if starts[i] != 0 else total + x[i]
        out[i] = total


SEGMENTS: Final = Case(
    "sums of segments",
    segments,
    numba_segments,
    "x starts out",
    """
    float total = 0;
    for (long i = 0; i < x0; i++) {
        total = starts[i] ? x[i] : total + x[i];
        out[i] = total;
    }""",
    lambda n: (floats(n), (indices(8, n) == 0).astype(np.int32), zeros(n)),
    65536,
    tolerance=1e-3,
)

SEQUENCES: Final = (
    *(FFT, BITONIC, CONV, ROUTE, SPMV, BAG, SOLVE),
    *(EDITS, ALIGN, SEGMENTS),
)

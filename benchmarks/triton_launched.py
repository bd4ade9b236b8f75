"""The kernels of `launch_triton.py`, which return at once.  Needs Triton."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def nothing():
    pass


@triton.jit
def five(a, b, c, n, factor, BLOCK: tl.constexpr):
    pass


@triton.jit
def nineteen(
    a, b, c, d, e, n0, n1, n2, n3, n4, n5, n6, n7, n8,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, C3: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pass


@triton.jit
def rows(
    a, b, c, d, e, s0, s1, s2, s3, s4, t0, t1, t2, t3, n,
    C0: tl.constexpr, C1: tl.constexpr, C2: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A sum of rows of four tensors, each with strides of its own."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(a + row * s0 + at * t0, mask=inside) * C0
    total += tl.load(b + row * s1 + at * t1, mask=inside) * C1
    total += tl.load(c + row * s2 + at * t2, mask=inside) * C2
    total += tl.load(d + row * s3 + at * t3, mask=inside)
    tl.store(e + row * s4 + at, total, mask=inside)

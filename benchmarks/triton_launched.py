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

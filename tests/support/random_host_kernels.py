"""Kernels that random host functions launch: what they are told, nobody compiles in.

Nothing runs them; a launch is compared by its grid and its parameters.
"""

from __future__ import annotations

import triton
import triton.language as tl

NUMBERS = ["row", "column", "n"]


@triton.jit(do_not_specialize=NUMBERS)
def moved(x, y, row, column, n, factor, BLOCK: tl.constexpr):
    """Rows of a tensor by strides, times a number."""
    pid, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + pid * row + at * column, mask=at < n)
    tl.store(y + pid * n + at, values * factor, mask=at < n)


@triton.jit(do_not_specialize=NUMBERS)
def summed(x, y, row, column, n, factor, BLOCK: tl.constexpr):
    """A sum of each row, added to what is there."""
    pid, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + pid * row + at * column, mask=at < n, other=0.0)
    tl.atomic_add(y + pid, tl.sum(values) + factor)


KERNELS = {each.fn.__name__: each for each in (moved, summed)}

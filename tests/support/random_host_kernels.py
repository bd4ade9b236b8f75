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


def _block(args):
    """A constant that follows from a number of the launch."""
    return 16 if args["n"] <= 16 else 32 if args["n"] % 2 == 0 else 64


@triton.heuristics(
    {"BLOCK": _block, "num_warps": lambda args: 1 if args["x"].stride(-1) == 1 else 2}
)
@triton.jit(do_not_specialize=NUMBERS)
def chosen(x, y, row, column, n, factor, BLOCK: tl.constexpr):
    """As `moved`, with constants of its own."""
    pid, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + pid * row + at * column, mask=at < n)
    tl.store(y + pid * n + at, values * factor, mask=at < n)


@triton.jit
def twice(value):
    """A function that another kernel is given."""
    return value + value


@triton.jit
def same(value):
    """Another one."""
    return value


@triton.jit(do_not_specialize=NUMBERS)
def applied(x, y, row, column, n, factor, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    """As `moved`, of a function that is compiled in."""
    pid, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + pid * row + at * column, mask=at < n)
    tl.store(y + pid * n + at, FUNCTION(values) * factor, mask=at < n)


KERNELS = {each.fn.__name__: each for each in (moved, summed, applied)}

"""The sizes of a launch: their limits, and run-time checks.

The limits and the messages are those of `compiler.cuda.limits`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from math import prod
from typing import Any

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.cuda.limits import (
    BLOCK_LIMITS,
    CLUSTER_LIMIT,
    GRID_LIMITS,
    MAX_THREADS,
    beyond,
    no_whole_clusters,
    too_many_blocks,
    too_many_threads,
)
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion
from ferrule.language.values import Number
from ferrule.specs import Compound, Int64

Sizes = tuple[Number, Number, Number]


def three_sizes(low: Lowering, what: str, sizes: Any, kernel: str, node: ast.Call) -> Sizes:
    """Three Int64 sizes, padded with 1."""
    given = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(given) <= 3:
        low.fail(node, f"{what} takes 1 to 3 sizes, but got {len(given)}")
    padded = (*given, *(1,) * (3 - len(given)))
    names = (f"{what} {letter}" for letter in ops.AXES)
    x, y, z = (one_size(low, *each, kernel, node) for each in zip(names, padded, strict=True))
    return x, y, z


def one_size(low: Lowering, name: str, size: Any, kernel: str, node: ast.Call) -> Number:
    """One size as an Int64: an expression is evaluated in 64 bits and never wraps."""
    number = coercion.as_number(low, size, node, Int64)
    if not number.dtype.is_integer:
        low.fail(
            node,
            f"{name} is {describe(size)}",
            expected="an integer",
            hint="divide with // instead of /",
        )
    if isinstance(number.dim, Compound):
        fault = Fault(
            "LaunchError",
            f"Invalid launch of {kernel}: {name} overflows 64 bits or divides by zero",
            low.location(node),
        )
        return Number(low.builder.size(Int64, number.dim, fault), number.dim)
    return coercion.convert(low, number, Int64)


def check_size(
    low: Lowering,
    name: str,
    size: Number,
    limits: tuple[int, int],
    kernel: str,
    node: ast.Call,
) -> None:
    """A LaunchError of the call if a size is beyond its limits."""
    smallest, largest = limits
    if isinstance(size.dim, int) and smallest <= size.dim <= largest:
        return
    fault = Fault("LaunchError", beyond(kernel, name, limits), low.location(node))
    build = low.builder
    above = build.compare("ge", size.value, build.constant(Int64, smallest))
    below = build.compare("le", size.value, build.constant(Int64, largest))
    build.check(build.binary("and", above, below), fault, size.value)


def check_block(
    low: Lowering, block: Sizes, kernel: str, node: ast.Call, most: int = MAX_THREADS
) -> None:
    """A LaunchError of the call if a block is beyond the limits, or has too many threads."""
    for axis, size in enumerate(block):
        name, limits = f"block {ops.AXES[axis]}", (1, BLOCK_LIMITS[axis])
        check_size(low, name, size, limits, kernel, node)
    _check_product(low, block, most, too_many_threads(kernel, most), node)


def check_grid(low: Lowering, grid: Sizes, kernel: str, node: ast.Call) -> None:
    """A LaunchError of the call if a grid is beyond the limits."""
    for axis in range(3):
        name, limits = f"grid {ops.AXES[axis]}", (0, GRID_LIMITS[axis])
        check_size(low, name, grid[axis], limits, kernel, node)


def check_cluster(low: Lowering, cluster: Sizes, grid: Sizes, kernel: str, node: ast.Call) -> None:
    """A LaunchError of the call if a cluster is too large, or the grid does not consist of whole
    clusters."""
    for axis, size in enumerate(cluster):
        name, limits = f"cluster {ops.AXES[axis]}", (1, CLUSTER_LIMIT)
        check_size(low, name, size, limits, kernel, node)
    _check_product(low, cluster, CLUSTER_LIMIT, too_many_blocks(kernel), node)
    for axis, (blocks, size) in enumerate(zip(grid, cluster, strict=True)):
        if isinstance(size.dim, int) and isinstance(blocks.dim, int):
            if blocks.dim % size.dim == 0:
                continue
        elif size.dim == 1:
            continue
        message = no_whole_clusters(kernel, ops.AXES[axis])
        fault = Fault("LaunchError", message, low.location(node))
        build = low.builder
        rest = build.binary("mod", blocks.value, size.value)
        whole = build.compare("eq", rest, build.constant(Int64, 0))
        build.check(whole, fault, size.value, blocks.value)


def _check_product(
    low: Lowering, sizes: Sequence[Number], most: int, message: str, node: ast.Call
) -> None:
    dims = [size.dim for size in sizes]
    known = [dim for dim in dims if isinstance(dim, int)]
    if len(known) == len(dims) and prod(known) <= most:
        return
    build = low.builder
    x, y, z = (size.value for size in sizes)
    count = build.binary("mul", build.binary("mul", x, y), z)
    fits = build.compare("le", count, build.constant(Int64, most))
    build.check(fits, Fault("LaunchError", message, low.location(node)), count, x, y, z)

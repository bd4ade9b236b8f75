"""Grids: one to three sizes, or a function of the kernel's arguments that is traced to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.triton.tracing import Quotient, Unseen, compute, trace, untraced
from ferrule.specs import Dim
from ferrule.specs.expr import is_dim

Grid = tuple[Dim, Dim, Dim]


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of two sizes, as one expression: `min` compares, and so makes two launches."""
    return compute("min", lhs, rhs)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of two sizes, as one expression: `max` compares, and so makes two launches."""
    return compute("max", lhs, rhs)


def ceil_div(lhs: Any, rhs: Any) -> Any:
    """`lhs / rhs` rounded up, for grids."""
    return compute("ceildiv", lhs, rhs)


def trace_grid(grid: Any, arguments: Mapping[str, Any], where: str) -> Grid:
    """The three sizes of a grid; `arguments` are those of the kernel by name.

    Raises CompileError for a function that cannot be traced and for what is no grid.
    """
    found = grid
    if callable(grid):
        found = untraced(trace(lambda seen: _known(grid(seen)), arguments, f"{where}: the grid"))
    sizes = (found,) if is_dim(found) else found
    if (
        isinstance(sizes, str | bytes)
        or not isinstance(sizes, Sequence)
        or not 1 <= len(sizes) <= 3
    ):
        raise CompileError(
            Diagnostic(
                f"{where}: the grid is {found!r}",
                expected="from one to three sizes, or a function of the kernel's arguments that "
                'gives them, such as lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)',
            )
        )
    x, y, z = (*(_size(size, where) for size in sizes), 1, 1)[:3]
    return x, y, z


def _known(grid: Any) -> Any:
    """A grid; CompileError for one with what is no size and never becomes one."""
    for size in grid if isinstance(grid, tuple | list) else (grid,):
        if isinstance(size, Quotient | Unseen):
            size.refuse()
    return grid


def _size(size: Any, where: str) -> Dim:
    dim = untraced(getattr(size, "value", size) if not is_dim(size) else size)
    dim = dim if isinstance(dim, bool) or not isinstance(dim, Integral) else int(dim)
    if not is_dim(dim):
        raise CompileError(
            Diagnostic(
                f"{where}: a size of the grid is {size!r}",
                expected="an int or an expression over the sizes of the call",
            )
        )
    found: Dim = dim
    return found

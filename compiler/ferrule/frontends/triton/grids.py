"""Grids: one to three sizes, or a function of the kernel's arguments that is traced to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.frontends.launchsizes import check_followed, check_sizes, free_of
from ferrule.frontends.surroundings import moved, probed
from ferrule.frontends.triton.arguments import Arguments
from ferrule.frontends.triton.traced.functions import Quotient, compute, trace, untraced
from ferrule.frontends.triton.traced.numbers import Unseen
from ferrule.frontends.triton.traced.paths import Path
from ferrule.specs import Dim
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim

Grid = tuple[Dim, Dim, Dim]


@dataclass(frozen=True, slots=True)
class GridOfVersions:
    """A grid for each version of an autotuned kernel, by the constants of its configuration."""

    each: tuple[tuple[Mapping[str, Any], Sequence[Any]], ...]

    def of(self, constants: Mapping[str, Any]) -> Sequence[Any]:
        """The sizes for the version with these constants."""
        return next(sizes for known, sizes in self.each if known == constants)


_EXAMPLE: Final = 'such as lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)'


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller of two sizes as one expression; `min` compares them, and so makes two
    launches."""
    return compute("min", lhs, rhs)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger of two sizes as one expression; `max` compares them, and so makes two launches."""
    return compute("max", lhs, rhs)


def ceil_div(lhs: Any, rhs: Any) -> Any:
    """`lhs / rhs` rounded up, for grids."""
    return compute("ceildiv", lhs, rhs)


def trace_grid(grid: Any, arguments: Mapping[str, Any], where: str) -> Grid:
    """The three sizes of a grid; `arguments` are those of the kernel by name.

    Raises CompileError for a function that cannot be traced, and for a result that is not a grid.
    """
    return _three(_sizes(grid, arguments, where), where)


def checked_grid(grid: Any, arguments: Arguments, path: Path | None, where: str) -> Grid:
    """The three sizes of a grid for these arguments.

    Also raises CompileError for sizes that are the same in every call, although the arguments'
    sizes differ, see `fixed`; CallRefused for what a function raises on this path.
    """
    before = 0 if path is None else path.asked
    sizes = _sizes(grid, arguments.traced(path, told=True), where, path)
    found = _three(sizes, where)
    decided = path is not None and path.asked > before
    marked: Any = ()
    if callable(grid):
        again = None if path is None else path.again()
        marked = probed(grid, arguments.traced(again, told=True))
    free = free_of(arguments.signature.params)
    seen = [untraced(each) for each in _listed(marked)]
    check_sizes(where, "grid", sizes, seen, free, decided=decided, example=_EXAMPLE)
    check_followed(where, sizes, _moved(grid, arguments, path), free, _EXAMPLE)
    return found


def _moved(grid: Any, arguments: Arguments, path: Path | None) -> Sequence[Any]:
    """The sizes for other values of what a function takes from its surroundings; () if the call
    would decide otherwise with these."""
    if not callable(grid):
        return ()
    again = None if path is None else path.again()
    found = probed(grid, arguments.traced(again, told=True), mark=moved)
    if path is not None and again is not None and again.taken != path.taken:
        return ()
    return [untraced(each) for each in _listed(found)]


def _sizes(
    grid: Any, arguments: Mapping[str, Any], where: str, path: Path | None = None
) -> Sequence[Any]:
    """The sizes of a grid, or those that a grid function returns."""
    found = grid
    if callable(grid):
        found = trace(lambda seen: _known(grid(seen)), arguments, f"{where}: the grid", path=path)
    sizes = _listed(found)
    if not 1 <= len(sizes) <= 3:
        raise CompileError(
            Diagnostic(
                f"{where}: the grid is {found!r}",
                expected="from one to three sizes, or a function of the kernel's arguments that "
                f"gives them, {_EXAMPLE}",
            )
        )
    return [untraced(each) for each in sizes]


def _listed(found: Any) -> Sequence[Any]:
    """The sizes of a grid, which may be a single size; empty for a value that is not a grid."""
    if is_dim(untraced(found)):
        return (found,)
    is_list = isinstance(found, Sequence) and not isinstance(found, str | bytes)
    return found if is_list else ()


def _three(sizes: Sequence[Any], where: str) -> Grid:
    x, y, z = (*(_size(size, where) for size in sizes), 1, 1)[:3]
    return x, y, z


def _known(grid: Any) -> Any:
    """A grid; CompileError if it contains a value that cannot become a size."""
    for size in grid if isinstance(grid, tuple | list) else (grid,):
        if isinstance(size, Quotient | Unseen):
            size.refuse()
    return grid


def _size(size: Any, where: str) -> Dim:
    dim = getattr(size, "value", size) if not is_dim(size) else size
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

"""A recorded launch with its arguments by name, and how these were made of sizes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ferrule.compiler.errors import CompileError
from ferrule.frontends.triton.installed import Kernel, kernel_of
from ferrule.frontends.triton.jobs import by_position, names_of_options
from ferrule.frontends.triton.recorded.log import Compared
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.reading import Reading
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Followed:
    """How numbers of a launch were made of sizes: arguments by their place or name, sizes of the
    grid; and what the host function had read, `seen` comparisons of it before the launch."""

    trees: Mapping[int | str, Tree] = field(default_factory=dict)
    grid: Mapping[int, Tree] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Asking:
    """What a grid gave: its sizes, how these were made, and the comparisons by the way."""

    grid: tuple[int, ...]
    trees: Mapping[int, Tree]
    compared: tuple[Compared, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A recorded launch with its arguments by name, and Triton's options.

    `positional` are the constants that have the name of an option and were given by position.
    `trees` say by name how the host function made numbers of sizes, `grid_trees` how it made the
    grid.  `reading` is what it had read by then; it had made `seen` of its comparisons.  `early` is
    what a grid that is a function gave at the launch, by the constants of a configuration.
    """

    kernel_object: Any
    kernel: Kernel
    given: Mapping[str, Any]
    options: Mapping[str, Any]
    grid: Any
    positional: frozenset[str] = frozenset()
    trees: Mapping[str, Tree] = field(default_factory=dict)
    grid_trees: Mapping[int, Tree] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    seen: int = 0
    early: Mapping[Hashable, Asking] = field(default_factory=dict)

    def constant(self, name: str, value: Any) -> Any:
        """A constant as an example for `compile`."""
        return by_position(value) if name in self.positional else value


def bound(
    kernel_object: Any,
    grid: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    followed: Followed,
) -> Bound:
    """A launch by the names of the kernel's parameters.  CompileError for too many arguments."""
    kernel = kernel_of(kernel_object)
    if len(arguments) > len(kernel.names):
        raise CompileError(f"{kernel.name}: the launch had more arguments than parameters")
    given = dict(zip(kernel.names, arguments, strict=False))
    options = {key: value for key, value in keywords.items() if key not in kernel.names}
    given |= {key: value for key, value in keywords.items() if key in kernel.names}
    first = kernel.constexprs.intersection(kernel.names[: len(arguments)])
    positional = first & names_of_options() if first else first
    trees = {kernel.names[k] if isinstance(k, int) else k: v for k, v in followed.trees.items()}
    more = trees, followed.grid, followed.reading, followed.seen
    return Bound(kernel_object, kernel, given, options, grid, positional, *more)

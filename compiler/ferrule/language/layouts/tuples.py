"""Int tuples: a size, or a tuple of int tuples.  Shapes, strides and coordinates are int tuples.

`None` in a coordinate keeps a whole mode.  Functions here also accept leaves that are not sizes,
such as run-time numbers: they only use the tuples around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ferrule.language.layouts.dims import ScaledBasis, ceil_quotient, quotient, times
from ferrule.language.layouts.errors import refuse
from ferrule.specs import Dim
from ferrule.specs.expr import is_dim

IntTuple: TypeAlias = "Dim | tuple[IntTuple, ...]"
"""A size, or a tuple of int tuples."""

Mode: TypeAlias = "int | Sequence[int] | None"
"""A path to a mode: `[0, 1]` is the second mode of the first; None is everything."""


def as_int_tuple(value: Any, what: str) -> IntTuple:
    """Nested tuples or lists of sizes as tuples.  Raises LayoutError for anything else."""
    if isinstance(value, (tuple, list)):
        return tuple(as_int_tuple(item, what) for item in value)
    if not is_dim(value):
        refuse(what, f"expected ints, symbolic ints, or tuples of them, but got {value!r}")
    result: Dim = value
    return result


def as_strides(value: Any, what: str) -> Any:
    """The same for strides, which may be bases of coordinates."""
    if isinstance(value, (tuple, list)):
        return tuple(as_strides(item, what) for item in value)
    return value if isinstance(value, ScaledBasis) else as_int_tuple(value, what)


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples, from left to right."""
    if isinstance(value, tuple):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def map_leaves(function: Callable[..., Any], *values: Any) -> Any:
    """Applies a function to corresponding leaves of congruent tuples."""
    if isinstance(values[0], tuple):
        return tuple(map_leaves(function, *items) for items in zip(*values, strict=True))
    return function(*values)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple unchanged, a leaf as a tuple of one."""
    return value if isinstance(value, tuple) else (value,)


def is_congruent(lhs: Any, rhs: Any) -> bool:
    """Whether two nested tuples have one profile."""
    if isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return len(lhs) == len(rhs) and all(map(is_congruent, lhs, rhs))
    return not isinstance(lhs, tuple) and not isinstance(rhs, tuple)


def is_weakly_congruent(lhs: Any, rhs: Any) -> bool:
    """Whether `rhs` has the profile of `lhs`, with any tuple where `lhs` has a leaf."""
    if isinstance(lhs, tuple):
        same_rank = isinstance(rhs, tuple) and len(lhs) == len(rhs)
        return same_rank and all(map(is_weakly_congruent, lhs, rhs))
    return True


def is_static_tuple(value: Any) -> bool:
    """Whether every leaf is a compile-time number, or as many units of a coordinate."""
    return all(isinstance(getattr(leaf, "value", leaf), int) for leaf in leaves(value))


def product(value: IntTuple) -> Dim:
    """The product of the leaves."""
    result: Dim = times(*leaves(value))
    return result


def product_each(value: IntTuple) -> tuple[Dim, ...]:
    """The product of each mode."""
    return tuple(product(mode) for mode in as_tuple(value))


def depth_of(value: Any) -> int:
    """The nesting depth of tuples: 0 for a leaf."""
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, tuple) else 0


def path_of(mode: Mode) -> tuple[int, ...]:
    """A path as a tuple.  Raises LayoutError unless it is a list of positions."""
    path: tuple[Any, ...] = ()
    if mode is not None:
        path = tuple(mode) if isinstance(mode, Sequence) else (mode,)
    for step in path:
        if isinstance(step, bool) or not isinstance(step, int):
            refuse("mode", f"expected a list of positions such as [0], but got {mode!r}")
    return path


def at_mode(value: Any, mode: Mode) -> Any:
    """The part of nested tuples at a path.  Raises LayoutError for an invalid path."""
    for step in path_of(mode):
        items = as_tuple(value)
        if not 0 <= step < len(items):
            refuse(
                "mode", f"there is no mode {step} in {format_tuple(value)}, of rank {len(items)}"
            )
        value = items[step]
    return value


def ceil_div(lhs: Any, rhs: Any) -> Any:
    """`lhs / rhs` rounded up, for sizes or mode by mode for tuples.

    Modes of `lhs` beyond those of `rhs` are unchanged.  Raises LayoutError for a divisor below 1 or
    a profile that does not fit.
    """
    if not isinstance(lhs, tuple) and not isinstance(rhs, tuple):
        if isinstance(rhs, int) and rhs < 1:
            refuse("ceil_div", f"the divisor must be at least 1, but got {rhs}")
        return ceil_quotient(lhs, rhs)
    if not isinstance(lhs, tuple) or len(as_tuple(rhs)) > len(lhs):
        refuse("ceil_div", f"{format_tuple(rhs)} has more modes than {format_tuple(lhs)}")
    divided = tuple(map(ceil_div, lhs, as_tuple(rhs)))
    return divided + lhs[len(divided) :]


def shape_div(lhs: Any, rhs: Any) -> Any:
    """`lhs / rhs` for shapes: the number of times the second fits into the first, at least once.

    Of two numbers one must divide the other.  A number divides a tuple from the left: the quotient
    that the first mode leaves divides the next.  A tuple divides mode by mode.  Raises LayoutError
    if a division is not exact.
    """
    if isinstance(lhs, tuple):
        if isinstance(rhs, tuple):
            if len(lhs) != len(rhs):
                refuse("shape_div", f"{format_tuple(lhs)} and {format_tuple(rhs)} differ in rank")
            return tuple(map(shape_div, lhs, rhs))
        parts = []
        for mode in lhs:
            parts.append(shape_div(mode, rhs))
            rhs = shape_div(rhs, product(mode))
        return tuple(parts)
    rhs = product(rhs)
    exact = None if rhs == 0 else quotient(lhs, rhs)
    if exact is not None:
        return exact
    if lhs == 0 or quotient(rhs, lhs) is None:
        refuse("shape_div", f"{lhs} and {rhs}: neither is known to divide the other")
    return 1


def tuple_cat(*values: Any) -> tuple[Any, ...]:
    """The modes of all of these in one tuple; a number is one mode."""
    return tuple(mode for value in values for mode in as_tuple(value))


def repeat_like(value: Any, target: Any) -> Any:
    """The value in the place of each leaf of nested tuples."""
    return map_leaves(lambda _: value, target)


def format_tuple(value: Any) -> str:
    """Nested tuples as text without spaces: `(4,(2,n0))`; `_` for None."""
    if isinstance(value, tuple):
        return f"({','.join(map(format_tuple, value))})"
    return "_" if value is None or value == slice(None) else str(value)

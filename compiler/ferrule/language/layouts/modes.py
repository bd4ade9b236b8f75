"""Splits and joins modes of layouts and int tuples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.language.layouts.composed import on_outer
from ferrule.language.layouts.errors import refuse
from ferrule.language.layouts.layout import Layout, join, modes_of, part_at
from ferrule.language.layouts.tuples import (
    Mode,
    as_tuple,
    at_mode,
    format_tuple,
    leaves,
    map_leaves,
    path_of,
)


def _split(value: Any) -> tuple[Any, ...]:
    return modes_of(value) if isinstance(value, Layout) else as_tuple(value)


def _merge(like: Any, modes: Sequence[Any]) -> Any:
    return join(modes) if isinstance(like, Layout) else tuple(modes)


@on_outer
def get(value: Any, mode: Mode = None) -> Any:
    """The part at a path: `get(layout, mode=[0, 1])` is the second mode of the first."""
    return part_at(value, mode) if isinstance(value, Layout) else at_mode(value, mode)


@on_outer
def select(value: Any, mode: int | Sequence[int]) -> Any:
    """The modes at these positions, in this order.  Raises LayoutError for an invalid position."""
    modes = _split(value)
    positions = path_of(mode if isinstance(mode, Sequence) else [mode])
    for position in positions:
        if not 0 <= position < len(modes):
            refuse("select", f"there is no mode {position} in {_text(value)}")
    return _merge(value, [modes[position] for position in positions])


@on_outer
def group_modes(value: Any, begin: int, end: int) -> Any:
    """The modes from `begin` to before `end` as one mode; -1 stands for the rank."""
    modes = _split(value)
    _require_int("group_modes", begin, end)
    end = len(modes) if end == -1 else end
    if not 0 <= begin <= end <= len(modes):
        refuse("group_modes", f"there are no modes {begin} to {end} in {_text(value)}")
    grouped = _merge(value, modes[begin:end])
    return _merge(value, [*modes[:begin], grouped, *modes[end:]])


@on_outer
def flatten(value: Any) -> Any:
    """Without nesting: one mode for each leaf; a leaf stays a leaf."""
    if not isinstance(value, Layout):
        return tuple(leaves(value)) if isinstance(value, tuple) else value
    return Layout(flatten(value.shape), flatten(value.stride))


@on_outer
def unflatten(value: Any, profile: Any) -> Any:
    """A flat tuple or layout, nested like the profile.

    Raises LayoutError if the numbers of modes and of the profile's leaves differ.
    """
    if isinstance(value, Layout):
        return Layout(unflatten(value.shape, profile), unflatten(value.stride, profile))
    given, wanted = as_tuple(value), len(list(leaves(profile)))
    if len(given) != wanted:
        refuse(
            "unflatten",
            f"{format_tuple(value)} has {len(given)} modes, but the profile "
            f"{format_tuple(profile)} has {wanted} places",
        )
    remaining = iter(given)
    return map_leaves(lambda _: next(remaining), profile)


@on_outer
def append(value: Any, elem: Any, up_to_rank: int | None = None) -> Any:
    """One more mode at the end, or as many as the rank requires."""
    modes = _split(value)
    return _merge(value, [*modes, *_added(value, modes, elem, up_to_rank)])


@on_outer
def prepend(value: Any, elem: Any, up_to_rank: int | None = None) -> Any:
    """One more mode at the front, or as many as the rank requires."""
    modes = _split(value)
    return _merge(value, [*_added(value, modes, elem, up_to_rank), *modes])


def _added(value: Any, modes: tuple[Any, ...], elem: Any, rank: int | None) -> list[Any]:
    if isinstance(value, Layout) != isinstance(elem, Layout):
        refuse("append", f"{_text(elem)} cannot be a mode of {_text(value)}")
    if rank is None:
        return [elem]
    _require_int("append", rank)
    count = rank - len(modes)
    if count < 0:
        refuse("append", f"{_text(value)} has more than {rank} modes")
    return [elem] * count


def _require_int(operation: str, *values: object) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(operation, f"expected an int, but got {value!r}")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, Layout) else format_tuple(value)

"""What tiled multiplications are set to, in the order of the text.

A setting that depends on which way the run takes is in memory of the thread: code under a run-time
condition stores what it sets there, and what was set before it is stored ahead of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.regions import UNKNOWN, Region
from ferrule.specs import AddressSpace, Boolean, Int32

Key = tuple[int, Any]
"""The id of a tiled multiplication, and a field of it."""

_TYPE = TensorType(Boolean, (1,), (1,), 1, AddressSpace.rmem)


def put(low: Lowering, key: Key, owner: Any, value: bool | ops.Value) -> None:
    """From here on, the field has this value."""
    low.settings[key] = (owner, value)
    regions = list(_around(low))
    if not regions:
        return
    regions[0].sets.add(key)
    for region in reversed(regions):
        keep(low, region, key)
    _store(low, key, value)


def get(low: Lowering, key: Key) -> bool | ops.Value:
    """The value of a field here; false if nobody has set it."""
    for region in _around(low):
        region.reads_setting(key)
        break
    found = low.settings.get(key, (None, False))[1]
    if found is not UNKNOWN:
        return found  # type: ignore[no-any-return]
    return low.builder.load(low.cells[key], (_zero(low),))


def keep(low: Lowering, region: Region, key: Key) -> None:
    """Stores what a field is set to at the beginning of this code, ahead of it."""
    found = region.settings.get(key, (None, False))[1]
    if key in region.stored or found is UNKNOWN:
        return
    region.stored.add(key)
    with low.builder.region(region.ahead):
        _store(low, key, found)


def _around(low: Lowering) -> Iterator[Region]:
    """The code under run-time conditions around this place of the function, the nearest first."""
    region = low.state.region
    while region is not None and region.builder is low.builder:
        yield region
        region = region.around


def _store(low: Lowering, key: Key, value: bool | ops.Value) -> None:
    if key not in low.cells:
        low.cells[key] = low.builder.fragment_ahead(_TYPE, "setting")
    stored = value if isinstance(value, ops.Value) else low.builder.constant(Boolean, value)
    low.builder.store(low.cells[key], (_zero(low),), stored)


def _zero(low: Lowering) -> ops.Value:
    return low.builder.constant(Int32, 0)

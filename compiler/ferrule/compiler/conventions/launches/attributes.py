"""The sizes and attributes of a CudaLaunch: their valid values, and their values in a call."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from ferrule.compiler.conventions.arguments import shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.launcher.attributes import Event
from ferrule.compiler.cuda.launcher.driver import ClusterScheduling
from ferrule.specs import Dim, Param, Scalar
from ferrule.specs.expr import is_dim
from ferrule.specs.params import Pointer


def scheduling(given: str | None) -> ClusterScheduling | None:
    """The policy with this name.  Raises ValueError for an unknown name."""
    words = {"spread": ClusterScheduling.SPREAD, "load_balancing": ClusterScheduling.LOAD_BALANCING}
    if given is not None and given not in words:
        raise ValueError(
            f"CudaLaunch: cluster_scheduling must be {' or '.join(map(repr, words))}, "
            f"but got {given!r}"
        )
    return None if given is None else words[given]


PRIORITIES: Final = (-(1 << 31), (1 << 31) - 1)
"""The range of a C int."""


def checked_flag(name: str, given: object) -> bool:
    """Raise TypeError unless it is True or False."""
    if isinstance(given, bool):
        return given
    raise TypeError(f"CudaLaunch: {name} must be True or False, but got {given!r}")


def checked_carveout(given: Any) -> int | None:
    """A part of an SM's memory in percent; -1 is the driver's default."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"CudaLaunch: preferred_smem_carveout must be an int, but got {given!r}")
    if not -1 <= given <= 100:
        raise ValueError(
            f"CudaLaunch: preferred_smem_carveout must be in [0, 100], in percent, or -1 for what "
            f"the driver takes, but got {given}"
        )
    return given


def checked_priority(given: Dim | None) -> Dim | None:
    """A size that fits into a C int, as far as it is constant."""
    if given is None:
        return None
    if not is_dim(given):
        raise TypeError(f"CudaLaunch: priority must be a size, but got {given!r}")
    if isinstance(given, int) and not PRIORITIES[0] <= given <= PRIORITIES[1]:
        raise ValueError(f"CudaLaunch: priority must fit 32 bits, but got {given}")
    return given


def checked_event(
    name: str, event: Param | None, flags: int, *wants: object
) -> dict[str, Param | int | None]:
    """An event of a launch and its flags, by the names of the fields of `CudaLaunch`.

    Raises TypeError for a parameter that can be no event; ValueError for invalid numbers, and if
    flags or other properties are set without an event.
    """
    if not (event is None or (isinstance(event, Pointer) and event.dtype is None)):
        raise TypeError(
            f"CudaLaunch: {name} must be a pointer parameter without a dtype, a CUevent, "
            f"but got {event!r}"
        )
    # Flags of cuEventRecordWithFlags.
    if not isinstance(flags, int) or not 0 <= flags < 1 << 31:
        raise ValueError(f"CudaLaunch: {name}_flags must be a number from 0 on, but got {flags!r}")
    if event is None and (flags or any(wants)):
        raise ValueError(f"CudaLaunch: without a {name}, what is said of it would be ignored")
    return {name: event, f"{name}_flags": int(flags)}


def event_of(
    call: Call, param: Param | None, flags: int, at_block_start: bool = False
) -> Event | None:
    """The event that a parameter is in a call."""
    return None if param is None else Event(call.leaves(param)[0], flags, at_block_start)


AXES: Final = "xyz"

Sizes = tuple[Dim, Dim, Dim]


def three(name: str, sizes: Dim | Sequence[Dim], limits: Sequence[tuple[int, int]]) -> Sizes:
    """One to three sizes, filled up with ones to three.

    Raises TypeError for invalid sizes, ValueError for another number of them and for constants
    beyond the limits.
    """
    given = tuple(sizes) if isinstance(sizes, (tuple, list)) else (sizes,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"CudaLaunch: {name} takes 1 to 3 sizes, but got {len(given)}")
    for axis, size, (smallest, largest) in zip(AXES, given, limits, strict=False):
        if not is_dim(size):
            hint = f": write sig[{size.name!r}].value" if isinstance(size, Scalar) else ""
            raise TypeError(
                f"CudaLaunch: {name} {axis} must be a size, but got {shown(size)}{hint}"
            )
        if isinstance(size, int) and not smallest <= size <= largest:
            raise ValueError(
                f"CudaLaunch: {name} {axis} must be in [{smallest}, {largest}], but got {size}"
            )
    x, y, z = [*given, 1, 1][:3]
    return x, y, z


def check_product(what: str, items: str, sizes: Sizes, most: int) -> None:
    """Raise ValueError if the product of the constant sizes is above the limit."""
    known = prod(size for size in sizes if isinstance(size, int))
    if known > most:
        raise ValueError(f"CudaLaunch: {what} has at most {most} {items}, but {sizes} has {known}")

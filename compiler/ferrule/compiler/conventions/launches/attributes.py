"""The launch attributes of a CudaLaunch: their valid values, and their values in a call."""

from __future__ import annotations

from typing import Any, Final

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.launcher.attributes import Event
from ferrule.compiler.cuda.launcher.driver import ClusterScheduling
from ferrule.specs import Dim, Param
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


def require_event(name: str, event: Param | None, *wants: object) -> None:
    """Raise ValueError if properties of an event are set without an event."""
    if event is None and any(wants):
        raise ValueError(f"CudaLaunch: without a {name}, what is said of it would be ignored")


def checked_event(name: str, event: Param | None) -> Param | None:
    """A parameter that can be an event.  Raises TypeError for any other."""
    if event is None or (isinstance(event, Pointer) and event.dtype is None):
        return event
    raise TypeError(
        f"CudaLaunch: {name} must be a pointer parameter without a dtype, a CUevent, "
        f"but got {event!r}"
    )


def checked_flags(name: str, flags: int) -> int:
    """Flags of cuEventRecordWithFlags.  Raises ValueError for invalid numbers."""
    if not isinstance(flags, int) or not 0 <= flags < 1 << 31:
        raise ValueError(f"CudaLaunch: {name} must be a number from 0 on, but got {flags!r}")
    return int(flags)


def event_of(
    call: Call, param: Param | None, flags: int, at_block_start: bool = False
) -> Event | None:
    """The event that a parameter is in a call."""
    return None if param is None else Event(call.leaves(param)[0], flags, at_block_start)

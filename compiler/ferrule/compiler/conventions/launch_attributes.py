"""What a CudaLaunch asks for besides its sizes: what it may be, and its value in a call."""

from __future__ import annotations

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.attributes import Event
from ferrule.compiler.cuda.driver import ClusterScheduling
from ferrule.specs import Param
from ferrule.specs.params import Pointer


def scheduling(given: str | None) -> ClusterScheduling | None:
    """The policy of a name.  Raises ValueError for a name that is none."""
    words = {"spread": ClusterScheduling.SPREAD, "load_balancing": ClusterScheduling.LOAD_BALANCING}
    if given is not None and given not in words:
        raise ValueError(
            f"CudaLaunch: cluster_scheduling must be {' or '.join(map(repr, words))}, "
            f"but got {given!r}"
        )
    return None if given is None else words[given]


def checked_event(name: str, event: Param | None) -> Param | None:
    """A parameter that can be an event.  Raises TypeError for any other."""
    if event is None or (isinstance(event, Pointer) and event.dtype is None):
        return event
    raise TypeError(
        f"CudaLaunch: {name} must be a pointer parameter without a dtype, a CUevent, "
        f"but got {event!r}"
    )


def checked_flags(name: str, flags: int) -> int:
    """Flags of cuEventRecordWithFlags.  Raises ValueError for what they cannot be."""
    if not isinstance(flags, int) or not 0 <= flags < 1 << 31:
        raise ValueError(f"CudaLaunch: {name} must be a number from 0 on, but got {flags!r}")
    return int(flags)


def event_of(
    call: Call, param: Param | None, flags: int, at_block_start: bool = False
) -> Event | None:
    """The event that a call gives for a parameter."""
    return None if param is None else Event(call.leaves(param)[0], flags, at_block_start)

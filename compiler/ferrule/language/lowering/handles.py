"""What a run-time value of tvm-ffi is: asked of many values, before what few of them need is
imported."""

from __future__ import annotations

from typing import Any, Final

from ferrule.language.values import Handle
from ferrule.specs import params
from ferrule.specs.deferred import dataclass

SEQUENCES: Final = (params.Array, params.List)
MAPS: Final = (params.Map, params.Dict)


@dataclass(frozen=True, slots=True, eq=False)
class MapView:
    """`m.keys()`, `m.values()` or `m.items()`, for a loop."""

    container: Handle
    what: str


def is_text(value: Any) -> bool:
    """Whether this is a run-time string or bytes."""
    return isinstance(value, Handle) and params.payload_of(value.param) is params.Payload.BYTES


def compares(value: Any) -> bool:
    """Whether `==` is supported for this handle."""
    kinds = (params.Payload.BYTES, params.Payload.BITS)
    return isinstance(value, Handle) and params.payload_of(value.param) in kinds


def is_device(value: Any) -> bool:
    """Whether this is a run-time device."""
    return isinstance(value, Handle) and isinstance(value.param, params.Device)


def is_container(value: Any) -> bool:
    """Whether this is a run-time container."""
    return isinstance(value, Handle) and isinstance(value.param, (*SEQUENCES, *MAPS))


def is_iterable(value: Any) -> bool:
    """Whether a run-time loop can iterate over this."""
    return is_container(value) or isinstance(value, MapView)


def is_object(value: Any) -> bool:
    """Whether this is a run-time tvm-ffi object."""
    return isinstance(value, Handle) and params.payload_of(value.param) is params.Payload.OBJECT


def is_registered(value: Any) -> bool:
    """Whether this is an object of a registered type."""
    return isinstance(value, Handle) and isinstance(value.param, params.Object)


def is_open(value: Handle) -> bool:
    """Whether the class of a value is known only at run time."""
    return isinstance(value.param, (params.AnyValue, params.Object))

"""Arrays of JAX in direct calls: which of them are read, and why others are not.

All are read-only, although DLPack exports them as writable: JAX assumes that nobody writes to one.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ferrule.runtime.values.learned import BUFFERS, Way, table
from ferrule.specs.dtypes import BY_NAME

UNWRITABLE: Final = (
    "one of JAX, which nobody writes to: give a NumPy array, or call fe.jax_call(compiled), which "
    "returns what the function writes"
)
"""The description, in messages, of an array that a call would write."""

_TRACED: Final = (
    "an array that JAX traces, which has no elements yet: call fe.jax_call(compiled) in what JAX "
    "traces"
)


def unfit_type(value: Any) -> str | None:
    """The description of an array without elements that DLPack has; None for another one."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        return _TRACED
    dtype = BY_NAME.get(value.dtype.name)
    if dtype is None or dtype.bits < _BYTE:
        return f"an array of {value.dtype} of JAX, whose elements have no bytes of their own"
    return None


_BYTE: Final = 8


def unfit(value: Any) -> str | None:
    """The description of an array without memory at one place; None for another one."""
    if value.is_deleted():
        return "one of JAX that was deleted or donated"
    count = len(value.devices())
    if count > 1:
        return (
            f"one of JAX on {count} devices: give a part of it, "
            f"value.addressable_shards[i].data, or call fe.jax_call(compiled) in jax.shard_map"
        )
    return None


def learn(value: Any) -> None:
    """Read arrays of this class in machine code from now on, if they are JAX's own."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "jaxlib" and kind.__name__ == "ArrayImpl":
        table(BUFFERS).learn(kind, Way.BUFFER)

"""The properties of a function that determine the code of its direct entry."""

from __future__ import annotations

from ferrule import specs
from ferrule.runtime.calls.results import form_of
from ferrule.runtime.entry.readers import Reader, readers_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class CallTraits:
    """Properties of a function's run; the defaults are safe for every function.

    `releases_gil`: the call releases the GIL, so other Python threads can run; this costs some tens
    of nanoseconds. It is the initial value of the function's attribute `release_gil`.
    `uses_stream`: the wrapper may ask for the caller's current stream; `allocates`: it may use the
    caller's allocator. The entry then sets the stream and allocator of the arguments' framework.
    """

    releases_gil: bool = True
    uses_stream: bool = True
    allocates: bool = True


ANY_FUNCTION = CallTraits()
"""The traits of a function about which nothing is known."""


@dataclass(frozen=True, slots=True)
class EntryKey:
    """The inputs of an entry's code: functions with equal keys share one entry.

    `readers` is None if an entry cannot read any form of some argument. `uses_stream` and
    `allocates` come from `CallTraits`. `unpacks`: the result can be an Array that stands for a
    tuple. `keywords` counts the keyword-only arguments. The GIL is not in the key: each call reads
    the function's `release_gil`.
    """

    readers: tuple[Reader, ...] | None
    uses_stream: bool
    allocates: bool
    unpacks: bool
    keywords: int = 0


def entry_key(signature: specs.Signature, traits: CallTraits) -> EntryKey:
    """The key of a function's entry."""
    return EntryKey(
        readers_of(signature.arguments),
        traits.uses_stream,
        traits.allocates,
        form_of(signature) is not None,
        len(signature.arguments) - signature.positional,
    )

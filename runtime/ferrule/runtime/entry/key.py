"""What the code of a direct entry depends on, and what a call needs of its surroundings."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule import specs
from ferrule.runtime.entry.readers import Reader, readers_of
from ferrule.runtime.results import form_of


@dataclass(frozen=True, slots=True)
class CallTraits:
    """What can happen while a function runs; the defaults hold for every function.

    `releases_gil`: other threads of Python may run meanwhile, which costs some tens of
    nanoseconds; it is what the function's attribute `release_gil` is at first. `uses_stream`: the
    wrapper can ask for the caller's current stream, `allocates`: for its allocator; both are then
    those of the arguments' framework.
    """

    releases_gil: bool = True
    uses_stream: bool = True
    allocates: bool = True


ANY_FUNCTION = CallTraits()
"""What holds for a function of which nothing is known."""


@dataclass(frozen=True, slots=True)
class EntryKey:
    """What the code of an entry depends on: functions with equal keys share it.

    `readers` is None where an entry could not read some argument at all. `uses_stream` and
    `allocates` are those of `CallTraits`. `unpacks`: an Array that comes back can be one that the
    function wrote as a tuple. `keywords` is how many arguments are given by name alone. Whether the
    GIL is released is asked of the function at each call.
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

"""What a call of a function needs of its surroundings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallTraits:
    """What can happen while a function runs; the defaults hold for every function.

    `releases_gil`: other threads of Python may run meanwhile, which costs some tens of
    nanoseconds. `uses_stream`: the wrapper can ask for the caller's current stream, `allocates`:
    for its allocator; both are then those of the arguments' framework.
    """

    releases_gil: bool = True
    uses_stream: bool = True
    allocates: bool = True


ANY_FUNCTION = CallTraits()
"""What holds for a function of which nothing is known."""

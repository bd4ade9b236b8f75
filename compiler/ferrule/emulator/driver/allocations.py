"""The memory that programs were given: which piece an address is in, and what it is for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from ferrule.emulator.driver.results import DriverError, Result
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.emulator.driver.state import Context


class Kind(IntEnum):
    """Who gave a piece of memory out."""

    DEVICE = 1
    HOST = 2
    MANAGED = 3
    VARIABLE = 4
    POOL = 5


@dataclass(frozen=True, slots=True)
class Allocation:
    """A piece of memory. `flags` are those of cuMemHostAlloc; `number` counts all pieces."""

    address: int
    size: int
    kind: Kind
    context: Context
    number: int
    flags: int = 0
    pool: Any = None


class Allocations:
    """All pieces that are alive, by their addresses."""

    def __init__(self) -> None:
        self._starts: Final[list[int]] = []
        self._by_start: Final[dict[int, Allocation]] = {}

    def __iter__(self) -> Iterator[Allocation]:
        return iter(tuple(self._by_start.values()))

    def add(self, allocation: Allocation) -> None:
        """A new piece."""
        at = bisect_right(self._starts, allocation.address)
        self._starts.insert(at, allocation.address)
        self._by_start[allocation.address] = allocation

    def remove(self, address: int) -> Allocation:
        """The piece that starts at an address, which is no more."""
        found = self._by_start.pop(address, None)
        if found is None:
            raise DriverError(Result.INVALID_VALUE, self.unknown(address))
        del self._starts[bisect_right(self._starts, address) - 1]
        return found

    def at_start(self, address: int) -> Allocation | None:
        """The piece that starts at an address."""
        return self._by_start.get(address)

    def find(self, address: int) -> Allocation | None:
        """The piece that an address is in."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        found = self._by_start[self._starts[at]]
        return found if address < found.address + found.size else None

    def check(self, address: int, size: int, what: str) -> Allocation:
        """The piece that all of these bytes of a device are in; INVALID_VALUE if there is none."""
        found = self.find(address)
        if found is None:
            raise DriverError(Result.INVALID_VALUE, f"the {what} {self.unknown(address)}")
        behind = address + size - found.address - found.size
        if behind > 0:
            raise DriverError(
                Result.INVALID_VALUE,
                f"the {what}, {size} bytes at {address:#x}, ends {behind} bytes behind its "
                f"allocation of {found.size} bytes at {found.address:#x}",
            )
        return found

    def unknown(self, address: int) -> str:
        """Words for an address that is in no piece."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return f"{address:#x} is in no memory of the GPU"
        last = self._by_start[self._starts[at]]
        distance = address - last.address - last.size
        return (
            f"{address:#x} is in no memory of the GPU; the allocation before it, of {last.size} "
            f"bytes at {last.address:#x}, ends {distance} bytes before"
        )

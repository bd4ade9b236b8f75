"""What a kernel does with what it reads, found once for all checks that ask."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from ferrule.emulator.checks.swaps import Swaps
from ferrule.emulator.checks.used import Uses

if TYPE_CHECKING:
    from ferrule.emulator.warps.flow import Flow


class Reads:
    """The loads of a kernel: which begin a compare-and-swap, and which of their bytes are used."""

    def __init__(self, flow: Flow) -> None:
        self.flow: Final = flow

    @cached_property
    def swaps(self) -> Swaps:
        return Swaps(self.flow)

    @cached_property
    def uses(self) -> Uses:
        return Uses(self.flow)

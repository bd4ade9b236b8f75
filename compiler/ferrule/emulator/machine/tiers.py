"""A kernel's code: first what is compiled quickly, and what is fast where much time goes by.

The quick code is of loops over single lanes; the fast code has vectors, and takes ten times as long
to compile. Both have the same frame, so that one can go on where the other stopped. Code is kept by
its text: the same kernel is compiled once in a process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ferrule.emulator.machine.jit import Code, compiled, helper_addresses
from ferrule.emulator.warps.translate import STEP, Translation

_KEPT: Final = 512
_SECONDS_AN_INSTRUCTION: Final = 0.002
"""What compiling the fast code costs, about: so long the quick one may run."""
_LEAST: Final = 0.02

QUICK, FAST = 1, 8
"""The lanes that an iteration of a loop does."""


class Tiers:
    """The addresses of a kernel's function, the better the more it was used."""

    def __init__(self, translation: Translation) -> None:
        self._translation: Final = translation
        self._limit: Final = max(_LEAST, _SECONDS_AN_INSTRUCTION * len(translation.instructions))
        self._spent = 0.0
        self._code: Code | None = None
        self._before: Code | None = None
        self.fast = False

    def step(self) -> int:
        """The function's address."""
        if self._code is None:
            self._code = self._compiled(QUICK)
        return self._code.addresses[STEP]

    def spent(self, seconds: float) -> None:
        """The kernel has run for so long: after a while it becomes faster."""
        self._spent += seconds
        if not self.fast and self._spent > self._limit:
            self.fast = True
            # Products under way have addresses in the code that began them.
            self._before = self._code
            self._code = self._compiled(FAST)

    def _compiled(self, part: int) -> Code:
        helpers = tuple(sorted(self._translation.helpers))
        return _code(self._translation.text(part), helpers, part == FAST)


@lru_cache(maxsize=_KEPT)
def _code(text: str, helpers: tuple[str, ...], fast: bool) -> Code:
    return compiled(text, (STEP,), helper_addresses(helpers), 1 if fast else 0)

"""What is worked out of a text of PTX once, for all that load it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ferrule.emulator.instructions.table import in_order
from ferrule.emulator.ptx.module import Function, Module
from ferrule.emulator.ptx.parser import parse
from ferrule.emulator.ptx.targets import check_target
from ferrule.emulator.warps.flow import Flow, flow
from ferrule.emulator.warps.translate import Translation, translate
from ferrule.runtime.forks import ForkLock

Places = Mapping[str, tuple[str, int]]
_Key = tuple[str, frozenset[str], tuple[tuple[str, tuple[str, int]], ...]]

_MOST: Final = 32
"""Translations of a text that are kept: others are of variables that lie elsewhere."""


class Known:
    """A text with its kernels as blocks and as LLVM."""

    def __init__(self, module: Module) -> None:
        self.module: Final = module
        self._flows: dict[str, Flow] = {}
        self._translations: OrderedDict[_Key, Translation] = OrderedDict()
        self._lock: Final = ForkLock()

    def flow(self, function: Function) -> Flow:
        """The blocks of a kernel."""
        with self._lock:
            if function.name not in self._flows:
                self._flows[function.name] = flow(self.module, function)
            return self._flows[function.name]

    def translation(
        self, function: Function, places: Places, checks: frozenset[str]
    ) -> Translation:
        """A kernel that nothing watches, with its variables at these places."""
        key = function.name, checks, tuple(places.items())
        with self._lock:
            if key not in self._translations:
                found = translate(self.flow(function), places, checks=checks)
                self._translations[key] = found
            self._translations.move_to_end(key)
            if len(self._translations) > _MOST:
                self._translations.popitem(last=False)
            return self._translations[key]


@lru_cache(maxsize=64)
def known(ptx: str) -> Known:
    """The facts about a text. PtxError for a text that is no PTX, or not for its target."""
    module = in_order(parse(ptx))
    check_target(module)
    return Known(module)

"""Code that a run-time condition decides, and the Python objects from before it that it reaches.

Such code is interpreted once, whichever way the run goes, so nothing from before it may change in
it.  What the code can reach it reaches by a name: each object is noted when a name of it is read,
as it is then, and compared at the end.  Objects that are made inside may change.
"""

from __future__ import annotations

import types
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ferrule.language.lowering import structures
from ferrule.language.mutable import ATOMS, Search
from ferrule.language.witness import is_library

_NOTHING: Final = object()


@dataclass(slots=True)
class Region:
    """Run-time code of a function with these `names`, which were `before` where it begins.

    `fresh` are the names of functions that are called inside, by identity.
    """

    names: dict[str, Any]
    before: dict[str, Any]
    around: Region | None
    fresh: dict[int, dict[str, Any]] = field(default_factory=dict)
    found: Search = field(default_factory=Search)
    _old: Search | None = None

    def read(self, home: Mapping[str, Any], name: str, value: Any) -> None:
        """Notes what a name holds that code inside reads in `home`, if it is from before."""
        if id(value) in self.found.seen:
            return
        while isinstance(home, ChainMap):
            home = next(names for names in home.maps if name in names)
        if home is self.names and self.before.get(name, _NOTHING) is not value:
            for path, part in self._parts_from_before(value, name):
                self.found.visit(part, path)
        elif id(home) not in self.fresh:
            self.found.visit(value, name, function=True)

    def _parts_from_before(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """The parts of a tuple or dataclass that was made anew of what was there before."""
        for suffix, part in structures.parts(value) or ():
            if type(part) in ATOMS:
                continue
            if id(part) in self._from_before().seen:
                yield path + suffix, part
            else:
                yield from self._parts_from_before(part, path + suffix)

    def _from_before(self) -> Search:
        if self._old is None:
            self._old = Search()
            self._old.visit_all(self.before.items())
        return self._old

    def member(self, owner: Any, name: str, value: Any) -> None:
        """Notes what a module has by a name, which code inside reads."""
        if isinstance(owner, types.ModuleType) and not is_library(owner):
            self.found.visit(value, f"{owner.__name__}.{name}", function=True)

    def runs(self, *functions: Any) -> None:
        """Notes what functions of Python reach by the names in them, before these run."""
        for each in functions:
            self.found.globals_of(each)

"""Code under a run-time condition, and the existing Python objects that it can change.

Such code is interpreted once, whichever way the run takes, so existing objects must not change in
it.  The code reaches objects by name: when a name is read, its object is recorded in its current
state, and compared at the end.  Objects that are made inside may change.
"""

from __future__ import annotations

import types
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from ferrule.language.dependencies.mutable import ATOMS, Search
from ferrule.language.dependencies.witness import is_library
from ferrule.language.ir.builder import Builder, OpenRegion
from ferrule.language.lowering import structures
from ferrule.specs.deferred import dataclass

_NOTHING: Final = object()
UNKNOWN: Final = object()
"""A setting that depends on which way the run takes: the run has it in memory of the thread."""


@dataclass(slots=True)
class Region:
    """Run-time code of a function with these `names`, which were `before` at its beginning.

    `fresh` are the names of functions that are called inside, by identity.  Of the settings of
    tiled multiplications, and of the attributes of a SimpleNamespace, the code sets those in `sets`
    for sure, and uses those in `read_first` before it sets them.  `settings` are those of tiled
    multiplications at its beginning; ops that its `builder` appends to `ahead` run right before it,
    by which those in `stored` were put where the run finds them.
    """

    names: dict[str, Any]
    before: dict[str, Any]
    around: Region | None
    settings: dict[Any, tuple[Any, Any]]
    builder: Builder
    ahead: OpenRegion
    fresh: dict[int, dict[str, Any]] = field(default_factory=dict)
    found: Search = field(default_factory=Search)
    sets: set[Any] = field(default_factory=set)
    read_first: set[Any] = field(default_factory=set)
    stored: set[Any] = field(default_factory=set)
    _old: Search | None = None

    def reads_setting(self, key: Any) -> None:
        """Records the use of a setting, in all code around that has not set it before."""
        region: Region | None = self
        while region is not None and key not in region.sets:
            region.read_first.add(key)
            region = region.around

    def read(self, home: Mapping[str, Any], name: str, value: Any) -> None:
        """Records the value of a name that code inside reads in `home`, if it existed before."""
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
        """The existing parts of a new tuple or dataclass."""
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
        """Records the value of a module's attribute that code inside reads."""
        if isinstance(owner, types.ModuleType) and not is_library(owner):
            self.found.visit(value, f"{owner.__name__}.{name}", function=True)

    def runs(self, *functions: Any) -> None:
        """Records everything that Python functions reach by their names, before these run."""
        for each in functions:
            self.found.globals_of(each)

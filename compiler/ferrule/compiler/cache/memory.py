"""Code of this process by its key: the same compilation again gives a function of the same code.

Code that nobody calls any more is kept only for the latest few keys; all other is freed with the
last function of it, as without a cache.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.calls.function import make_function
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.linking.engine import Engine
from ferrule.runtime.linking.links import Link, resolve
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.cache.entries import State
    from ferrule.compiler.cache.restored import RestoredOrigin
    from ferrule.compiler.origin import CompiledOrigin
    from ferrule.runtime.calls.function import Function
    from ferrule.runtime.entry.key import CallTraits
    from ferrule.specs import Signature

LATEST = 16
"""The number of keys whose code is kept although no function of it is left."""


def _setting() -> tuple[object, ...]:
    """What code reads of a process at its first launch with much work, and keeps."""
    return os.environ.get("FERRULE_NUM_THREADS"), "torch" in sys.modules


class Loaded:
    """Code in this process, and what a function of it says of itself.

    `restored` is the origin of functions that are made of it again.
    """

    __slots__ = (
        *("__weakref__", "_setting", "doc", "engine", "links", "notes", "restored", "signature"),
        *("state", "traits"),
    )

    def __init__(
        self,
        engine: Engine,
        signature: Signature,
        doc: str | None,
        traits: CallTraits,
        notes: Mapping[str, Any],
        restored: RestoredOrigin,
        links: tuple[Link, ...],
        state: State,
    ) -> None:
        self.engine = engine
        self.signature = signature
        self.doc = doc
        self.traits = traits
        self.notes = notes
        self.restored = restored
        self.links = links
        self.state = state
        self._setting = _setting()

    def afresh(self) -> Loaded:
        """This code for another function: the same, unless a call of one would be noticed by the
        other, which code with variables of its own is loaded again for."""
        if self.state == "none" or (self.state == "threads" and self._setting == _setting()):
            return self
        found = resolve(self.links)
        engine = Engine.load(self.restored.code, found.addresses, owners=found.owners)
        more = self.restored, self.links, self.state
        return Loaded(engine, self.signature, self.doc, self.traits, self.notes, *more)

    def function(self, origin: CompiledOrigin | None = None) -> Function:
        """A function of this code; `origin` is that of the call which compiled it."""
        return make_function(
            self.engine.address(SYMBOL_PREFIX + self.signature.name),
            self.signature,
            self.restored if origin is None else origin,
            owner=self,
            doc=self.doc,
            traits=self.traits,
            notes=self.notes,
        )


@dataclass(slots=True)
class Memory:
    """What was loaded, by the digest of its key."""

    _known: WeakValueDictionary[str, Loaded] = field(default_factory=WeakValueDictionary)
    _latest: OrderedDict[str, Loaded] = field(default_factory=OrderedDict)
    _lock: ForkLock = field(default_factory=ForkLock)

    def get(self, digest: str) -> Loaded | None:
        """The code of a key."""
        with self._lock:
            found = self._known.get(digest)
            if found is not None:
                self._keep(digest, found)
            return found

    def add(self, digest: str, loaded: Loaded) -> None:
        """Keep code while a function of it lives, and for some time."""
        with self._lock:
            self._known[digest] = loaded
            self._keep(digest, loaded)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._known.clear()
            self._latest.clear()

    def _keep(self, digest: str, loaded: Loaded) -> None:
        self._latest[digest] = loaded
        self._latest.move_to_end(digest)
        while len(self._latest) > LATEST:
            self._latest.popitem(last=False)

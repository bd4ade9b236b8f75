"""Keys: what a compilation depends on, part by part, and what cannot be put into a key.

A key is made before a compilation, of what can be known then.  Code that asks the process for
something else while it compiles notes it by `note_unkept`, and the result is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Final

from ferrule.specs.deferred import dataclass


class Uncacheable(Exception):
    """A compilation depends on something that no key can hold; the text says on what."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a compilation depends on.

    `about` names what is compiled; `parts` has a digest for each thing that the compilation
    depends on, by a name for people.  Equal digests mean equal compilations.
    """

    about: str
    parts: Mapping[str, str]
    digest: str

    @property
    def group(self) -> str:
        """A short digest of what is compiled: entries of one function are found by it."""
        return sha256(self.about.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_of(about: str, parts: Mapping[str, bytes]) -> Key:
    """The key of these parts; the bytes of a part are anything that tells its values apart."""
    # Python keeps the bytes of a path that is no UTF-8 as lone surrogates.
    whole, told = sha256(about.encode("utf-8", "surrogatepass")), {}
    for name, data in sorted(parts.items()):
        digest = sha256(data).digest()
        said = name.encode("utf-8", "surrogatepass")
        # With its length, so that a name and what follows cannot be read as another name.
        whole.update(len(said).to_bytes(4, "little") + said + digest)
        told[name] = digest[:8].hex()
    return Key(about, told, whole.hexdigest())


def joined(about: str, keys: Mapping[str, Key], more: Mapping[str, bytes]) -> Key:
    """The key of something that is made of other compilations."""
    inner = {f"the function {name}": key.digest.encode() for name, key in keys.items()}
    return key_of(about, {**inner, **more})


def differing(key: Key, parts: Mapping[str, str]) -> list[str]:
    """The names of the parts in which a key differs from those of an entry."""
    both = {**key.parts, **parts}
    return [name for name in sorted(both) if key.parts.get(name) != parts.get(name)]


_NOTED: Final[ContextVar[list[str] | None]] = ContextVar("ferrule_cache_unkept", default=None)


def note_unkept(why: str) -> None:
    """Note that the current compilation depends on something that its key lacks."""
    noted = _NOTED.get()
    if noted is not None:
        noted.append(why)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collects the notes of the block, also of nested compilations."""
    outer, noted = _NOTED.get(), list[str]()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)
        if outer is not None:
            outer += noted

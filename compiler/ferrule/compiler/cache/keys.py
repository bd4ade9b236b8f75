"""Keys: what a compilation depends on, part by part, and what cannot be put into a key."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

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
    whole, told = sha256(about.encode("utf-8", "surrogatepass")), {}
    for name, data in sorted(parts.items()):
        digest = sha256(data).digest()
        said = name.encode("utf-8", "surrogatepass")
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

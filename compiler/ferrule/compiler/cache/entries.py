"""Entries: what the cache keeps of a compilation, as bytes with a digest.

An entry is an object with its metadata, a docstring, and the parts of its key.  It has no pickle,
and nothing of it is used before its digest was compared.

    magic (16 bytes), SHA-256 of all that follows (32), size of the header (4, little-endian),
    header (JSON), object
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from ferrule.specs.deferred import dataclass

MAGIC: Final = b"ferrule cache 1\n"
_HEAD: Final = len(MAGIC) + 32
_SIGNATURE: Final = 32


State = Literal["none", "threads", "own"]
"""The variables of code: none, what it knows of threads, or what its calls notice of each other."""


class EntryError(ValueError):
    """Bytes that are no entry of this format, or not what was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The object of a compilation for a CPU of this machine, and how to make a function of it.

    `key` is the digest of the key, `parts` as in `Key`; `metadata` is the text that exported files
    have, `cpu` and `features` are LLVM's words for the CPU, `state` tells of its variables.
    """

    key: str
    about: str
    parts: Mapping[str, str]
    metadata: str
    doc: str | None
    triple: str
    cpu: str
    features: str
    state: State
    code: bytes


def packed(entry: Entry) -> bytes:
    """The bytes of an entry; the same entry gives the same bytes."""
    said = {
        "key": entry.key,
        "about": entry.about,
        "parts": dict(entry.parts),
        "metadata": entry.metadata,
        "doc": entry.doc,
        "triple": entry.triple,
        "cpu": entry.cpu,
        "features": entry.features,
        "state": entry.state,
    }
    header = json.dumps(said, separators=(",", ":")).encode()
    rest = len(header).to_bytes(4, "little") + header + entry.code
    return MAGIC + sha256(rest).digest() + rest


def unpacked(data: bytes, key: str | None = None) -> Entry:
    """The entry in these bytes, which is of this key.  EntryError for anything else."""
    rest = data[_HEAD:]
    if not data.startswith(MAGIC):
        raise EntryError("it has another format")
    # Before the header is parsed: nothing damaged gets that far.
    if sha256(rest).digest() != data[len(MAGIC) : _HEAD]:
        raise EntryError("its digest does not match")
    size = int.from_bytes(rest[:4], "little")
    try:
        said = json.loads(rest[4 : 4 + size])
        entry = Entry(**said, code=rest[4 + size :])
    except (ValueError, TypeError) as error:
        raise EntryError(f"its header cannot be read: {error}") from None
    if key is not None and entry.key != key:
        raise EntryError("it is the entry of another key")
    return entry


def signed(data: bytes, secret: bytes | None) -> bytes:
    """The bytes with their HMAC behind them, where there is a secret."""
    return data if secret is None else data + _hmac(data, secret)


def verified(data: bytes, secret: bytes | None) -> bytes:
    """The bytes without their HMAC.  EntryError if it is missing or of another secret."""
    if secret is None:
        return data
    import hmac

    inner, found = data[:-_SIGNATURE], data[-_SIGNATURE:]
    if not hmac.compare_digest(_hmac(inner, secret), found):
        raise EntryError("it is not signed with the key of FERRULE_CACHE_KEY")
    return inner


def _hmac(data: bytes, secret: bytes) -> bytes:
    import hmac

    return hmac.digest(secret, data, "sha256")

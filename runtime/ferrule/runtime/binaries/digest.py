"""Digests of the files that ferrule writes; they reveal a changed bit.

An object has a note for its digest, after the notes of its metadata. `sealed_object` computes the
digest over all bytes of the file, `sealed_library` over the loaded segments of a shared library.
Both treat the bytes of the digest itself as zeros. A linker copies the notes of objects into its
output, so the note also holds the kind of file: in a shared library, the digest of an object is
ignored. A library that another linker call made has only digests of objects.

The search for a digest uses the bytes of the note, not the headers of the file, because the headers
may be damaged. It looks for the head of the note; if a bit of the head was changed, it finds the
note by the kind after the head.
"""

from __future__ import annotations

import hashlib
import operator
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import FileType, Note, ObjectFileError
from ferrule.runtime.binaries.metadata import NOTE_OWNER

NOTE_TYPE: Final = 2
VARIABLE: Final = "FERRULE_VERIFY"
"""The environment variable that turns the check of digests off if it is 0."""

_ELF: Final = b"\x7fELF"
_OWNER: Final = NOTE_OWNER.encode() + b"\0"
_KIND_SIZE: Final = 4
_DIGEST_SIZE: Final = 16
_PLACE_SIZE: Final = _KIND_SIZE + _DIGEST_SIZE

_OBJECT: Final = b"obj:"
_LIBRARY: Final = b"lib:"
_EMPTY: Final = bytes(_PLACE_SIZE)
_NO_KIND: Final = bytes(_KIND_SIZE)

_HEAD: Final = (
    len(_OWNER).to_bytes(4, "little")
    + _PLACE_SIZE.to_bytes(4, "little")
    + NOTE_TYPE.to_bytes(4, "little")
    + _OWNER
)
_NEARLY: Final = 14
"""A head with this many right bytes of 20 is a damaged head, not chance: half of them are zeros."""

EMPTY_NOTE: Final = _HEAD + _EMPTY
"""The note of an object without a digest yet."""

_NOT_LOADED: Final = (slice(40, 48), slice(58, 64))
"""The fields of an ELF header about sections, excluded from the digest: `strip` changes them."""


def sealed_object(data: bytes) -> bytes:
    """The object with its digest filled in; unchanged if it has no empty note for a digest."""
    if EMPTY_NOTE not in data or not data.startswith(_ELF):
        return data
    header = elf.read_header(data, FileType.OBJECT)
    sections = (elf.read_section(data, at) for at in header.sections)
    notes = (each for each in sections if each.kind == elf.SHT_NOTE)
    found = (data.find(EMPTY_NOTE, each.offset, each.offset + each.size) for each in notes)
    at = next((at for at in found if at >= 0), None)
    if at is None:
        return data
    place = at + len(_HEAD)
    return _filled(data, place, _OBJECT, _object_digest(data, place))


def sealed_library(data: bytes) -> bytes:
    """The shared library with its digest, which overwrites the digest of an object linked into it.

    Unchanged if no such object has a digest.
    """
    if _HEAD + _OBJECT not in data or not data.startswith(_ELF):
        return data
    segments = elf.read_segments(data, elf.read_header(data, FileType.LIBRARY))
    notes = (each for each in segments if each.kind == elf.PT_NOTE)
    found = (data.find(_HEAD + _OBJECT, each.offset, each.offset + each.size) for each in notes)
    at = next((at for at in found if at >= 0), None)
    if at is None:
        return data
    place = at + len(_HEAD)
    return _filled(data, place, _LIBRARY, _library_digest(data, place))


def is_sealed_library(notes: Iterable[Note]) -> bool:
    """Whether ferrule linked the shared library with these notes, from its own code alone.

    Only then it has the digest of a library; other libraries have at most digests of objects.
    """
    return any(
        (note.owner, note.kind) == (NOTE_OWNER, NOTE_TYPE) and note.text.startswith(_LIBRARY)
        for note in notes
    )


def is_marked(data: bytes) -> bool:
    """Whether a file contains code that ferrule made: it has a note for a digest."""
    return any(True for _ in _places(data))


def check_digest(data: bytes, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a digest confirms that an object or shared library is as ferrule wrote it.

    ObjectFileError if the digest does not match. Returns False for a file without a digest (ferrule
    did not write it, or another linker call made it), and for each file if FERRULE_VERIFY is 0.
    ValueError if FERRULE_VERIFY is neither 0 nor 1.
    """
    if not _is_wanted(environ):
        return False
    own, ignored = (_LIBRARY, (_OBJECT, _NO_KIND)) if _is_library(data) else (_OBJECT, (_NO_KIND,))
    judged = [at for at in _places(data) if _kind(data, at) not in ignored]
    is_damaged = not any(_fits(data, at, own) for at in judged) if judged else _lost_head(data)
    if is_damaged:
        raise ObjectFileError(
            "the file is damaged: its bytes are not those that the digest in .note.ferrule is of; "
            f"export it again, or set {VARIABLE}=0 if a tool changed it on purpose"
        )
    return bool(judged)


def _is_wanted(environ: Mapping[str, str]) -> bool:
    chosen = environ.get(VARIABLE, "1")
    if chosen not in ("", "0", "1"):
        raise ValueError(f"the environment variable {VARIABLE} must be 0 or 1, but is {chosen!r}")
    return chosen != "0"


def _is_library(data: bytes) -> bool:
    return data[16:18] == FileType.LIBRARY.to_bytes(2, "little")


def _places(data: bytes) -> Iterator[int]:
    """The offsets of all digests, filled in or still empty."""
    numbers = len(_HEAD) - len(_OWNER)
    owner = data.find(_OWNER)
    while 0 <= owner <= len(data) - len(_OWNER) - _PLACE_SIZE:
        if owner >= numbers and data.startswith(_HEAD, owner - numbers):
            yield owner + len(_OWNER)
        owner = data.find(_OWNER, owner + 1)


def _lost_head(data: bytes) -> bool:
    """Whether the kind of a digest follows a damaged head: one that is nearly, not fully, right."""
    for kind in (_OBJECT, _LIBRARY):
        at = data.find(kind, len(_HEAD))
        while at >= 0:
            head = data[at - len(_HEAD) : at]
            same = sum(map(operator.eq, head, _HEAD))
            if head != _HEAD and same >= _NEARLY:
                return True
            at = data.find(kind, at + 1)
    return False


def _kind(data: bytes, place: int) -> bytes:
    return data[place : place + _KIND_SIZE]


def _fits(data: bytes, place: int, own: bytes) -> bool:
    if _kind(data, place) != own:
        return False
    digest = _library_digest if own == _LIBRARY else _object_digest
    return data[place + _KIND_SIZE : place + _PLACE_SIZE] == digest(data, place)


def _filled(data: bytes, place: int, kind: bytes, digest: bytes) -> bytes:
    return data[:place] + kind + digest + data[place + _PLACE_SIZE :]


def _object_digest(data: bytes, place: int) -> bytes:
    read = b"".join((data[:place], _EMPTY, data[place + _PLACE_SIZE :]))
    return hashlib.sha256(read).digest()[:_DIGEST_SIZE]


def _library_digest(data: bytes, place: int) -> bytes:
    """The digest of the ELF header, the program headers, and all loaded segments."""
    read = bytearray(data)
    read[place : place + _PLACE_SIZE] = _EMPTY
    for part in _NOT_LOADED:
        read[part] = bytes(part.stop - part.start)
    header, view = elf.read_header(data, FileType.LIBRARY), memoryview(read)
    found = hashlib.sha256(view[: elf.HEADER.size])
    found.update(view[header.segments.start : header.segments.stop])
    for segment in elf.read_segments(data, header):
        if segment.kind == elf.PT_LOAD:
            found.update(view[segment.offset : segment.offset + segment.size])
    return found.digest()[:_DIGEST_SIZE]

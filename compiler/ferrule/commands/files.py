"""Built files as commands see them: read and compared with this machine, never loaded or run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from ferrule.commands.output import Failure
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.binaries.archive import read_archive
from ferrule.runtime.binaries.elf import ARCHIVE, FileType, Note, ObjectFileError
from ferrule.runtime.binaries.libraryfile import read_library
from ferrule.runtime.binaries.metadata import (
    NOTE_OWNER,
    NOTE_TYPE,
    Metadata,
    MetadataError,
    read_metadata,
)
from ferrule.runtime.binaries.objectfile import read_object
from ferrule.runtime.paths import read_file
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """An object or a library: the whole file, or a member of an archive."""

    kind: str
    machine: str
    defined: tuple[str, ...]
    undefined: tuple[str, ...]
    functions: tuple[Metadata, ...]
    data: bytes = field(repr=False)

    def unknown(self) -> list[str]:
        """Exported functions that ferrule did not make: the file says nothing of them."""
        known = {metadata.name for metadata in self.functions}
        names = (
            symbol.removeprefix(SYMBOL_PREFIX)
            for symbol in self.defined
            if symbol.startswith(SYMBOL_PREFIX) and not symbol.startswith(f"{SYMBOL_PREFIX}_")
        )
        return [name for name in names if name not in known]


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """A file of code: its kind ("object", "archive" or "library"), and its parts."""

    path: Path
    kind: str
    parts: tuple[Part, ...]
    data: bytes = field(repr=False)

    @property
    def functions(self) -> Iterator[tuple[Part, Metadata]]:
        """Every function, with the part that it is in."""
        return ((part, metadata) for part in self.parts for metadata in part.functions)


def is_source(path: Path) -> bool:
    """Whether a path is that of Python source."""
    return path.suffix == ".py"


def read_built(path: Path) -> BuiltFile:
    """Read a file of code.  Failure for another file, and for one that is cut off or damaged so
    that its headers cannot be read; digests are not compared."""
    try:
        data = read_file(path)
        if data.startswith(ARCHIVE):
            return BuiltFile(path, "archive", tuple(map(_object, read_archive(data))), data)
        # `e_type` of the header, which stands behind the 16 bytes of `e_ident`.
        if data[16:18] == FileType.LIBRARY.to_bytes(2, "little"):
            return BuiltFile(path, "library", (_library(data),), data)
        return BuiltFile(path, "object", (_object(data),), data)
    except (ObjectFileError, MetadataError) as error:
        raise Failure.of(error, f"{path}: ") from error
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}", type(error).__name__) from error


def _library(data: bytes) -> Part:
    header = read_library(data)
    machine = header.machine.name.lower()
    return Part(
        "library", machine, header.defined, header.undefined, _functions(header.notes), data
    )


def _object(data: bytes) -> Part:
    header = read_object(data)
    machine = header.machine.name.lower()
    return Part("object", machine, header.defined, header.undefined, _functions(header.notes), data)


def _functions(notes: tuple[Note, ...]) -> tuple[Metadata, ...]:
    texts = (note.text for note in notes if (note.owner, note.kind) == (NOTE_OWNER, NOTE_TYPE))
    return tuple(map(read_metadata, texts))

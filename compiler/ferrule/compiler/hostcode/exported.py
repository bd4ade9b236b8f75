"""The functions of a shared library that is loaded, for messages that say what it has."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ferrule.runtime import elf

_LINK_MAP: Final = 2


class _LinkMap(ctypes.Structure):
    """The beginning of glibc's and musl's `struct link_map`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def exported_symbols(path: str) -> list[str]:
    """The names that a library shows to others; none where they cannot be found out."""
    try:
        return list(_symbols(_file(path).read_bytes()))
    except (OSError, AttributeError, elf.ObjectFileError):
        return []


def _file(path: str) -> Path:
    """The file of a library that the loader found by a path or name (dlinfo, RTLD_DI_LINKMAP)."""
    library, found = ctypes.CDLL(path), ctypes.POINTER(_LinkMap)()
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if dlinfo(library._handle, _LINK_MAP, ctypes.byref(found)) != 0 or not found:
        raise OSError(f"the loader does not say where {path} is")
    return Path((found.contents.name or b"").decode())


def _symbols(data: bytes) -> Iterator[str]:
    header = elf.read_header(data, elf.FileType.LIBRARY)
    sections = [elf.read_section(data, offset) for offset in header.sections]
    for table in sections:
        if table.kind == elf.SHT_DYNSYM:
            for symbol in elf.read_symbols(data, sections, table, placed=False):
                if symbol.defined:
                    yield symbol.name

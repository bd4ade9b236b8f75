"""The functions of a loaded shared library, for messages that list them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Final

from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.libraryfile import read_library

_LINK_MAP: Final = 2


class _LinkMap(ctypes.Structure):
    """The first fields of glibc's and musl's `struct link_map`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def exported_symbols(path: str) -> list[str]:
    """The names that a library exports; none if they cannot be found out."""
    try:
        return list(read_library(_file(path).read_bytes()).defined)
    except (OSError, AttributeError, ObjectFileError):
        return []


def _file(path: str) -> Path:
    """The file of a library that the loader found by a path or name (dlinfo, RTLD_DI_LINKMAP)."""
    library, found = ctypes.CDLL(path), ctypes.POINTER(_LinkMap)()
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    if dlinfo(library._handle, _LINK_MAP, ctypes.byref(found)) != 0 or not found:
        raise OSError(f"the loader does not say where {path} is")
    return Path((found.contents.name or b"").decode())

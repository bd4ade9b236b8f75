"""Shared libraries in this process: opened with all symbols bound, closed when nobody holds them.

The system binds a library's symbols when they are first called and ends the process where one is
missing, so a library is opened with all of them bound at once.
"""

from __future__ import annotations

import _ctypes
import ctypes
import os
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import tvm_ffi

from ferrule.runtime import openmp
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.elf import ObjectFileError
from ferrule.runtime.importtree import Node

_NEEDS_LOADER: Final = (f"{SYMBOL_PREFIX}_library_bin", f"{SYMBOL_PREFIX}_library_ctx")
"""A library with one of these is known to tvm-ffi too, which fills them in."""

_ALREADY: Final = getattr(os, "RTLD_NOLOAD", 0)


@cache
def tvm_ffi_library() -> ctypes.CDLL:
    """libtvm_ffi, as this process has it."""
    from tvm_ffi import libinfo

    return ctypes.CDLL(libinfo.find_libtvm_ffi())


class SharedLibrary:
    """An open library; it is closed with the last reference."""

    __slots__ = ("__weakref__", "_library", "_module")

    def __init__(self, library: ctypes.CDLL, module: tvm_ffi.Module | None) -> None:
        self._library: Final = library
        self._module: Final = module
        # At exit the system closes it: what still holds functions may call them until then.
        weakref.finalize(self, _ctypes.dlclose, library._handle).atexit = False

    @classmethod
    def open(cls, data: bytes, path: Path | None, defined: Sequence[str]) -> SharedLibrary:
        """Open the library of a file, or of bytes alone. ObjectFileError where that fails."""
        wants = any(symbol in defined for symbol in _NEEDS_LOADER)
        with tempfile.TemporaryDirectory() as folder:
            # tvm-ffi writes its module into the library: each such one is a copy of its own.
            at = _fresh_path(data, None if wants else path, Path(folder))
            try:
                openmp.offer()
                library = ctypes.CDLL(str(at), os.RTLD_NOW | os.RTLD_LOCAL)
            except (OSError, UnicodeDecodeError) as error:  # the latter: its words are no text
                words = str(error).replace(str(at), path.name if path else at.name)
                raise ObjectFileError(f"the system cannot load it: {words}") from None
            module = tvm_ffi.load_module(str(at), keep_module_alive=False) if wants else None
            return cls(library, module)

    def address(self, symbol: str) -> int:
        """The address of a symbol, valid while the library is open."""
        found = ctypes.cast(getattr(self._library, symbol), ctypes.c_void_p).value
        if found is None:
            raise KeyError(symbol)
        return found

    def modules(self, nodes: Sequence[Node]) -> dict[int, tvm_ffi.Module]:
        """What tvm-ffi made of the modules of the library's import tree, by position."""
        found: dict[int, tvm_ffi.Module] = {}
        waiting = [(0, self._module)]
        for at, module in waiting:
            if module is not None and at not in found:
                found[at] = module
                # A loader may give one module for several, which has the imports of all.
                imports = list(module.imports)[-len(nodes[at].children) :]
                waiting += zip(nodes[at].children, imports, strict=False)
        return found


def _fresh_path(data: bytes, path: Path | None, folder: Path) -> Path:
    """A path under which the system opens this very file.

    The system takes a library that is open under the same path for the same one, and a file that
    was replaced since would never be read. So one that is open gets another path: of the same
    file the system knows that it has it.
    """
    if path is None:
        written = folder / "library.so"
        written.write_bytes(data)
        return written
    absolute = path.absolute()
    if not _is_open(absolute):
        return absolute
    link = folder / path.name
    link.symlink_to(absolute)
    return link


def _is_open(path: Path) -> bool:
    try:
        library = ctypes.CDLL(str(path), _ALREADY | os.RTLD_NOW) if _ALREADY else None
    except (OSError, UnicodeDecodeError):
        return False
    if library is None:
        return False
    _ctypes.dlclose(library._handle)
    return True

"""Shared libraries in this process: opened with all symbols bound; those that ferrule linked are
closed when nobody holds them, all others never.

The system binds a library's symbols when they are first called and ends the process where one is
missing, so a library is opened with all of them bound at once.
"""

from __future__ import annotations

import _ctypes
import ctypes
import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import tvm_ffi

from ferrule.runtime import openmp
from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.digest import is_sealed_library
from ferrule.runtime.elf import ObjectFileError
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.importtree import Node
from ferrule.runtime.libraryfile import LibraryFile

_NEEDS_LOADER: Final = (f"{SYMBOL_PREFIX}_library_bin", f"{SYMBOL_PREFIX}_library_ctx")
"""A library with one of these is known to tvm-ffi too, which fills them in."""

_REGISTERS: Final = ("TVMFFIFunctionSetGlobal", "TVMFFITypeRegister")
"""What the symbols begin with that a library needs which registers functions or types."""

# Libraries that stay open, by the digest of their bytes; what each file was that had one.
_KEPT: Final[dict[bytes, SharedLibrary]] = {}
_OPENED: Final[dict[Path, bytes]] = {}
_LOCK: Final = ForkLock()

_ALREADY: Final = getattr(os, "RTLD_NOLOAD", 0)


@cache
def tvm_ffi_library() -> ctypes.CDLL:
    """libtvm_ffi, as this process has it."""
    from tvm_ffi import libinfo

    return ctypes.CDLL(libinfo.find_libtvm_ffi())


def open_library(data: bytes, path: Path | None, header: LibraryFile) -> SharedLibrary:
    """Open the library of a file, or of bytes alone. ObjectFileError where that fails.

    One that ferrule linked is closed with the last reference to it. Any other stays open, as
    tvm-ffi keeps it: what its code registered and the objects that it made call it until the
    process ends. The same again is the same library.
    """
    if is_sealed_library(header.notes):
        return SharedLibrary.open(data, path, header, is_own=True)
    digest = hashlib.sha256(data).digest()
    with _LOCK:
        library = _KEPT.get(digest)
        if library is None:
            _refuse_second(path, digest, header)
            library = _KEPT[digest] = SharedLibrary.open(data, path, header, is_own=False)
            if path is not None:
                _OPENED[path.resolve()] = digest
        return library


def keep_libraries(names: Iterable[str]) -> None:
    """Keep libraries of others open that an open library has brought, by their names or paths.

    They would be closed with it, see `open_library`.
    """
    for name in names:
        for known in dict.fromkeys((name, os.path.basename(name))):
            with suppress(OSError):
                ctypes.CDLL(known, _ALREADY | os.RTLD_NOW)  # ctypes closes none
                break


class SharedLibrary:
    """An open library; one of ferrule's own is closed with the last reference."""

    __slots__ = ("__weakref__", "_library", "_module")

    def __init__(self, library: ctypes.CDLL, module: tvm_ffi.Module | None, is_own: bool) -> None:
        self._library: Final = library
        self._module: Final = module
        if is_own:
            # At exit the system closes it: what still holds functions may call them until then.
            weakref.finalize(self, _ctypes.dlclose, library._handle).atexit = False

    @classmethod
    def open(
        cls, data: bytes, path: Path | None, header: LibraryFile, *, is_own: bool
    ) -> SharedLibrary:
        """Open the library; ObjectFileError where that fails."""
        wants = any(symbol in header.defined for symbol in _NEEDS_LOADER)
        with tempfile.TemporaryDirectory() as folder:
            # tvm-ffi writes its module into the library: each such one is a copy of its own. The
            # constructors of another's library run once: it is opened where it is.
            at = _fresh_path(data, None if wants and is_own else path, Path(folder))
            try:
                openmp.offer()
                library = ctypes.CDLL(str(at), os.RTLD_NOW | os.RTLD_LOCAL)
            except (OSError, UnicodeDecodeError) as error:  # the latter: its words are no text
                words = str(error).replace(str(at), path.name if path else at.name)
                raise ObjectFileError(f"the system cannot load it: {words}") from None
            module = tvm_ffi.load_module(str(at), keep_module_alive=not is_own) if wants else None
            return cls(library, module, is_own)

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


def _refuse_second(path: Path | None, digest: bytes, header: LibraryFile) -> None:
    """ObjectFileError for a library that would register anew what an older one of its file has.

    Its constructor runs when it is opened, and tvm-ffi ends the process where a name is taken.
    """
    known = None if path is None else _OPENED.get(path.resolve())
    registers = any(symbol.startswith(_REGISTERS) for symbol in header.undefined)
    if known is not None and known != digest and registers:
        raise ObjectFileError(
            "the file was replaced since it was loaded, and what both register with tvm-ffi can be "
            "registered only once in a process: load it in a new process"
        )


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

"""Shared libraries in this process: a library that ferrule linked is closed with its last
reference, other libraries are never closed.

By default the system binds a function at its first call, and ends the process if the symbol is
missing. Therefore libraries are opened with all symbols bound at once.
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
from pathlib import Path
from typing import Final

import tvm_ffi

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.binaries.digest import is_sealed_library
from ferrule.runtime.binaries.elf import ObjectFileError
from ferrule.runtime.binaries.importtree import Node
from ferrule.runtime.binaries.libraryfile import LibraryFile
from ferrule.runtime.forks import ForkLock
from ferrule.runtime.host import libtvm_ffi
from ferrule.runtime.linking import openmp

_NEEDS_LOADER: Final = (f"{SYMBOL_PREFIX}_library_bin", f"{SYMBOL_PREFIX}_library_ctx")
"""A library with one of these symbols is also loaded through tvm-ffi, which fills them in."""

_REGISTERS: Final = ("TVMFFIFunctionSetGlobal", "TVMFFITypeRegister")
"""Prefixes of imported symbols; a library with one of them registers functions or types."""

# Libraries that stay open, by the digest of their bytes; and the digest by the path of each file.
_KEPT: Final[dict[bytes, SharedLibrary]] = {}
_OPENED: Final[dict[Path, bytes]] = {}
_LOCK: Final = ForkLock()

_ALREADY: Final = getattr(os, "RTLD_NOLOAD", 0)


def tvm_ffi_version() -> tuple[int, ...]:
    """The version of the libtvm_ffi that this process has loaded."""
    version = (ctypes.c_uint32 * 3)()
    libtvm_ffi().TVMFFIGetVersion(version)
    return tuple(version)


def open_library(data: bytes, path: Path | None, header: LibraryFile) -> SharedLibrary:
    """Open the library of a file, or of bytes without a file. ObjectFileError if that fails.

    A library that ferrule linked is closed with its last reference. Any other library stays open,
    as it does in tvm-ffi: registered functions and objects of the library can call its code until
    the process ends. The same bytes give the same library again.
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
    """Keep dependencies of an open library open, given by their names or paths.

    Otherwise the system would close them together with this library, see `open_library`.
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
            # At exit the system closes the library; until then, holders of functions may call them.
            weakref.finalize(self, _ctypes.dlclose, library._handle).atexit = False

    @classmethod
    def open(
        cls, data: bytes, path: Path | None, header: LibraryFile, *, is_own: bool
    ) -> SharedLibrary:
        """Open the library; ObjectFileError if that fails."""
        wants = any(symbol in header.defined for symbol in _NEEDS_LOADER)
        with tempfile.TemporaryDirectory() as folder:
            # tvm-ffi stores its module in the library, so each such library of ferrule is opened
            # as a copy. A foreign library is opened in place: its constructors may run only once.
            at = _fresh_path(data, None if wants and is_own else path, Path(folder))
            try:
                openmp.offer()
                library = ctypes.CDLL(str(at), os.RTLD_NOW | os.RTLD_LOCAL)
            except (OSError, UnicodeDecodeError) as error:  # the latter: the message is not UTF-8
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
        """The modules that tvm-ffi made from the library's import tree, by position."""
        found: dict[int, tvm_ffi.Module] = {}
        waiting = [(0, self._module)]
        for at, module in waiting:
            if module is not None and at not in found:
                found[at] = module
                # A loader may return the same module for several nodes; it has the imports of all
                # of them, and the last ones belong to this node.
                imports = list(module.imports)[-len(nodes[at].children) :]
                waiting += zip(nodes[at].children, imports, strict=False)
        return found


def _refuse_second(path: Path | None, digest: bytes, header: LibraryFile) -> None:
    """ObjectFileError for a library that would repeat the registrations of its file's old version.

    Constructors run when a library is opened, and tvm-ffi ends the process if a name is taken.
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

    If a library with the same path is open, the system returns this one, even if the file was
    replaced in the meantime. So the file gets another path then. If it is unchanged, the system
    still recognises the open library, because it also compares the file itself.
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

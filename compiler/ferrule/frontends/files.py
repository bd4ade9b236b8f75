"""Compiled code in files of any kind: `fe.frontends.files.load(path)`.

PTX and cubins become a `DeviceCode` for `conventions.CudaLaunch`; objects, shared libraries, LLVM
IR and bitcode become a `HostCode` for `conventions.CFunction`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ferrule.compiler.cuda.code import DeviceCode
    from ferrule.compiler.hostcode import HostCode

__all__ = ["load"]

# Plain bitcode, and the wrapper that Apple's tools put around it (LLVM Bitcode File Format).
_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_PTX: Final = re.compile(rb"^\s*\.version\s+\d", re.MULTILINE)
_LLVM: Final = re.compile(
    rb"^(?:target (?:triple|datalayout) = |define |declare |source_filename = |; ModuleID)",
    re.MULTILINE,
)
_CPP: Final = ("C++", 'g++ -c -fPIC, with its functions extern "C",')
_SOURCES: Final = {
    ".cu": ("CUDA C++", "fe.frontends.cuda.compile"),
    ".c": ("C", "fe.frontends.c.compile"),
    **dict.fromkeys((".cc", ".cpp", ".cxx"), _CPP),
    ".f90": ("Fortran", "gfortran -c -fPIC"),
    ".s": ("assembly", "gcc -c"),
    ".mlir": ("MLIR", "fe.frontends.mlir.compile"),
    ".py": ("Python", "fe.compile"),
}


def load(
    path: str | os.PathLike[str],
    *,
    kernels: Sequence[str] | None = None,
    libraries: Sequence[str] = (),
) -> DeviceCode | HostCode:
    """The code in a file, whose kind is recognised by its contents, not by its name.

    `kernels` are the kernels of device code to use, all by default; `libraries` are those whose
    functions objects and LLVM IR call.  Raises OSError for a file that cannot be read; TypeError
    for a value that is not a path; ValueError for a file of another kind (the message names the
    kind and the function to use instead), for `kernels` with host code, and for `libraries` with
    other code; CompileError for host code that cannot be used.
    """
    from ferrule.compiler.hostcode import HostCode, Library

    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected the path of a file, but got {type(path).__name__}")
    name = os.fspath(path)
    found = _load(Path(path).read_bytes(), name, kernels, libraries)
    if kernels is not None and isinstance(found, HostCode):
        raise ValueError(f"{name}: kernels={kernels!r} is for device code, but this is host code")
    if libraries and (not isinstance(found, HostCode) or isinstance(found.source, Library)):
        raise ValueError(f"{name}: libraries={libraries!r} is for objects and LLVM IR alone")
    return found


def _load(
    data: bytes, name: str, kernels: Sequence[str] | None, libraries: Sequence[str]
) -> DeviceCode | HostCode:
    from ferrule.compiler.cuda.binaries.cubins import FATBIN
    from ferrule.compiler.cuda.code import DeviceCode
    from ferrule.compiler.hostcode import HostCode
    from ferrule.runtime.binaries.elf import ARCHIVE, ObjectFileError

    if data.startswith(ARCHIVE):
        return HostCode.from_object(name, libraries=libraries)
    if data[:4] == b"\x7fELF":
        return _load_elf(data, name, kernels, libraries)
    if data.startswith(_BITCODE):
        return HostCode.from_llvm(name, libraries=libraries)
    if data.startswith(FATBIN):
        return DeviceCode.from_cubin(name)
    if _PTX.search(data):
        return DeviceCode.from_ptx(name, kernels)
    # A binary file of another kind may contain such a line of text.
    if b"\0" not in data and _LLVM.search(data):
        return HostCode.from_llvm(name, libraries=libraries)
    raise ObjectFileError(
        f"{name}: wanted PTX, a cubin, an object file, an archive, a shared library, LLVM IR or "
        f"bitcode, "
        f"got {_what(data, name)}"
    )


def _load_elf(
    data: bytes, name: str, kernels: Sequence[str] | None, libraries: Sequence[str]
) -> DeviceCode | HostCode:
    from ferrule.compiler.cuda.binaries.cubins import MACHINE
    from ferrule.compiler.cuda.code import DeviceCode
    from ferrule.compiler.hostcode import HostCode
    from ferrule.runtime.binaries import elf

    try:
        kind, machine, *_ = elf.unpack(elf.HEADER, data, 0, "the ELF header")
    except elf.ObjectFileError as error:
        raise elf.ObjectFileError(f"{name}: {error}") from None
    if machine == MACHINE:
        return DeviceCode.from_cubin(name, kernels)
    if kind == elf.FileType.LIBRARY:
        return HostCode.from_library(os.path.abspath(name))
    return HostCode.from_object(name, libraries=libraries)


def _what(data: bytes, name: str) -> str:
    from ferrule.runtime.binaries import elf

    instead = _SOURCES.get(Path(name).suffix)
    if instead is not None:
        return f"a source of {instead[0]}: {instead[1]} compiles it"
    head = data[:40].decode("ascii", "replace").splitlines()
    if head and head[0].isprintable() and "\ufffd" not in head[0]:
        return f"text that begins with {head[0]!r}"
    try:
        elf.check_magic(data)
    except elf.ObjectFileError as error:
        return str(error).partition("got ")[2]
    return "an ELF file"

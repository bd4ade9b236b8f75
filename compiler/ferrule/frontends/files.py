"""Compiled code in files, whatever it is: `fe.frontends.files.load(path)`.

PTX and cubins become a `DeviceCode` for `conventions.CudaLaunch`; objects, shared libraries, LLVM
IR and bitcode a `HostCode` for `conventions.CFunction`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ferrule.compiler.artefacts import DeviceCode
from ferrule.compiler.cuda.cubins import FATBIN, MACHINE
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime import elf
from ferrule.runtime.elf import FileType, ObjectFileError

__all__ = ["load"]

_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_PTX: Final = re.compile(rb"^\s*\.version\s+\d", re.MULTILINE)
_LLVM: Final = re.compile(
    rb"^(?:target (?:triple|datalayout) = |define |declare |source_filename = |; ModuleID)",
    re.MULTILINE,
)
_SOURCES: Final = {
    ".cu": ("CUDA C++", "fe.frontends.cuda.compile"),
    ".c": ("C", "fe.frontends.c.compile"),
    ".mlir": ("MLIR", "fe.frontends.mlir.compile"),
    ".py": ("Python", "fe.compile"),
}


def load(
    path: str | os.PathLike[str],
    *,
    kernels: Sequence[str] | None = None,
    libraries: Sequence[str] = (),
) -> DeviceCode | HostCode:
    """What a file holds, told by its bytes and not by its name.

    `kernels` are those of device code to use, all by default; `libraries` those that have what
    host code calls.  Raises FileNotFoundError, ValueError for what is none of these, which says
    what it is and what to write instead, and CompileError for host code that cannot be used.
    """
    data = Path(path).read_bytes()
    name = os.fspath(path)
    if data[:4] == b"\x7fELF":
        return _load_elf(data, name, kernels, libraries)
    if data.startswith(_BITCODE):
        return HostCode.from_llvm(name, libraries=libraries)
    if data.startswith(FATBIN):
        return DeviceCode.from_cubin(name)
    if _PTX.search(data):
        return DeviceCode.from_ptx(name, kernels)
    if b"\0" not in data and _LLVM.search(data):
        return HostCode.from_llvm(name, libraries=libraries)
    raise ObjectFileError(
        f"{name}: wanted PTX, a cubin, an object file, a shared library, LLVM IR or bitcode, "
        f"got {_what(data, name)}"
    )


def _load_elf(
    data: bytes, name: str, kernels: Sequence[str] | None, libraries: Sequence[str]
) -> DeviceCode | HostCode:
    try:
        kind, machine, *_ = elf.unpack(elf.HEADER, data, 0, "the ELF header")
    except ObjectFileError as error:
        raise ObjectFileError(f"{name}: {error}") from None
    if machine == MACHINE:
        return DeviceCode.from_cubin(name, kernels)
    if kind == FileType.LIBRARY:
        return HostCode.from_library(os.path.abspath(name))
    return HostCode.from_object(name, libraries=libraries)


def _what(data: bytes, name: str) -> str:
    instead = _SOURCES.get(Path(name).suffix)
    if instead is not None:
        return f"a source of {instead[0]}: {instead[1]} compiles it"
    if data.startswith(b"!<arch>\n"):
        return "an archive: take the object out of it with ar x"
    try:
        elf.check_magic(data)
    except ObjectFileError as error:
        return str(error).partition("got ")[2]
    return "an ELF file"

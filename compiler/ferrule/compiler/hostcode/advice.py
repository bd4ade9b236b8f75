"""What to write instead where code of others is not what it was taken for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mangled import spoken_name
from ferrule.runtime import elf

_OBJECT: Final = "objects are for HostCode.from_object, shared libraries for HostCode.from_library"
_ARCHIVE: Final = (
    "take the objects out of it with ar x, or link all of it to a shared library: "
    "cc -shared -Wl,--whole-archive lib.a -o lib.so"
)
_COMPILE: Final = (
    "compile it with -c -fPIC for this processor, or link it to a shared library and name that"
)
_CUDA: Final = 190
"""The ELF machine of cubins."""


def for_name(name: str, symbols: Sequence[str]) -> str | None:
    """What to say to whoever asks for a function that is not among these symbols."""
    for symbol in symbols:
        if symbol != name and spoken_name(symbol).rpartition("::")[2] == name:
            return f'C++ calls it {symbol}: declare it extern "C", or name it so'
        if symbol == f"{name}_":
            return f"Fortran calls it {symbol}: name it so, or declare it bind(C)"
    near = difflib.get_close_matches(name, symbols, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return None if symbols else "functions that are static or inline have no name in an object"


def for_object(data: bytes) -> str:
    """What to do with bytes that cannot be embedded."""
    if data.startswith(b"!<arch>\n"):
        return _ARCHIVE
    if data[:4] == b"\x7fELF":
        kind, machine = (int.from_bytes(data[at : at + 2], "little") for at in (16, 18))
        if machine == _CUDA:
            return "a cubin is for DeviceCode.from_cubin"
        if b"\0.gnu.lto_" in data:
            return "its code is for a linker alone: compile it without -flto"
        return _OBJECT if kind == elf.FileType.LIBRARY else _COMPILE
    if b"\ndefine " in b"\n" + data[:65536]:
        return "LLVM IR is for HostCode.from_llvm"
    return _COMPILE


def for_library(name: str) -> str | None:
    """What to do about a library that cannot be loaded."""
    if name.endswith((".o", ".ll", ".bc")):
        return "objects are for HostCode.from_object, LLVM IR is for HostCode.from_llvm"
    if name.endswith(".a"):
        return _ARCHIVE
    if "/" not in name and Path(name).is_file():
        return f"a name without a slash is one that the system knows: write './{name}'"
    return None if ".so" in name or "/" in name else "it has the name of a file, such as libz.so.1"


def check_llvm(data: bytes, what: str) -> None:
    """Raises CompileError for bytes that LLVM would call unreadable, and for which there is a
    better word."""
    if data[:4] == b"\x7fELF":
        raise CompileError(Diagnostic(f"{what} is an ELF file, not LLVM IR", hint=_OBJECT))
    if data.startswith(b"!<arch>\n"):
        raise CompileError(Diagnostic(f"{what} is an archive, not LLVM IR", hint=_ARCHIVE))


def check_libraries(given: object) -> None:
    """Raises TypeError for what is no list of names."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        shown = f"[{given!r}]" if isinstance(given, str) else "['libz.so.1']"
        raise TypeError(f"libraries must be a list, such as {shown}, but got {given!r}")

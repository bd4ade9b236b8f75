"""Hints for foreign code of the wrong kind."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mangled import spoken_name
from ferrule.runtime.binaries import elf

HOSTCODE: Final = "ferrule.compiler.conventions.HostCode"
"""The import path of the names in the hints."""

_OBJECT: Final = f"objects are for {HOSTCODE}.from_object, shared libraries for its from_library"
_IR: Final = f"LLVM IR is for {HOSTCODE}.from_llvm"
_ARCHIVE: Final = f"an archive of objects is for {HOSTCODE}.from_object"
_THIN: Final = "write an archive with its members inside: ar without --thin or T"
_COMPILE: Final = (
    "compile it with -c -fPIC for this processor, or link it to a shared library and name that"
)
_OF_LOADERS: Final = ("thread-local data", "a constructor", "ifunc", "C++ exceptions")
_LINK: Final = (
    f"only a loader can do that, for the whole file: cc -shared -fPIC makes a library of it for "
    f"{HOSTCODE}.from_library; or move what needs it to another file; where the functions that are "
    f"called need none of it, functions=['run'] leaves it out, of an object that is compiled with "
    f"-ffunction-sections -fdata-sections"
)
_MOST_COMPARED: Final = 20_000
"""The limit for comparing names, which takes a microsecond or more for each."""

_CUDA: Final = 190
"""The ELF machine of cubins."""


def for_name(name: str, symbols: Sequence[str]) -> str | None:
    """The hint for a function that is not among these symbols."""
    for symbol in symbols:
        if symbol != name and name in _names(symbol):
            return f'C++ calls it {symbol}: declare it extern "C", or name it so'
        if symbol == f"{name}_":
            return f"Fortran calls it {symbol}: name it so, or declare it bind(C)"
    longer = [symbol for symbol in symbols if name in symbol] if len(name) > 3 else []
    if longer:
        return f"did you mean {min(longer, key=len)}?"
    as_long = [symbol for symbol in symbols if abs(len(symbol) - len(name)) < 3]
    near = difflib.get_close_matches(name, as_long[:_MOST_COMPARED], n=1)
    if near:
        return f"did you mean {near[0]}?"
    return None if symbols else "functions that are static or inline have no name in an object"


def _names(symbol: str) -> tuple[str, ...]:
    """The names of a C++ symbol in a source: with its namespace, without it, and without template
    arguments."""
    if not symbol.startswith("_Z"):
        return ()
    whole = spoken_name(symbol)
    plain = whole.partition("<")[0]
    return whole, plain, plain.rpartition("::")[2]


def for_object(data: bytes, said: str) -> str:
    """The hint for bytes that cannot be embedded, of which an error says this."""
    if any(each in said for each in _OF_LOADERS):
        return _LINK
    if data.startswith(b"!<thin>\n"):
        return _THIN
    if data.startswith(_BITCODE):
        return _IR
    if data[:4] == b"\x7fELF":
        kind, machine = (int.from_bytes(data[at : at + 2], "little") for at in (16, 18))
        if machine == _CUDA:
            return "a cubin is for DeviceCode.from_cubin"
        if b"\0.gnu.lto_" in data:
            return "its code is for a linker alone: compile it without -flto"
        return _OBJECT if kind == elf.FileType.LIBRARY else _COMPILE
    if b"\ndefine " in b"\n" + data[:65536]:
        return _IR
    return _COMPILE


def for_library(name: str) -> str | None:
    """The hint for a library that cannot be loaded."""
    if name.endswith((".o", ".ll", ".bc")):
        return f"objects are for {HOSTCODE}.from_object, LLVM IR for its from_llvm"
    if name.endswith(".a"):
        return _ARCHIVE
    if "/" not in name and Path(name).is_file():
        return f"a name without a slash is one that the system knows: write './{name}'"
    return None if ".so" in name or "/" in name else "it has the name of a file, such as libz.so.1"


def check_llvm(data: bytes, what: str) -> None:
    """Raise CompileError for bytes of a known other format, with a better message than LLVM's."""
    named = "what was given as LLVM IR" if what == "LLVM IR" else what
    if not data.strip():
        raise CompileError(f"{named} is empty")
    if data.startswith(_BITCODE):
        return
    known = next((row for row in _NOT_LLVM if row[0].search(data[:65536])), None)
    if known is not None:
        _, kind, hint = known
        raise CompileError(Diagnostic(f"{named} is {kind}, not LLVM IR", hint=hint))


_BITCODE: Final = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_NOT_LLVM: Final = (
    (re.compile(rb"\A\x7fELF"), "an ELF file", _OBJECT),
    (re.compile(rb"\A!<arch>\n"), "an archive", _ARCHIVE),
    (re.compile(rb"^\s*\.version\s+\d", re.M), "PTX", "PTX is for fe.DeviceCode.from_ptx"),
    (
        re.compile(
            rb"^\s*(?:module\b(?! asm).*\{|(?:func|llvm)\.func\b|\"builtin\.module\")", re.M
        ),
        "MLIR",
        "fe.frontends.mlir.compile takes MLIR; mlir-translate --mlir-to-llvmir makes LLVM IR of "
        "its dialect llvm",
    ),
    (
        re.compile(rb"^\s*#\s*include\b|^(?:[\w*]+ +)+\*?\w+\([^)]*\)\s*\{", re.M),
        "a source",
        "fe.frontends.c.compile compiles C; clang -S -emit-llvm makes LLVM IR of a source",
    ),
)
"""Formats that are mistaken for LLVM IR, by their start, and the hint for each."""


def checked_libraries(given: object) -> tuple[str, ...]:
    """The names and absolute paths of libraries.  Raises TypeError unless it is a list of them."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        shown = f"[{given!r}]" if isinstance(given, str) else "['libz.so.1']"
        raise TypeError(f"libraries must be a list, such as {shown}, but got {given!r}")
    return tuple(map(located, given))


def checked_names(what: str, given: object) -> tuple[str, ...]:
    """Names of functions, each once.  Raises TypeError unless it is a list of texts."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        shown = f"[{given!r}]" if isinstance(given, str) else "['run']"
        raise TypeError(f"{what} must be a list, such as {shown}, but got {given!r}")
    wrong = next((each for each in given if not isinstance(each, str)), None)
    if wrong is not None:
        raise TypeError(f"{what}: expected the name of a function, but got {wrong!r}")
    return tuple(dict.fromkeys(given))


def located(library: object) -> str:
    """The name or absolute path of a shared library.

    A text without a slash is a name for the system's loader; any other text and a `Path` are a
    path, which means the same file wherever the process goes.  Raises TypeError for other kinds.
    """
    if isinstance(library, str) and "/" not in library:
        return library
    if not isinstance(library, str | os.PathLike):
        raise TypeError(f"expected the name or path of a shared library, but got {library!r}")
    return os.path.abspath(os.fsdecode(library))

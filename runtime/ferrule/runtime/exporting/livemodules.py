"""Modules of tvm-ffi as bytes, by the serialisation of their kinds.

tvm-ffi serialises a module in C++ alone, by a virtual function: neither its C API nor its global
functions reach it, and its place among the virtual functions differs between versions of tvm-ffi.
So a C++ compiler calls it, with the headers of the tvm-ffi that is installed.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import tvm_ffi

from ferrule.runtime.abi import LOAD_FROM_BYTES
from ferrule.runtime.binaries.importtree import check_kind
from ferrule.runtime.errors import LinkError

_SOURCE: Final = """\
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
static tvm::ffi::Bytes save(tvm::ffi::Module module) { return module->SaveToBytes(); }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(save, save);
"""
_COMPILERS: Final = ("c++", "g++", "clang++")


def saved(module: tvm_ffi.Module) -> bytes:
    """The bytes that the kind of a module makes of it, without its imports.

    ValueError for a kind that cannot be serialised, that fails at it, or that nothing registered
    here could read; LinkError where the first module needs a C++ compiler, and there is none.
    """
    kind = module.kind
    _check_can_be_saved(module, kind)
    save = _saver(kind)
    try:
        return bytes(save(module))
    except Exception as error:
        raise ValueError(
            f"a module of tvm-ffi, of kind {kind!r}, said that it can be serialised, but failed: "
            f"{error}"
        ) from error


def _check_can_be_saved(module: tvm_ffi.Module, kind: str) -> None:
    check_kind(kind)
    # tvm-ffi's libraries say that they can, and then cannot.
    if kind == "library":
        raise ValueError(
            "a module of tvm-ffi of kind 'library' cannot be part of a file, because its code is a "
            "file of its own or of this process: import the ferrule.Module that it was made of, "
            "load the object that it was linked from with ferrule.runtime.load_module and import "
            "that, or ship both, and call import_module where they are loaded"
        )
    if not module.is_binary_serializable():
        raise ValueError(
            f"a module of tvm-ffi of kind {kind!r} cannot be part of a file, because its kind has "
            f"no serialisation{_formats(module)}; "
            f"Module.from_bytes({kind!r}, data) is a module of bytes that a loader of yours reads"
        )
    key = LOAD_FROM_BYTES + kind
    if tvm_ffi.get_global_func(key, allow_missing=True) is None:
        raise ValueError(
            f"a module of tvm-ffi of kind {kind!r} cannot be part of a file, because nothing here "
            f"could read it again: import what registers {key}"
        )


def _formats(module: tvm_ffi.Module) -> str:
    """The hint for a module that a compiler can write; empty for others."""
    formats = ", ".join(map(repr, module.get_write_formats()))
    if not formats:
        return ""
    return (
        f"; it writes {formats}: write it with its write_to_file, make an object of that, and "
        "import what ferrule.runtime.load_module loads"
    )


def _saver(kind: str) -> Callable[[tvm_ffi.Module], Any]:
    try:
        return _built()
    except LinkError as error:
        raise LinkError(
            f"to serialise a module of tvm-ffi of kind {kind!r}, which only C++ can do, {error}. "
            f"Module.from_bytes({kind!r}, data) takes the bytes where you have them"
        ) from None


@functools.cache
def _built() -> Callable[[tvm_ffi.Module], Any]:
    """The function that serialises a module; it is compiled once in a process."""
    compiler = _compiler()
    include = [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "save.cc"), Path(folder, "save.so")
        source.write_text(_SOURCE)
        flags = ["-std=c++17", "-O0", "-shared", "-fPIC", *include]
        command = [*compiler, *flags, str(source), "-o", str(library)]
        # A compiler finds its assembler and linker through PATH, which some processes do not have.
        environment = {"PATH": os.defpath, **os.environ}
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, env=environment
        )
        if done.returncode != 0:
            raise LinkError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
        made: Callable[[tvm_ffi.Module], Any] = tvm_ffi.load_module(library).save
        return made


def _compiler() -> list[str]:
    """The words of the C++ compiler: the variable `CXX`, otherwise the first that is found."""
    text = os.environ.get("CXX", "")
    try:
        chosen = shlex.split(text)
    except ValueError as error:
        raise LinkError(f"CXX is {text!r}, which is no command: {error}") from None
    found = next(filter(None, map(shutil.which, chosen[:1] or _COMPILERS)), None)
    if found is None:
        missing = f"CXX={chosen[0]}" if chosen else "c++, g++ or clang++"
        raise LinkError(f"there must be a C++ compiler, but {missing} is not on PATH")
    return [found, *chosen[1:]]

"""Writes a function to a file: an object, or a shared library.

What is exported is made anew for the baseline processor of this machine's architecture, so that it
runs on others. Files appear whole or not at all.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ferrule.runtime.artefacts import ObjectCode, Origin
from ferrule.runtime.engine import host_baseline_cpu, host_triple
from ferrule.runtime.errors import LinkError

_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*|_[A-Za-z0-9_]*", re.ASCII)

_COMPILERS: Final = ("cc", "gcc", "clang")


def export_object(origin: Origin, name: str, path: str | os.PathLike[str]) -> None:
    """Write the object that defines `__tvm_ffi_<name>`; the suffix of `path` must be `.o`."""
    target = _target(path, name, ".o", "export_to_c")
    code = _emit(origin, name)
    _write(target, lambda temporary: _write_new(temporary, code.data))


def export_library(origin: Origin, name: str, path: str | os.PathLike[str]) -> None:
    """Write a shared library that defines `__tvm_ffi_<name>`; the suffix must be `.so`.

    It is linked with the C compiler that `CC` names, else with the first of cc, gcc and clang.
    libtvm_ffi is not linked to it: whoever loads it has one.
    """
    target = _target(path, name, ".so", "export_library")
    compiler = _compiler(target)
    code = _emit(origin, name)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.o"
        source.write_bytes(code.data)
        _write(target, lambda temporary: _link(compiler, source, temporary))


def check_export_name(name: str) -> None:
    """ValueError for a name that cannot follow `__tvm_ffi_` in a C symbol."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"function_name must be a C identifier, but got {name!r}")
    if name.startswith("_"):
        raise ValueError(
            f"function_name must not begin with an underscore, but got {name!r}: "
            f"tvm-ffi keeps the symbols `__tvm_ffi__...` for itself"
        )


def _target(path: str | os.PathLike[str], name: str, suffix: str, caller: str) -> Path:
    check_export_name(name)
    target = Path(path)
    if target.suffix != suffix:
        raise ValueError(
            f"{caller} writes {suffix} files, but got the suffix {target.suffix!r} in "
            f"{str(path)!r}; export_to_c writes .o, export_library .so"
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to write {target.name}")
    return target


def _emit(origin: Origin, name: str) -> ObjectCode:
    return origin.emit(name, host_baseline_cpu(), host_triple())


def _write(target: Path, make: Callable[[Path], None]) -> None:
    """Make a file next to the target, then put it in the target's place in one step."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        make(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _write_new(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)


def _compiler(target: Path) -> list[str]:
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen and shutil.which(chosen[0]):
        return chosen
    found = next((name for name in _COMPILERS if shutil.which(name)), None)
    if chosen or found is None:
        missing = f"CC={chosen[0]}" if chosen else "cc, gcc or clang"
        command = _command(["cc"], Path(target.stem + ".o"), target)
        raise LinkError(
            f"no C compiler to link {target.name} with: {missing} is not on PATH. "
            f"Write the object with export_to_c and run: {shlex.join(command)}"
        )
    return [found]


def _command(compiler: Sequence[str], source: Path, target: Path) -> list[str]:
    return [*compiler, "-shared", "-o", str(target), str(source)]


def _link(compiler: Sequence[str], source: Path, target: Path) -> None:
    command = _command(compiler, source, target)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LinkError(
            f"{shlex.join(command)} failed with status {done.returncode}:\n{done.stderr.strip()}"
        )

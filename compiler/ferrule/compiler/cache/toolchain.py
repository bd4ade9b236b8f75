"""What decides the bytes of every compilation: ferrule, Python, LLVM, the CPU.

Each is told by what is cheap to read and changes whenever it does: ferrule itself by name, size and
time of its source files; where a second level shares entries among machines, by their content.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.keys import Uncacheable
from ferrule.runtime.devices import emulated_arch
from ferrule.specs._version import __version__

if TYPE_CHECKING:
    from ferrule.compiler.options import Options

_ASIDE: Final = frozenset({"__pycache__", "emulator"})
"""Folders that have no part in what a compilation gives, but for what reaches it as its input."""

# These differ between the processors of one machine, or from one start of it to the next, and do
# not say which instructions it has.
_VOLATILE: Final = re.compile(
    r"^(?:processor|cpu MHz|physical id|siblings|core id|cpu cores|apicid|initial apicid|bogomips"
    r"|BogoMIPS|microcode|bugs|power management|cache size|TLB size)\s*:.*\n?",
    re.M,
)
# Only the first processor of /proc/cpuinfo is read: a large machine lists hundreds.
_ONE_CPU: Final = 1 << 14


_DONE: Final = ("cache", "enable_tvm_ffi")
"""Options that do not change what is compiled."""


def toolchain() -> Mapping[str, bytes]:
    """The parts of a key that are the same for all compilations of a process."""
    shared = settings.remote() is not None  # entries that other machines use too
    return {
        "ferrule": __version__.encode() + (content() if shared else _stamps()),
        "Python": _python(),
        "LLVM": _llvm(),
        "the packages NumPy and tvm-ffi": _packages(),
        "the CPU": _cpu(),
    }


def parts_of(options: Options) -> Mapping[str, bytes]:
    """The parts for the options, and for what they make a compilation use."""
    if options.keep_ptx or options.keep_cubin or options.dump_dir is not None:
        raise Uncacheable("its options write files while it compiles")
    given = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    told = {name: value for name, value in given.items() if name not in _DONE}
    parts = {**toolchain(), "the options": repr(told).encode()}
    if options.gpu_arch is not None:
        parts["the GPU"] = repr((emulated_arch(), _assembler(options))).encode()
        if options.libdevice:
            parts["libdevice"] = _libdevice()
    if options.pipeline == "mlir":
        parts["MLIR"] = _mlir()
    return parts


def of_images() -> Mapping[str, bytes]:
    """The part for code that has kernels as images: a process that emulates a GPU embeds their PTX,
    every other one their cubins."""
    return {"whether the GPU is emulated": repr(emulated_arch() is not None).encode()}


def _assembler(options: Options) -> tuple[object, ...]:
    """What makes cubins, if any are made."""
    if not options.cubin:
        return ()
    from ferrule.compiler.cuda.assembly import find_ptxas

    found = find_ptxas()
    if found is None:
        return _version("nvidia-nvjitlink", "nvidia-nvjitlink-cu13", "nvidia-nvjitlink-cu12")
    at = os.stat(found)
    return os.path.realpath(found), at.st_size, at.st_mtime_ns


def _libdevice() -> bytes:
    from ferrule.compiler.cuda.libdevice import libdevice

    return libdevice()


def _mlir() -> bytes:
    chosen = os.environ.get("FERRULE_MLIR")
    return repr((chosen, _version(chosen or "torch-mlir"))).encode()


def _version(*names: str) -> tuple[object, ...]:
    """The first of these packages that is installed, and its version."""
    from importlib import metadata

    for name in names:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise Uncacheable(f"the version of {names[0]} is not known")


@cache
def _python() -> bytes:
    flags = (sys.flags.optimize, sys.implementation.cache_tag, sys.byteorder, platform.machine())
    return repr((sys.version, sys.platform, flags)).encode()


@cache
def _llvm() -> bytes:
    """llvmlite by its file with the version, and its library, which has LLVM in it, by its size:
    neither is loaded for this."""
    from importlib.util import find_spec

    found = find_spec("llvmlite")
    if found is None or found.origin is None:
        raise Uncacheable("the version of llvmlite is not known")
    folder = Path(found.origin).parent
    sizes = [(at.name, at.stat().st_size) for at in sorted(folder.glob("binding/libllvmlite*"))]
    typed = os.environ.get("LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS")
    return repr(((folder / "_version.py").read_bytes(), sizes, typed)).encode()


@cache
def _packages() -> bytes:
    import numpy as np
    import tvm_ffi

    return repr((np.__version__, tvm_ffi.__version__)).encode()


@cache
def _cpu() -> bytes:
    """The first processor as the system describes it, or as LLVM does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read(_ONE_CPU)
    except OSError:
        text = ""
    first = _VOLATILE.sub("", text.partition("\n\n")[0] + "\n")
    if re.search(r"^(?:flags|Features)\s*:", first, re.M):
        return first.encode()
    from ferrule.compiler.targets import host

    return repr(host()).encode()


def _roots() -> list[str]:
    """The folders of ferrule: one where it is installed, three in a checkout."""
    from ferrule import compiler, runtime, specs

    files = [str(part.__file__) for part in (compiler, runtime, specs)]
    return sorted({os.path.dirname(os.path.dirname(file)) for file in files})


@cache
def _stamps() -> bytes:
    """Names, sizes and times of ferrule's source files."""
    found = sorted(line for root in _roots() for line in _stamps_of(root))
    return sha256("\n".join(found).encode("utf-8", "surrogateescape")).digest()


def _stamps_of(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                at = entry.stat()
                yield f"{entry.path} {at.st_size} {at.st_mtime_ns}"
            elif entry.name not in _ASIDE and entry.is_dir():
                yield from _stamps_of(entry.path)


@cache
def content() -> bytes:
    """A digest of ferrule's source files, the same wherever they lie."""
    found = sha256()
    named = ((os.path.relpath(path, root), path) for root in _roots() for path in _sources(root))
    for name, path in sorted(named):
        data = Path(path).read_bytes()
        found.update(f"{name} {len(data)}\n".encode("utf-8", "surrogateescape") + data)
    return found.digest()


def _sources(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name not in _ASIDE and entry.is_dir():
                yield from _sources(entry.path)

"""Compiled kernels in the folder of Triton's cache, under keys that are cheap to compute.

Triton's own key holds a digest of its library, of hundreds of megabytes: half a second in each
process.  Here the files of Triton and of ptxas are told by their paths, sizes and times; everything
else is as in Triton's key, so that an entry holds as long as Triton's does.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ferrule.frontends import packages
from ferrule.frontends.triton.facts import Built, DescriptorLayout, LaunchFacts, Scratch

_FORMAT: Final = "ferrule 1"
"""Changes when the text of an entry, or the way from Triton's metadata to it, does."""
_FILE: Final = "ferrule.json"
_HASHED: Final = ("compiler", "backends", "language", "runtime", "experimental", "_C")
"""The folders of Triton that decide what it compiles."""
_IN_MEMORY: Final = "/dev/shm"


def key_of(source: Any, backend: Any, options: Any, arch: int) -> str | None:
    """The key of a compilation; None where Triton is told to do something while it compiles."""
    knobs = packages.load("triton.knobs", "triton")
    asked = knobs.compilation
    hook = getattr(knobs.runtime, "add_stages_inspection_hook", None)
    told = asked.always_compile or asked.override or asked.dump_ir or asked.listener or hook
    if told:
        return None
    native = packages.load("triton._C.libtriton", "triton")
    environment = sorted(native.get_cache_invalidating_env_vars().items())
    read = backend.parse_options({**options, **source.parse_options()})
    parts = (_FORMAT, _stamps(), source.hash(), _assembler(arch), read.hash(), repr(environment))
    return sha256("\n".join((*parts, str(arch))).encode()).hexdigest()


def read(key: str) -> Built | None:
    """What is kept under a key; None if there is nothing, or nothing whole."""
    path = _manager(key).get_file(_FILE)
    if path is None:
        return None
    try:
        found = json.loads(Path(path).read_bytes())
        cubin = base64.b64decode(found["cubin"], validate=True)
        return Built((cubin, found["ptx"].encode()), _facts(found["facts"]))
    except (OSError, ValueError, KeyError, TypeError, binascii.Error):
        return None


def keep(key: str, built: Built) -> None:
    """Keep what was compiled; a folder that takes nothing costs only the time of the next one."""
    cubin, ptx = built.images
    told = {
        "cubin": base64.b64encode(cubin).decode(),
        "ptx": ptx.decode(),
        "facts": asdict(built.facts),
    }
    try:
        _manager(key).put(json.dumps(told).encode(), _FILE, binary=True)
    except OSError:
        pass


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Inside, Triton's compiler keeps nothing, and needs no digest of its library: its files are in
    a folder in memory that goes at the end.

    It changes Triton's settings for the whole process, so it is for processes that compile and do
    nothing else.
    """
    caches = packages.load("triton.runtime.cache", "triton")
    knobs = packages.load("triton.knobs", "triton")
    memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(tempfile.TemporaryDirectory(prefix="ferrule", dir=memory))
        undo.enter_context(knobs.cache.scope())
        knobs.cache.dir, knobs.cache.manager_class = folder, caches.FileCacheManager
        if hasattr(caches, "triton_key"):  # some versions have it elsewhere: only time is lost
            undo.callback(setattr, caches, "triton_key", caches.triton_key)
            caches.triton_key = _stamps
        yield


def _manager(key: str) -> Any:
    return packages.load("triton.runtime.cache", "triton").get_cache_manager(key)


def _facts(told: dict[str, Any]) -> LaunchFacts:
    scratch = {name: Scratch(**told[name]) for name in ("global_scratch", "profile_scratch")}
    layouts = tuple(
        DescriptorLayout(**{**each, "block": tuple(each["block"])}) for each in told["descriptors"]
    )
    return LaunchFacts(**{**told, **scratch, "descriptors": layouts})


@cache
def _stamps() -> str:
    """Names, sizes and times of Triton's files."""
    root = os.path.dirname(packages.load("triton", "triton").__file__)
    found = sorted(line for name in _HASHED for line in _of_folder(os.path.join(root, name)))
    return sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()


def _of_folder(folder: str) -> Iterator[str]:
    if not os.path.isdir(folder):
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".so")):
                yield _stamp(entry.path)
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _of_folder(entry.path)


def _assembler(arch: int) -> str:
    """The ptxas that Triton uses for an architecture, by its file; its version, where Triton is
    told of one, is among the options."""
    compiler = packages.load("triton.backends.nvidia.compiler", "triton")
    return _stamp(compiler.get_ptxas(arch).path)


def _stamp(path: str) -> str:
    at = os.stat(path)
    return f"{path} {at.st_size} {at.st_mtime_ns}"

"""The way of a compilation of the language through the cache: its key, and what makes it again."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.keys import Key, Uncacheable, joined, key_of
from ferrule.compiler.cache.toolchain import toolchain
from ferrule.compiler.options import Options
from ferrule.language.cachekeys.walk import Walk
from ferrule.runtime.devices import emulated_arch

if TYPE_CHECKING:
    from ferrule.language.compilation import Job
    from ferrule.language.witness import Witness

_DONE: tuple[str, ...] = ("cache", "enable_tvm_ffi")
"""Options that do not change what is compiled."""


def about(function: Callable[..., Any]) -> str:
    """What a compilation is of, for people and for the search of near entries."""
    return f"{function.__module__}.{function.__qualname__}"


def key_of_job(job: Job, witness: Witness | None = None) -> Key:
    """The key of a compilation as everything is now; `witness` records what it read.

    Raises Uncacheable.
    """
    options, examples = job.options, job.examples
    walk = Walk(witness, places=not options.strip_paths or options.generate_line_info)
    walk.function(job.function)
    signature = job.signature
    ways = signature.positional_only, signature.keyword_only
    walk.add("the arguments", [signature.name, list(signature.params), *ways])
    walk.add("the constants", [examples.constants, examples.variadic])
    walk.add("the classes of the arguments", [(list(p), c) for p, c in examples.classes.items()])
    parts = {**walk.finish(), **_parts_of(options)}
    return key_of(about(job.function), parts)


def key_of_several(name: str, keys: Sequence[Key], options: bytes) -> Key:
    """The key of a function that is made of several compilations."""
    named = {str(position): key for position, key in enumerate(keys)}
    return joined(name, named, {"how they are joined": options, **_tools()})


def _tools() -> Mapping[str, bytes]:
    return toolchain(shared=settings.remote() is not None)


def _parts_of(options: Options) -> Mapping[str, bytes]:
    """The parts for the options, and for what they make a compilation use."""
    if options.keep_ptx or options.keep_cubin or options.dump_dir is not None:
        raise Uncacheable("its options write files while it compiles")
    given = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    told = {name: value for name, value in given.items() if name not in _DONE}
    parts = {**_tools(), "the options": repr(told).encode()}
    if options.gpu_arch is not None:
        parts["the GPU"] = repr((emulated_arch(), _assembler(options))).encode()
        if options.libdevice:
            parts["libdevice"] = _libdevice()
    if options.pipeline == "mlir":
        parts["MLIR"] = _mlir()
    return parts


def _assembler(options: Options) -> tuple[object, ...]:
    """What makes cubins, if any are made."""
    if not options.cubin:
        return ()
    from ferrule.compiler.cuda.assembling import find_ptxas

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
    for name in names:
        try:
            return name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise Uncacheable(f"the version of {names[0]} is not known")

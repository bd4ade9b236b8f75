"""`ferrule check`: whether a built file is whole, and whether this machine can load it.

Nothing of the file is loaded or run: what is compared is what `load_module` would compare.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final, Literal

from ferrule.commands.files import BuiltFile, Part, read_built
from ferrule.commands.output import Output, table
from ferrule.runtime import cpus
from ferrule.runtime.binaries.digest import check_digest
from ferrule.runtime.binaries.dynamic import Dynamic, is_program, read_dynamic
from ferrule.runtime.binaries.elf import FileType, ObjectFileError, read_header, read_segments
from ferrule.runtime.binaries.soundness import check_library
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking.links import resolve
from ferrule.runtime.linking.sharedlibrary import tvm_ffi_library, tvm_ffi_version
from ferrule.specs.deferred import dataclass

_OF_LINKERS: Final = frozenset(
    (
        "_GLOBAL_OFFSET_TABLE_",
        "_ITM_deregisterTMCloneTable",
        "_ITM_registerTMCloneTable",
        "__gmon_start__",
        "__cxa_finalize",
    )
)
"""Symbols that linkers and C's start files add, weak or made by the linker."""

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was compared: what, how it stands, and what to know or do."""

    what: str
    state: State
    text: str


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    file = read_built(given.file)
    found = list(findings(file))
    is_good = all(finding.state != "problem" for finding in found)
    output.line(f"{file.path}: {file.kind} for {file.parts[0].machine}" if file.parts else "")
    output.line(table([(each.what, each.state, each.text) for each in found]))
    output.put(
        file=str(file.path),
        kind=file.kind,
        ok=is_good,
        findings=[asdict(finding) for finding in found],
    )
    return 0 if is_good else 1


def findings(file: BuiltFile) -> Iterator[Finding]:
    """What is found about a file, in the order in which `load_module` looks."""
    if not file.parts:
        yield Finding("members", "problem", "the archive has no objects")
    for part in file.parts:
        yield _digest(part)
        yield _machine(part)
        if part.kind == "library" and is_program(_dynamic_of(part.data)):
            yield Finding("kind", "problem", "it is a program, and no shared library")
        yield from _symbols(part)
        for metadata in part.functions:
            yield Finding(metadata.name, "ok", str(metadata.signature))
            lacking = cpus.lacking(metadata.features, part.machine)
            needs = ", ".join(metadata.features)
            if lacking and part.machine == cpus.host_architecture():
                text = f"needs {', '.join(lacking)}, which this machine's CPU does not have"
                yield Finding(f"{metadata.name}: cpu", "problem", text)
            else:
                text = f"{metadata.cpu}{f' with {needs}' if needs else ''}"
                yield Finding(f"{metadata.name}: cpu", "ok", text)
            yield _tvm_ffi(metadata.name, metadata.abi)
            for image in metadata.images:
                text = f"{image.arch} ({image.kind}): {', '.join(image.kernels)}"
                yield Finding(f"{metadata.name}: gpu", "ok", text)
            for link in metadata.links:
                where = f" of {link.library}" if link.library else ""
                yield Finding(f"{metadata.name}: needs", "note", f"{link.symbol}{where}")
        for name in part.unknown():
            yield Finding(name, "note", "a function without ferrule's metadata")
        if not part.functions and not part.unknown():
            yield Finding("functions", "note", "it exports no function of tvm-ffi")


def _dynamic_of(library: bytes) -> Dynamic:
    """The dynamic section of a shared library."""
    return read_dynamic(library, read_segments(library, read_header(library, FileType.LIBRARY)))


def _digest(part: Part) -> Finding:
    try:
        confirmed = check_digest(part.data, {})
        if part.kind == "library" and not confirmed:
            check_library(part.data)
    except ObjectFileError as error:
        return Finding("digest", "problem", str(error))
    if confirmed:
        return Finding("digest", "ok", "every byte that counts is as ferrule wrote it")
    return Finding("digest", "note", "the file has none: its contents cannot be checked")


def _machine(part: Part) -> Finding:
    here = cpus.host_architecture()
    if part.machine == here:
        return Finding("machine", "ok", here)
    return Finding("machine", "problem", f"it is for {part.machine}, and this machine is {here}")


def _symbols(part: Part) -> Iterator[Finding]:
    """The undefined symbols that neither this process nor the named libraries have."""
    links = [link for metadata in part.functions for link in metadata.links]
    for link in links:
        try:
            resolve([link])
        except LinkError as error:
            yield Finding("symbols", "problem", str(error))
    named = {link.symbol for link in links}
    libraries = [ctypes.CDLL(None), tvm_ffi_library()]
    missing = [
        symbol
        for symbol in part.undefined
        if symbol and symbol not in named | _OF_LINKERS and not _has(libraries, symbol)
    ]
    if missing:
        text = f"neither libc nor libtvm_ffi has {', '.join(missing)}"
        yield Finding("symbols", "note" if part.kind == "library" else "problem", text)


def _has(libraries: list[ctypes.CDLL], symbol: str) -> bool:
    return any(hasattr(library, symbol) for library in libraries)


def _tvm_ffi(name: str, wanted: tuple[int, ...]) -> Finding:
    here = tvm_ffi_version()
    dotted, has = (".".join(map(str, each)) for each in (wanted, here))
    what = f"{name}: tvm-ffi"
    if wanted > here:
        text = f"needs {dotted} or newer, and {has} is installed: upgrade apache-tvm-ffi"
        return Finding(what, "problem", text)
    return Finding(what, "ok", f"{dotted} or newer; {has} is installed")

"""`ferrule check`: whether a built file is whole, and whether this machine can load it.

Nothing of the file is loaded or run: what is compared is what `load_module` would compare.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Literal

from ferrule.commands.files import BuiltFile, Part, read_built
from ferrule.commands.loader import can_tell, complaints
from ferrule.commands.output import Output, table
from ferrule.commands.versions import tvm_ffi_text
from ferrule.runtime import cpus
from ferrule.runtime.binaries.digest import VARIABLE, check_digest
from ferrule.runtime.binaries.dynamic import Dynamic, is_program, read_dynamic
from ferrule.runtime.binaries.elf import FileType, ObjectFileError, read_header, read_segments
from ferrule.runtime.binaries.metadata import Metadata
from ferrule.runtime.binaries.soundness import check_library
from ferrule.runtime.errors import LinkError
from ferrule.runtime.linking import openmp
from ferrule.runtime.linking.sharedlibrary import tvm_ffi_version
from ferrule.runtime.loading.files import check_file
from ferrule.specs.deferred import dataclass

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
    machine = f" for {file.parts[0].machine}" if file.parts else ""
    output.line(f"{file.path}: {file.kind}{machine}")
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
        yield Finding("members", "note", "the archive has no objects")
    found = [finding for part in file.parts for finding in _of_part(part)]
    yield from found
    if all(finding.state != "problem" for finding in found):
        yield from _loading(file)


def _of_part(part: Part) -> Iterator[Finding]:
    yield _digest(part)
    yield _machine(part)
    if part.kind == "library" and is_program(_dynamic_of(part.data)):
        yield Finding("kind", "problem", "it is a program, and no shared library")
    for metadata in part.functions:
        yield from _of_function(part, metadata)
    for name in part.unknown():
        yield Finding(name, "note", "a function without ferrule's metadata")
    if not part.functions and not part.unknown():
        yield Finding("functions", "note", "it exports no function of tvm-ffi")


def _of_function(part: Part, metadata: Metadata) -> Iterator[Finding]:
    name = metadata.name
    yield Finding(name, "ok", str(metadata.signature))
    lacking = cpus.lacking(metadata.features, part.machine)
    needs = ", ".join(metadata.features)
    if lacking and part.machine == cpus.host_architecture():
        text = f"needs {', '.join(lacking)}, which this machine's CPU does not have"
        yield Finding(f"{name}: cpu", "problem", text)
    else:
        text = f"{metadata.cpu}{f' with {needs}' if needs else ''}"
        yield Finding(f"{name}: cpu", "ok", text)
    yield _tvm_ffi(name, metadata.abi)
    for image in metadata.images:
        text = f"{image.arch} ({image.kind}): {', '.join(image.kernels)}"
        yield Finding(f"{name}: gpu", "ok", text)
    for link in metadata.links:
        where = f" of {link.library}" if link.library else ""
        yield Finding(f"{name}: needs", "note", f"{link.symbol}{where}")


def _loading(file: BuiltFile) -> Iterator[Finding]:
    """What the loaders would say: ferrule's of its own checks, the system's of a library."""
    try:
        check_file(file.data)
        said = _of_loader(file)
    except (ValueError, LinkError) as error:
        said = [str(error)]
    for text in said:
        yield Finding("loading", "problem", text)
    if not said:
        yield Finding("loading", "ok", "every library and symbol that it needs is there")


def _of_loader(file: BuiltFile) -> list[str]:
    if file.kind != "library" or not can_tell():
        return []
    openmp.offer()  # as `load_module` does
    return complaints(file.path, file.data)


def _dynamic_of(library: bytes) -> Dynamic:
    """The dynamic section of a shared library."""
    return read_dynamic(library, read_segments(library, read_header(library, FileType.LIBRARY)))


def _digest(part: Part) -> Finding:
    try:
        confirmed = check_digest(part.data, {})
        if part.kind == "library" and not confirmed:
            check_library(part.data)
    except ObjectFileError as error:
        if os.environ.get(VARIABLE) != "0":
            return Finding("digest", "problem", str(error))
        return Finding("digest", "note", f"with {VARIABLE}=0 it is loaded although {error}")
    if confirmed:
        return Finding("digest", "ok", "every byte that counts is as ferrule wrote it")
    return Finding("digest", "note", "the file has none: its contents cannot be checked")


def _machine(part: Part) -> Finding:
    here = cpus.host_architecture()
    if part.machine == here:
        return Finding("machine", "ok", here)
    return Finding("machine", "problem", f"it is for {part.machine}, and this machine is {here}")


def _tvm_ffi(name: str, wanted: tuple[int, ...]) -> Finding:
    dotted, what = ".".join(map(str, wanted)), f"{name}: tvm-ffi"
    if wanted > tvm_ffi_version():
        text = f"needs {dotted} or newer, and here is {tvm_ffi_text()}: upgrade apache-tvm-ffi"
        return Finding(what, "problem", text)
    return Finding(what, "ok", f"{dotted} or newer; here is {tvm_ffi_text()}")

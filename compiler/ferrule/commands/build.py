"""`ferrule build`: the libraries that a file lists, as objects, shared libraries or wheels."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from ferrule.commands.output import Failure, Output
from ferrule.commands.sources import libraries_of, load_source
from ferrule.compiler.errors import CompileError
from ferrule.compiler.options import add_options
from ferrule.libraries.building import (
    Format,
    Functions,
    compile_library,
    file_names,
    write,
)
from ferrule.libraries.jobs import Job
from ferrule.libraries.library import Library
from ferrule.runtime import Function, LinkError, StageError


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    libraries = libraries_of(load_source(given.file), given.file)
    _check_folder(given.output)
    libraries = [_with_options(library, given.target, given.options) for library in libraries]
    try:
        built = [(each, compile_library(each, given.jobs)) for each in libraries]
    except CompileError as error:
        raise Failure(str(error), "CompileError") from error
    if len(built) > 1:
        _check_files(built, given.format)
    entries = []
    for library, functions in built:
        try:
            files = write(library, functions, given.output, given.format)
        except (LinkError, StageError, OSError, ValueError) as error:
            raise Failure.of(error, f"{library.name}: ") from error
        entries.append(
            {
                "library": library.name,
                "functions": list(functions),
                "files": [{"path": str(path), "bytes": os.path.getsize(path)} for path in files],
            }
        )
        for path in files:
            output.line(f"{path}  {os.path.getsize(path)} bytes")
    output.put(libraries=entries)
    return 0


def _check_files(built: list[tuple[Library, Functions]], form: Format) -> None:
    """Failure where two libraries would write one file, and one of them would be lost."""
    writers: dict[str, str] = {}
    for library, functions in built:
        for name in file_names(library, functions, form):
            other = writers.setdefault(name.lower(), library.name)
            if other != library.name:
                raise Failure(
                    f"the libraries {other} and {library.name} would both write {name}: give one "
                    f"another name, or build them from files of their own into two folders"
                )


def _check_folder(folder: Path) -> None:
    """Failure, before anything is compiled, for a folder that cannot be written."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise Failure(f"{folder}: {place} is no folder", "NotADirectoryError")
    if not os.access(place, os.W_OK | os.X_OK):
        raise Failure(f"{folder}: the folder {place} cannot be written", "PermissionError")


def _with_options(library: Library, target: str | None, more: str) -> Library:
    """The library whose jobs have these options too."""
    words = f"--target {target} {more}" if target else more
    if not words.strip():
        return library
    try:
        functions = [
            replace(each, options=add_options(each.options, words))
            if isinstance(each, Job)
            else each
            for each in library.functions
        ]
    except CompileError as error:
        raise Failure(str(error), "CompileError") from error
    return Library(
        library.name,
        functions,
        version=library.version,
        summary=library.summary,
        requires=library.requires,
    )


def _with_words(each: Job | Function, words: str) -> Job | Function:
    """A job with these options too; a function that is compiled already stays as it is."""
    if isinstance(each, Job):
        return replace(each, options=add_options(each.options, words))
    return each

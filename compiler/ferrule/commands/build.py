"""`ferrule build`: the libraries that a file lists, as objects, shared libraries or wheels."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ferrule.commands.output import Failure, Output
from ferrule.commands.sources import WITHOUT_PATHS, libraries_of, load_source, with_words
from ferrule.compiler.errors import CompileError
from ferrule.libraries.building import (
    Format,
    Functions,
    compile_library,
    file_names,
    write,
)
from ferrule.libraries.library import Library
from ferrule.runtime import LinkError, StageError


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    libraries = libraries_of(load_source(given.file), given.file)
    _check_folder(given.output)
    words = [f"--target {given.target}" if given.target else "", given.options]
    words += [] if given.keep_paths else [WITHOUT_PATHS]
    libraries = [_with_options(library, " ".join(words)) for library in libraries]
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


def _with_options(library: Library, words: str) -> Library:
    """The library whose jobs have these options too."""
    if not words.strip():
        return library
    try:
        functions = [with_words(each, words) for each in library.functions]
    except CompileError as error:
        raise Failure(str(error), "CompileError") from error
    return library.altered(functions)

"""`ferrule build`: the libraries that a file lists, as objects, shared libraries or wheels."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from ferrule.commands.output import Commands, Failure, Output, add_command
from ferrule.commands.sources import libraries_of, load_source
from ferrule.compiler.errors import CompileError
from ferrule.compiler.options import TARGETS, add_options
from ferrule.libraries.building import FORMATS, compile_library, write
from ferrule.libraries.jobs import Job
from ferrule.libraries.library import Library
from ferrule.runtime import Function, LinkError, StageError

_EPILOG: Final = """\
FILE.py lists libraries at its top level:

    library = fe.Library("mykernels", [
        fe.Job(scale, [a, b, fe.Float32(1.0)]),
        fe.Job(softmax, [x, y], options="--target cpu"),
    ], version="1.0.0")

formats:
  object    NAME.o for each function
  library   libLIBRARY.so
  wheel     LIBRARY-VERSION-py3-none-PLATFORM.whl, which needs only apache-tvm-ffi
Beside objects and libraries are LIBRARY.h (C), LIBRARY.hpp (C++), LIBRARY.pyi (types for Python)
and LIBRARY.json (the signatures); a wheel contains them.

examples:
  ferrule build kernels.py
  ferrule build kernels.py -o dist --format wheel -j 4
  ferrule build kernels.py --target cuda --options "--gpu-arch sm_80,sm_90a"
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands, "build", "compile the libraries that a Python file lists", _EPILOG
    )
    parser.add_argument("file", metavar="FILE.py", type=Path, help="the file with the libraries")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=Path("."), help="the folder to write"
    )
    parser.add_argument("--format", choices=FORMATS, default="library", help="default: library")
    parser.add_argument("--target", choices=TARGETS, help="instead of the target of each job")
    parser.add_argument(
        "--options", metavar="TEXT", default="", help="options to add to those of each job"
    )
    parser.add_argument(
        "-j", "--jobs", metavar="N", type=_count, default=1, help="compile in N processes"
    )
    parser.set_defaults(run=_run)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, but got {text!r}")
    return int(text)


def _run(given: argparse.Namespace, output: Output) -> int:
    libraries = libraries_of(load_source(given.file), given.file)
    _check_folder(given.output)
    libraries = [_with_options(library, given.target, given.options) for library in libraries]
    try:
        built = [(each, compile_library(each, given.jobs)) for each in libraries]
    except CompileError as error:
        raise Failure(str(error), "CompileError") from error
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

"""`ferrule report`: pages about the compilation of functions of a Python file."""

from __future__ import annotations

import argparse

from ferrule.commands.files import is_source
from ferrule.commands.output import Failure, Output
from ferrule.commands.sources import compiled_functions, path_and_name, require_name
from ferrule.compiler.errors import CompileError
from ferrule.runtime import StageError


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    path, name = path_and_name(given.file)
    if path.exists() and not is_source(path):
        raise Failure(
            f"{path}: a page is about a compilation, and a built file has none: give the Python "
            f"file, or see 'ferrule inspect'"
        )
    functions = dict(compiled_functions(path))
    if name is not None:
        require_name(path, name, functions)
        functions = {name: functions[name]}
    pages = {}
    for each, function in functions.items():
        try:
            page = function.report()
        except (StageError, CompileError) as error:
            raise Failure.of(error, f"{path}: {each}: ") from error
        file = given.output / f"{each}.html"
        try:
            given.output.mkdir(parents=True, exist_ok=True)
            file.write_text(page, encoding="utf-8")
        except OSError as error:
            raise Failure.of(error, f"{file}: ") from error
        pages[each] = str(file)
        output.line(f"{file}  {len(page.encode())} bytes")
    output.put(pages=pages)
    return 0

"""The command line: `ferrule`, or `python -m ferrule`.

`main` reads the arguments and gives the exit code: 0 for success, 1 for a problem that was found,
an error, which is one line, or output that cannot be written, 2 for wrong arguments, 130 after
Ctrl-C. With `--json` the output is one JSON object, also for an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from ferrule.commands.output import Output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process."""
    try:
        return _written(arguments)  # with its imports: Ctrl-C may come that early
    except KeyboardInterrupt:
        return 130  # 128 and the number of SIGINT, as shells have it


def _written(arguments: Sequence[str] | None) -> int:
    from ferrule.commands.arguments import parser
    from ferrule.commands.output import Output, UnwritableError, own_stream, tell

    try:
        given = parser().parse_args(arguments)
        with own_stream() as stream:
            return _run(given, Output(given.json, stream))
    except UnwritableError as error:
        if not error.is_left:
            tell(f"ferrule: error: the output cannot be written: {error}")
        return 1


def _run(given: argparse.Namespace, output: Output) -> int:
    import importlib

    from ferrule.commands.output import Failure

    try:
        _leave_deleted_folder(hasattr(given, "file"))
        code: int = importlib.import_module(given.module).run(given, output)
        output.finish()
        return code
    except Failure as failure:
        return output.fail(failure)


def _leave_deleted_folder(has_paths: bool) -> None:
    """Python's imports, and libraries, need a working directory that there is.

    Failure for a command that is given paths, which may begin there.
    """
    import os

    from ferrule.commands.output import Failure

    try:
        os.getcwd()
    except FileNotFoundError:
        if has_paths:
            raise Failure("the working directory was deleted: change into another one") from None
        os.chdir("/")

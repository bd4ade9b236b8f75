"""The command line: `ferrule`, or `python -m ferrule`.

`main` reads the arguments and gives the exit code: 0 for success, 1 for a problem that was found,
an error, which is one line, or output that cannot be written, 2 for wrong arguments, 130 after
Ctrl-C. With `--json` the output is one JSON object, also for an error.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

from ferrule.commands.arguments import parser
from ferrule.commands.output import Failure, Output, UnwritableError, own_stream, tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process."""
    try:
        given = parser().parse_args(arguments)
        with own_stream() as stream:
            return _run(given, Output(given.json, stream))
    except UnwritableError as error:
        if not error.is_left:
            tell(f"ferrule: error: the output cannot be written: {error}")
        return 1
    except KeyboardInterrupt:
        return 130


def _run(given: argparse.Namespace, output: Output) -> int:
    try:
        code: int = importlib.import_module(given.module).run(given, output)
        output.finish()
        return code
    except Failure as failure:
        return output.fail(failure)

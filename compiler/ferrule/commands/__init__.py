"""The command line: `ferrule`, or `python -m ferrule`.

`main` reads the arguments and gives the exit code: 0 for success, 1 for a problem that was found or
an error, which is one line, 2 for wrong arguments, 130 after Ctrl-C. With `--json` the output is
one JSON object, also for an error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from ferrule.commands.arguments import parser
from ferrule.commands.output import Failure, Output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process."""
    given = parser().parse_args(arguments)
    output = Output(given.json)
    try:
        code: int = importlib.import_module(given.module).run(given, output)
        output.finish()
        return code
    except Failure as failure:
        return output.fail(failure)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output, such as head, has gone; Python would complain at its end.
        sys.stdout = None
        return 1

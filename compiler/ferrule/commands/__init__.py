"""The command line: `ferrule`, or `python -m ferrule`.

`main` reads the arguments and gives the exit code: 0 for success, 1 for a problem that was found or
an error, which is one line, 2 for wrong arguments, 130 after Ctrl-C. With `--json` the output is
one JSON object, also for an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ferrule.commands import build, cache, check, doctor, inspect
from ferrule.commands.output import Failure, Output
from ferrule.specs._version import __version__

_COMMANDS = (build, inspect, check, cache, doctor)

_EPILOG = """\
examples:
  ferrule build kernels.py -o dist --format wheel
  ferrule inspect dist/libkernels.so --signature
  ferrule check dist/libkernels.so
  ferrule cache info
  ferrule doctor

'ferrule COMMAND --help' says more about each.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with these arguments, by default those of the process."""
    given = _parser().parse_args(arguments)
    output = Output(given.json)
    try:
        code: int = given.run(given, output)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ferrule",
        description="Builds, shows and checks functions that ferrule compiled.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ferrule {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser

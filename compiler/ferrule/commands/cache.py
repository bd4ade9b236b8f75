"""`ferrule cache`: what is in the cache on disk, and cleaning it."""

from __future__ import annotations

import argparse
from typing import Final

from ferrule.commands.output import Commands, Output, add_command

_EPILOG: Final = """\
examples:
  ferrule cache info
  ferrule cache clear
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "cache", "show or clear the cache on disk", _EPILOG)
    parser.add_argument("action", choices=("info", "clear", "verify", "path"))
    parser.set_defaults(run=_run)


def _run(given: argparse.Namespace, output: Output) -> int:
    raise NotImplementedError

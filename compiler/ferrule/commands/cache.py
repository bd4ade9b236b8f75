"""`ferrule cache`: what is in the cache on disk, and cleaning it."""

from __future__ import annotations

import argparse

from ferrule.commands.output import Output


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    raise NotImplementedError

"""`ferrule cache`: what is in the cache on disk, and cleaning it."""

from __future__ import annotations

import argparse

from ferrule.commands.output import Failure, Output, table
from ferrule.compiler import cache
from ferrule.compiler.errors import CompileError


def run(given: argparse.Namespace, output: Output) -> int:
    """Run the command; returns the exit code."""
    try:
        return _ACTIONS[given.action](output)
    except (OSError, ValueError, CompileError) as error:
        raise Failure.of(error) from error


def _info(output: Output) -> int:
    found = cache.info()
    output.line(
        table(
            [
                ("cache", "on" if found.is_on else "off"),
                ("folder", str(found.folder or "none: there is no home")),
                ("entries", str(found.entries)),
                ("size", f"{_bytes(found.bytes)} of at most {_bytes(found.limit)}"),
                ("second level", found.remote or "none"),
            ]
        )
    )
    output.put(
        on=found.is_on,
        folder=found.folder,
        entries=found.entries,
        bytes=found.bytes,
        limit=found.limit,
        remote=found.remote,
    )
    return 0


def _clear(output: Output) -> int:
    removed = cache.clear()
    output.line(f"removed {removed} {'entry' if removed == 1 else 'entries'}")
    output.put(removed=removed)
    return 0


def _verify(output: Output) -> int:
    problems, entries = cache.verify(), cache.info().entries
    for problem in problems:
        output.line(f"{problem.path}: {problem.why}")
    if problems:
        output.line(
            f"{len(problems)} of {entries} entries are not used; they go when they are read"
        )
    else:
        output.line(f"all {entries} entries are whole")
    listed = [{"path": problem.path, "why": problem.why} for problem in problems]
    output.put(ok=not problems, entries=entries, problems=listed)
    return 1 if problems else 0


def _path(output: Output) -> int:
    folder = cache.folder()
    if folder is None:
        raise Failure("the cache has no folder: there is no home; set FERRULE_CACHE_DIR")
    output.line(str(folder))
    output.put(folder=folder)
    return 0


_ACTIONS = {"info": _info, "clear": _clear, "verify": _verify, "path": _path}


def _bytes(size: int) -> str:
    """A size as people read it."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{size} bytes"
        size /= 1024  # type: ignore[assignment]
    return f"{size:.1f} GiB"

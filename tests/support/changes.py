"""Changes of text files that a page shows as unified diffs, applied by what is around them.

Line numbers are not read.  A hunk needs as many lines of its context as say where it belongs, the
nearest ones: so a line that somebody added beside it does not stop it, as it stops `git apply`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NAMES = re.compile(r"^--- (?:/dev/null|a/.*)\n\+\+\+ b/", re.MULTILINE)
HUNK = re.compile(r"@@ .*? @@.*\n")


def apply(change: str, root: Path) -> list[Path]:
    """Changes the files below `root`; gives their paths.  Raises ValueError for a hunk that fits
    nowhere or at several places."""
    paths = []
    for part in NAMES.split(change)[1:]:
        name, rest = part.split("\n", 1)
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for hunk in HUNK.split(rest)[1:]:
            text = _applied(text, hunk, name) if text else _new(hunk)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _new(hunk: str) -> str:
    return "".join(f"{line[1:]}\n" for line in hunk.splitlines())


def _applied(text: str, hunk: str, name: str) -> str:
    lines = [line or " " for line in hunk.splitlines()]
    for before, after in _contexts(lines):
        kept = lines[before : len(lines) - after]
        old = "".join(f"{line[1:]}\n" for line in kept if line[0] != "+")
        places = [match.start() for match in re.finditer(f"^{re.escape(old)}", text, re.MULTILINE)]
        if old and len(places) == 1:
            new = "".join(f"{line[1:]}\n" for line in kept if line[0] != "-")
            return text[: places[0]] + new + text[places[0] + len(old) :]
    raise ValueError(f"no place in {name} is that of this hunk:\n{hunk}")


def _contexts(lines: list[str]) -> Iterator[tuple[int, int]]:
    """How many lines to leave out before and after the change: first none, then ever more, as long
    as a line before it or one that it takes away is left."""
    first = next(i for i, line in enumerate(lines) if line[0] != " ")
    last = next(i for i, line in enumerate(reversed(lines)) if line[0] != " ")
    removes = any(line[0] == "-" for line in lines)
    for after in range(last + 1):
        for before in range(first + 1 if removes else first):
            yield before, after

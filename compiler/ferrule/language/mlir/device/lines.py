"""The lines of the source as MLIR's locations, from which LLVM makes the line directives of PTX.

A pass makes debug metadata from them.  An op without a line gets an unknown location: without it
MLIR would use the line of its own text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ferrule.language.checks.places import Places
from ferrule.language.ir import ops
from ferrule.language.mlir.text import escaped
from ferrule.specs.deferred import dataclass

_LOCATION: Final = re.compile(r' loc\(("(?:[^"\\]|\\.)*":(\d+):0)\)$', re.M)
PASS: Final = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"
"""The pass that makes debug metadata from locations."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a program's kernels; `paths`: files are named with their folders."""

    places: Places
    paths: bool

    def at(self, op: ops.Op) -> str:
        """The location of an op as text to append to it; empty where none is known."""
        found = self.places.at(op)
        if found is None:
            return ""
        path = Path(found.file).absolute()
        name = str(path) if self.paths else path.name
        return f" loc({escaped(name.encode())}:{found.line}:0)"

    def of(self, kernel: ops.Function) -> str:
        """The location of a kernel: that of its first op that has one."""
        return next(filter(None, map(self.at, kernel.facts.ops)), "")


def completed(text: str) -> str:
    """The module with an unknown location for each op that has none."""
    lines = text.split("\n")
    return "\n".join(line if _is_placed(line) else f"{line} loc(unknown)" for line in lines)


def _is_placed(line: str) -> bool:
    """Whether a line has a location, or cannot have one: it opens a region or is no op."""
    bare = line.strip()
    return not bare or bare.endswith(("{", ":")) or bare.startswith("//") or " loc(" in bare


def with_aliases(text: str) -> str:
    """The module with a short name for each location, which stands behind its end."""
    names: dict[str, str] = {}

    def alias(found: re.Match[str]) -> str:
        place, line = found[1], found[2]
        if place not in names:
            known = sum(name.partition("_")[0] == f"#line{line}" for name in names.values())
            names[place] = f"#line{line}_{known}" if known else f"#line{line}"
        return f" loc({names[place]})"

    text = _LOCATION.sub(alias, text)
    return text + "".join(f"{name} = loc({place})\n" for place, name in names.items())

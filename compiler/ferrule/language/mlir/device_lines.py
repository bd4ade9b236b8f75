"""The lines of the source as MLIR's locations, of which LLVM makes the directives of PTX.

A pass makes debug metadata of them.  What has no line gets an unknown location: MLIR would name
the line of its own text instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ferrule.language.checks.places import Places
from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops
from ferrule.language.mlir.text import escaped

PASS: Final = "ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"
"""Makes debug metadata of locations."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a program's kernels; `paths`: whether files are named with folders."""

    places: Places
    paths: bool

    def at(self, op: ops.Op) -> str:
        """The location of an op as it stands behind it, nothing where none is known."""
        found = self.places.at(op)
        if found is None:
            return ""
        path = Path(found.file).absolute()
        name = str(path) if self.paths else path.name
        return f" loc({escaped(name.encode())}:{found.line}:0)"

    def of(self, kernel: ops.Function) -> str:
        """That of a kernel: of its first op that has one."""
        return next(filter(None, map(self.at, all_ops(kernel.body))), "")


def completed(text: str) -> str:
    """The module with a location for each op that has none."""
    lines = text.split("\n")
    return "\n".join(line if _is_placed(line) else f"{line} loc(unknown)" for line in lines)


def _is_placed(line: str) -> bool:
    """Whether a line has a location, or can have none: it opens a region or is no op."""
    bare = line.strip()
    return not bare or bare.endswith(("{", ":")) or bare.startswith("//") or " loc(" in bare

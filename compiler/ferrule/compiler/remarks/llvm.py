"""LLVM's remarks about the loops of a body, whose debug locations number them."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ferrule.compiler.artefacts import Body
from ferrule.compiler.errors import CompileError
from ferrule.compiler.targets import HostTarget
from ferrule.specs.deferred import dataclass

_CHILD: Final = Path(__file__).with_name("child.py")
_REMARK: Final = re.compile(r"^remark: (?P<file>.*?):(?P<line>\d+):(?P<column>\d+): (?P<said>.*)$")


@dataclass(frozen=True, slots=True)
class Said:
    """A remark of LLVM: the line and the column of its location, and its text."""

    line: int
    column: int
    text: str


def remarks_of(body: Body, level: int, target: HostTarget, file: str) -> tuple[list[Said], bool]:
    """LLVM's remarks about code whose locations name this file, and whether it makes vectors of
    loops at all.

    Raises CompileError if the process that asks LLVM cannot run.
    """
    request = pickle.dumps(sys.path) + pickle.dumps((body.part, level, target))
    command = [sys.executable, "-I", "-S", str(_CHILD)]
    try:
        done = subprocess.run(command, input=request, capture_output=True, check=False)
    except OSError as error:
        raise CompileError(
            f"LLVM's remarks come from a process of its own, which cannot be started: "
            f"{sys.executable!r}: {error}"
        ) from None
    printed = done.stderr.decode(errors="replace")
    if done.returncode:
        raise CompileError(
            f"LLVM's remarks come from a process of its own, which ended with status "
            f"{done.returncode}: {printed.strip()[-2000:]}"
        )
    return list(_read(printed, file)), done.stdout.strip() == b"1"


def _read(printed: str, file: str) -> Iterator[Said]:
    """The remarks in LLVM's output; a line that begins no remark continues the last one."""
    last: Said | None = None
    for line in printed.splitlines():
        found = _REMARK.match(line)
        if found is None:
            if last is not None:
                last = Said(last.line, last.column, f"{last.text} {line.strip()}")
            continue
        if last is not None:
            yield last
        number, column = int(found["line"]), int(found["column"])
        last = Said(number, column, found["said"]) if found["file"] == file else None
    if last is not None:
        yield last

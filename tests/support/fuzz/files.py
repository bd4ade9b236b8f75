"""Damaged objects, archives and libraries: refused, or loaded and right; the process lives."""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from damaged_files import CRASHED, WRONG, Outcome, damaged, outcomes
from exported import DOUBLED, applied, compiled_scale

from ferrule.runtime import load_module
from fuzz.campaigns import Case, Failure

UNIT: Final = "files"
FILES: Final = 50
"""Of each seed: as many as one child process loads."""
_WORDS: Final = {WRONG: "another class of error, or wrong results", CRASHED: "the process died"}


def run(seed: int) -> Iterator[int | Failure]:
    """Fifty damaged files of one kind."""
    whole = files()
    name = random.Random(seed).choice(sorted(whole))
    first = seed * FILES
    for each in outcomes(whole[name], range(first, first + FILES), is_right):
        problem = _problem(each)
        data = damaged(whole[name], each.seed)
        yield Failure({"name": name, "bytes": data.hex()}, problem) if problem else 1


def replay(case: Case) -> str | None:
    """What becomes of a file that was saved."""
    (each,) = outcomes(bytes.fromhex(case["bytes"]), [0], is_right, damage=lambda data, _: data)
    return _problem(each)


@functools.cache
def files() -> dict[str, bytes]:
    """A good file of each form, by its ending; a library where there is a linker."""
    scale = compiled_scale()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.o"
        scale.export_to_c(path)
        found = {".o": path.read_bytes()}
        for ending in (".a", ".so") if shutil.which("cc") else (".a",):
            path = path.with_suffix(ending)
            scale.export_library(path)
            found[ending] = path.read_bytes()
    return found


def is_right(data: bytes) -> bool:
    """Whether a file is loaded and doubles."""
    return applied(load_module(data).scale_host) == DOUBLED


def _problem(found: Outcome) -> str | None:
    return f"{_WORDS[found.kind]}: {found.said}" if found.kind in _WORDS else None

"""Support code as files of the package, so that a process does not compile it.

The files are not in the repository.  A build of a wheel writes them; an editable install, such as
that of `make`, and `python -m ferrule.compiler.support.ship` write them into a checkout.  Where one
is missing, or in a checkout is older than a source that it was made from, the code is compiled as
it is needed.  Both ways give the same bytes, which a test compares.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm

FOLDER: Final = Path(__file__).with_name("shipped")
STAMP: Final = "stamp.json"
ROOT: Final = Path(__file__).parents[4]
"""Of a checkout: where the paths of sources begin."""


def shipped(name: str, half: str, triple: str) -> bytes | None:
    """The object file of a half of a part, if there is one that is as its sources are."""
    if not _is_current():
        return None
    try:
        return file_of(FOLDER, name, half, triple).read_bytes()
    except OSError:
        return None


def file_of(folder: Path, name: str, half: str, triple: str) -> Path:
    """Where the object file of a half of a part is."""
    return folder / triple / f"{name}.{half}.o"


@cache
def _is_current() -> bool:
    try:
        stamp = json.loads((FOLDER / STAMP).read_bytes())
    except (OSError, ValueError):
        return False
    return is_of(stamp)


def is_of(stamp: dict[str, Any]) -> bool:
    """Whether files with this stamp are what the sources, and LLVM, would give.

    Sources of a package do not change, so its stamp names none.
    """
    if stamp.get("llvm") != list(llvm.llvm_version_info):
        return False
    sources: dict[str, list[int]] = stamp.get("sources") or {}
    return all(fingerprint(ROOT / path) == seen for path, seen in sources.items())


def fingerprint(path: Path) -> list[int]:
    """Size and time of a file, which change with what is in it; empty if there is none."""
    try:
        found = path.stat()
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]

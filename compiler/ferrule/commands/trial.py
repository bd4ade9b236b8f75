"""A small function that is compiled and called: whether ferrule works on this machine."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import Any

from ferrule.language.compilation import compile
from ferrule.language.decorators import jit
from ferrule.runtime.cpus import host_architecture
from ferrule.runtime.linking.linker import find_linker
from ferrule.specs import Int32


@jit
def _add_one(value: Any) -> Any:
    return value + 1


def add_one() -> int:
    """Compile a function and call it with 41."""
    compiled = compile(_add_one, Int32(0), options="--target cpu")
    return int(compiled(41))


def link() -> str:
    """Link a function to a shared library; the words of the command that does it.

    LinkError without a C compiler, and for one that cannot.
    """
    compiled = compile(_add_one, Int32(0), options="--target cpu")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.so"
        compiled.export_library(path, "add_one")
        return shlex.join(find_linker(host_architecture(), path).words)

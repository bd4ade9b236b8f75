"""Reads the tutorials of the gallery, programs with cells, as notebooks for Sphinx."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

_OF_OTHERS = re.compile(r"^import (torch|jax|triton)$", re.M)


def read(text: str) -> Any:
    """The notebook of a program, for Python's kernel."""
    import jupytext

    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return notebook


def lacking(file: Path) -> list[str]:
    """The packages that a tutorial imports and that are not installed: it has no outputs then."""
    names = _OF_OTHERS.findall(file.read_text(encoding="utf-8"))
    return [name for name in names if importlib.util.find_spec(name) is None]

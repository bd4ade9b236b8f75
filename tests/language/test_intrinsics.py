"""Each face is found by the module that has it: tables that are imported on first use."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

from ferrule.language import lowering
from ferrule.language.lowering.python import intrinsics


def test_the_faces_of_every_table_are_found() -> None:
    modules = pkgutil.walk_packages(lowering.__path__, f"{lowering.__name__}.")
    tables = [getattr(importlib.import_module(each.name), "TABLE", {}) for each in modules]
    faces = [(face, emit) for table in tables for face, emit in table.items() if callable(emit)]
    assert len(faces) > 150
    assert [face for face, emit in faces if intrinsics.find(face) is not emit] == []


def test_the_methods_of_every_table_are_found() -> None:
    """Rows of tables of attributes name functions of modules that are imported at a call."""
    folder = Path(lowering.__path__[0])
    sources = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    rows = [row for text in sources for row in re.findall(r'method_of\("(.+?)", "(.+?)"\)', text)]
    assert len(rows) > 15
    for module, name in rows:
        found = getattr(importlib.import_module(f"{lowering.__name__}.{module}"), name)
        assert list(inspect.signature(found).parameters)[::2] == ["low", "args", "node"], name


def test_what_is_no_face() -> None:
    class Strange:
        __module__ = ["no text"]  # type: ignore[assignment]

    def strange() -> None: ...

    strange.__module__ = "ferrule.language.faces.threads"
    others: tuple[Any, ...] = (Strange, Strange(), strange, lambda: None, [], None, print, 5)
    assert [each for each in others if intrinsics.find(each) is not None] == []

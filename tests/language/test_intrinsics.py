"""Each face is found by the module that has it: tables that are imported on first use."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from ferrule.language import lowering
from ferrule.language.lowering.python import intrinsics


def test_the_faces_of_every_table_are_found() -> None:
    modules = pkgutil.walk_packages(lowering.__path__, f"{lowering.__name__}.")
    tables = [getattr(importlib.import_module(each.name), "TABLE", {}) for each in modules]
    faces = [(face, emit) for table in tables for face, emit in table.items() if callable(emit)]
    assert len(faces) > 150
    assert [face for face, emit in faces if intrinsics.find(face) is not emit] == []


def test_what_is_no_face() -> None:
    class Strange:
        __module__ = ["no text"]  # type: ignore[assignment]

    def strange() -> None: ...

    strange.__module__ = "ferrule.language.faces.threads"
    others: tuple[Any, ...] = (Strange, Strange(), strange, lambda: None, [], None, print, 5)
    assert [each for each in others if intrinsics.find(each) is not None] == []

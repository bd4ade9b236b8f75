"""The tutorials of the gallery run cell by cell, through Jupyter, and show their pictures."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from nightly import is_nightly

DOCS = Path(__file__).resolve().parents[2] / "docs"
PICTURES = {"image/svg+xml", "text/html"}
LONG = () if is_nightly() else ("ship_library",)
"""It builds libraries by several compilers, for a third of the time of all."""


def cells() -> tuple[Any, dict[str, range]]:
    """A notebook of all tutorials, and where the cells of each are; each begins without names.

    One kernel for all: to start one, and to import ferrule, takes longer than most tutorials.
    """
    import nbformat

    read, lacking = (runpy.run_path(str(DOCS / "cells.py"))[name] for name in ("read", "lacking"))
    every, places = [], {}
    for file in sorted(DOCS.glob("gallery/*.py")):
        if file.stem in ("plots", *LONG) or lacking(file):
            continue
        every.append(nbformat.v4.new_code_cell("%reset -f"))
        found = [each for each in read(file.read_text("utf-8")).cells if each.cell_type == "code"]
        places[file.stem] = range(len(every), len(every) + len(found))
        every += found
    return nbformat.v4.new_notebook(cells=every), places


def test_cells_run_and_show_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("nbclient", "ipykernel", "jupytext", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # of the kernel
    notebook, places = cells()
    folder = {"metadata": {"path": str(DOCS / "gallery")}}
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources=folder).execute()
    for name, its in places.items():
        outputs = [out for at in its for out in notebook.cells[at].outputs]
        shown = [kind for out in outputs for kind in out.get("data", {}) if kind in PICTURES]
        assert shown, f"{name} shows no picture"
        assert not [out for out in outputs if out.output_type == "error"], name

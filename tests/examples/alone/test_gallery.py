"""The tutorials of the gallery run as programs, on the CPU and emulated GPUs.

Each run of the tests has one of them; all run cell by cell in test_gallery_cells.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).resolve().parents[3] / "docs/gallery"
TUTORIALS = sorted(each.stem for each in GALLERY.glob("*.py") if each.stem != "plots")
WITH_PYTORCH = {"rmsnorm_pytorch", "jax_call"}  # not hidden: tests/examples/test_gallery.py


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=[] if each == "first_kernel" else pytest.mark.nightly)
        for each in TUTORIALS
        if each not in WITH_PYTORCH
    ],
)
def test_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = GALLERY / f"{name}.py"
    for package in re.findall(r"^import (jax|triton)$", file.read_text(encoding="utf-8"), re.M):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # of its processes
    monkeypatch.setattr(sys, "path", [str(GALLERY), *sys.path])
    runpy.run_path(str(file), run_name="__main__")

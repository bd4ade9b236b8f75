"""Tests of the emulated driver, each file in a process of its own: see alone/conftest.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "alone"
FILES = sorted(path.name for path in FOLDER.glob("test_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_file(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / name)],
        cwd=FOLDER.parents[2],
        env={**os.environ, "FERRULE_ALONE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5000:]


def test_there_are_such_files() -> None:
    assert FILES

"""The one command for a machine with a GPU: it runs everywhere, and says what it could not do."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPORT = Path(__file__).with_name("report.py")


@pytest.fixture
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("report", REPORT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_needs_no_gpu_and_no_install(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    command = [sys.executable, str(REPORT), "--output", str(path), "--compile-only", "alone"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env={}, check=False)
    text = path.read_text(encoding="utf-8")
    assert done.returncode == 0, text
    assert "## alone: done in" in text
    assert "large_ranks: compiled" in text


def test_a_step_that_fails_is_seen_and_the_others_run(report: ModuleType, tmp_path: Path) -> None:
    words = "import sys; print('some words'); sys.exit(3)"
    report.STEPS = {"bad": lambda given: ["-c", words], "good": lambda given: ["-c", ""]}
    path = tmp_path / "report.md"
    assert report.main(["--output", str(path)]) == 1
    text = path.read_text(encoding="utf-8")
    assert "## bad: FAILED with status 3 in" in text
    assert "some words" in text
    assert "## good: done in" in text


def test_what_a_step_lacks_is_said(report: ModuleType, tmp_path: Path) -> None:
    report.NEEDED = ("no_such_package",)
    path = tmp_path / "report.md"
    assert report.main(["--output", str(path), "language"]) == 0
    assert "## language: left out: needs no_such_package" in path.read_text(encoding="utf-8")

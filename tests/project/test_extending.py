"""The extensions of docs/extending.md: each change applies to the source, and its program runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/extending.md"
PARTS = ("compiler", "runtime", "specs")
FILES = {
    "A kind of parameter": 8,
    "An operator": 3,
    "A calling convention": 2,
    "A frontend": 2,
}
WITHOUT_TORCH = "import sys\n\nsys.modules['torch'] = None  # takes two seconds\n"
FENCED = r"```%s\n(.*?)```"


def sections() -> dict[str, str]:
    """The sections of the page that change something, by title."""
    _, *parts = PAGE.read_text(encoding="utf-8").split("\n## ")
    return {part.partition("\n")[0]: part for part in parts}


def fenced(section: str, info: str) -> str:
    """The one block of this kind in a section."""
    (block,) = re.findall(FENCED % re.escape(info), section, re.DOTALL)
    return str(block)


def test_the_page_has_these_extensions() -> None:
    assert sections().keys() == FILES.keys()


@pytest.mark.needs_cc
@pytest.mark.parametrize("title", FILES)
def test_an_extension_applies_and_runs(title: str, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git, which applies changes")
    section = sections()[title]
    change = fenced(section, "diff")
    assert change.count("\n+++ ") == FILES[title]
    for part in PARTS:
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=leave)
    apply = ["git", "apply", "-"]
    done = subprocess.run(
        apply, cwd=tmp_path, input=change, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_TORCH + fenced(section, "python no-run"), encoding="utf-8")
    paths = os.pathsep.join(str(tmp_path / part) for part in PARTS)
    ran = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == fenced(section, "text")

"""The extensions of docs/extending.md: each change applies to the source, and its program runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import changes
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
    section = sections()[title]
    change = fenced(section, "diff")
    assert change.count("\n+++ ") == FILES[title]
    for part in PARTS:
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=leave)
    changes.apply(change, tmp_path)
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


FILE = "one = 1\ntwo = 2\nthree = 3\nfour = 4\n"
HUNK = (
    "--- a/numbers.py\n+++ b/numbers.py\n@@ -2,3 +2,4 @@\n two = 2\n three = 3\n+more\n four = 4\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FILE, "one = 1\ntwo = 2\nthree = 3\nmore\nfour = 4\n"),
        (f"zero = 0\n{FILE}", "zero = 0\none = 1\ntwo = 2\nthree = 3\nmore\nfour = 4\n"),
        (
            "two = 2\nthree = 3\nof others\nfour = 4\n",
            "two = 2\nthree = 3\nmore\nof others\nfour = 4\n",
        ),
        (
            "two = 2\nof others\nthree = 3\nfour = 4\n",
            "two = 2\nof others\nthree = 3\nmore\nfour = 4\n",
        ),
    ],
    ids=["as it was", "further down", "a line behind it", "a line before it"],
)
def test_a_change_is_applied_beside_changes_of_others(
    text: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "numbers.py"
    file.write_text(text, encoding="utf-8")
    assert changes.apply(HUNK, tmp_path) == [file]
    assert file.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("text", ["one = 1\n", "three = 3\n\nthree = 3\n"], ids=["none", "two"])
def test_a_change_without_one_place_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "numbers.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"no place in numbers\.py"):
        changes.apply(HUNK, tmp_path)

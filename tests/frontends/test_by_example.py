"""The page of frontends by example: each of its programs runs where what it needs is installed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import DOCS

PAGE = DOCS / "by_example/frontends.md"
BLOCK = re.compile(r"^```(python no-run|text output)\n(.*?)^```$", re.M | re.S)
NEEDS = re.compile(r"# Not run: needs (.*?); tests/frontends runs it")


def programs() -> Iterator[tuple[tuple[str, ...], str, str]]:
    """What each program needs, its text, and what it prints."""
    found = [*BLOCK.findall(PAGE.read_text(encoding="utf-8")), ("", "")]
    for (info, text), (following, output) in zip(found, found[1:], strict=False):
        if info == "python no-run":
            needs = NEEDS.match(text)
            assert needs, text.partition("\n")[0]
            yield (
                tuple(needs[1].split(", ")),
                text,
                output if following == "text output" else "",
            )


def has(need: str) -> bool:
    """Whether a compiler or a package is here."""
    match need:
        case "a C compiler":
            return any(map(shutil.which, (os.environ.get("CC", "cc"), "clang", "gcc", "cc")))
        case "nvcc":
            return shutil.which("nvcc") is not None
    return importlib.util.find_spec(need) is not None


def marks(needs: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    """Triton imports PyTorch where it is installed, and looks for its tensors."""
    return [pytest.mark.needs_torch] if {"torch", "triton"} & {*needs} else []


@pytest.mark.parametrize(
    ("needs", "text", "output"),
    [pytest.param(*each, id=each[0][-1], marks=marks(each[0])) for each in programs()],
)
def test_program(needs: tuple[str, ...], text: str, output: str, tmp_path: Path) -> None:
    for need in needs:
        if not has(need):
            pytest.skip(f"{need} is not here")
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == output

"""What stands in the files: the project speaks of itself alone.

A path of somebody's machine, a number of a tracker that a reader cannot see, or a link to a place
that is not listed here has no business in any file. LICENSE is left out: its text is given.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = {".c", ".cfg", ".h", ".json", ".ll", ".md", ".py", ".sh", ".toml", ".txt", ".typed", ""}
LINKS = {
    "arrow.apache.org",
    "dmlc.github.io",
    "docs.python.org",
    "github.com",
    "jupytext.readthedocs.io",
    "keepachangelog.com",
    "llvm.org",
    "llvmlite.readthedocs.io",
    "myst-nb.readthedocs.io",
    "numpy.org",
    "semver.org",
    "tvm.apache.org",
    "www.apache.org",
    "www.w3.org",  # the name of SVG
}
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:home|root|work|tmp|mnt|opt|Users|private)/\w")
TRACKER = re.compile(r"(?i)\b(?:issue|ticket|pull request|PR|fix(?:es)?|closes)\s*#?\d+\b")
LINK = re.compile(r"https?://([\w.-]+)")


@pytest.fixture(scope="module")
def texts(project_files: list[Path], root: Path) -> dict[str, str]:
    """The project's text files by their path."""
    paths = [p for p in project_files if p.suffix in TEXT and p.name != "LICENSE"]
    return {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in paths}


@pytest.mark.parametrize("pattern", [MACHINE_PATH, TRACKER], ids=["machine path", "tracker"])
def test_no_file_speaks_of_elsewhere(texts: dict[str, str], pattern: re.Pattern[str]) -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_links_lead_to_known_places(texts: dict[str, str]) -> None:
    found = {(name, host) for name, text in texts.items() for host in LINK.findall(text)}
    assert not {(name, host) for name, host in found if host.rstrip(".") not in LINKS}


def test_the_pattern_finds_what_it_is_for() -> None:
    assert MACHINE_PATH.search("see " + "/".join(["", "home", "somebody", "file"]))
    assert TRACKER.search(" ".join(["see", "issue", "#12"]))
    assert not TRACKER.search("Mismatched type on argument #0")
    assert not MACHINE_PATH.search("examples/work/file, /usr/bin/env")

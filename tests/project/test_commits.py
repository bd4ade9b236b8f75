"""Subjects of commits say in a line what changes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

SINCE: Final = "2026-11-22T20:00:00Z"
"""From here on; the older ones are as they are."""
MOST: Final = 72
OF_TOOLS: Final = ("Checkpoint:", "Merge ", 'Revert "', "fixup! ", "squash! ")
"""Subjects that nobody writes."""
IMPERATIVE: Final = re.compile(r"[A-Z][a-z]*(?<!ed)(?<!ing) (?!.*\.$)")
NO_ENDINGS: Final = ("Need", "Feed", "Embed", "Seed", "Shed", "Speed", "Exceed", "Bring", "String")


def is_well_said(subject: str) -> bool:
    """Whether a subject is short, and begins with what one does."""
    first = subject.partition(" ")[0]
    return len(subject) <= MOST and (
        IMPERATIVE.match(subject) is not None or (first in NO_ENDINGS and subject[-1] != ".")
    )


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("Read restrict of members of structs", True),
        ("Need a compiler for headers", True),
        ("Added a test", False),
        ("Adding a test", False),
        ("read restrict", False),
        ("Read restrict.", False),
        ("Docs: a page", False),
        (f"Read {'x' * MOST}", False),
    ],
)
def test_what_a_subject_is(subject: str, wanted: bool) -> None:
    assert is_well_said(subject) is wanted


def test_subjects_of_commits(root: Path) -> None:
    if shutil.which("git") is None or not root.joinpath(".git").exists():
        pytest.skip("no history of git")
    command = ["git", "-C", str(root), "log", "--no-merges", f"--since={SINCE}", "--format=%s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git cannot be asked: {done.stderr.strip()[:100]}")
    written = [each for each in done.stdout.splitlines() if not each.startswith(OF_TOOLS)]
    assert not [each for each in written if not is_well_said(each)]

"""The tests' own machinery: goldens compare and update, an empty run fails, needs skip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = "def test_{0}(golden):\n    golden('one.txt', 'text {0}')\n"


def run(folder: Path, root: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest in a folder of its own with the project's conftest and one test file.

    For the conftest it is the folder of a test that compiles nothing.
    """
    folder = folder / "project"
    folder.mkdir(exist_ok=True)
    shutil.copy(root / "tests/conftest.py", folder / "conftest.py")
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run(
        [*command, *options, str(folder)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_golden_is_written_only_on_demand(root: Path, tmp_path: Path) -> None:
    first = run(tmp_path, root, GOLDEN.format("a"))
    assert first.returncode == 1 and "--update-golden writes it" in first.stdout
    assert run(tmp_path, root, GOLDEN.format("a"), "--update-golden").returncode == 0
    assert (tmp_path / "project/golden/one.txt").read_text() == "text a\n"
    then = run(tmp_path, root, GOLDEN.format("a") + GOLDEN.format("b"), "-v")
    assert "::test_a PASSED" in then.stdout and "::test_b FAILED" in then.stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "with workers"])
@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("import pytest\n@pytest.mark.skip\ndef test_it(): pass\n", 5),
        ("", 5),
        ("def test_it(): pass\n", 0),
        ("def test_it(): assert 0\n", 1),
    ],
    ids=["all skipped", "none found", "one passed", "one failed"],
)
def test_a_run_without_tests_fails(
    root: Path, tmp_path: Path, test: str, wanted: int, options: tuple[str, ...]
) -> None:
    if options:
        pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    assert run(tmp_path, root, test, *options).returncode == wanted

"""What is shipped: the wheel holds the three parts as one package, the sdist all that is needed.

Both are built from the checkout without an environment of their own, so hatchling must be
installed. The wheel is imported from the archive's unpacked files alone.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

PARTS = ("ferrule", "ferrule.specs", "ferrule.runtime", "ferrule.compiler", "ferrule.language")


def build(root: Path, kind: str, folder: Path) -> Path:
    """Builds a wheel or an sdist with the back end that pyproject.toml names."""
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    code = f"import hatchling.build as b; print(b.build_{kind}({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build(root, "wheel", folder)) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_wheel_holds_every_part(wheel: Path) -> None:
    for part in PARTS:
        assert (wheel / part.replace(".", "/") / "__init__.py").exists(), part
    assert (wheel / "ferrule/py.typed").exists()


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {path.name.split("-")[0] for path in wheel.iterdir()}
    assert tops == {"ferrule"}
    files = {path.name for path in wheel.rglob("*") if path.is_file()}
    assert "ruff.toml" not in files
    assert not [name for name in files if name.startswith("test_")]


def test_the_wheel_holds_support_code(wheel: Path) -> None:
    """Its processes compile none, whatever the times of its files are."""
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r}); sys.modules['torch'] = None\n"
        "from ferrule.compiler.support.shipped import shipped\n"
        "from ferrule.compiler.targets import host_triple\n"
        "print(len(shipped('checks', 'common', host_triple())))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10_000


def test_the_wheel_can_be_imported(wheel: Path) -> None:
    imports = "; ".join(f"import {part}; print({part}.__file__)" for part in PARTS)
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); {imports}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [Path(line) for line in done.stdout.split()]
    assert len(files) == len(PARTS)
    assert all(file.is_relative_to(wheel) for file in files)


def test_an_index_takes_the_metadata(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed")
    files = [str(build(root, kind, tmp_path)) for kind in ("wheel", "sdist")]
    command = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_written_once_and_is_that_of_the_changelog(root: Path) -> None:
    version = runpy.run_path(str(root / "specs/ferrule/specs/_version.py"))["__version__"]
    (first,) = re.findall(r"^## (\S+), ", (root / "CHANGELOG.md").read_text("utf-8"), re.M)[:1]
    assert first == version
    assert 'dynamic = ["version"]' in (root / "pyproject.toml").read_text("utf-8")


def test_the_sdist_can_build_and_test_itself(root: Path, tmp_path: Path) -> None:
    with tarfile.open(build(root, "sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("pyproject.toml", "Makefile", "README.md", "LICENSE", "tests/conftest.py")
    assert set(wanted) <= names
    assert "docs/conf.py" in names
    assert not [name for name in names if name.startswith(".venv") or ".git/" in name]

"""`ferrule doctor`: what it says of this machine, and of what is missing or misspelled."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ferrule
from ferrule.commands import main
from ferrule.commands.doctor import VARIABLES

PARTS = Path(ferrule.__file__).parents[2]
ALONE = "import sys; sys.modules.update({}); import ferrule.__main__"


def rows(capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, dict[str, Any]]:
    """The rows by what they are of."""
    assert main(["doctor", "--json"]) == code
    sections = json.loads(capsys.readouterr().out)["sections"]
    return {row["what"]: row for section in sections.values() for row in section}


def test_this_machine_works(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys)
    assert found["a compilation"]["text"] == "a function of one int32 gave 42 for 41"
    assert found["typing_extensions"]["state"] == found["ferrule"]["state"] == "ok"
    assert re.search(r"libtvm_ffi [0-9.]+ \(package apache-tvm-ffi ", found["tvm-ffi"]["text"])


def test_a_variable_that_ferrule_does_not_read_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRULE_CACHEDIR", "/x")
    monkeypatch.setenv("FERRULE_WHATEVER", "1")
    monkeypatch.setenv("FERRULE_LOG", "0")
    found = rows(capsys)
    assert found["FERRULE_LOG"]["state"] == "ok"
    assert found["FERRULE_CACHEDIR"]["state"] == found["FERRULE_WHATEVER"]["state"] == "none"
    assert found["FERRULE_CACHEDIR"]["advice"] == "did you mean FERRULE_CACHE_DIR?"
    assert "FERRULE_VERIFY" in found["FERRULE_WHATEVER"]["advice"]


def test_the_variables_are_those_of_the_source() -> None:
    files = (
        file
        for part in ("compiler", "runtime", "specs")
        for file in (PARTS / part).rglob("*.py")
        if file.name != "doctor.py"
    )
    read = {name for file in files for name in re.findall(r'"(FERRULE_[A-Z_]+)"', file.read_text())}
    # A mark for a process that ferrule starts itself.
    assert read - {"FERRULE_MLIR_PROCESS"} == set(VARIABLES)


@pytest.mark.needs_cc
@pytest.mark.parametrize("compiler", ["no_such_compiler", "false", "cc 'open"])
def test_a_compiler_that_is_none_is_named(
    compiler: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows(capsys)["C compiler"]["state"] == "ok"
    monkeypatch.setenv("CC", compiler)
    found = rows(capsys)
    assert found["C compiler"]["state"] == "none"
    assert found["C compiler"]["advice"].startswith(f"CC={compiler} is no C compiler that links")
    if compiler != "false":
        assert found["C"]["state"] == "none" and "CC" in found["C"]["text"]


@pytest.mark.parametrize("missing", ["typing_extensions", "llvmlite"])
def test_a_package_that_is_missing_is_named(missing: str, tmp_path: Path) -> None:
    """In a process of its own: here everything is imported already."""
    program = ALONE.format(f"{missing}=None, torch=None")
    done = subprocess.run(
        [sys.executable, "-c", program, "doctor"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert re.search(rf"{missing} +problem  is not installed\n +pip install {missing}", done.stdout)


def test_a_working_directory_that_was_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def deleted() -> None:
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()

    deleted()
    assert main(["check", "library.so"]) == 1
    assert "the working directory was deleted" in capsys.readouterr().err
    assert rows(capsys)["a compilation"]["state"] == "ok"
    deleted()
    assert main(["cache", "path"]) == 0


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from ferrule.commands import doctor

    def interrupted() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(doctor._SECTIONS, "tools", (interrupted,))
    assert main(["doctor"]) == 130

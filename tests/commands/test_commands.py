"""The command line as a program: help, versions, exit codes, `python -m ferrule`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ferrule.commands import main
from ferrule.specs._version import __version__


@pytest.mark.parametrize("module", ["ferrule", "ferrule.commands"])
def test_python_m_ferrule_is_the_command_line(module: str) -> None:
    command = [sys.executable, "-m", module, "check", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert json.loads(done.stdout)["error"]["kind"] == "UsageError"


def test_a_file_that_there_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none.o")]) == 1
    said = f"ferrule: error: {tmp_path / 'none.o'}: No such file or directory\n"
    assert capsys.readouterr() == ("", said)


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"{sys.executable} -m ferrule --help | head -1"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("usage: ferrule") and done.stderr == ""


def test_the_arguments_name_what_there_is() -> None:
    from ferrule.commands import arguments
    from ferrule.compiler.options import TARGETS
    from ferrule.libraries.building import FORMATS

    assert (arguments._FORMATS, arguments._TARGETS) == (FORMATS, TARGETS)


def test_help_imports_nothing_that_compiles() -> None:
    program = (
        "import sys; from ferrule.commands import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('llvmlite', 'tvm_ffi', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [["--help"], ["build", "--help"], ["cache", "--help"]])
def test_help_has_examples(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    assert "examples:\n  ferrule " in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"ferrule {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["unknown"],
        ["build"],
        ["build", "k.py", "--format", "tarball"],
        ["build", "k.py", "-j", "0"],
        ["build", "k.py", "-j", "many"],
        ["inspect", "k.py", "--ir", "--ptx"],
        ["cache", "burn"],
    ],
)
def test_wrong_arguments_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and "usage: ferrule" in capsys.readouterr().err


def test_errors_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "none.o"), "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["kind"] == "FileNotFoundError" and said.err == ""


def test_wrong_arguments_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ferrule", "check", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "UsageError"

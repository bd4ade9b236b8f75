"""`ferrule build`: what it writes, and what it refuses before anything is written."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kernel_files import KERNELS

from ferrule.commands import main
from ferrule.compiler import progress
from ferrule.runtime import load_module

Writer = Callable[..., Path]


def test_objects(source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    words = ["build", str(source()), "-o", str(folder), "--format", "object", "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    (library,) = said["libraries"]
    assert library["library"] == "small" and library["functions"] == ["copied", "doubled"]
    written = sorted(path.name for path in folder.iterdir())
    assert written == sorted(
        ["copied.o", "doubled.o", "small.h", "small.hpp", "small.json", "small.pyi"]
    )
    assert [file["bytes"] for file in library["files"]] == [
        os.path.getsize(file["path"]) for file in library["files"]
    ]
    assert load_module(folder / "doubled.o").doubled(4) == 8
    assert "copied" in (folder / "small.h").read_text()


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


RECIPE = """
import ferrule as fe


@fe.jit
def tripled(n: fe.Int32):
    return n * 3


def made():
    return fe.compile(tripled, fe.Int32)


library = fe.Library("more", [fe.Recipe(made)])
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_terminal_shows_how_far_it_is(
    source: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """Of jobs and of recipes, in this process and in others; nothing of it stays."""
    monkeypatch.setattr(progress, "SILENT", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    for text, told in ((KERNELS, ["1 of 2", "2 of 2"]), (RECIPE, ["1 of 1"])):
        terminal.seek(0)
        terminal.truncate()
        words = ["build", str(source(text)), "-o", str(tmp_path), "--format", "object"]
        assert main([*words, "-j", workers, "--options=--no-cache"]) == 0
        *shown, last = terminal.getvalue().split("\r")[1:]
        assert re.findall(r"\] (\d of \d) ", "".join(shown)) == told
        assert last == "\x1b[K"


@pytest.mark.needs_cc
def test_a_library_and_options_of_the_command_line(source: Writer, tmp_path: Path) -> None:
    words = ["build", str(source()), "-o", str(tmp_path), "--target", "cuda"]
    assert main([*words, "--options", "--gpu-arch sm_80"]) == 0
    module = load_module(tmp_path / "libsmall.so")
    assert module.doubled(5) == 10
    assert ".target sm_80" in module.copied.inspect_ptx()
    table = json.loads((tmp_path / "small.json").read_text())
    assert table["functions"][0]["target"]["gpus"] == [{"arch": "sm_80", "kind": "ptx"}]


@pytest.mark.needs_cc
@pytest.mark.parametrize("form", ["object", "library", "wheel"])
def test_the_same_source_gives_the_same_bytes_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def built(folder: str, spelled: str, *words: str) -> dict[str, bytes]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kernels_of_test_paths.py").write_text(KERNELS)
        monkeypatch.chdir(tmp_path / folder)
        assert main(["build", spelled, "-o", "out", "--format", form, *words]) == 0
        del sys.modules["kernels_of_test_paths"]
        return {file.name: file.read_bytes() for file in Path("out").iterdir()}

    here = built("here", "kernels_of_test_paths.py")
    there = built("there", str(tmp_path / "there" / "kernels_of_test_paths.py"))
    assert here == there
    kept = built("kept", "../kept/kernels_of_test_paths.py", "--keep-paths")
    if form == "object":
        assert b"kernels_of_test_paths.py" not in here["copied.o"]
        assert b"kernels_of_test_paths.py" in kept["copied.o"]


BROKEN = KERNELS.replace("return value + value", "return value + missing_name")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import ferrule as fe\n", "the file lists no library. Add one at its top level"),
        ("1 / 0\n", r"the file raised ZeroDivisionError: division by zero \(line 1\)"),
        ("def broken(:\n", "the file raised SyntaxError"),
        ("raise SystemExit(3)\n", "the file raised SystemExit: 3"),
        (KERNELS + "again = fe.Library('small', [fe.Job(doubled, [1])])\n", "two libraries"),
        (BROKEN, "missing_name"),
    ],
)
def test_what_is_refused(
    source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    folder = tmp_path / "out"
    assert main(["build", str(source(text)), "-o", str(folder)]) == 1
    assert message.split("(")[0].rstrip("\\ ") in capsys.readouterr().err
    assert not folder.exists()


def test_files_that_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(tmp_path / "none.py")]) == 1
    assert "there is no such file" in capsys.readouterr().err
    (tmp_path / "json.py").write_text(KERNELS)
    assert main(["build", str(tmp_path / "json.py")]) == 1
    assert "a module named 'json' is loaded already" in capsys.readouterr().err
    (tmp_path / "two words.py").write_text(KERNELS)
    assert main(["build", str(tmp_path / "two words.py")]) == 1
    assert "'two words' is no module's name" in capsys.readouterr().err


def test_a_folder_that_is_a_file(
    source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("")
    assert main(["build", str(source()), "-o", str(tmp_path / "taken" / "below")]) == 1
    assert f"{tmp_path / 'taken'} is no folder" in capsys.readouterr().err


def test_unknown_options(source: Writer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(source()), "--options", "--gpu-arhc sm_80"]) == 1
    assert "did you mean --gpu-arch?" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["object", "library"])
def test_two_libraries_that_would_write_one_file(
    source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    name = "other" if form == "object" else "SMALL"
    text = f"{KERNELS}\nmore = fe.Library({name!r}, [fe.Job(doubled, [fe.Int32(0)])])\n"
    folder = tmp_path / "out"
    assert main(["build", str(source(text)), "-o", str(folder), "--format", form]) == 1
    assert f"the libraries small and {name} would both write" in capsys.readouterr().err
    assert not folder.exists()


def test_a_built_file_is_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernels.so").write_bytes(b"")
    assert main(["build", str(tmp_path / "kernels.so")]) == 1
    assert "it is no Python file (.py)" in capsys.readouterr().err


def test_libraries_in_lists_and_dicts_are_built(source: Writer, tmp_path: Path) -> None:
    text = (
        KERNELS
        + """
several = [fe.Library(f"one{n}", [fe.Job(doubled, [fe.Int32(0)], name=f"f{n}")]) for n in (1, 2)]
third = fe.Job(doubled, [fe.Int32(0)], name="f3")
named = {"three": fe.Library("three", [third]), "again": several[0]}
"""
    )
    assert main(["build", str(source(text)), "-o", str(tmp_path), "--format", "object"]) == 0
    names = {path.name for path in tmp_path.glob("*.json")}
    assert names == {"small.json", "one1.json", "one2.json", "three.json"}


@pytest.mark.needs_cc
def test_an_error_of_the_linker_names_no_file_that_is_gone(
    source: Writer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CC", "cc -lnowhere_at_all")
    assert main(["build", str(source()), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "-o libsmall.so copied.o doubled.o failed with status 1" in said
    assert tempfile.gettempdir() not in said


def test_objects_for_another_system_are_refused(
    source: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["build", str(source()), "-o", str(tmp_path / "out"), "--format", "object"]
    assert main([*words, "--options", "--host-target arm64-apple-darwin"]) == 1
    assert "libraries are built for Linux; write its object with" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_keyword_only_parameters_have_examples_by_name(source: Writer, tmp_path: Path) -> None:
    text = """
import ferrule as fe


@fe.jit
def scaled(x: fe.Int32, *, by: fe.Int32) -> fe.Int32:
    return x * by


library = fe.Library("small", [fe.Job(scaled, [fe.Int32(1)], kwargs={"by": fe.Int32(2)})])
"""
    assert main(["build", str(source(text)), "-o", str(tmp_path), "--format", "object"]) == 0
    assert load_module(tmp_path / "scaled.o").scaled(4, by=3) == 12

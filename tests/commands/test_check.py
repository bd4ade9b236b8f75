"""`ferrule check`: what it finds is what `load_module` says."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ferrule as fe
from ferrule.commands import main
from ferrule.runtime import load_module


@fe.jit
def squared(value: fe.Int32) -> fe.Int32:
    return value * value


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("built") / "squared.o"
    fe.compile(squared, fe.Int32(0), options="--target cpu").export_to_c(path)
    return path


def found(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    code = main(["check", str(path), "--json"])
    return code, json.loads(capsys.readouterr().out)


def can_load(path: Path) -> bool:
    try:
        load_module(path)
    except (fe.runtime.ObjectFileError, OSError):
        return False
    return True


def test_a_whole_object(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = found(built, capsys)
    assert (code, told["ok"], told["kind"]) == (0, True, "object")
    assert main(["check", str(built)]) == 0
    assert "squared(value: int32) -> int32" in capsys.readouterr().out


def test_damage_is_found_where_loading_finds_it(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, draw = built.read_bytes(), random.Random(7)
    for number in range(24):
        damaged = bytearray(data)
        at = draw.randrange(len(damaged))
        damaged[at] ^= 1 << draw.randrange(8)
        path = tmp_path / f"{number}.o"
        path.write_bytes(damaged if number % 4 else data[:at])
        code, told = found(path, capsys)
        assert (code == 0) is can_load(path), (at, told)


@pytest.mark.needs_cc
def test_a_program_is_no_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = shutil.which("env")
    assert program is not None
    path = tmp_path / "program.so"
    shutil.copy(program, path)
    if path.read_bytes()[16:18] != b"\3\0":
        pytest.skip("programs of this machine cannot be loaded anywhere")
    code, told = found(path, capsys)
    assert code == 1 and "it is a program" in json.dumps(told) and not can_load(path)


def test_a_device_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "/dev/null"]) == 1
    assert "a device, a pipe or a socket" in capsys.readouterr().err


USER = "extern int given_by_another(int);\nint use(int x) { return given_by_another(x); }\n"
GIVER = "int given_by_another(int x) { return x; }\n"
ORIGIN = "-Wl,-rpath,$ORIGIN"
NEW, OLD = "-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"


def linked(path: Path, text: str, *words: object) -> Path:
    """A library of C's text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".c").write_text(text)
    command = ["cc", "-shared", "-fPIC", path.with_suffix(".c"), "-o", path, *words]
    subprocess.run(list(map(str, command)), check=True)
    return path


def agrees(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """`check` says what the loader does, and with what words."""
    code, told = found(path, capsys)
    assert (code == 0, not words) == (can_load(path),) * 2, told
    for text in words:
        assert text in json.dumps(told)


linux = pytest.mark.skipif(sys.platform != "linux", reason="the loader is another one")


@linux
@pytest.mark.needs_cc
def test_symbols_and_libraries_that_nobody_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agrees(linked(tmp_path / "alone.so", USER), capsys, "it needs given_by_another")
    weak = USER.replace("extern", "extern __attribute__((weak))")
    agrees(linked(tmp_path / "weak.so", weak), capsys)
    linked(tmp_path / "libgiver_of_check.so", GIVER)
    user = linked(tmp_path / "user.so", USER, f"-L{tmp_path}", "-lgiver_of_check")
    agrees(user, capsys, "needs the library libgiver_of_check.so, which cannot be found")


@linux
@pytest.mark.needs_cc
@pytest.mark.parametrize("tags", [NEW, OLD])
def test_libraries_are_searched_where_the_loader_searches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tags: str
) -> None:
    name = "new" if tags is NEW else "old"
    giver = linked(tmp_path / f"libgiver_{name}.so", GIVER)
    between = linked(
        tmp_path / f"libbetween_{name}.so",
        "",
        f"-L{tmp_path}",
        "-Wl,--no-as-needed",
        f"-l{giver.stem[3:]}",
    )
    words = [f"-L{tmp_path}", "-Wl,--no-as-needed", f"-l{between.stem[3:]}", ORIGIN, tags]
    # DT_RPATH is for what a needed library needs as well, DT_RUNPATH is not.
    user = linked(tmp_path / "user.so", USER, *words, "-Wl,--unresolved-symbols=ignore-all")
    agrees(user, capsys, *([f"{between} needs the library {giver.name}"] if tags is NEW else []))


@linux
@pytest.mark.needs_cc
def test_versions_that_a_library_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.map").write_text("V_1 { }; V_2 { given_by_another; };")
    (tmp_path / "old.map").write_text("V_1 { given_by_another; };")
    giver = tmp_path / "libversioned_giver.so"
    linked(giver, GIVER, f"-Wl,--version-script={tmp_path / 'new.map'}")
    words = [f"-L{tmp_path}", "-lversioned_giver", ORIGIN]
    user = linked(tmp_path / "user.so", USER, *words)
    linked(giver, GIVER, f"-Wl,--version-script={tmp_path / 'old.map'}")
    agrees(user, capsys, "it needs the version V_2 of libversioned_giver.so")


@pytest.mark.needs_cc
def test_an_object_has_only_the_symbols_that_ferrule_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = 'int puts(const char *);\nint say(void) { return puts("x"); }\n'
    agrees(linked(tmp_path / "says.o", text, "-c"), capsys, "the object needs the symbol puts")


def test_an_empty_archive_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.a").write_bytes(b"!<arch>\n")
    agrees(tmp_path / "empty.a", capsys)


def test_a_digest_that_is_not_compared(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(built.read_bytes())
    at = data.index(b"squared(value: int32)")
    data[at] ^= 1
    (tmp_path / "changed.o").write_bytes(data)
    agrees(tmp_path / "changed.o", capsys, "the file is damaged")
    monkeypatch.setenv("FERRULE_VERIFY", "0")
    code, told = found(tmp_path / "changed.o", capsys)
    assert (code == 0) is can_load(tmp_path / "changed.o")
    assert "FERRULE_VERIFY=0" in json.dumps(told)

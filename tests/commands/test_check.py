"""`ferrule check`: what it finds is what `load_module` says."""

from __future__ import annotations

import json
import random
import shutil
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

"""`ferrule cache`: its state, its folder, and what is done with entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ferrule as fe
from ferrule.commands import main


@fe.jit
def tripled(value: fe.Int32) -> fe.Int32:
    return value + value + value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the cache with one entry."""
    from ferrule.compiler.cache import settings
    from ferrule.compiler.cache.through import MEMORY

    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(settings, "_CHOSEN", {})
    MEMORY.clear()
    fe.compile(tripled, fe.Int32(0), options="--target cpu")
    return tmp_path


def test_info_verify_and_clear(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{folder}\n"
    assert main(["cache", "info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["on"] and found["folder"] == str(folder) and found["entries"] == 1
    assert main(["cache", "info"]) == 0
    assert "entries       1" in capsys.readouterr().out
    assert main(["cache", "verify"]) == 0
    assert capsys.readouterr().out == "all 1 entries are whole\n"

    (entry,) = (path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 999)
    entry.write_bytes(entry.read_bytes()[:-7])
    assert main(["cache", "verify"]) == 1
    assert str(entry) in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 1 entry\n"
    assert main(["cache", "info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"] == 0


def test_a_size_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FERRULE_CACHE_SIZE", "plenty")
    assert main(["cache", "info"]) == 1
    assert "FERRULE_CACHE_SIZE" in capsys.readouterr().err


def test_a_folder_that_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path / "file"))
    assert main(["cache", "info"]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err

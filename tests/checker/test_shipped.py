"""Support code as files of the package: what the sources give, and only as long as they do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferrule.compiler.support import library, ship, shipped
from ferrule.compiler.support.library import CHECKS, Half


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("shipped")
    ship.write(written, is_package=True)
    return written


@pytest.fixture
def stamp(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / shipped.STAMP).read_text())
    return found


def test_each_part_is_shipped(folder: Path) -> None:
    names = {each.name for each in ship.all_support()}
    assert names >= {"checks", "cuda", "threads", "describing", "values"}
    for triple in ship.TRIPLES:
        found = {path.name.split(".")[0] for path in (folder / triple).iterdir()}
        assert found == names


def test_processes_read_what_the_sources_give(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", folder)
    monkeypatch.setattr(shipped, "_is_current", lambda: True)
    triple = ship.TRIPLES[0]
    for half in Half:
        code = library.emitted(CHECKS, triple, half)
        assert shipped.shipped("checks", half.name.lower(), triple) == code
    monkeypatch.setattr(library, "emitted", None)
    library.precompiled.__wrapped__(CHECKS, triple, Half.COMMON)
    assert shipped.shipped("checks", "common", "riscv64-unknown-linux-gnu") is None


def test_what_is_there_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a checkout has are used only if they are what its sources give."""
    if not shipped._is_current():
        pytest.skip("this checkout has no files, or older ones")
    for triple in ship.TRIPLES:
        for part in ship.all_support():
            for half in ship.halves_of(part):
                read = shipped.shipped(part.name, half.name.lower(), triple)
                assert read == library.emitted(part, triple, half), (part.name, half)


def test_files_of_another_llvm_or_of_older_sources_are_not_read(
    stamp: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stamp["sources"] is None
    assert shipped.is_of(stamp)
    assert not shipped.is_of({**stamp, "llvm": [1, 2, 3]})
    assert not shipped.is_of({})
    monkeypatch.setattr(shipped, "ROOT", tmp_path)
    source = tmp_path / "source.py"
    source.write_text("one = 1\n")
    of_checkout = {**stamp, "sources": {"source.py": shipped.fingerprint(source)}}
    assert shipped.is_of(of_checkout)
    source.write_text("two = 22\n")
    assert not shipped.is_of(of_checkout)
    source.unlink()
    assert not shipped.is_of(of_checkout)


def test_the_sources_are_all_that_the_code_is_made_of() -> None:
    names = ship._sources()
    for part in (
        "checker/machine",
        "messages/segments",
        "cuda/launcher/support",
        "threads/running",
    ):
        assert f"compiler/ferrule/compiler/{part}.py" in names
    assert "runtime/ferrule/runtime/llvm/emitter.py" in names
    assert all(names.values())

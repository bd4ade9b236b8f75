"""The second level: a cluster compiles once, and what comes from there is checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.cache import remote, store, toolchain
from ferrule.compiler.cache.through import MEMORY

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@fe.jit
def doubled(a: fe.Tensor):
    a[0] = a[0] * 2.0


VECTOR = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(symbol="n"),))


@pytest.fixture
def shared(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, Path]]:
    """The folder of this machine, and that of all."""
    far = tmp_path / "far"
    monkeypatch.setenv("FERRULE_CACHE_REMOTE", far.as_uri())
    store._WARNED.clear()
    yield folder, far
    remote.flush()
    store._WARNED.clear()


def made(folder: Path) -> str:
    """Compile on a machine whose folder is this one."""
    MEMORY.clear()
    with pytest.MonkeyPatch.context() as there:
        there.setenv("FERRULE_CACHE_DIR", str(folder))
        compiled = fe.compile(doubled, VECTOR, options="--target cpu")
    assert fe.cache.flush()
    a = np.ones(2, np.float32)
    compiled(a)
    assert a.tolist() == [2, 1]
    return compiled.origin


def test_another_machine_finds_what_one_compiled(shared: tuple[Path, Path], tmp_path: Path) -> None:
    here, far = shared
    assert made(here) == "compiled"
    (there,) = far.rglob("*.ferrule")
    (own,) = here.rglob("*.ferrule")
    assert there.read_bytes() == own.read_bytes()
    other = tmp_path / "other"
    assert made(other) == "from the cache"
    there.unlink()
    assert made(other) == "from the cache"  # it has it now
    assert fe.cache.info().remote == far.as_uri()


def test_in_memory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE_REMOTE", f"memory://{tmp_path.name}")
    assert made(folder) == "compiled"
    assert made(tmp_path / "other") == "from the cache"


def test_the_key_is_of_no_machine(
    shared: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(shared[0]) == "compiled"
    monkeypatch.setattr(toolchain, "_stamps", lambda: b"installed at another time")
    assert made(tmp_path / "other") == "from the cache"
    monkeypatch.setattr(toolchain, "content", lambda: b"another ferrule")
    assert made(tmp_path / "other") == "compiled"


def test_damage_is_a_miss_with_a_warning(shared: tuple[Path, Path], tmp_path: Path) -> None:
    here, far = shared
    made(here)
    (there,) = far.rglob("*.ferrule")
    data = there.read_bytes()
    there.write_bytes(data[:-1] + b"?")
    with pytest.warns(fe.cache.CacheWarning, match="is not used: its digest does not match"):
        assert made(tmp_path / "other") == "compiled"
    assert there.read_bytes() == data


def test_a_signature_is_wanted_where_there_is_a_key(
    shared: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(shared[0])
    monkeypatch.setenv("FERRULE_CACHE_KEY", "a secret")
    with pytest.warns(fe.cache.CacheWarning, match="not signed with the key"):
        assert made(tmp_path / "first") == "compiled"
    assert made(tmp_path / "second") == "from the cache"
    monkeypatch.setenv("FERRULE_CACHE_KEY", "another")
    store._WARNED.clear()
    with pytest.warns(fe.cache.CacheWarning, match="not signed with the key"):
        assert made(tmp_path / "third") == "compiled"


def test_a_level_that_fails_is_a_miss_with_a_warning(
    shared: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def __getattr__(self, name: str) -> Any:
            raise ConnectionError("no network")

    failing = remote.Remote(Failing(), "x", "s3://x")
    monkeypatch.setattr("ferrule.compiler.cache.through.remote", lambda: failing)
    with pytest.warns(fe.cache.CacheWarning, match="s3://x of FERRULE_CACHE_REMOTE cannot be"):
        assert made(shared[0]) == "compiled"


def test_without_fsspec_the_error_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRULE_CACHE_REMOTE", "s3://bucket/a")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(fe.CompileError, match=r"fsspec, which opens it, is not installed") as told:
        made(folder)
    assert "pip install 'ferrule[remote]'" in str(told.value)


def test_an_unknown_protocol_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE_REMOTE", "nosuch://bucket")
    with pytest.raises(fe.CompileError, match="which fsspec cannot open: .*nosuch"):
        made(folder)

"""The cache of each test is a folder of its own, and nothing is in memory at its start."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ferrule.compiler.cache import settings
from ferrule.compiler.cache.through import MEMORY

_TIMES = itertools.count(1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is on, in a folder that does not exist yet."""
    chosen = tmp_path / "cache"
    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(chosen))
    for name in ("FERRULE_CACHE_REMOTE", "FERRULE_CACHE_KEY", "FERRULE_CACHE_SIZE", "FERRULE_LOG"):
        monkeypatch.delenv(name, raising=False)
    MEMORY.clear()
    settings.set_folder(None)
    settings.set_limit(None)
    return chosen


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., ModuleType]:
    """Writes a module's file and imports it; the same name is the same file."""

    def write(text: str, name: str = "kernels") -> ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        stamp = 10**18 + next(_TIMES) * 10**9  # two texts of one size are told apart
        os.utime(path, ns=(stamp, stamp))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return write

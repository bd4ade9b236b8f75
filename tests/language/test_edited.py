"""Files that are edited after they were imported: what is compiled is what runs, or an error."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ferrule as fe

TEXT = """
from __future__ import annotations
import ferrule as fe

def helper(v):
    return v * 2

class Holder:
    @staticmethod
    def hidden(v):
        __own = 3  # a name that the class mangles
        return v + __own

@fe.jit
def f(a: fe.Tensor):
    \"\"\"What it does.\"\"\"
    a[0] = helper(a[0]) + 1
    assert a[0] > 0, "a text"

@fe.jit
def g(a: fe.Tensor):
    a[0] = Holder.hidden(a[0]) + 0.5

def plain(a):
    a[0] = a[0] + 10
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "edited_program.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("edited_program")
    del sys.modules["edited_program"]


def write(module: ModuleType, text: str) -> None:
    """Edits the file, at a time that is later for certain."""
    path = Path(str(module.__file__))
    later = path.stat().st_mtime_ns + 10**9
    path.write_text(text)
    os.utime(path, ns=(later, later))


def result(function: Callable[[Any], None]) -> float:
    a = np.ones(1, np.float32)
    function(a)
    return float(a[0])


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("+ 1\n", "+ 5\n", "f"),
        ("v * 2", "v * 20", "f"),
        ("v + __own", "v - __own", "g"),
        ("a[0] > 0", "a[0] >= 0", "f"),
        ("import ferrule as fe\n", "import ferrule as fe\nx = 1\n", "f"),
    ],
)
def test_a_function_whose_text_was_edited_is_an_error(
    module: ModuleType, old: str, new: str, name: str
) -> None:
    write(module, TEXT.replace(old, new))
    with pytest.raises(fe.CompileError, match="was edited after .* was made from it") as caught:
        result(getattr(module, name))
    assert "import the module again" in str(caught.value)
    importlib.reload(module)
    result(getattr(module, name))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT + "\nx = 1\n",
        TEXT.replace("+ 10", "+ 99"),
        TEXT.replace("# a name", "# the name"),
    ],
    ids=["written again", "more behind it", "another function", "a comment"],
)
def test_other_text_may_be_edited(module: ModuleType, text: str) -> None:
    write(module, text)
    assert (result(module.f), result(module.g)) == (3, 4.5)


def test_a_plain_function_is_known_from_its_first_compilation_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "edited_plain.py").write_text("def plain(a):\n    a[0] = a[0] + 10\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    module = importlib.import_module("edited_plain")
    fe.compile(module.plain, np.ones(1), options="--target cpu")
    write(module, "def plain(a):\n    a[0] = a[0] + 11\n")
    with pytest.raises(fe.CompileError, match="was edited after plain was made from it"):
        fe.compile(module.plain, np.ones(1), options="--target cpu")
    del sys.modules["edited_plain"]


def test_what_another_loader_made_passes(module: ModuleType) -> None:
    """Its code may be of another text than the file's, as pytest's own is."""
    module.__dict__["__loader__"] = object()
    write(module, TEXT.replace("+ 1\n", "+ 5\n"))
    assert result(module.f) == 7

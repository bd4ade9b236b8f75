"""What whoever made a function wrote down stays with it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule import compiler
from ferrule.compiler.conventions import CFunction
from ferrule.specs import Scalar, Signature

X, Y = Scalar("x", "float64"), Scalar("y", "float64")
NOTES = {"tuned": [{"n": 4096, "config": 2}], "by": "äöü"}


def built(notes: Any) -> fe.Function:
    convention = CFunction("nextafter", [X, Y], returns="float64")
    return compiler.build(Signature("nextafter", [X, Y]), convention, notes=notes)


def test_notes_come_back_from_files_and_pickles(tmp_path: Path) -> None:
    function = built(NOTES)
    function.export_to_c(tmp_path / "f.o")
    loaded = fe.runtime.load_module(tmp_path / "f.o").nextafter
    assert function.notes == loaded.notes == pickle.loads(pickle.dumps(function)).notes == NOTES


def test_notes_are_the_functions_own() -> None:
    notes = {"a": [1]}
    function = built(notes)
    notes["a"].append(2)
    function.notes["a"].append(3)
    assert function.notes == {"a": [1]}
    assert built({}).notes == {}


@pytest.mark.parametrize("notes", [{"a": object()}, {"a": float("nan")}, {"a": b""}])
def test_what_json_does_not_have_is_refused(notes: Any) -> None:
    with pytest.raises(TypeError, match="notes must be a mapping of what JSON has, but"):
        built(notes)

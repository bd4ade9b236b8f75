"""`Recipe`: what it takes, what it makes, and which errors it has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import ferrule as fe
from ferrule.libraries.building import compile_library

CPU = "--target cpu"


@fe.jit
def times(value: fe.Int32, factor: fe.Constexpr):
    return value * factor


@fe.jit
def halved(value: fe.Float32) -> fe.Float32:
    return value / fe.Float32(2)


def scaled(kind: str) -> Any:
    if kind == "float":
        return fe.compile(halved, fe.Float32(0), options=CPU)
    if kind == "wrong":
        raise fe.CompileError("there is no such kind")
    if kind == "died":
        os._exit(3)
    return fe.compile(times, fe.Int32(0), int(kind), options=CPU) if kind != "7" else 7


def test_variants_are_joined_in_their_order() -> None:
    recipe = fe.Recipe(scaled, [("3",), ("float",)])
    library = fe.Library("numbers2", [recipe, fe.Recipe(scaled, [["5"]], name="five")])
    assert library.names == ("scaled", "five") and [*library.recipes()][0] == recipe
    assert not [*library.jobs()]
    for workers in (1, 2):
        made = compile_library(library, workers)
        assert [*made] == ["scaled", "five"]
        assert made["scaled"](4) == 12 and made["scaled"](3.0) == 1.5 and made["five"](4) == 20


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_name_the_recipe_and_the_variant(workers: int) -> None:
    bad = [fe.Recipe(scaled, [("3",), ("wrong",)], name="bad")]
    bad += [fe.Recipe(scaled, [("7",)], name="number"), fe.Recipe(scaled, [("3",)])]
    with pytest.raises(fe.CompileAllError) as found:
        compile_library(fe.Library("numbers3", bad), workers)
    assert [each.name for each, _ in found.value.errors] == ["bad", "number"]
    said = str(found.value)
    assert "2 of 3 jobs: bad: there is no such kind\n  note: this is bad('wrong')" in said
    assert "number('7') gave 7\n  expected: a compiled function" in said
    assert [each is None for each in found.value.functions] == [True, True, False]


def test_a_variant_that_ends_its_process_is_an_error_of_its_recipe() -> None:
    library = fe.Library("numbers4", [fe.Recipe(scaled, [("3",), ("died",)])])
    with pytest.raises(fe.CompileAllError, match="scaled: "):
        compile_library(library, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((3,), TypeError, "the make of a Recipe is a function that compiles one, but got 3"),
        ((scaled, "ab"), TypeError, "a list of tuples, the arguments of each, but got 'ab'"),
        ((scaled, ["ab"]), TypeError, "but got 'ab' among them"),
        ((scaled, [3]), TypeError, "but got 3 among them"),
        ((scaled, []), ValueError, r"the variants of Recipe\(scaled\) .* but there is none"),
    ],
)
def test_what_is_refused(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fe.Recipe(*arguments)
    with pytest.raises(TypeError, match="the name of Recipe"):
        fe.Recipe(scaled, name=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("operators", "error", "text"),
    [
        (["scaled"], TypeError, "the torch_ops of the library numbers5 are a dict"),
        ({"other": []}, ValueError, "'other', which is no function of .*; these are scaled"),
        ({"scaled": "y"}, TypeError, "is a list of parameters' names, but got 'y'"),
        ({"scaled": [1]}, TypeError, "is a list of parameters' names"),
    ],
)
def test_operators_that_are_refused(operators: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fe.Library("numbers5", [fe.Recipe(scaled, [("3",)])], torch_ops=operators)


def test_a_file_with_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inspect` makes them, as `build` does; options of the command are for jobs alone."""
    from ferrule.commands.sources import with_words

    recipe = fe.Recipe(scaled, [("3",)])
    assert with_words(recipe, "--target cuda") is recipe

"""What a kernel reads beside its arguments, by name."""

from __future__ import annotations

import math
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ferrule.frontends.captured import captured, compiled_in

SCALE = 3
TABLE = np.arange(4.0)
settings = ModuleType("settings")
settings.low = 1  # type: ignore[attr-defined]
settings.inner = ModuleType("settings.inner")  # type: ignore[attr-defined]
settings.inner.high = (2, TABLE)  # type: ignore[attr-defined]


def _said(function: Any) -> str:
    (text,) = compiled_in(function)
    head, _, found = text.partition(": ")
    assert head == "what it reads beside its arguments is as it was when compiled"
    return found


def _helper(x: Any) -> Any:
    return x * SCALE


def test_globals_of_a_function_and_of_those_that_it_calls() -> None:
    def reads(x: Any) -> Any:
        return _helper(x) + TABLE[0]

    assert _said(reads) == "SCALE = 3, TABLE = float64 array of shape (4,)"
    decorated = SimpleNamespace(py_func=reads)
    assert _said(decorated) == _said(reads)
    assert {where for where, _, _ in captured(decorated)} == {"reads", "_helper"}


def test_closures_and_values_of_modules() -> None:
    step = 2.5

    def reads(x: Any) -> Any:
        return x * step + settings.low + settings.inner.high[0]

    wanted = "step = 2.5, settings.low = 1, settings.inner.high = (2, float64 array of shape (4,))"
    assert _said(reads) == wanted


def test_what_is_the_libraries_is_left_out() -> None:
    def reads(x: Any) -> Any:
        return math.pi * np.sqrt(x) * np.pi

    def names_an_attribute(x: Any) -> Any:
        return x.SCALE

    assert compiled_in(reads) == compiled_in(names_an_attribute) == ()
    assert compiled_in(len) == compiled_in(int) == ()


def test_many_are_counted() -> None:
    names = [f"n{i}" for i in range(10)]
    known: dict[str, Any] = dict.fromkeys(names, 1)
    exec(f"def reads(x): return {' + '.join(names)}", known)
    known["reads"].__module__ = "users"
    assert _said(known["reads"]).endswith("n7 = 1, and 2 more")


@pytest.mark.parametrize("recursive", [True, False])
def test_functions_that_call_each_other(recursive: bool) -> None:
    def first(x: Any) -> Any:
        return second(x) if recursive else x * SCALE

    def second(x: Any) -> Any:
        return first(x) + TABLE[0]

    assert "TABLE" in _said(second)

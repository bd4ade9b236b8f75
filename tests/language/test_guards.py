"""Guards say yes only while every object is the one that it was, in whatever way it is changed."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.language.dependencies import guards

if guards.new_guard() is None:
    pytest.skip("this interpreter's objects are not known", allow_module_level=True)


def guard_of(namespace: dict[str, Any], *names: str) -> Callable[[], bool]:
    """Says whether names of a dict are as they are now."""
    guard = guards.Guard(guards._places())  # type: ignore[arg-type]
    for name in names:
        assert guard.add_name(namespace, name, namespace.get(name, guards.ABSENT))
    made = guard.made()
    assert made is not None
    assert made() is True
    return made


def run(text: str, namespace: dict[str, Any]) -> None:
    exec(text, namespace)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ("pass", True),
        ("y = 1", True),
        ("x = x", True),
        ("other = 1", True),
        ("for y in range(300): globals()[str(y)] = y", False),
        ("x = object()", False),
        ("del x", False),
        ("old = x; del x; x = old", False),
        ("globals().pop('x')", False),
        ("globals().update(x=None)", False),
        ("globals().clear()", False),
        ("globals().setdefault('x', 3)", True),
        ("exec('x = 5')", False),
        ("def x(): pass", False),
        ("import sys as x", False),
        ("class x: pass", False),
    ],
)
@pytest.mark.parametrize("version", [True, False])
def test_names(monkeypatch: pytest.MonkeyPatch, change: str, same: bool, version: bool) -> None:
    places = guards._places()
    assert places is not None
    if not version:
        places = replace(places, version=None)
    monkeypatch.setattr(guards, "_places", lambda: places)
    namespace: dict[str, Any] = {"x": object(), "y": 0, "other": 2}
    run("pass", namespace)
    made = guard_of(namespace, "x")
    run(change, namespace)
    for _ in range(3):  # what was said once is said again
        assert made() is same


@pytest.mark.parametrize(
    "change", ["new = 1", "globals().update(new=1)", "del y; new = 1", "globals()['new'] = 2"]
)
def test_a_name_that_is_not_there_comes(change: str) -> None:
    namespace: dict[str, Any] = {"x": 1, "y": 2}
    run("pass", namespace)
    made = guard_of(namespace, "new")
    run("x = 2", namespace)
    assert made()
    run(change, namespace)
    assert not made()


def test_a_name_comes_in_the_place_of_the_last() -> None:
    namespace = {"x": 1, "y": 2}
    made = guard_of(namespace, "new")
    namespace.popitem()
    namespace["new"] = 2
    assert not made()


def test_keys_at_an_old_place_are_no_answer() -> None:
    value = object()
    for i in range(200):
        namespace: dict[str, Any] = {"a": value, "b": value, "x": value}
        made = guard_of(namespace, "x", "missing")
        namespace.clear()
        gc.collect(0)
        namespace.update({f"n{i}": value, "missing": value, "x": value})
        assert not made()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["set", "del", "same", "add"])),
        max_size=40,
    )
)
def test_a_guard_that_says_yes_is_right(steps: list[tuple[str, str]]) -> None:
    values = [object() for _ in range(3)]
    namespace: dict[str, Any] = dict.fromkeys("abcd", values[0])
    before = {name: namespace.get(name, guards.ABSENT) for name in "abg"}
    made = guard_of(namespace, *before)
    for i, (name, step) in enumerate(steps):
        if step == "del":
            namespace.pop(name, None)
        elif step == "same":
            namespace[name] = values[0]
        else:
            namespace[name if step == "set" else f"{name}{i}"] = values[i % 3]
        if made():
            assert {n: namespace.get(n, guards.ABSENT) for n in before} == before


def test_a_loop_over_a_global_is_no_change() -> None:
    namespace: dict[str, Any] = {"x": object(), "i": 0, "made": None}
    run("pass", namespace)
    namespace["made"] = guard_of(namespace, "x", "max")
    run("for i in range(3000):\n    assert made() is True", namespace)
    run("x = 1\nfor i in range(3000):\n    assert made() is False", namespace)


def test_functions_and_cells() -> None:
    def make(n: int) -> Any:
        def inner(a: int = 1, *, b: int = n) -> Any:
            return n, a, b

        def change(value: int) -> None:
            nonlocal n
            n = value

        return inner, change

    def fresh() -> tuple[Any, Any, Any]:
        inner, change = make(300)
        guard = guards.new_guard()
        assert guard is not None
        guard.add_function(inner, inner.__code__, inner.__defaults__)
        guard.add_keyword_defaults(inner, inner.__kwdefaults__)
        guard.add_cell(inner.__closure__[0], inner.__closure__[0].cell_contents)
        made = guard.made()
        assert made is not None
        assert made()
        return inner, change, made

    for change in (
        lambda f, c: setattr(f, "__code__", f.__code__.replace()),
        lambda f, c: setattr(f, "__defaults__", (2,)),
        lambda f, c: setattr(f, "__defaults__", None),
        lambda f, c: setattr(f, "__kwdefaults__", None),
        lambda f, c: c(301),
        lambda f, c: f.__closure__[0].__delattr__("cell_contents"),
    ):
        inner, setter, made = fresh()
        change(inner, setter)
        assert not made()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.append(1),
        lambda x: x.__setitem__(0, object()),
        lambda x: x.pop(),
        lambda x: x.clear(),
        lambda x: x.reverse(),
        lambda x: x.extend(range(1000)),
        lambda x: x.__delitem__(0),
    ],
)
def test_lists(change: Callable[[list[object]], object]) -> None:
    value = [object(), object(), object()]
    guard = guards.new_guard()
    assert guard is not None
    assert guard.add_list(value, tuple(value))
    made = guard.made()
    assert made is not None
    assert made()
    change(value)
    assert not made()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.update(c=1),
        lambda x: x.update(a=object()),
        lambda x: x.pop("a"),
        lambda x: x.clear(),
        lambda x: x.update(a=x.pop("a")),
        lambda x: x.__setitem__(3, 4),
        lambda x: x.update(dict.fromkeys(range(100))),
    ],
)
def test_dicts(change: Callable[[dict[Any, Any]], object]) -> None:
    value: dict[Any, Any] = {"a": object(), "b": object()}
    guard = guards.new_guard()
    assert guard is not None
    assert guard.add_dict(value, tuple(value.items()))
    made = guard.made()
    assert made is not None
    assert made()
    change(value)
    assert not made()


def test_what_cannot_be_told_is_said() -> None:
    class Named(dict[str, int]):
        pass

    class Plain:
        def __init__(self) -> None:
            self.x = 1

    guard = guards.new_guard()
    assert guard is not None
    assert not guard.add_name(Named(x=1), "x", 1)
    split = vars(Plain())
    if guard.add_name(split, "x", 1):  # where the interpreter keeps it as any other
        made = guard.made()
        assert made is not None and made()
        split["x"] = 2
        assert not made()


def test_objects_live_as_long_as_their_guard() -> None:
    class Value:
        pass

    namespace: dict[str, Any] = {"x": Value()}
    gone: list[bool] = []
    weakref.finalize(namespace["x"], gone.append, True)
    made: Any = guard_of(namespace, "x")
    counts = [sys.getrefcount(made()) for _ in range(3)]
    assert max(counts) - min(counts) <= 1
    namespace.clear()
    gc.collect()
    assert not gone
    assert not made()
    del made
    gc.collect()
    assert gone


def test_modules_and_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    from ferrule.language.dependencies.witness import Witness

    module: Any = types.ModuleType("some_module")
    module.n = 3

    class Base:
        tile = 4

    class Config(Base):
        pass

    def changed_by(change: Callable[[], object]) -> bool:
        witness = Witness()
        witness.add_attribute(module, "n", module.n)
        witness.add_attribute(Config, "tile", Config.tile)
        assert witness.unchanged()
        assert witness.same()
        monkeypatch.setattr(Witness, "_compared", lambda self: False)
        assert witness.unchanged()
        change()
        found = witness.same()
        monkeypatch.undo()
        return not found

    assert changed_by(lambda: setattr(module, "n", 5))
    assert changed_by(lambda: setattr(Base, "tile", 5))
    assert changed_by(lambda: setattr(Config, "tile", 6))
    assert changed_by(lambda: delattr(Config, "tile"))
    other = type("Other", (), {"tile": 9})
    assert changed_by(lambda: setattr(Config, "__bases__", (other, Base)))
    assert not changed_by(lambda: setattr(module, "n", module.n))


def test_annotations_of_results() -> None:
    def function() -> None:
        pass

    guard = guards.new_guard()
    assert guard is not None
    assert guard.add_annotation(function, "return")
    made = guard.made()
    assert made is not None
    assert made()
    function.__annotations__["return"] = int
    assert not made()


def test_an_array_among_the_names() -> None:
    """`==` of arrays gives an array, which is neither true nor false."""
    array = np.zeros(3)
    namespace = {"x": array}
    same = guard_of(namespace, "x", "missing")
    namespace["missing"] = 1
    assert not same()

"""What the text of a kernel says of its arrays."""

from __future__ import annotations

import ast

import pytest

from ferrule.frontends.reading import is_unread, read_first, tree_of

ADDED = """
h[int(x[i])] += 1
y[i] = y[i] + x[i]
wp.atomic_add(out, 0, x[i])
cuda.atomic.add(total, 0, 1)
tl.atomic_max(best + at, x)
z += x[i]
"""


def test_arrays_that_are_added_to() -> None:
    names = ("x", "y", "z", "h", "out", "total", "best")
    found = read_first(ast.parse(ADDED), names)
    # Nothing is written to x.
    assert [name for name, how in found.items() if how.startswith("reads")] == ["x", "y"]
    assert [name for name, how in found.items() if how == "adds to"] == [
        "h",
        "out",
        "total",
        "best",
    ]
    assert read_first(None, names) == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a[0] = 0\na[i] = a[i] + 1", []),
        ("a[i] = b[a[i]]", ["a"]),
        ("tl.store(a + i, 0)\nv = tl.load(a + i)", []),
        ("tl.store(a + i, tl.load(a + i) + 1)", ["a"]),
        ("ct.store(a, index=(0,), tile=ct.load(a, index=(0,), shape=(4,)))", ["a"]),
        ("n = a.shape[0]\na[n - 1] = 0", []),
    ],
)
def test_arrays_that_are_read_before_they_are_written(text: str, wanted: list[str]) -> None:
    found = read_first(ast.parse(text), ("a",))
    assert found == dict.fromkeys(wanted, "reads before it writes to it")


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("o.a[0] = o.b[i]", False),
        ("wp.atomic_add(o.a, 0, x)", False),
        ("o.a[i] = 1", False),
        ("o.b[i] = o.ab[i]", True),
        ("f(o)\no.a[0] = 1", False),
        ("f(o.a)", False),
        ("p.o.a[i]", True),
    ],
)
def test_arrays_in_structs(text: str, unread: bool) -> None:
    assert is_unread(ast.parse(text), "o.a") is unread
    assert not is_unread(None, "o.a")


def test_a_function_without_a_text_says_nothing() -> None:
    assert tree_of(eval("lambda x: x")) is None

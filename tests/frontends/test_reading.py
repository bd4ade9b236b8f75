"""What the text of a kernel says of its arrays."""

from __future__ import annotations

import ast

import pytest

from ferrule.frontends.reading import indexed_by_numbers, is_unread, read_first, tree_of

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
    ("text", "wanted"),
    [
        ("wp.atomic_add(a, 0, x)", True),
        ("wp.atomic_add(a, 0, 1, x)", True),
        ("a[0] = a[1, 2]", True),
        ("a[i] = 1", False),
        ("wp.atomic_add(a, i, x)", False),
        ("f(a)", False),
        ("a[0] = 1\nb = a", False),
        ("a[0, i] = 1", False),
        ("a[-1]", False),
        ("x = 1", False),
    ],
)
def test_arrays_that_are_indexed_with_numbers_alone(text: str, wanted: bool) -> None:
    assert indexed_by_numbers(ast.parse(text), "a") is wanted


@pytest.mark.parametrize(
    ("text", "wanted", "unread"),
    [
        ("o.a[0] = o.b[i]", True, False),
        ("wp.atomic_add(o.a, 0, x)", True, False),
        ("o.a[i] = 1", False, False),
        ("o.b[i] = o.ab[i]", False, True),
        ("f(o)\no.a[0] = 1", False, False),
        ("f(o.a)", False, False),
        ("p.o.a[i]", False, True),
    ],
)
def test_arrays_in_structs(text: str, wanted: bool, unread: bool) -> None:
    tree = ast.parse(text)
    assert indexed_by_numbers(tree, "o.a") is wanted and is_unread(tree, "o.a") is unread
    assert not is_unread(None, "o.a")


def test_a_function_without_a_text_says_nothing() -> None:
    assert tree_of(eval("lambda x: x")) is None and not indexed_by_numbers(None, "a")

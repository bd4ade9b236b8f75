"""`max_common_layout` and `max_common_vector`: what is certain, against their definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_definitions import RELAXED, indices

from ferrule.language import layouts as fl
from ferrule.language.layouts import Layout
from ferrule.specs import sym_int

N, M = sym_int(symbol="n"), sym_int(symbol="m")
N8 = sym_int(symbol="n8", divisibility=8)


def checked(a: Layout, b: Layout) -> int:
    """The size of what is common, which must be in both."""
    common = fl.max_common_layout(a, b)
    places = indices(common)
    assert max(places) < min(fl.size(a), fl.size(b))
    assert [a(i) for i in places] == [b(i) for i in places] == list(range(len(places)))
    assert fl.max_common_vector(a, b) == len(places)
    return len(places)


@st.composite
def modes(draw: st.DrawFn) -> Layout:
    """A compact layout of up to three modes in any order, with a gap or not."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1, max_size=3))
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), 1
    for position in order:
        strides[position] = step
        step *= shape[position] * draw(st.sampled_from([1, 1, 1, 2]))
    return Layout(tuple(shape), tuple(strides))


@settings(RELAXED)
@given(modes(), modes())
def test_what_is_common_is_in_both(a: Layout, b: Layout) -> None:
    checked(a, b)


@settings(RELAXED)
@given(modes())
def test_a_layout_has_all_that_is_contiguous_in_common_with_itself(a: Layout) -> None:
    assert checked(a, a) == fl.size(fl.right_inverse(a))


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (Layout((2, 2), (1, 2)), Layout((4, 4), (1, 4)), 4),
        (Layout((4, 4), (1, 4)), Layout((2, 2), (1, 2)), 4),
        (Layout(3, 1), Layout(8, 1), 3),
        (Layout((4, 4), (1, 8)), Layout(16, 1), 4),
        (Layout((3, 4), (4, 1)), Layout((3, 8), (8, 1)), 4),
        (Layout((8, 4), (-1, 8)), Layout(32, 1), 1),
    ],
)
def test_no_more_elements_than_both_have(a: Layout, b: Layout, wanted: int) -> None:
    assert checked(a, b) == wanted


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (Layout((M, N), (1, M)), Layout((4, 4), (1, 4)), "1"),
        (Layout((M, N), (N, 1)), Layout((4, 4), (1, 4)), "1"),
        (Layout((M, N), (N, 1)), Layout((4, 4), (4, 1)), "1"),
        (Layout(N, 1), Layout(8, 1), "1"),
        (Layout(N8, 1), Layout(16, 1), "8"),
        (Layout(N8, 1), Layout(4, 1), "4"),
        (Layout((4, N), (1, 4)), Layout(16, 1), "4"),
        (Layout((4, N), (1, 8)), Layout((4, N), (1, 4)), "4"),
        (Layout((M, N), (N, 1)), Layout((M, N), (N, 1)), "m * n"),
        (Layout((M, N), (1, M)), Layout(M, 1), "m"),
    ],
)
def test_of_symbols_what_is_certain_counts(a: Layout, b: Layout, wanted: str) -> None:
    found = fl.max_common_vector(a, b)
    reordered = {"m * n": "n * m"}.get(wanted, wanted)
    assert str(found) in (wanted, reordered)
    assert str(fl.max_common_vector(b, a)) in (wanted, reordered)

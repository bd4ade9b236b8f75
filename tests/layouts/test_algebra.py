"""Coalesce, composition, complement, inverses and recast, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from layout_definitions import (
    RELAXED,
    any_layout,
    compact,
    count,
    flat,
    index_at,
    indices,
    is_refinement,
    layouts,
    nested,
    symbolic,
    tilers,
    with_values,
)

from ferrule.language import layouts as fl
from ferrule.language.layouts import Layout, LayoutError, make_layout
from ferrule.language.layouts.inverse import exact_complement
from ferrule.specs import sym_int

N, M = sym_int(symbol="n"), sym_int(symbol="m")
N8 = sym_int(symbol="n8", divisibility=8)


# ---- coalesce ----


@settings(RELAXED)
@given(layouts)
def test_coalesce_is_the_same_function_in_few_modes(layout: Layout) -> None:
    result = fl.coalesce(layout)
    assert indices(result) == indices(layout)
    sizes, strides = list(flat(result.shape)), list(flat(result.stride))
    assert fl.depth(result) <= 1
    assert 1 not in sizes or sizes == [1]
    pairs = list(zip(sizes, strides, strict=True))
    assert not any(s * d == after for (s, d), (_, after) in zip(pairs, pairs[1:], strict=False))


@settings(RELAXED)
@given(compact(st.tuples(st.integers(1, 4), st.tuples(st.integers(1, 4), st.integers(1, 4)))))
def test_coalesce_by_mode_keeps_the_modes(layout: Layout) -> None:
    result = fl.coalesce(layout, target_profile=(1, 1))
    assert fl.rank(result) == 2
    for got, wanted in zip((result[0], result[1]), (layout[0], layout[1]), strict=True):
        assert indices(got) == indices(wanted)


def test_symbolic_sizes_coalesce_where_they_are_products() -> None:
    assert str(fl.coalesce(make_layout((N, (M, 4))))) == "n * m * 4:1"
    assert str(fl.coalesce(make_layout((N, M), stride=(M, 1)))) == "(n,m):(m,1)"
    assert str(fl.coalesce(make_layout((M, N), stride=(1, M + 0)))) == "m * n:1"
    assert str(fl.coalesce(make_layout((1, N, 1), stride=(7, 3, 9)))) == "n:3"


# ---- composition ----


@settings(RELAXED)
@given(layouts, tilers)
def test_composition_is_one_function_after_the_other(lhs: Layout, rhs: Layout) -> None:
    try:
        result = fl.composition(lhs, rhs)
    except LayoutError:
        assume(False)
    assert is_refinement(result.shape, rhs.shape)
    domain, after = indices(lhs), indices(result)
    for number, inner in enumerate(indices(rhs)):
        if inner < len(domain):
            assert after[number] == domain[inner]


@settings(RELAXED)
@given(any_layout(of=st.integers(2, 12)), any_layout())
def test_composition_with_one_mode_always_exists(lhs: Layout, rhs: Layout) -> None:
    stride = lhs.stride
    assert indices(fl.composition(lhs, rhs)) == [i * stride for i in indices(rhs)]  # type: ignore[operator]


powers = st.sampled_from([1, 2, 4, 8])


@settings(RELAXED)
@given(any_layout(of=nested(powers)), powers, powers)
def test_composition_exists_where_every_size_divides_every_larger(
    lhs: Layout, size: int, stride: int
) -> None:
    result = fl.composition(lhs, Layout(size, stride))
    domain = indices(lhs)
    reached = [domain[i * stride] for i in range(size) if i * stride < len(domain)]
    assert indices(result)[: len(reached)] == reached


@settings(RELAXED)
@given(symbolic(), st.data())
def test_symbolic_composition_agrees_with_numbers(drawn: Any, data: Any) -> None:
    layout, values = drawn
    tiler = data.draw(compact())
    try:
        result = fl.composition(layout, tiler)
    except LayoutError:
        event("refused")
        assume(False)
    event("composed")
    domain = indices(with_values(layout, values))
    after = indices(with_values(result, values))
    for number, inner in enumerate(indices(tiler)):
        if inner < len(domain):
            assert after[number] == domain[inner]


@pytest.mark.parametrize(
    ("lhs", "rhs", "wanted"),
    [
        (Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)), "((2,2),3):((24,2),8)"),
        (Layout(20, 2), Layout((5, 4), (4, 1)), "(5,4):(8,2)"),
        (Layout((10, 2), (16, 4)), Layout((5, 4), (1, 5)), "(5,(2,2)):(16,(80,4))"),
        (Layout((N8, M), (M, 1)), Layout(4, 1), "4:m"),
        (Layout((N8, M), (M, 1)), Layout((4, 2), (1, 4)), "(4,2):(m,m * 4)"),
        (Layout((N8, M), (M, 1)), Layout(M, N8), "m:1"),
        (Layout((4, N), (1, 8)), Layout((2, N), (2, 4)), "(2,n):(2,8)"),
        (Layout((N, M), (M, 1)), (Layout(4, 2), Layout(8, 1)), "(4,8):(m * 2,1)"),
        (Layout((N, M), (M, 1)), (None, 8), "(n,8):(m,1)"),
        (Layout((N, M), (M, 1)), (4,), "(4):(m)"),
        (Layout((8, 12), (12, 1)), (4,), "(4):(12)"),
        (Layout((8, 12), (12, 1)), (Layout(4, 2),), "(4):(24)"),
        (Layout(1, 5), (4,), "(4):(5)"),
        (Layout((4, 1), (1, -4)), Layout((2, 6), (1, 2)), "(2,(2,3)):(1,(2,-4))"),
        (Layout(12, 1), Layout(4, -1), "4:-1"),
        (Layout((4, 3), (1, 5)), Layout(3, -4), "3:-5"),
        (Layout((4, 3), (1, 5)), Layout(6, -2), "(2,3):(-2,-5)"),
        (Layout((4, 3), (1, 4)), Layout((4, 3), (-1, 4)), "(4,3):(-1,4)"),
    ],
)
def test_composition_of_known_layouts(lhs: Layout, rhs: Any, wanted: str) -> None:
    assert str(fl.composition(lhs, rhs)) == wanted


@pytest.mark.parametrize(
    ("lhs", "rhs", "message"),
    [
        (Layout((6, 2), (1, 8)), 8, "(6,2):(1,8) is not divided evenly by 8:1 of 8:1"),
        (Layout((N, M), (M, 1)), 4, "it does not step evenly through the mode n:m"),
        (Layout((4, 3), (1, 8)), Layout((3, 3), (1, 1)), "are not known to stay within the mode"),
        (Layout((N8, M), (M, 1)), Layout((4, 4), (1, 2)), "not known to stay within the mode n8:m"),
        (
            Layout((4, 3), (1, 8)),
            Layout((2, 2), (-1, 4)),
            "it walks backwards over more than one mode, others forwards",
        ),
        (Layout(4, 1), (2, 2), "the tiler has 2 modes, but 4:1 has 1"),
        (Layout(4, 1), "x", "expected a layout, a size, or a tuple of them, but got 'x'"),
    ],
)
def test_what_cannot_be_composed_is_named(lhs: Layout, rhs: Any, message: str) -> None:
    with pytest.raises(LayoutError) as error:
        fl.composition(lhs, rhs)
    assert message in str(error.value)


# ---- complement and inverses ----


@settings(RELAXED)
@given(tilers, st.integers(1, 60))
def test_an_exact_complement_fills_every_index_once_and_rises(
    layout: Layout, cotarget: int
) -> None:
    try:
        result = exact_complement(layout, cotarget, operation="logical_divide")
    except LayoutError:
        assume(False)
    assert fl.complement(layout, cotarget) == result
    rising = indices(result)
    assert rising == sorted(set(rising))
    block = sorted(set(indices(layout)))
    both = sorted(i + j for i in block for j in rising)
    assert both == list(range(len(both)))
    # It covers the target, and no more than rounding up to whole blocks needs.
    modes = zip(flat(layout.shape), flat(layout.stride), strict=True)
    reach = max((size * stride for size, stride in modes if size > 1 and stride > 0), default=1)
    assert len(both) == -(-cotarget // reach) * reach


@settings(RELAXED)
@given(tilers, st.integers(1, 60))
def test_a_complement_repeats_without_overlap_and_rises(layout: Layout, cotarget: int) -> None:
    try:
        result = fl.complement(layout, cotarget)
    except LayoutError:
        assume(False)
    rising, block = indices(result), set(indices(layout))
    assert rising == sorted(set(rising))
    both = [i + j for i in block for j in rising]
    assert len(set(both)) == len(both)
    assert max(both) + 1 >= cotarget - max(block)


@settings(RELAXED)
@given(compact())
def test_a_compact_layout_always_has_a_complement(layout: Layout) -> None:
    rest = fl.complement(layout, 50)
    reached = {i + j for i in indices(layout) for j in indices(rest)}
    assert len(reached) == fl.size(layout) * fl.size(rest) >= 50
    assert set(range(50)) <= reached


@pytest.mark.parametrize(
    ("layout", "cotarget", "wanted"),
    [
        (Layout(4, 1), 24, "6:4"),
        (Layout(6, 4), 24, "4:1"),
        (Layout((4, 6), (1, 4)), 24, "1:0"),
        (Layout(4, 2), 24, "(2,3):(1,8)"),
        (Layout((2, 4), (1, 6)), 24, "3:2"),
        (Layout((2, 2), (1, 6)), 24, "(3,2):(2,12)"),
        (Layout(4, 1), N, "ceil_div(n, 4):4"),
        (Layout(4, 1), N8, "n8 // 4:4"),
        (Layout((4, N), (1, 4)), N * 8, "2:n * 4"),
        (Layout(M, N), N * M, "n:1"),
        (Layout((3, 4), (0, 1)), 8, "2:4"),
        (Layout((4, 6), (1, 6)), 24, "1:0"),
        (Layout((4, 10), (1, 10)), 40, "2:4"),
        (Layout((4, 2), (1, 10)), 20, "2:4"),
        (Layout((2, 2), (8, 3)), 64, "(3,4):(1,16)"),
        (Layout(((4, 6), 3, 12), ((1, 0), 30, 180)), 96, "(7,2):(4,90)"),
    ],
)
def test_complement_of_known_layouts(layout: Layout, cotarget: Any, wanted: str) -> None:
    assert str(fl.complement(layout, cotarget)) == wanted


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout((4, 2), (1, 1)), "the modes of (4,2):(1,1) are not known to nest"),
        (Layout((4, 4), (1, 2)), "each stride must be at least size times stride"),
        (Layout((4, N), (1, M)), "the modes of (4,n):(1,m) are not known to nest"),
        (Layout(2, -1), "2:-1 has a negative stride"),
    ],
)
def test_layouts_without_a_complement_are_named(layout: Layout, message: str) -> None:
    with pytest.raises(LayoutError) as error:
        fl.complement(layout, 24)
    assert message in str(error.value)


@settings(RELAXED)
@given(symbolic(), st.integers(1, 60))
def test_symbolic_complement_agrees_with_numbers(drawn: Any, cotarget: int) -> None:
    layout, values = drawn
    try:
        result = with_values(fl.complement(layout, cotarget), values)
    except LayoutError:
        assume(False)
    block = sorted(set(indices(with_values(layout, values))))
    both = sorted(i + j for i in block for j in indices(result))
    assert both == list(range(len(both)))
    assert len(both) >= cotarget


@settings(RELAXED)
@given(tilers)
def test_right_inverse_finds_the_coordinate_of_an_index(layout: Layout) -> None:
    inverse = fl.right_inverse(layout)
    domain = indices(layout)
    assert [domain[number] for number in indices(inverse)] == list(range(fl.size(inverse)))


@settings(RELAXED)
@given(compact())
def test_right_inverse_of_a_compact_layout_is_whole(layout: Layout) -> None:
    if sorted(indices(layout)) == list(range(count(layout.shape))):
        assert fl.size(fl.right_inverse(layout)) == fl.size(layout)


@settings(RELAXED)
@given(compact())
def test_left_inverse_takes_an_index_back(layout: Layout) -> None:
    inverse = fl.left_inverse(layout)
    for number, index in enumerate(indices(layout)):
        assert inverse(index) % fl.size(layout) == number


@settings(RELAXED)
@given(any_layout())
def test_left_inverse_of_any_layout_is_one_or_is_refused(layout: Layout) -> None:
    try:
        inverse = fl.left_inverse(layout)
    except LayoutError:
        assume(False)
    whole = [layout(number) for number in range(fl.size(layout))]
    for number, index in enumerate(whole):
        back = index_at(inverse, index)
        assert whole[back] == index
        if whole.count(index) == 1:
            assert back == number


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout((4, 8), (1, 8)), "(8,8):(1,4)"),
        (Layout((4, 8), (2, 8)), "(2,32):(0,1)"),
        (Layout(4, 2), "(2,4):(0,1)"),
        (Layout((4, 2), (2, 1)), "(2,4):(4,1)"),
        (Layout((4, (1, 4)), (1, (6, 6))), "(6,4):(1,4)"),
        (Layout((4, 1, (4, 12)), (6, 4, (1, 24))), "(6,4,12):(4,1,16)"),
        (Layout((2, 4), (0, 2)), "(2,4):(0,2)"),
        (Layout((2, 4), (1, 0)), "2:1"),
        (Layout((2, 2, 4), (1, 0, 2)), "(2,4):(1,4)"),
        (Layout(4, 0), "1:0"),
    ],
)
def test_left_inverse_of_known_layouts(layout: Layout, wanted: str) -> None:
    assert str(fl.left_inverse(layout)) == wanted


def test_symbolic_inverses() -> None:
    row_major = make_layout((N, M), stride=(M, 1))
    assert str(fl.right_inverse(row_major)) == "(m,n):(n,1)"
    assert str(fl.left_inverse(row_major)) == "(m,n):(n,1)"
    assert str(fl.right_inverse(make_layout((N, M), stride=(1, N * 2)))) == "n:1"
    for layout in (Layout((4, 2), (2, 9)), Layout((2, 2), (1, 1)), Layout((4, N), (1, M))):
        with pytest.raises(LayoutError, match="are not known to nest"):
            fl.left_inverse(layout)


@settings(RELAXED)
@given(any_layout())
def test_nullspace_has_the_coordinates_of_index_0(layout: Layout) -> None:
    found = fl.nullspace(layout)
    assert {layout(number) for number in indices(found)} == {0}
    strides = zip(flat(layout.shape), flat(layout.stride), strict=True)
    assert fl.size(found) == math.prod(size for size, stride in strides if stride == 0)


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout((2, 4), (1, 0)), "4:2"),
        (Layout((2, 4, 3), (0, 1, 0)), "(2,3):(1,8)"),
        (Layout((2, 4), (1, 2)), "1:0"),
        (Layout(4, 0), "4:1"),
    ],
)
def test_nullspace_of_known_layouts(layout: Layout, wanted: str) -> None:
    assert str(fl.nullspace(layout)) == wanted


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        (Layout((4, 8), (1, 4)), Layout((4, 8), (1, 4)), "32:1"),
        (Layout((4, 8), (1, 4)), Layout((4, 8), (1, 8)), "4:1"),
        (Layout((4, 8), (1, 4)), Layout((4, 8), (2, 8)), "1:0"),
        (Layout((2, 2, 4), (1, 2, 4)), Layout((2, 8), (1, 2)), "16:1"),
        (Layout((8, 4), (4, 1)), Layout((8, 4), (4, 1)), "(4,8):(8,1)"),
        (Layout((8, 4), (4, 1)), Layout((4, 8), (1, 4)), "1:0"),
    ],
)
def test_max_common_layout(a: Layout, b: Layout, wanted: str) -> None:
    common = fl.max_common_layout(a, b)
    assert str(common) == wanted
    assert [a(i) for i in indices(common)] == [b(i) for i in indices(common)]
    assert [a(i) for i in indices(common)] == list(range(fl.size(common)))
    assert fl.max_common_vector(a, b) == fl.size(common)


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout((4, 8), (8, 1)), "(4,8):(8,1)"),
        (Layout((4, 8, 2), (0, 1, 16)), "(4,8,2):(0,1,8)"),
        (Layout(((2, 2), 8, 1), ((1, 16), 2, 77)), "((2,2),8,1):((1,16),2,0)"),
        (Layout((4, 8), (-1, 4)), "(4,8):(1,4)"),
        (Layout((4, 8), (3, 3)), "(4,8):(1,4)"),
    ],
)
def test_make_layout_like(layout: Layout, wanted: str) -> None:
    assert str(fl.make_layout_like(layout)) == wanted


def test_filter_has_each_index_once() -> None:
    assert str(fl.filter(Layout((4, (3, 2), 2), (1, (0, 4), 8)))) == "16:1"
    assert str(fl.filter(Layout((2, 3), (0, 0)))) == "1:0"
    assert str(fl.filter(Layout((2, N), (0, 3)))) == "n:3"


def test_filter_zeros_makes_repeated_modes_size_1() -> None:
    assert str(fl.filter_zeros(Layout((2, (3, 4)), (0, (1, 0))))) == "(1,(3,1)):(0,(1,0))"


# ---- recast ----


@settings(RELAXED)
@given(compact(), st.sampled_from([1, 2, 4]))
def test_recast_to_larger_elements_takes_neighbours_together(layout: Layout, group: int) -> None:
    try:
        result = fl.recast_layout(8 * group, 8, layout)
    except LayoutError:
        assume(False)
    assert sorted(set(indices(result))) == sorted({i // group for i in indices(layout)})
    assert fl.size(result) * group == fl.size(layout)


@settings(RELAXED)
@given(compact(), st.sampled_from([1, 2, 4]))
def test_recast_to_smaller_elements_has_all_their_parts(layout: Layout, parts: int) -> None:
    try:
        result = fl.recast_layout(8, 8 * parts, layout)
    except LayoutError:
        assume(False)
    wanted = sorted(i * parts + k for i in indices(layout) for k in range(parts))
    assert sorted(indices(result)) == wanted


@pytest.mark.parametrize(
    ("new", "old", "layout", "wanted"),
    [
        (16, 32, make_layout((N, M), stride=(M, 1)), "(n,m * 2):(m * 2,1)"),
        (64, 16, make_layout((N, N8), stride=(N8, 1)), "(n,n8 // 4):(n8 // 4,1)"),
        (32, 32, make_layout((N, M)), "(n,m):(1,n)"),
        (32, 8, make_layout((2, 8), stride=(2, 1)), None),
        (24, 16, make_layout(12), "8:1"),
    ],
)
def test_recast_of_known_layouts(new: int, old: int, layout: Layout, wanted: str | None) -> None:
    if wanted is None:
        with pytest.raises(LayoutError, match="recast_layout"):
            fl.recast_layout(new, old, layout)
    else:
        assert str(fl.recast_layout(new, old, layout)) == wanted

"""Coordinates, slices and what a layout has, against enumeration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_definitions import (
    RELAXED,
    compact,
    count,
    flat,
    index_at,
    indices,
    layouts,
    same_profile,
    shapes,
    symbolic,
    with_values,
)

from ferrule.language import layouts as fl
from ferrule.language.layouts import Layout, make_layout
from ferrule.specs import sym_int

N = sym_int(symbol="n0")


@settings(RELAXED)
@given(layouts)
def test_a_number_counts_the_leaves_from_the_left(layout: Layout) -> None:
    assert [layout(i) for i in range(fl.size(layout))] == indices(layout)


@settings(RELAXED)
@given(layouts, st.integers(0, 400))
def test_a_number_beyond_the_domain_goes_on_in_the_last_leaf_above_1(
    layout: Layout, number: int
) -> None:
    kept = [(s, d) for s, d in zip(flat(layout.shape), flat(layout.stride), strict=True) if s != 1]
    if kept:
        shape, stride = zip(*kept, strict=True)
        assert layout(number) == index_at(Layout(shape, stride), number)


@settings(RELAXED)
@given(shapes)
def test_idx2crd_and_crd2idx_are_inverse(shape: Any) -> None:
    counting = make_layout(shape)
    for number in range(count(shape)):
        coordinate = fl.idx2crd(number, shape)
        assert same_profile(coordinate, shape)
        assert fl.crd2idx(coordinate, counting) == number


@settings(RELAXED)
@given(layouts)
def test_mode_coordinates_give_the_same_index(layout: Layout) -> None:
    """A number for each top-level mode, as well as one for each leaf."""
    if not isinstance(layout.shape, tuple):
        return
    sizes = fl.product_each(layout.shape)
    for number, wanted in enumerate(indices(layout)):
        assert layout(fl.idx2crd(number, sizes)) == wanted


@settings(RELAXED)
@given(layouts)
def test_size_rank_depth_and_cosize(layout: Layout) -> None:
    reached = indices(layout)
    assert fl.size(layout) == len(reached)
    assert fl.cosize(layout) == max(reached) - min(reached) + 1
    assert fl.rank(layout) == (len(layout.shape) if isinstance(layout.shape, tuple) else 1)


def test_size_and_get_take_a_path_to_a_mode() -> None:
    layout = make_layout((4, (2, 3)), stride=(1, (4, 8)))
    assert (fl.size(layout), fl.size(layout, mode=[1]), fl.size(layout, mode=[1, 1])) == (24, 6, 3)
    assert fl.get(layout, mode=[1, 0]) == Layout(2, 4)
    assert fl.get((4, (2, 3)), mode=[1]) == (2, 3)
    assert (fl.depth(layout), fl.depth(layout, mode=[0]), fl.rank(layout, mode=[1])) == (2, 0, 2)
    assert layout[1] == Layout((2, 3), (4, 8))
    assert fl.shape(layout, mode=[1, 1]) == 3


@settings(RELAXED)
@given(layouts, st.data())
def test_a_slice_keeps_modes_and_begins_at_the_coordinate(layout: Layout, data: Any) -> None:
    def draw(mode: Any) -> Any:
        choice = data.draw(st.sampled_from(["free", "number", "inside"]))
        if choice == "free":
            return None
        if choice == "number" or not isinstance(mode, tuple):
            return data.draw(st.integers(0, count(mode) - 1))
        return tuple(draw(item) for item in mode)

    coordinate = draw(layout.shape)
    part, offset = fl.slice_and_offset(layout, coordinate)
    assert sorted(offset + i for i in indices(part)) == sorted(_brute(layout, coordinate))


def _brute(layout: Layout, coordinate: Any) -> list[int]:
    """The indices of all coordinates that agree with this one."""

    def agrees(full: Any, wanted: Any, shape: Any) -> bool:
        if wanted is None:
            return True
        if isinstance(wanted, tuple):
            return all(map(agrees, full, wanted, shape))
        return fl.crd2idx(full, make_layout(shape)) == wanted

    numbers = range(count(layout.shape))
    every = [fl.idx2crd(number, layout.shape) for number in numbers]
    return [layout(each) for each in every if agrees(each, coordinate, layout.shape)]


def test_the_modes_that_a_slice_keeps_stand_side_by_side() -> None:
    layout = make_layout(((2, 3), (4, 5)), stride=((1, 2), (6, 24)))
    assert str(fl.slice_(layout, (None, (1, None)))) == "((2,3),5):((1,2),24)"
    assert str(fl.slice_(layout, ((None, 0), (None, 1)))) == "(2,4):(1,6)"
    assert layout((0, 1), (None, 2)) == Layout((4,), (6,))
    assert fl.slice_and_offset(layout, (None, 3)).offset == 18


def test_dice_keeps_what_has_no_none() -> None:
    layout = make_layout((2, 3, (4, 5)))
    assert fl.dice(layout, (1, None, (None, 1))) == Layout((2, 5), (1, 24))
    assert fl.dice((8, 16, 32), (1, None, 1)) == (8, 32)


@settings(RELAXED)
@given(symbolic())
def test_symbolic_coordinates_agree_with_numbers(drawn: Any) -> None:
    layout, values = drawn
    wanted = indices(with_values(layout, values))
    found = [with_values(layout(i), values) for i in range(len(wanted))]
    assert found == wanted
    assert with_values(fl.size(layout), values) == len(wanted)
    assert with_values(fl.cosize(layout), values) == max(wanted) + 1


@settings(RELAXED)
@given(compact())
def test_ordered_layouts_count_in_the_order(layout: Layout) -> None:
    shape = tuple(flat(layout.shape))
    order = tuple(sorted(range(len(shape)), key=lambda i: tuple(flat(layout.stride))[i]))
    ranks = tuple(order.index(i) for i in range(len(shape)))
    ordered = fl.make_ordered_layout(shape, ranks)
    assert sorted(indices(ordered)) == list(range(count(shape)))
    known = [(r, d) for r, s, d in zip(ranks, shape, ordered.stride, strict=True) if s != 1]
    assert [d for _, d in sorted(known)] == sorted(d for _, d in known)


def test_an_order_can_stop_at_a_mode() -> None:
    assert str(fl.make_ordered_layout(((2, 2), 3), (1, 0))) == "((2,2),3):((3,6),1)"
    assert str(fl.make_ordered_layout((N, 4), (1, 0))) == "(n0,4):(4,1)"


def test_text_is_shape_and_stride() -> None:
    layout = make_layout((4, (2, N)), stride=(1, (4, 8)))
    assert str(layout) == repr(layout) == "(4,(2,n0)):(1,(4,8))"
    assert str(make_layout(N * 4)) == "n0 * 4:1"
    assert str(make_layout(8)) == "8:1"
    assert str(make_layout((1, N, 3))) == "(1,n0,3):(0,1,n0)"


def test_lists_are_tuples_and_layouts_join() -> None:
    assert make_layout([2, [3, 4]]) == make_layout((2, (3, 4)))
    joined = make_layout(Layout(2, 1), Layout((3, 4), (8, 2)))
    assert str(joined) == "(2,(3,4)):(1,(8,2))"


def test_modes_are_taken_apart_and_put_together() -> None:
    layout = make_layout((2, 3, (4, 5)))
    assert str(fl.select(layout, [2, 0])) == "((4,5),2):((6,24),1)"
    assert fl.select(layout, 2) == fl.select(layout, [2])
    assert str(fl.group_modes(layout, 0, 2)) == "((2,3),(4,5)):((1,2),(6,24))"
    assert str(fl.group_modes(layout, 1, -1)) == "(2,(3,(4,5))):(1,(2,(6,24)))"
    assert str(fl.flatten(layout)) == "(2,3,4,5):(1,2,6,24)"
    assert fl.flatten((1, (2, 3))) == (1, 2, 3)
    assert str(fl.append(Layout(4, 1), Layout(1, 0), 3)) == "(4,1,1):(1,0,0)"
    assert str(fl.prepend(layout, Layout(7, 0))) == "(7,2,3,(4,5)):(0,1,2,(6,24))"
    assert fl.append((2, 3), 4) == (2, 3, 4)


def test_ceil_div_goes_by_mode() -> None:
    assert fl.ceil_div((10, 7), (4, 2)) == (3, 4)
    assert fl.ceil_div((10, 7, 5), (4,)) == (3, 7, 5)
    assert fl.ceil_div(10, 4) == 3
    assert str(fl.ceil_div(N, 4)) == "ceil_div(n0, 4)"
    assert str(fl.ceil_div(sym_int(symbol="m", divisibility=8), 4)) == "m // 4"


def test_profiles_are_compared() -> None:
    assert fl.is_congruent((1, (2, 3)), (4, (5, 6)))
    assert not fl.is_congruent((1, (2, 3)), (4, 5))
    assert fl.is_weakly_congruent((1, 2), (4, (5, 6)))
    assert not fl.is_weakly_congruent((1, (2, 3)), (4, 5))
    assert fl.is_static(make_layout((2, 3))) and not fl.is_static(make_layout((2, N)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout((2, 3), 1), "the shape (2,3) and the stride 1 have different profiles"),
        (lambda: make_layout((2, -1)), "the shape (2,-1) has the negative size -1"),
        (lambda: make_layout((2, 1.5)), "expected ints, symbolic ints, or tuples of them"),
        (lambda: make_layout((2, True)), "but got True"),
        (lambda: make_layout(2, 3), "expected one shape, or layouts, but got 2 arguments"),
        (lambda: make_layout((2, 3))((1, 2, 3)), "(1,2,3) does not fit the shape (2,3)"),
        (lambda: make_layout((2, 3))((1, (0, 1))), "(0,1) does not fit the shape 3"),
        (lambda: fl.size((2, 3), mode=[2]), "there is no mode 2 in (2,3), of rank 2"),
        (lambda: fl.select((2, 3), [5]), "there is no mode 5 in (2,3)"),
        (lambda: fl.group_modes((2, 3), 1, 4), "there are no modes 1 to 4 in (2,3)"),
        (lambda: fl.append((2, 3), 4, 1), "(2,3) has more than 1 modes"),
        (lambda: fl.append(make_layout(4), 4), "4 cannot be a mode of 4:1"),
        (lambda: fl.dice((2, 3), (1,)), "(1) does not fit (2, 3)"),
        (lambda: fl.ceil_div(4, 0), "the divisor must be at least 1, but got 0"),
        (lambda: fl.ceil_div(4, (2, 2)), "(2,2) has more modes than 4"),
        (lambda: fl.make_ordered_layout((2, 3), (0, 1, 2)), "the order (0,1,2) does not fit"),
        (lambda: fl.cosize((2, 3)), "expected a layout, but got (2, 3)"),
        (lambda: make_layout((1 << 62, 4)), "overflows 64 bits"),
    ],
)
def test_what_is_wrong_is_named(make: Any, message: str) -> None:
    with pytest.raises(fl.LayoutError) as error:
        make()
    assert message in str(error.value)

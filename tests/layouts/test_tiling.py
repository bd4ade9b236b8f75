"""Divisions, products, tiles and partitions, against their definitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from layout_definitions import (
    RELAXED,
    compact,
    count,
    flat,
    indices,
    is_refinement,
    layouts,
    symbolic,
    tilers,
    with_values,
)

from ferrule.language import layouts as fl
from ferrule.language.layouts import Layout, LayoutError, make_layout
from ferrule.specs import sym_int

N, M = sym_int(symbol="n"), sym_int(symbol="m")
pairs = st.tuples(st.integers(1, 6), st.integers(1, 6))
flat_pairs = compact(pairs)
small_pairs = compact(st.tuples(st.integers(1, 4), st.integers(1, 4)))


# ---- division ----


@settings(RELAXED)
@given(layouts, tilers)
def test_logical_divide_takes_the_tile_and_which_tile(layout: Layout, tiler: Layout) -> None:
    try:
        tile, rest = (fl.logical_divide(layout, tiler)[i] for i in (0, 1))
    except LayoutError:
        assume(False)
    event("divided")
    domain, inner = indices(layout), indices(tiler)
    outer = indices(fl.complement(tiler, fl.size(layout)))
    assert is_refinement(tile.shape, tiler.shape)
    for j, second in enumerate(outer):
        for i, first in enumerate(inner):
            if first + second < len(domain):
                assert indices(tile)[i] + indices(rest)[j] == domain[first + second]


@settings(RELAXED)
@given(layouts, tilers)
def test_division_covers_the_layout(layout: Layout, tiler: Layout) -> None:
    try:
        divided = fl.logical_divide(layout, tiler)
    except LayoutError:
        assume(False)
    assert set(indices(layout)) <= set(indices(divided))


@settings(RELAXED)
@given(flat_pairs, pairs)
def test_division_by_mode_always_exists(layout: Layout, tile: tuple[int, int]) -> None:
    """Every coordinate of the layout is one of a tile and one among the tiles."""
    divided = fl.zipped_divide(layout, tile)
    rows, columns = layout.shape  # type: ignore[misc]
    assert divided.shape == (tile, (-(-rows // tile[0]), -(-columns // tile[1])))  # type: ignore[operator]
    for i in range(rows):  # type: ignore[arg-type]
        for j in range(columns):  # type: ignore[arg-type]
            inner, outer = (i % tile[0], j % tile[1]), (i // tile[0], j // tile[1])
            assert divided((inner, outer)) == layout((i, j))


@settings(RELAXED)
@given(flat_pairs, pairs)
def test_the_four_divisions_are_one_function(layout: Layout, tile: tuple[int, int]) -> None:
    logical, zipped = fl.logical_divide(layout, tile), fl.zipped_divide(layout, tile)
    tiled, flattened = fl.tiled_divide(layout, tile), fl.flat_divide(layout, tile)
    ((t0, r0), (t1, r1)) = logical.shape  # type: ignore[misc]
    assert zipped.shape == ((t0, t1), (r0, r1))
    assert tiled.shape == ((t0, t1), r0, r1)
    assert flattened.shape == (t0, t1, r0, r1)
    for number in range(count(flattened.shape)):
        a, b, c, d = fl.idx2crd(number, flattened)
        wanted = flattened((a, b, c, d))
        assert zipped(((a, b), (c, d))) == tiled(((a, b), c, d)) == wanted
        assert logical(((a, c), (b, d))) == wanted


def test_modes_without_a_tiler_stay() -> None:
    layout = make_layout((8, 6, 5))
    assert str(fl.logical_divide(layout, (4, None))) == "((4,2),6,5):((1,4),8,48)"
    assert str(fl.zipped_divide(layout, (4, 3))) == "((4,3),(2,2,5)):((1,8),(4,24,48))"
    assert str(fl.zipped_divide(layout, (4, None))) == "((4,6),(2,1,5)):((1,8),(4,0,48))"
    assert str(fl.tiled_divide(layout, (4, 3))) == "((4,3),2,2,5):((1,8),4,24,48)"
    assert str(fl.flat_divide(layout, (4, 3))) == "(4,3,2,2,5):(1,8,4,24,48)"


def test_division_of_a_known_layout() -> None:
    layout = Layout((9, (4, 8)), (59, (13, 1)))
    tiler = (Layout(3, 3), Layout((2, 4), (1, 8)))
    wanted = "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))"
    assert str(fl.logical_divide(layout, tiler)) == wanted
    wanted = "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))"
    assert str(fl.zipped_divide(layout, tiler)) == wanted


def test_symbolic_division() -> None:
    row_major = make_layout((N, M), stride=(M, 1))
    wanted = "((4,8),(ceil_div(n, 4),ceil_div(m, 8))):((m,1),(m * 4,8))"
    assert str(fl.zipped_divide(row_major, (4, 8))) == wanted
    assert str(fl.zipped_divide(make_layout(N), 4)) == "(4,ceil_div(n, 4)):(1,4)"
    blocks = sym_int(symbol="b", divisibility=4)
    assert str(fl.zipped_divide(make_layout(N * 8), 8)) == "(8,n):(1,8)"
    assert str(fl.zipped_divide(make_layout(blocks * 2), 8)) == "(8,b // 4):(1,8)"


@settings(RELAXED)
@given(symbolic(pairs), pairs)
def test_symbolic_division_agrees_with_numbers(drawn: Any, tile: tuple[int, int]) -> None:
    layout, values = drawn
    divided = with_values(fl.zipped_divide(layout, tile), values)
    plain = with_values(layout, values)
    rows, columns = plain.shape
    for i in range(rows):
        for j in range(columns):
            inner, outer = (i % tile[0], j % tile[1]), (i // tile[0], j // tile[1])
            assert divided((inner, outer)) == plain((i, j))


@settings(RELAXED)
@given(symbolic(), st.sampled_from([1, 2, 3, 4, 6]))
def test_symbolic_division_of_the_whole_agrees_with_numbers(drawn: Any, tile: int) -> None:
    layout, values = drawn
    try:
        divided = with_values(fl.logical_divide(layout, tile), values)
    except LayoutError:
        assume(False)
    plain = indices(with_values(layout, values))
    assert [divided((i % tile, i // tile)) for i in range(len(plain))] == plain


@pytest.mark.parametrize(
    ("divide", "message"),
    [
        (lambda: fl.zipped_divide(make_layout(4), (2, 2)), "zipped_divide: the tiler has 2 modes"),
        (lambda: fl.logical_divide(Layout((N, M), (M, 1)), 4), "logical_divide: (n,m):(m,1) is"),
        (lambda: fl.flat_divide(Layout((N, M), (M, 1)), 4), "divide mode by mode with a tuple"),
        (lambda: fl.tiled_divide(make_layout(8), Layout((2, 2), (1, 1))), "not known to nest"),
        (lambda: fl.logical_divide(make_layout(8), "x"), "but got 'x'"),
        (lambda: fl.local_tile(make_layout(8), (2,), (0, 0)), "2 coordinates are given"),
        (
            lambda: fl.local_partition(make_layout(8), Layout(2, 0), 0),
            "2:0 gives many threads one number",
        ),
    ],
)
def test_what_cannot_be_divided_is_named(divide: Any, message: str) -> None:
    with pytest.raises(LayoutError) as error:
        divide()
    assert message in str(error.value)


# ---- products ----


@settings(RELAXED)
@given(compact(), compact())
def test_logical_product_repeats_the_block_at_the_tilers_indices(
    block: Layout, tiler: Layout
) -> None:
    try:
        product = fl.logical_product(block, tiler)
    except LayoutError:
        assume(False)
    event("multiplied")
    assert product[0] == block
    assert is_refinement(product[1].shape, tiler.shape)
    starts = indices(fl.complement(block, fl.size(block) * fl.cosize(tiler)))
    assert indices(product[1]) == [starts[i] for i in indices(tiler)]
    assert len(set(indices(product))) == fl.size(block) * fl.size(tiler)


@settings(RELAXED)
@given(small_pairs, small_pairs)
def test_blocked_and_raked_products_order_the_modes(block: Layout, tiler: Layout) -> None:
    try:
        product = fl.logical_product(block, tiler)
    except LayoutError:
        assume(False)
    blocked, raked = fl.blocked_product(block, tiler), fl.raked_product(block, tiler)
    (b0, b1), (t0, t1) = block.shape, tiler.shape  # type: ignore[misc]
    for number in range(count(product.shape)):
        i0, i1, j0, j1 = fl.idx2crd(number, (b0, b1, t0, t1))
        wanted = product(((i0, i1), (j0, j1)))
        assert blocked(((i0, j0), (i1, j1))) == wanted
        assert raked((j0 + t0 * i0, j1 + t1 * i1)) == wanted
    assert count(blocked.shape[0]) == b0 * t0  # type: ignore[index,operator]


def test_products_of_known_layouts() -> None:
    block, tiler = Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))
    assert str(fl.blocked_product(block, tiler)) == "((2,3),(5,4)):((5,10),(1,30))"
    assert str(fl.raked_product(block, tiler)) == "((3,2),(4,5)):((10,5),(30,1))"
    assert str(fl.raked_product(block, Layout(6, 1))) == "((6,2),5):((10,5),1)"
    assert (
        str(fl.raked_product(Layout((2, 2), (4, 1)), Layout((2, 2), (1, 2))))
        == "(4,(2,2)):(2,(8,1))"
    )
    assert str(fl.logical_product(Layout((4, 6), (1, 6)), Layout(2, 1))) == "((4,6),2):((1,6),36)"
    assert str(fl.logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))) == (
        "((2,2),(2,3)):((4,1),(2,8))"
    )
    assert str(fl.logical_product(make_layout(4), N)) == "(4,n):(1,4)"
    assert (
        str(fl.blocked_product(make_layout((2, 2)), make_layout(3)))
        == "((2,3),(2,1)):((1,4),(2,0))"
    )


def test_products_by_mode() -> None:
    block, by_mode = make_layout((2, 5), stride=(5, 1)), (3, Layout(4, 1))
    assert str(fl.logical_product(Layout((2, 5), (1, 2)), (3,))) == "((2,3),5):((1,2),2)"
    zipped = fl.zipped_product(block, by_mode)
    assert zipped.shape == ((2, 5), (3, 4))
    assert fl.tiled_product(block, by_mode).shape == ((2, 5), 3, 4)
    assert fl.flat_product(block, by_mode).shape == (2, 5, 3, 4)
    assert tuple(flat(fl.flat_product(block, by_mode).stride)) == tuple(flat(zipped.stride))


# ---- tiles and threads ----


@settings(RELAXED)
@given(flat_pairs, pairs, st.data())
def test_local_tile_is_one_tile(layout: Layout, tile: tuple[int, int], data: Any) -> None:
    rows, columns = layout.shape  # type: ignore[misc]
    tiles = tuple(-(-extent // t) for extent, t in zip((rows, columns), tile, strict=True))  # type: ignore[operator]
    at = tuple(data.draw(st.integers(0, extent - 1)) for extent in tiles)
    part, offset = fl.local_tile(layout, tile, at)
    assert part.shape == tile
    for i in range(tile[0]):
        for j in range(tile[1]):
            place = at[0] * tile[0] + i, at[1] * tile[1] + j
            if place[0] < rows and place[1] < columns:  # type: ignore[operator]
                assert offset + part((i, j)) == layout(place)


def test_local_tile_keeps_the_tiles_that_have_no_coordinate() -> None:
    layout = make_layout((8, 6), stride=(6, 1))
    assert fl.local_tile(layout, (4, 3), (1, None)) == (Layout((4, 3, 2), (6, 1, 3)), 24)
    assert fl.local_tile(layout, (4, 3), (1,)) == (Layout((4, 3, 2), (6, 1, 3)), 24)
    assert fl.local_tile(layout, (4, 3), 3) == (Layout((4, 3), (6, 1)), 27)
    assert fl.local_tile(make_layout(8), 4, 1) == (Layout((4,), (1,)), 4)


def test_local_tile_projects_tiler_and_coordinate() -> None:
    a, coordinate, tiler = make_layout((8, 6)), (1, 2, None), (4, 3, 2)
    whole = fl.local_tile(a, (4, 2), (1, None))
    assert fl.local_tile(a, tiler, coordinate, proj=(1, None, 1)) == whole


@settings(RELAXED)
@given(flat_pairs, small_pairs)
def test_local_partition_gives_each_element_to_one_thread(layout: Layout, threads: Layout) -> None:
    sizes = threads.shape
    count_of_threads = fl.size(threads)
    assume(sorted(indices(threads)) == list(range(count_of_threads)))
    rows, columns = layout.shape  # type: ignore[misc]
    assume(rows % sizes[0] == 0 and columns % sizes[1] == 0)  # type: ignore[index,operator]
    for i in range(sizes[0]):  # type: ignore[index,arg-type]
        for j in range(sizes[1]):  # type: ignore[index,arg-type]
            part, offset = fl.local_partition(layout, threads, threads((i, j)))
            mine = [
                layout((a, b))
                for b in range(j, columns, sizes[1])  # type: ignore[index,call-overload]
                for a in range(i, rows, sizes[0])  # type: ignore[index,call-overload]
            ]
            assert [offset + index for index in indices(part)] == mine


def test_local_partition_takes_a_shape_and_a_projection() -> None:
    layout = make_layout((8, 4), stride=(4, 1))
    part = fl.local_partition(layout, (2, 4), 3)
    assert part == (Layout((4, 1), (8, 0)), 5)
    assert fl.local_partition(make_layout(8), make_layout((4, 2)), 5, proj=(1, None)) == (
        Layout((2,), (4,)),
        1,
    )


def test_a_symbolic_coordinate_stays_in_the_offset() -> None:
    row_major = make_layout((N, M), stride=(M, 1))
    part, offset = fl.local_tile(row_major, (4, 8), (N, None))
    assert str(part) == "(4,8,ceil_div(m, 8)):(m,1,8)"
    assert str(offset) == "n * m * 4" or str(offset) == "n * (m * 4)"


@pytest.mark.parametrize(
    ("block", "shape", "order", "wanted"),
    [
        (Layout((4, 8), (1, 4)), (16, 32), (0, 1), "((4,4),(8,4)):((1,32),(4,128))"),
        (Layout((4, 8), (1, 4)), (16, 32), (1, 0), "((4,4),(8,4)):((1,128),(4,32))"),
        (
            Layout((4, 8), (8, 1)),
            (16, 32, 3),
            (1, 0, 2),
            "((4,4),(8,4),(1,3)):((8,128),(1,32),(0,512))",
        ),
        (Layout((4, 8), (1, 4)), (16, 30), (0, 1), "((4,4),(8,4)):((1,32),(4,128))"),
        (Layout((4, 8), (1, 4)), (2, 32), (0, 1), "((4,1),(8,4)):((1,0),(4,32))"),
        (Layout(4, 1), (16, 2), (1, 0), "((4,4),(1,2)):((1,8),(0,4))"),
    ],
)
def test_tile_to_shape(block: Layout, shape: Any, order: Any, wanted: str) -> None:
    assert str(fl.tile_to_shape(block, shape, order)) == wanted


def test_tiles_of_too_few_modes_are_refused() -> None:
    with pytest.raises(LayoutError, match=r"tile_to_shape: \(16\) has fewer modes than \(4,8\)"):
        fl.tile_to_shape(Layout((4, 8), (1, 4)), (16,), (0,))


def test_a_divide_leaves_no_element_out() -> None:
    """Where a tiler has gaps that no whole number of tiles fills."""
    assert str(fl.complement(Layout((4, 2), (1, 10)), 20)) == "2:4"
    with pytest.raises(LayoutError, match="must be a multiple of size times stride"):
        fl.logical_divide(fl.make_layout(20), Layout((4, 2), (1, 10)))


@pytest.mark.parametrize(
    ("lhs", "rhs", "wanted"),
    [
        ((12, 8), 4, (3, 8)),
        ((3, 8), 12, (1, 2)),
        (4, 12, 1),
        ((6, 4), (2, 2), (3, 2)),
        ((2, (3, 4)), 6, (1, (1, 4))),
    ],
)
def test_shape_div(lhs: Any, rhs: Any, wanted: Any) -> None:
    assert fl.shape_div(lhs, rhs) == wanted


@pytest.mark.parametrize(("lhs", "rhs"), [(12, 5), (12, 8), ((6, 4), (2,)), (0, 0)])
def test_shapes_that_do_not_divide_are_refused(lhs: Any, rhs: Any) -> None:
    with pytest.raises(LayoutError, match="shape_div"):
        fl.shape_div(lhs, rhs)


def test_tuples() -> None:
    assert fl.tuple_cat((1, 2), 3, (4, (5, 6))) == (1, 2, 3, 4, (5, 6))
    assert fl.repeat_like(1, (2, (3, 4))) == (1, (1, 1)) and fl.repeat_like((1, 2), 5) == (1, 2)
    assert fl.unflatten((1, 2, 3), (0, (0, 0))) == (1, (2, 3)) and fl.unflatten(5, 0) == 5
    assert str(fl.unflatten(Layout((2, 3, 4), (1, 2, 6)), (0, (0, 0)))) == "(2,(3,4)):(1,(2,6))"
    for wrong in ((1, 2), (1, 2, 3, 4)):
        with pytest.raises(LayoutError, match="the profile"):
            fl.unflatten(wrong, (0, (0, 0)))

"""Swizzles, composed layouts and layouts of coordinates against their definitions."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from ferrule.language.layouts import (
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    ScaledBasis,
    Swizzle,
    blocked_product,
    coalesce,
    composition,
    cosize,
    crd2idx,
    flat_divide,
    get,
    group_modes,
    idx2crd,
    local_tile,
    logical_divide,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_tv,
    make_swizzle,
    recast_layout,
    select,
    size,
    slice_,
    tile_to_shape,
    zipped_divide,
)


def indices(layout: Any) -> list[Any]:
    return [crd2idx(number, layout) for number in range(int(size(layout)))]


def moved(bits: int, base: int, shift: int, index: int) -> int:
    """Bit by bit: bit base + i of the index changes where the bit `shift` further is set."""
    for i in range(bits):
        source, target = base + max(shift, 0) + i, base + max(-shift, 0) + i
        if index >> source & 1:
            index ^= 1 << target
    return index


SWIZZLES = [
    (3, 3, 3),
    (2, 3, 3),
    (1, 0, 1),
    (2, 1, 4),
    (3, 4, 3),
    (2, 2, -3),
    (0, 4, 3),
    (1, 2, -1),
]


@pytest.mark.parametrize("numbers", SWIZZLES)
def test_a_swizzle_changes_bits(numbers: tuple[int, int, int]) -> None:
    swizzle = make_swizzle(*numbers)
    span = swizzle.span
    assert [swizzle(i) for i in range(2 * span)] == [moved(*numbers, i) for i in range(2 * span)]
    assert sorted(swizzle(i) for i in range(span)) == list(range(span))
    assert all(swizzle(swizzle(i)) == i for i in range(span))
    assert all(swizzle(i + span) == swizzle(i) + span for i in range(span))
    run = 1 << swizzle.num_base
    assert all(swizzle(i * run + j) == swizzle(i * run) + j for i in range(4) for j in range(run))


def test_what_rearranges_a_layout_rearranges_the_outer_one() -> None:
    """CuTe DSL 4.8.1 prints the same."""
    block = make_composed_layout(make_swizzle(3, 3, 3), 0, make_layout((8, 64), stride=(64, 1)))
    whole = tile_to_shape(block, (128, 64, 3), (0, 1, 2))
    shown = {
        "S<3,3,3> o 0 o (8,64):(64,1)": block,
        "S<3,3,3> o 0 o ((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))": whole,
        "S<3,3,3> o 0 o ((16,16,1),(8,4,3)):((64,1,0),(1024,16,8192))": zipped_divide(
            whole, (16, 16, 1)
        ),
        "S<3,3,3> o 0 o ((16,8),(16,4),(1,3)):((64,1024),(1,16),(0,8192))": logical_divide(
            whole, (16, 16)
        ),
        "S<3,3,3> o 0 o (64,128):(1,64)": composition(
            whole, make_layout((64, 128), stride=(128, 1))
        ),
        "S<3,3,3> o 0 o (8,16):(64,512)": get(whole, [0]),
        "S<3,3,3> o 0 o ((64,1),(8,16)):((1,0),(64,512))": select(whole, [1, 0]),
        "S<3,2,3> o 0 o (8,32):(32,1)": recast_layout(32, 16, block),
        "S<3,4,3> o 0 o (8,128):(128,1)": recast_layout(8, 16, block),
        "S<3,3,3> o 0 o (4,4):(1,4)": composition(make_swizzle(3, 3, 3), make_layout((4, 4))),
    }
    assert {text: str(layout) for text, layout in shown.items()} == {t: t for t in shown}
    assert (block.shape, cosize(block), size(block)) == ((8, 64), 512, 512)
    assert block((3, 9)) == crd2idx((3, 9), block) == 209


def test_composed_layouts_are_the_functions_that_they_say() -> None:
    rng = random.Random(0)
    for _ in range(200):
        shape = [rng.choice((1, 2, 4, 8)) for _ in range(rng.randint(1, 3))]
        strides = [rng.choice((1, 2, 8, 16, 64)) for _ in shape]
        outer = make_layout(tuple(shape), stride=tuple(strides))
        numbers, offset = rng.choice(SWIZZLES), rng.randint(0, 40)
        layout = make_composed_layout(make_swizzle(*numbers), offset, outer)
        plain = indices(outer)
        assert indices(layout) == [moved(*numbers, offset + index) for index in plain]
        assert indices(coalesce(layout)) == indices(layout)
        number = rng.randrange(size(outer))
        at = list(idx2crd(number, outer.shape))
        at[rng.randrange(len(at))] = None
        part = slice_(layout, tuple(at))
        begin = crd2idx(tuple(at), outer)
        rest = indices(slice_(outer, tuple(at)))
        assert indices(part) == [moved(*numbers, offset + begin + index) for index in rest]
        tile = tuple(rng.choice([n for n in (1, 2, 4, 8) if n <= extent]) for extent in shape)
        place = tuple(rng.randrange(extent // t) for extent, t in zip(shape, tile, strict=True))
        found, zero = local_tile(layout, tile, place)
        first = tuple(t * p for t, p in zip(tile, place, strict=True))
        steps = make_layout(tile, stride=tuple(strides))
        wanted = [offset + crd2idx(first, outer) + index for index in indices(steps)]
        assert (zero, indices(found)) == (0, [moved(*numbers, index) for index in wanted])


def test_a_recast_swizzle_moves_the_same_bytes() -> None:
    columns = make_composed_layout(make_swizzle(2, 4, 3), 32, make_layout((64, 16)))
    halves = recast_layout(8, 16, columns)
    for row, column in product(range(64), range(16)):
        assert halves((2 * row, column)) == 2 * columns((row, column))


def test_layouts_of_coordinates_are_identities() -> None:
    nested = make_identity_layout((4, (3, 5)))
    assert str(nested) == "(4,(3,5)):(1@0,(1@0@1,1@1@1))"
    assert indices(nested) == [idx2crd(i, (4, (3, 5))) for i in range(60)]
    assert (str(E(0)), str(E([0, 1])), str(E(1) * 4), E(())) == ("1@0", "1@1@0", "4@1", 1)


def test_parts_of_identities_are_the_places_of_parts() -> None:
    """A part of the identity, put into a layout, is the part of the layout."""
    layout = make_layout((16, (4, 6)), stride=(24, (1, 4)))
    identity = make_identity_layout(layout.shape)
    parts = [
        lambda a: zipped_divide(a, (4, 8)),
        lambda a: flat_divide(a, (2, 12)),
        lambda a: composition(a, make_layout((8, 12), stride=(2, 16))),
        lambda a: coalesce(a),
        lambda a: group_modes(a, 0, 2),
        lambda a: select(a, [1, 0]),
        lambda a: slice_(a, (None, (2, None))),
        lambda a: local_tile(a, (4, 8), (None, 1)).layout,
    ]
    for part in parts:
        ours, plain = part(identity), part(layout)
        assert ours.shape == plain.shape or size(ours) == size(plain)
        origin = layout((0, 0))
        assert [layout(at) - origin for at in indices(ours)] == indices(plain)


def test_threads_and_values_cover_a_tile_once() -> None:
    threads, values = make_layout((4, 32), stride=(32, 1)), make_layout((4, 4), stride=(4, 1))
    tiler, found = make_layout_tv(threads, values)
    assert (tiler, str(found)) == ((16, 128), "((32,4),(4,4)):((64,4),(16,1))")
    whole = make_layout(tiler)
    for thread in range(128):
        for value in range(16):
            row, column = whole_place(found((thread, value)), tiler)
            assert threads((row // 4, column // 4)) == thread
            assert values((row % 4, column % 4)) == value
    assert sorted(indices(found)) == list(range(size(whole)))


def whole_place(index: int, tiler: tuple[int, int]) -> tuple[int, int]:
    return index % tiler[0], index // tiler[0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: make_swizzle(3, 3, 2),
            "make_swizzle: S<3,3,2>; give ints: bits and base from 0 on, and a shift of at "
            "least as many bits",
        ),
        (lambda: Swizzle(1, 1, 1)(-1), "S<1,1,1>: the index -1; give an int from 0 on"),
        (
            lambda: make_composed_layout(3, 0, Layout(4, 1)),
            "make_composed_layout: the inner layout is 3; give a swizzle, make_swizzle(b, "
            "m, s), a layout or a function",
        ),
        (
            lambda: make_composed_layout(Layout(4, 1), 1.5, Layout(4, 1)),
            "make_composed_layout: the offset is 1.5; give a size, such as 0",
        ),
        (
            lambda: ComposedLayout(Layout(4, 1), 0, make_identity_layout((4, 3))),
            "make_composed_layout: the outer layout (4,3):(1@0,1@1) gives coordinates",
        ),
        (
            lambda: recast_layout(
                64, 16, make_composed_layout(make_swizzle(1, 1, 1), 0, Layout(16, 1))
            ),
            "S<1,1,1>: it moves runs of 32 bits, which are parts of elements of 64 bits",
        ),
        (
            lambda: recast_layout(
                64, 16, make_composed_layout(make_swizzle(1, 2, 1), 2, Layout(16, 1))
            ),
            "recast_layout: the offset 2 is no whole number of elements",
        ),
        (
            lambda: ScaledBasis(1, ()),
            "a basis: 1 in the mode (); give a size and a position, or a list of positions:"
            " ScaledBasis(4, [0, 1])",
        ),
        (
            lambda: cosize(make_identity_layout((4, 3))),
            "cosize: (4,3):(1@0,1@1) gives coordinates, which are no indices",
        ),
        (
            lambda: crd2idx((1, 2), Layout((4, 3), (E(0), 1))),
            "a coordinate: (4,3):(1@0,1) has the stride 1, which is no coordinate",
        ),
        (
            lambda: make_layout_tv(make_layout(4, stride=4), make_layout(2)),
            "make_layout_tv: 4:4 and 2:1 leave numbers out; take compact layouts of the "
            "threads and of the values",
        ),
    ],
)
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(LayoutError) as raised:
        make()
    assert str(raised.value) == said


def test_blocks_of_composed_layouts_are_made_of_the_outer_one() -> None:
    with pytest.raises(LayoutError, match="expected a layout"):
        blocked_product(make_layout(4), make_swizzle(1, 1, 1))  # type: ignore[arg-type]

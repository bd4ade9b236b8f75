"""Tiled copies and matrix multiplications: who has which element, against brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ferrule.language.atoms import copies, mmas
from ferrule.language.atoms.copies import make_copy_atom, make_tiled_copy, make_tiled_copy_tv
from ferrule.language.atoms.mmas import make_mma_atom, make_tiled_mma
from ferrule.language.atoms.nvgpu import CopyUniversalOp, MmaUniversalOp, cpasync, warp
from ferrule.language.layouts import (
    Layout,
    LayoutError,
    coalesce,
    crd2idx,
    make_layout,
    select,
    size,
)
from ferrule.language.layouts.layout import flat_modes
from ferrule.specs import (
    BFloat16,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Uint8,
)

HALVES = warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
WIDE = make_copy_atom(CopyUniversalOp(), Float16, num_bits_per_copy=128)
LDMATRIX = make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float16)
ROWS = make_tiled_copy_tv(WIDE, make_layout((32, 4), stride=(4, 1)), make_layout((1, 8)))
MMA = make_tiled_mma(HALVES, (2, 2, 1), (32, 32, 16))
SIMT = make_tiled_mma(
    MmaUniversalOp(Float32),
    make_layout((16, 16, 1), stride=(16, 1, 0)),
    (make_layout((16, 4), stride=(4, 1)), make_layout((16, 4), stride=(4, 1)), None),
)


def indices(layout: Any) -> list[int]:
    """The index of every coordinate, the first mode fastest, by the definition."""
    found = [0]
    for extent, stride in flat_modes(layout):
        found = [index + i * int(stride) for i in range(int(extent)) for index in found]
    return found


def part(layout: Layout, first: int) -> Layout:
    return select(layout, tuple(range(first, len(layout))))  # type: ignore[no-any-return]


@pytest.mark.parametrize("tiled", [ROWS, mmas.make_tiled_copy_C(WIDE, MMA)])
def test_every_element_is_copied_once(tiled: copies.TiledCopy) -> None:
    layout = make_layout((64, 96), stride=(96, 1))
    values = tiled.atom.values
    for target in (values.source, values.target):
        found = copies.partitioned(tiled, layout, target)
        assert size(found, [0]) == tiled.size
        assert sorted(indices(found)) == list(range(64 * 96))


def test_lanes_point_to_rows_and_get_what_they_multiply() -> None:
    """What `ldmatrix` brings to a lane is what the matrix multiplication has there."""
    layout = make_layout((64, 32), stride=(32, 1))
    for matrix, make in (("A", mmas.make_tiled_copy_A), ("B", mmas.make_tiled_copy_B)):
        tiled = make(LDMATRIX, MMA)
        source = copies.partitioned(tiled, layout, tiled.atom.values.source)
        target = copies.partitioned(tiled, layout, tiled.atom.values.target)
        own = mmas.partitioned(MMA, layout, matrix)
        registers = make_layout(part(own, 2).shape)
        retiled = copies.retiled(tiled, registers)
        threads = MMA.thr_layout_vmnk
        for thread in range(128):
            brought = _of(target, thread)
            place = _place(threads, thread, matrix)
            wanted = _of_mma(own, place)
            order = indices(retiled)
            assert [wanted[order[i]] for i in range(len(order))] == brought
            rows = _of(source, thread)
            assert all(rows[i] + j == rows[i + j] for i in range(0, len(rows), 8) for j in range(8))


def _of(layout: Layout, thread: int) -> list[int]:
    begin = crd2idx((thread, *(0,) * (len(layout) - 1)), layout)
    return [begin + index for index in indices(part(layout, 1))]


def _place(threads: Layout, thread: int, matrix: str) -> Any:
    from ferrule.language.layouts.coordinates import SIZES
    from ferrule.language.layouts.tiling import place_of

    place = place_of(threads, thread, SIZES)
    return place[0], tuple(place[mode + 1] for mode in mmas.MODES[matrix])


def _of_mma(own: Layout, place: Any) -> list[int]:
    begin = crd2idx((*place, *(0,) * (len(own) - 2)), own)
    return [begin + index for index in indices(part(own, 2))]


@pytest.mark.parametrize("tiled", [MMA, SIMT, make_tiled_mma(HALVES, (4, 1, 1))])
@pytest.mark.parametrize("matrix", ["A", "B", "C"])
def test_every_element_is_multiplied_by_those_that_need_it(
    tiled: mmas.TiledMma, matrix: str
) -> None:
    layout = make_layout((128, 64))
    threads, missing = tiled.thr_layout_vmnk, {"A": 1, "B": 0, "C": 2}[matrix]
    own = mmas.partitioned(tiled, layout, matrix)
    have = Counter(
        element
        for thread in range(tiled.size)
        for element in _of_mma(own, _place(threads, thread, matrix))
    )
    copies_of_each = size(threads, [missing + 1])
    assert have == dict.fromkeys(range(128 * 64), copies_of_each)
    assert mmas.shape_of_part(tiled, (128, 64), matrix) == part(own, 2).shape


def test_layouts_are_those_of_cute_dsl() -> None:
    """CuTe DSL 4.8.1 prints the same."""
    tiled_a, tiled_b = mmas.make_tiled_copy_A(LDMATRIX, MMA), mmas.make_tiled_copy_B(LDMATRIX, MMA)
    one = make_copy_atom(CopyUniversalOp(), Float32)
    tiled_c = mmas.make_tiled_copy_C(one, MMA)
    rows, of_c = (
        make_layout((128, 32, 5), stride=(160, 1, 32)),
        make_layout((128, 128), stride=(128, 1)),
    )
    source = ROWS.atom.values.source
    assert [
        str(ROWS.layout_tv_tiled),
        str(part(copies.partitioned(ROWS, rows, source), 1)),
        str(part(mmas.partitioned(MMA, of_c, "C"), 2)),
        str(MMA.thr_layout_vmnk),
        str(tiled_a.layout_tv_tiled),
        str(tiled_b.layout_tv_tiled),
        str(tiled_c.layout_tv_tiled),
        str(copies.retiled(tiled_a, make_layout(((2, 2, 2), 4, 2)))),
        str(copies.retiled(tiled_c, make_layout(((2, 2), 4, 8)))),
        str(part(copies.partitioned(tiled_c, of_c, one.values.target), 1)),
        str(part(mmas.partitioned(SIMT, of_c, "C"), 2)),
        str(copies.make_tiled_copy_S(one, tiled_c).layout_tv_tiled),
        str(copies.make_tiled_copy_D(one, tiled_a).layout_tv_tiled),
    ] == [
        "((4,32),8):((256,1),32)",
        "((8,1),4,1,5):((1,0),5120,0,32)",
        "((2,2),4,8):((1,1024),4096,16)",
        "(32,2,2,1):(1,32,64,0)",
        "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))",
        "((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))",
        "((4,8,2,2),((2,2),(1,2))):((64,1,16,256),((32,8),(0,512)))",
        "((8,1),4,2):((1,0),8,32)",
        "((1,(4,2)),4,4):((0,(1,16)),4,32)",
        "((1,(2,2,2)),4,4):((0,(1,1024,16)),4096,32)",
        "(1,(4,2),(4,2)):(0,(128,8192),(1,64))",
        "((4,8,2,2),(1,(2,2,2))):((64,1,16,256),(0,(32,8,512)))",
        "((4,8,2,2),((2,2,2),1)):((64,1,16,0),((32,8,256),0))",
    ]


ATOMS = """\
Copy Atom
  ThrID:         32:1
  TV Layout Src: ((16,2),8):((8,0),1)
  TV Layout Dst: ((4,8),(1,2,2)):((16,1),(1,8,64))
  Value type:    f16"""


def test_products_of_floats_of_8_bits_name_dtypes_that_there_are_not() -> None:
    said = "MmaFP8Op: the dtypes are float8_e4m3fn, int8, float16; give float8_e4m3fn, "
    with pytest.raises(LayoutError, match=f"{said}float8_e4m3fn, float32 or "):
        warp.MmaFP8Op(Float8E4M3FN, Float16, (16, 8, 32), Int8)


def test_matrices_of_other_elements_are_as_in_cute_dsl() -> None:
    four, two = (make_copy_atom(warp.LdMatrix8x8x16bOp(False, n), Int8) for n in (4, 2))
    assert str(four.layout_src_tv) == "(32,16):(16,1)"
    assert str(four.layout_dst_tv) == "(32,(4,4)):(4,(1,128))"
    assert str(two.layout_src_tv) == "((16,2),16):((16,0),1)"
    store = make_copy_atom(warp.StMatrix8x8x16bOp(False, 2), Float8E4M3FN)
    assert str(store.layout_src_tv) == "(32,(4,2)):(4,(1,128))"
    wide = make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float32)
    assert str(wide.layout_src_tv) == "(32,4):(4,1)"


def test_atoms_print_their_layouts() -> None:
    matrices = make_copy_atom(warp.LdMatrix8x8x16bOp(True, 2), Float16)
    assert str(matrices) == ATOMS
    assert str(make_mma_atom(HALVES)).splitlines() == [
        "MMA Atom",
        "  ThrID:         32:1",
        "  Shape MNK:     (16,8,16)",
        "  TV Layout A:   ((4,8),(2,2,2)):((32,1),(16,8,128))",
        "  TV Layout B:   ((4,8),(2,2)):((16,1),(8,64))",
        "  TV Layout C:   ((4,8),(2,2)):((32,1),(16,8))",
    ]
    assert str(MMA).splitlines()[:3] == [
        "Tiled MMA",
        "  Thr Layout VMNK: (32,2,2,1):(1,32,64,0)",
        "  Permutation MNK: (32:1,32:1,16:1)",
    ]
    assert str(ROWS).splitlines()[1] == "  Tiler MN:        (32:1,32:1)"


@pytest.mark.parametrize(
    ("op", "a", "b"),
    [
        (HALVES, "((4,8),(2,2,2)):((32,1),(16,8,128))", "((4,8),(2,2)):((16,1),(8,64))"),
        (
            warp.MmaF16BF16Op(BFloat16, Float32, (16, 8, 8)),
            "((4,8),(2,2)):((32,1),(16,8))",
            "((4,8),2):((16,1),8)",
        ),
        (warp.MmaTF32Op(), "((4,8),(2,2)):((16,1),(8,64))", "((4,8),2):((8,1),32)"),
        (warp.MmaTF32Op((16, 8, 4)), "((4,8),2):((16,1),8)", "((4,8),1):((8,1),0)"),
        (
            warp.MmaI8Op(Int8, Uint8),
            "((4,8),(4,2,2)):((64,1),(16,8,256))",
            "((4,8),(4,2)):((32,1),(8,128))",
        ),
        (
            warp.MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32), Float8E5M2),
            "((4,8),(4,2,2)):((64,1),(16,8,256))",
            "((4,8),(4,2)):((32,1),(8,128))",
        ),
        (
            warp.MmaFP8Op(Float8E5M2, Float16, (16, 8, 16)),
            "((4,8),(4,2)):((64,1),(16,8))",
            "((4,8),4):((32,1),8)",
        ),
    ],
)
def test_values_of_instructions(op: Any, a: str, b: str) -> None:
    assert (str(op.values("A")), str(op.values("B"))) == (a, b)
    assert str(coalesce(op.values("C"))) == "(4,8,2,2):(32,1,16,8)"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: make_copy_atom(3, Float16),
            "make_copy_atom: the operation is 3; give one such as CopyUniversalOp()",
        ),
        (
            lambda: make_copy_atom(CopyUniversalOp(), 3),
            "make_copy_atom: the dtype is 3; give fe.Float16 or such",
        ),
        (
            lambda: make_copy_atom(CopyUniversalOp(), Float16, num_bits_per_copy=48),
            "make_copy_atom: CopyUniversalOp of 48 bits of float16; give num_bits_per_copy "
            "as 16 times a power of two",
        ),
        (
            lambda: make_copy_atom(CopyUniversalOp(), Float16, num_bits_per_copy=256),
            "make_copy_atom: 256 bits; one access has at most 128",
        ),
        (
            lambda: make_copy_atom(CopyUniversalOp(), Float16, num_bits_per_copy=-1),
            "make_copy_atom: num_bits_per_copy is -1; give an int",
        ),
        (
            lambda: make_copy_atom(CopyUniversalOp(), Float16, memory_order=1),
            "make_copy_atom: memory_order cannot be chosen; leave it out",
        ),
        (
            lambda: make_copy_atom(
                cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL), Float16, num_bits_per_copy=64
            ),
            "make_copy_atom: CopyG2SOp with the cache mode GLOBAL of 64 bits; give one of 128",
        ),
        (
            lambda: cpasync.CopyG2SOp(cpasync.LoadCacheMode.NONE),
            "CopyG2SOp: the cache mode is <LoadCacheMode.NONE: 'none'>; give ALWAYS or GLOBAL",
        ),
        (
            lambda: warp.LdMatrix8x8x16bOp(False, 3),
            "LdMatrix8x8x16bOp: transpose=False, num_matrices=3; give True or False, and 1, 2 or 4",
        ),
        (
            lambda: make_copy_atom(warp.LdMatrix8x8x16bOp(True), Float32),
            "make_copy_atom: LdMatrix8x8x16bOp of 32 bits of float32, transposed; it is of "
            "elements of 16 bits; leave num_bits_per_copy out",
        ),
        (
            lambda: make_copy_atom(warp.LdMatrix8x8x16bOp(), Float64),
            "make_copy_atom: LdMatrix8x8x16bOp of 64 bits of float64; it is of elements of "
            "8 or 16 or 32 bits; leave num_bits_per_copy out",
        ),
        (
            lambda: warp.MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 8)),
            "MmaFP8Op: the shape is (16, 8, 8); give (16,8,16) or (16,8,32)",
        ),
        (
            lambda: make_tiled_copy(WIDE, make_layout((32, 4)), (32, 4)),
            "make_tiled_copy: (32,4):(1,32) has 4 values, but an atom of CopyUniversalOp "
            "has 8; take a multiple of 8 values, in the order of the atom",
        ),
        (
            lambda: make_tiled_copy("x", make_layout((32, 4)), (32, 4)),
            "make_tiled_copy: the atom is 'x'; give the result of make_copy_atom",
        ),
        (
            lambda: make_mma_atom(CopyUniversalOp()),
            "make_mma_atom: the operation is CopyUniversalOp(); give one such as MmaF16BF16Op(...)",
        ),
        (
            lambda: make_tiled_mma(HALVES, (2, 2)),
            "make_tiled_mma: atoms (2,2):(1,2) with the permutation None; give three of "
            "each, for M, N and K",
        ),
        (
            lambda: make_tiled_mma(HALVES, (2, 2, 1), (32, 24, 16)),
            "make_tiled_mma: a tile of 24 along N is no multiple of 2 atoms of 8; give a "
            "multiple as permutation_mnk, or None",
        ),
        (
            lambda: mmas.make_tiled_copy_A(WIDE, 3),
            "make_tiled_copy_A: 3; give the result of make_tiled_mma",
        ),
        (
            lambda: MmaUniversalOp(Int8),
            "MmaUniversalOp: the dtype is Int8; give one of float16, bfloat16, float32, "
            "float64, int32",
        ),
        (
            lambda: warp.MmaF16BF16Op(BFloat16, Float16, (16, 8, 16)),
            "MmaF16BF16Op: the dtypes are bfloat16, float16; give float16, float32 or "
            "float16, float16 or bfloat16, float32",
        ),
        (
            lambda: warp.MmaF16BF16Op(Float16, Float32, (16, 8, 32)),
            "MmaF16BF16Op: the shape is (16, 8, 32); give (16,8,8) or (16,8,16)",
        ),
    ],
)
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(LayoutError) as raised:
        make()
    assert str(raised.value) == said

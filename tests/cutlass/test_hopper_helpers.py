"""Choices for products of warpgroups, as CuTe DSL 4.8.1 prints them."""

from typing import Any

import pytest

import ferrule as fe
from ferrule.cutlass import hopper_helpers as sm90
from ferrule.cutlass import utils
from ferrule.cutlass.utils import LayoutEnum

ROWS, COLUMNS = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
TILE = (128, 256, 64)


def test_stages_of_tiles() -> None:
    printed = {
        (sm90.make_smem_layout_a, ROWS, TILE): "((8,16),(64,1),(1,3)):((64,512),(1,0),(0,8192))",
        (sm90.make_smem_layout_b, ROWS, TILE): "((8,32),(64,1),(1,3)):((64,512),(1,0),(0,16384))",
        (
            sm90.make_smem_layout_a,
            COLUMNS,
            TILE,
        ): "((64,2),(8,8),(1,3)):((1,4096),(64,512),(0,8192))",
        (sm90.make_smem_layout_b, COLUMNS, (64, 64, 32)): (
            "((64,1),(8,4),(1,3)):((1,0),(64,512),(0,2048))"
        ),
    }
    for (make, order, shape), text in printed.items():
        assert str(make(order, shape, fe.Float16, 3)) == f"S<3,4,3> o 0 o {text}"
    parts = {
        (
            fe.Float16,
            ROWS,
            (64, 32),
        ): "S<2,4,3> o 0 o ((8,8),(32,1),(1,4)):((32,256),(1,0),(0,2048))",
        (fe.Float32, COLUMNS, (128, 32)): (
            "S<3,4,3> o 0 o ((32,4),(8,4),(1,4)):((1,1024),(32,256),(0,4096))"
        ),
    }
    for (dtype, order, tile), text in parts.items():
        assert str(sm90.make_smem_layout_epi(dtype, order, tile, 4)) == text


@pytest.mark.parametrize(
    "size, half, byte",
    [
        (8, "K_INTER", "K_INTER"),
        (16, "K_SW32", "K_INTER"),
        (48, "K_SW32", "K_INTER"),
        (64, "K_SW128", "K_SW64"),
        (96, "K_SW64", "K_SW32"),
        (128, "K_SW128", "K_SW128"),
    ],
)
def test_the_widest_swizzle_that_fits(size: int, half: str, byte: str) -> None:
    assert sm90.get_smem_layout_atom(ROWS, fe.Float16, size).name == half
    assert sm90.get_smem_layout_atom(ROWS, fe.Float8E4M3FN, size).name == byte
    assert sm90.get_smem_layout_atom(COLUMNS, fe.Float16, size).name == half.replace("K_", "MN_")


def test_the_part_that_is_stored_at_once() -> None:
    shape = sm90.compute_tile_shape_or_override
    assert shape(TILE, fe.Float16, is_cooperative=True) == (128, 32)
    assert shape(TILE, fe.Float16) == (64, 32)
    assert shape((128, 128, 64), fe.Int8) == (64, 64)
    assert shape((128, 16, 64), fe.Float8E4M3FN) == (64, 16)
    assert shape(TILE, fe.Float16, False, (8, 8)) == (8, 8)


def test_operations_by_dtype() -> None:
    k, mn = ROWS.sm90_mma_major_mode(), COLUMNS.sm90_mma_major_mode()
    made: dict[Any, Any] = {
        (fe.Float16, fe.Float16, fe.Float32, mn): (64, 128, 16),
        (fe.Float8E4M3FN, fe.Float8E5M2, fe.Float32, k): (64, 128, 32),
        (fe.Int8, fe.Uint8, fe.Int32, k): (64, 128, 32),
    }
    for (a, b, acc, major), shape in made.items():
        tiled = sm90.make_trivial_tiled_mma(a, b, k, major, acc, (2, 1, 1), (64, 128))
        assert (tiled.shape_mnk, tiled.size) == (shape, 256)
    with pytest.raises(TypeError, match="there is no product of warpgroups of Float64"):
        sm90.make_trivial_tiled_mma(fe.Float64, fe.Float64, k, k, fe.Float64, (1, 1, 1), (64, 8))
    for order, name in ((ROWS, "is_n_major_c"), (COLUMNS, "is_m_major_c")):
        assert getattr(order, name)()
        halves = sm90.sm90_get_smem_store_op(order, fe.Float16, fe.Float32)
        assert type(halves.op).__name__ == "StMatrix8x8x16bOp"
        words = sm90.sm90_get_smem_store_op(order, fe.Float32, fe.Float32)
        assert type(words.op).__name__ == "CopyUniversalOp"


def test_utils_has_their_names() -> None:
    assert utils.sm90 is sm90
    assert utils.sm90_get_smem_layout_atom is sm90.get_smem_layout_atom
    assert utils.sm90_make_trivial_tiled_mma is sm90.make_trivial_tiled_mma
    assert utils.create_cute_tensor_for_fp8.__name__ == "create_cute_tensor_for_fp8"
    with pytest.raises(AttributeError, match="cutlass.utils.make_smem_layout_a is for Blackwell"):
        _ = utils.make_smem_layout_a  # Blackwell's, which has other parameters


def test_divisibility() -> None:
    """As CuTe DSL 4.8.1 has it."""
    printed = {(1, 128): 1, (12, 128): 4, (256, 128): 128, (96, 64): 32, (100, 3): 3, (64, 48): 48}
    assert {each: utils.get_divisibility(*each) for each in printed} == printed

"""`cutlass.utils.hopper_helpers` of CuTe DSL's programs: choices for matrix products of sm_90a."""

from __future__ import annotations

from typing import Any

from ferrule.cutlass import names
from ferrule.cutlass.utils import LayoutEnum
from ferrule.language.atoms import warpgroup
from ferrule.language.atoms.copies import CopyAtom, make_copy_atom
from ferrule.language.atoms.mmas import TiledMma, make_tiled_mma
from ferrule.language.atoms.ops import CopyUniversalOp, StMatrix8x8x16bOp
from ferrule.language.layouts import tile_to_shape
from ferrule.specs import DType


def get_smem_layout_atom(layout: LayoutEnum, element_type: DType, major_mode_size: int) -> Any:
    """The kind of the widest swizzle of which the contiguous mode of a tile is a multiple."""
    size = major_mode_size * element_type.bits
    prefix = "MN" if layout is LayoutEnum.COL_MAJOR else "K"
    # `size` is in bits, and a span in bytes.
    spans = (span for span in (128, 64, 32) if size % (8 * span) == 0)
    span = next(spans, None)
    return getattr(
        warpgroup.SmemLayoutAtomKind, f"{prefix}_SW{span}" if span else f"{prefix}_INTER"
    )


def _staged(
    layout: LayoutEnum, shape: tuple[Any, ...], dtype: DType, order: tuple[int, ...] | None = None
) -> Any:
    """A tile in the arrangement of its contiguous mode, and further modes such as stages; `order`
    says in which order the arrangement is repeated along the modes."""
    rows, columns, *more = shape
    turned = layout is LayoutEnum.COL_MAJOR
    kind = get_smem_layout_atom(layout, dtype, rows if turned else columns)
    atom: Any = warpgroup.make_smem_layout_atom(kind, dtype)
    first = (1, 0) if turned else (0, 1)
    return tile_to_shape(atom, shape, order or (*first, *range(2, 2 + len(more))))


def make_smem_layout_a(
    a_layout: LayoutEnum, mma_tiler_mnk: tuple[int, int, int], a_dtype: DType, num_stages: int
) -> Any:
    """Stages of a tile of A, (m, k, stage)."""
    return _staged(a_layout, (mma_tiler_mnk[0], mma_tiler_mnk[2], num_stages), a_dtype)


def make_smem_layout_b(
    b_layout: LayoutEnum, mma_tiler_mnk: tuple[int, int, int], b_dtype: DType, num_stages: int
) -> Any:
    """Stages of a tile of B, (n, k, stage)."""
    return _staged(b_layout, (mma_tiler_mnk[1], mma_tiler_mnk[2], num_stages), b_dtype)


def make_smem_layout_epi(
    epi_dtype: DType,
    epi_layout: LayoutEnum,
    epi_tile: tuple[int, int],
    epi_stage: int,
    smem_trg_shape: tuple[int, ...] | None = None,
    smem_order: tuple[int, ...] | None = None,
) -> Any:
    """Stages of a part of a tile of C, (m, n, stage), or a shape with more modes; `smem_order` is
    the order of the modes in memory."""
    return _staged(epi_layout, smem_trg_shape or (*epi_tile, epi_stage), epi_dtype, smem_order)


def compute_tile_shape_or_override(
    tile_shape_mnk: tuple[int, int, int],
    element_type: DType,
    is_cooperative: bool = False,
    epi_tile_override: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """The part of a tile of C that is stored at once: (m, n)."""
    if epi_tile_override is not None:
        return epi_tile_override
    m, n, _ = tile_shape_mnk
    wide = 64 if element_type.bits == 8 and not is_cooperative else 32
    return min(128 if is_cooperative else 64, m), min(wide, n)


def make_trivial_tiled_mma(
    a_dtype: DType,
    b_dtype: DType,
    a_leading_mode: Any,
    b_leading_mode: Any,
    acc_dtype: DType,
    atom_layout_mnk: tuple[int, int, int],
    tiler_mn: tuple[int, int],
    a_source: Any = warpgroup.OperandSource.SMEM,
) -> TiledMma:
    """A tiled product of warpgroups for these dtypes, `atom_layout_mnk` of them side by side.

    Raises TypeError for dtypes that no operation of a warpgroup has.
    """
    majors = a_leading_mode, b_leading_mode
    op: Any
    if a_dtype.bits == 16:
        op = warpgroup.MmaF16BF16Op(a_dtype, acc_dtype, tiler_mn, a_source, *majors)
    elif a_dtype.bits == 8 and a_dtype.kind == "float":
        op = warpgroup.MmaF8Op(a_dtype, b_dtype, acc_dtype, tiler_mn, a_source, *majors)
    elif a_dtype.bits == 8:
        op = warpgroup.MmaI8Op(a_dtype, b_dtype, acc_dtype, tiler_mn, a_source, *majors)
    else:
        raise TypeError(f"there is no product of warpgroups of {a_dtype} and {b_dtype}")
    return make_tiled_mma(op, atom_layout_mnk)


def sm90_get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """The copy of results to shared memory: `stmatrix` of elements of 2 bytes."""
    if elem_ty_d.bits == 16:
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


get_smem_store_op = sm90_get_smem_store_op

__getattr__ = names.resolver("cutlass.utils.hopper_helpers")

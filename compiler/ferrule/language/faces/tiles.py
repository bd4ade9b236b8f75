"""Copies and matrix multiplications of tiles by atoms; see `base` for the meaning of a face."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def copy(
    atom: Any,
    src: Any,
    dst: Any,
    *,
    pred: Any = None,
    unroll_factor: Any = None,
    tma_bar_ptr: Any = None,
    mcast_mask: Any = None,
    tma_desc_ptr: Any = None,
) -> None:
    """Copies a thread's part of a tile by the instruction of a copy atom or a tiled copy.

    By an atom of `make_tiled_tma_atom` a warp copies a whole tile: one lane asks for it.  A load
    arrives at the barrier `tma_bar_ptr`; with a multicast it goes to the blocks of the cluster
    whose bits are set in `mcast_mask`.  With `tma_desc_ptr` the tile is one of the tensor that the
    tensor map in global memory describes, not of the atom's; see `nvgpu.cpasync.copy_tensormap`.

    `pred`: a Boolean for each atom: where it is false a copy by `CopyG2SOp` writes zeros, and any
    other one nothing.
    """
    outside("copy")


def prefetch(atom: Any, src: Any) -> None:
    """Begins to bring boxes of a tensor in global memory to the L2 cache; nothing waits for them.

    `atom` is one of `make_tiled_tma_atom` that loads, and `src` what it copies, with any further
    modes of compile-time sizes: the boxes of all their places.  One lane of the warp asks for them.
    """
    outside("prefetch")


def copy_atom_call(atom: Any, src: Any, dst: Any, *, pred: Any = None) -> None:
    """`copy` of what one atom copies."""
    outside("copy_atom_call")


def basic_copy(src: Any, dst: Any) -> None:
    """Copies a tensor with a compile-time shape, in accesses as wide as both layouts allow."""
    outside("basic_copy")


def basic_copy_if(pred: Any, src: Any, dst: Any) -> None:
    """Copies the elements whose predicate holds."""
    outside("basic_copy_if")


def gemm(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    """d = a @ b + c of fragments of shape (values, tiles, tiles), by the atom's instruction."""
    outside("gemm")


def mma_atom_call(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    """`gemm` of what one atom multiplies."""
    outside("mma_atom_call")


def make_tiled_tma_atom(
    op: Any, gmem_tensor: Any, smem_layout: Any, cta_tiler: Any, num_multicast: int = 1
) -> Any:
    """An atom that copies tiles of a tensor as boxes, and the tensor of the coordinates to copy at.

    In a host function.  `smem_layout`: of a tile in shared memory, `cta_tiler`: its shape.  With
    `num_multicast` blocks of a cluster each copies its part of a tile for all of them.  The kernel
    gets both results, and tiles and slices the second like the tensor.
    """
    outside("nvgpu.cpasync.make_tiled_tma_atom")


def tma_partition(
    atom: Any, cta_coord: Any, cta_layout: Any, smem_tensor: Any, gmem_tensor: Any
) -> Any:
    """The parts of tiles that a block copies: of shared memory, and of coordinates.

    The first mode of both tensors is a tile, `group_modes(t, 0, 2)`; `cta_coord` is the number of
    the block among those of `cta_layout`, which share the work.
    """
    outside("nvgpu.cpasync.tma_partition")


def prefetch_descriptor(tma_atom: Any) -> None:
    """Begins to bring the tensor map of an atom to where copies need it."""
    outside("nvgpu.cpasync.prefetch_descriptor")

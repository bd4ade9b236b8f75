"""Copies and matrix multiplications of tiles by atoms; see `base` for the meaning of a face."""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def copy(atom: Any, src: Any, dst: Any, *, pred: Any = None, unroll_factor: Any = None) -> None:
    """Copies a thread's part of a tile by the instruction of a copy atom or a tiled copy.

    `pred`: a Boolean for each atom: where it is false a copy by `CopyG2SOp` writes zeros, and any
    other one nothing.
    """
    outside("copy")


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

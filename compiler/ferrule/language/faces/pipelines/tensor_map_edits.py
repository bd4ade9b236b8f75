"""Tensor maps that kernels keep in memory and change: the names of `nvgpu.cpasync`; see `base` for
the meaning of a face.

A map in memory is 128 bytes at a multiple of 64, such as 16 Int64.  Only `fe.copy(...,
tma_desc_ptr=p)` reads it: its boxes are those of the atom, its tensor is the one of the map.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside


def copy_tensormap(tma_atom: Any, tensormap_ptr: Any) -> None:
    """A warp writes the tensor map of an atom of `make_tiled_tma_atom` to memory.

    `tensormap_ptr`: into global or shared memory.
    """
    outside("nvgpu.cpasync.copy_tensormap")


def update_tma_descriptor(tma_atom: Any, gmem_tensor: Any, tma_desc_ptr: Any) -> None:
    """A lane of the warp changes a map in memory, so that it describes another tensor.

    `gmem_tensor`: of the dtype and the modes of the atom's tensor, contiguous along the same mode.
    It may have run-time sizes and strides.  `tma_desc_ptr`: a map of `copy_tensormap`, in global or
    in shared memory.  From sm_90a on.
    """
    outside("nvgpu.cpasync.update_tma_descriptor")


def fence_tma_desc_release() -> None:
    """Makes the thread's changes of maps in global memory visible to `fence_tma_desc_acquire`."""
    outside("nvgpu.cpasync.fence_tma_desc_release")


def fence_tma_desc_acquire(tma_desc_ptr: Any) -> None:
    """The thread's copies after this use the map in global memory as it was released."""
    outside("nvgpu.cpasync.fence_tma_desc_acquire")


def cp_fence_tma_desc_release(tma_desc_global_ptr: Any, tma_desc_shared_ptr: Any) -> None:
    """A warp copies a map from shared to global memory and releases it there."""
    outside("nvgpu.cpasync.cp_fence_tma_desc_release")

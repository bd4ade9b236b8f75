"""Tensor maps that a kernel keeps for tensors which it learns of while it runs, such as those of a
group of matrix products."""

from __future__ import annotations

import enum
from typing import Any

from ferrule.language.faces.arch import (
    cp_async_bulk_commit_group,
    cp_async_bulk_wait_group,
    elect_one,
    make_warp_uniform,
    sync_warp,
    warp_idx,
)
from ferrule.language.faces.base import const_expr
from ferrule.language.faces.pipelines.tensor_map_edits import (
    copy_tensormap,
    cp_fence_tma_desc_release,
    fence_tma_desc_acquire,
    fence_tma_desc_release,
    update_tma_descriptor,
)
from ferrule.language.faces.tensors import recast_ptr
from ferrule.specs import AddressSpace, Int64
from ferrule.specs.deferred import dataclass


class TensorMapUpdateMode(enum.Enum):
    """Where a map is changed: where it lies in global memory, or in shared memory, from which it is
    copied."""

    GMEM = enum.auto()
    SMEM = enum.auto()


@dataclass(frozen=True)
class TensorMapManager:
    """The tensor maps of a block in global memory, each of `bytes_per_tensormap` bytes.

    One warp of the block initialises a map from an atom, changes it for another tensor, and then
    all warps that copy by it call `fence_tensormap_update` and `fe.copy(..., tma_desc_ptr=...)`.
    """

    tensormap_update_mode: TensorMapUpdateMode
    bytes_per_tensormap: int

    def get_tensormap_ptr(self, ptr: Any, address_space: AddressSpace = AddressSpace.gmem) -> Any:
        """A pointer to a map, of 16 Int64; on a GPU, global memory may also be called generic."""
        return recast_ptr(ptr, dtype=Int64)

    def init_tensormap_from_atom(self, copy_atom: Any, dst_ptr: Any, warp_id: int) -> None:
        """The warp with this number writes the map of an atom to memory."""
        if make_warp_uniform(warp_idx()) == warp_id:
            copy_tensormap(copy_atom, dst_ptr)
            sync_warp()

    def fence_tensormap_initialization(self) -> None:
        """Makes what `init_tensormap_from_atom` has written in global memory visible to copies."""
        if const_expr(self.tensormap_update_mode is TensorMapUpdateMode.GMEM):
            fence_tma_desc_release()

    def update_tensormap(
        self,
        tensor_gmem: tuple[Any, ...],
        tma_copy_atom: tuple[Any, ...],
        tensormap_gmem_ptr: tuple[Any, ...],
        warp_id: int,
        tensormap_smem_ptr: tuple[Any, ...],
    ) -> None:
        """The warp with this number changes maps, one for each tensor, when its copies by the old
        ones have read them.

        In shared memory, the maps at `tensormap_smem_ptr` were initialised and are changed, and
        copied to global memory.  In global memory, `tensormap_smem_ptr` is not used.
        """
        if make_warp_uniform(warp_idx()) == warp_id:
            in_smem = self.tensormap_update_mode is TensorMapUpdateMode.SMEM
            places = tensormap_smem_ptr if in_smem else tensormap_gmem_ptr
            if const_expr(in_smem):
                _change(tma_copy_atom, tensor_gmem, places)
            with elect_one():
                cp_async_bulk_commit_group()
                cp_async_bulk_wait_group(0, read=True)
            sync_warp()
            if const_expr(in_smem):
                for target, source in zip(tensormap_gmem_ptr, tensormap_smem_ptr, strict=True):
                    cp_fence_tma_desc_release(target, source)
            else:
                _change(tma_copy_atom, tensor_gmem, places)
                fence_tma_desc_release()

    def fence_tensormap_update(self, tensormap_ptr: Any) -> None:
        """The thread's copies from now on use a map in global memory as it was changed last."""
        fence_tma_desc_acquire(tensormap_ptr)


def _change(atoms: tuple[Any, ...], tensors: tuple[Any, ...], places: tuple[Any, ...]) -> None:
    """Changes a map for each tensor."""
    for atom, tensor, place in zip(atoms, tensors, places, strict=True):
        update_tma_descriptor(atom, tensor, place)
    sync_warp()

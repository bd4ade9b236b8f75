"""`fe.arch`: the thread, its block and its warp, under the names of CuTe DSL."""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from ferrule.language.faces import maths
from ferrule.language.faces.asynchronous import (
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_wait,
    cp_async,
    cp_async_bulk_commit_group,
    cp_async_bulk_tensor,
    cp_async_bulk_wait_group,
    cp_async_commit_group,
    cp_async_wait_group,
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
    load_peer,
    make_tensor_map,
    prefetch_tensor,
    prefetch_tensor_map,
    setmaxregister_decrease,
    setmaxregister_increase,
    store_peer,
)
from ferrule.language.faces.base import outside
from ferrule.language.faces.collectives import (
    block_reduction,
    block_scan,
    block_scan_exclusive,
    warp_reduction,
    warp_reduction_max,
    warp_reduction_min,
    warp_reduction_sum,
    warp_scan,
)
from ferrule.language.faces.mbarriers import (
    cp_async_bulk,
    cp_async_mbarrier_arrive_noinc,
    fence_proxy,
    mbarrier_arrive,
    mbarrier_arrive_and_expect_tx,
    mbarrier_expect_tx,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_try_wait,
    mbarrier_wait,
)
from ferrule.language.faces.tensor_cores import (
    SharedMatrix,
    ldmatrix,
    mma,
    stmatrix,
    wgmma,
    wgmma_commit_group,
    wgmma_fence,
    wgmma_wait_group,
)
from ferrule.language.faces.threads import (
    FULL_MASK,
    WARP_SIZE,
    alloc_smem,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_dec,
    atomic_exch,
    atomic_inc,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
    barrier,
    barrier_arrive,
    block_dim,
    block_idx,
    block_in_cluster_dim,
    block_in_cluster_idx,
    cluster_dim,
    cluster_idx,
    elect_one,
    fence_acq_rel_cluster,
    fence_acq_rel_cta,
    fence_acq_rel_gpu,
    fence_acq_rel_sys,
    get_dyn_smem,
    grid_dim,
    lane_idx,
    make_warp_uniform,
    match_all_sync,
    match_any_sync,
    shuffle_sync,
    shuffle_sync_bfly,
    shuffle_sync_down,
    shuffle_sync_up,
    sync_threads,
    sync_warp,
    thread_idx,
    vote_all_sync,
    vote_any_sync,
    vote_ballot_sync,
    vote_uni_sync,
    warp_idx,
)
from ferrule.language.faces.vectors import where

if TYPE_CHECKING:
    from ferrule.language.faces.bits import add_sat_int as add_sat_int
    from ferrule.language.faces.bits import bfe as bfe
    from ferrule.language.faces.bits import bfi as bfi
    from ferrule.language.faces.bits import bfind as bfind
    from ferrule.language.faces.bits import brev as brev
    from ferrule.language.faces.bits import clz as clz
    from ferrule.language.faces.bits import lop3 as lop3
    from ferrule.language.faces.bits import mad24 as mad24
    from ferrule.language.faces.bits import mul24 as mul24
    from ferrule.language.faces.bits import mul_hi as mul_hi
    from ferrule.language.faces.bits import mul_wide as mul_wide
    from ferrule.language.faces.bits import popc as popc
    from ferrule.language.faces.bits import prmt as prmt
    from ferrule.language.faces.bits import shf as shf
    from ferrule.language.faces.bits import sub_sat_int as sub_sat_int
    from ferrule.language.faces.inline import activemask as activemask
    from ferrule.language.faces.inline import aggr_smem_size as aggr_smem_size
    from ferrule.language.faces.inline import clock as clock
    from ferrule.language.faces.inline import clock64 as clock64
    from ferrule.language.faces.inline import dynamic_smem_size as dynamic_smem_size
    from ferrule.language.faces.inline import get_dyn_smem_size as get_dyn_smem_size
    from ferrule.language.faces.inline import globaltimer as globaltimer
    from ferrule.language.faces.inline import globaltimer_lo as globaltimer_lo
    from ferrule.language.faces.inline import gridid as gridid
    from ferrule.language.faces.inline import inline_ptx as inline_ptx
    from ferrule.language.faces.inline import nsmid as nsmid
    from ferrule.language.faces.inline import nwarpid as nwarpid
    from ferrule.language.faces.inline import physical_warp_id as physical_warp_id
    from ferrule.language.faces.inline import smid as smid
    from ferrule.language.faces.inline import total_smem_size as total_smem_size
    from ferrule.language.faces.more_arch import THREADS_PER_WARPGROUP as THREADS_PER_WARPGROUP
    from ferrule.language.faces.more_arch import WARPS_PER_WARPGROUP as WARPS_PER_WARPGROUP
    from ferrule.language.faces.more_arch import atomic_fmax as atomic_fmax
    from ferrule.language.faces.more_arch import atomic_fmin as atomic_fmin
    from ferrule.language.faces.more_arch import atomic_max_float32 as atomic_max_float32
    from ferrule.language.faces.more_arch import block_idx_in_cluster as block_idx_in_cluster
    from ferrule.language.faces.more_arch import cluster_size as cluster_size
    from ferrule.language.faces.more_arch import cvt_f32_tf32 as cvt_f32_tf32
    from ferrule.language.faces.more_arch import cvt_f32x2_bf16x2 as cvt_f32x2_bf16x2
    from ferrule.language.faces.more_arch import cvt_i8_bf16 as cvt_i8_bf16
    from ferrule.language.faces.more_arch import cvt_i8x2_to_bf16x2 as cvt_i8x2_to_bf16x2
    from ferrule.language.faces.more_arch import cvt_i8x2_to_f32x2 as cvt_i8x2_to_f32x2
    from ferrule.language.faces.more_arch import cvt_i8x4_to_bf16x4 as cvt_i8x4_to_bf16x4
    from ferrule.language.faces.more_arch import cvt_i8x4_to_f32x4 as cvt_i8x4_to_f32x4
    from ferrule.language.faces.more_arch import exp as exp
    from ferrule.language.faces.more_arch import exp2 as exp2
    from ferrule.language.faces.more_arch import fence_view_async_shared as fence_view_async_shared
    from ferrule.language.faces.more_arch import lanemask_eq as lanemask_eq
    from ferrule.language.faces.more_arch import lanemask_ge as lanemask_ge
    from ferrule.language.faces.more_arch import lanemask_gt as lanemask_gt
    from ferrule.language.faces.more_arch import lanemask_le as lanemask_le
    from ferrule.language.faces.more_arch import lanemask_lt as lanemask_lt
    from ferrule.language.faces.more_arch import load as load
    from ferrule.language.faces.more_arch import match_sync as match_sync
    from ferrule.language.faces.more_arch import (
        mbarrier_conditional_try_wait as mbarrier_conditional_try_wait,
    )
    from ferrule.language.faces.more_arch import mbarrier_test_wait as mbarrier_test_wait
    from ferrule.language.faces.more_arch import red as red
    from ferrule.language.faces.more_arch import store as store
    from ferrule.language.faces.more_arch import warp_redux_sync as warp_redux_sync
    from ferrule.language.faces.more_arch import warpgroup_reg_alloc as warpgroup_reg_alloc
    from ferrule.language.faces.more_arch import warpgroup_reg_dealloc as warpgroup_reg_dealloc
    from ferrule.language.faces.more_arch import warpsize as warpsize
    from ferrule.language.faces.packed import add_packed_bf16x2 as add_packed_bf16x2
    from ferrule.language.faces.packed import (
        add_packed_bf16x2_f32x2_f32x2 as add_packed_bf16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import add_packed_f16x2 as add_packed_f16x2
    from ferrule.language.faces.packed import (
        add_packed_f16x2_f32x2_f32x2 as add_packed_f16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import add_packed_f32x2 as add_packed_f32x2
    from ferrule.language.faces.packed import (
        add_packed_f32x2_bf16x2_f32x2 as add_packed_f32x2_bf16x2_f32x2,
    )
    from ferrule.language.faces.packed import (
        add_packed_f32x2_f16x2_f32x2 as add_packed_f32x2_f16x2_f32x2,
    )
    from ferrule.language.faces.packed import exp2_packed_bf16x2 as exp2_packed_bf16x2
    from ferrule.language.faces.packed import exp2_packed_f16x2 as exp2_packed_f16x2
    from ferrule.language.faces.packed import fma_bf16 as fma_bf16
    from ferrule.language.faces.packed import fma_f16 as fma_f16
    from ferrule.language.faces.packed import fma_packed_bf16x2 as fma_packed_bf16x2
    from ferrule.language.faces.packed import fma_packed_f16x2 as fma_packed_f16x2
    from ferrule.language.faces.packed import fma_packed_f32x2 as fma_packed_f32x2
    from ferrule.language.faces.packed import (
        fma_packed_f32x2_bf16x2_f32x2_f32x2 as fma_packed_f32x2_bf16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import (
        fma_packed_f32x2_f16x2_f32x2_f32x2 as fma_packed_f32x2_f16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import mul_packed_f32x2 as mul_packed_f32x2
    from ferrule.language.faces.packed import sub_packed_bf16x2 as sub_packed_bf16x2
    from ferrule.language.faces.packed import (
        sub_packed_bf16x2_f32x2_f32x2 as sub_packed_bf16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import sub_packed_f16x2 as sub_packed_f16x2
    from ferrule.language.faces.packed import (
        sub_packed_f16x2_f32x2_f32x2 as sub_packed_f16x2_f32x2_f32x2,
    )
    from ferrule.language.faces.packed import sub_packed_f32x2 as sub_packed_f32x2
    from ferrule.language.faces.packed import (
        sub_packed_f32x2_bf16x2_f32x2 as sub_packed_f32x2_bf16x2_f32x2,
    )
    from ferrule.language.faces.packed import (
        sub_packed_f32x2_f16x2_f32x2 as sub_packed_f32x2_f16x2_f32x2,
    )

__all__ = [
    "FULL_MASK",
    "SharedMatrix",
    "THREADS_PER_WARPGROUP",
    "WARPS_PER_WARPGROUP",
    "WARP_SIZE",
    "activemask",
    "add_packed_bf16x2",
    "add_packed_bf16x2_f32x2_f32x2",
    "add_packed_f16x2",
    "add_packed_f16x2_f32x2_f32x2",
    "add_packed_f32x2",
    "add_packed_f32x2_bf16x2_f32x2",
    "add_packed_f32x2_f16x2_f32x2",
    "add_sat_int",
    "aggr_smem_size",
    "alloc_smem",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_dec",
    "atomic_exch",
    "atomic_fmax",
    "atomic_fmin",
    "atomic_inc",
    "atomic_max",
    "atomic_max_float32",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "barrier",
    "barrier_arrive",
    "bfe",
    "bfi",
    "bfind",
    "block_dim",
    "block_idx",
    "block_idx_in_cluster",
    "block_in_cluster_dim",
    "block_in_cluster_idx",
    "block_reduction",
    "block_scan",
    "block_scan_exclusive",
    "brev",
    "clock",
    "clock64",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_dim",
    "cluster_idx",
    "cluster_size",
    "cluster_wait",
    "clz",
    "cp_async",
    "cp_async_bulk",
    "cp_async_bulk_commit_group",
    "cp_async_bulk_tensor",
    "cp_async_bulk_wait_group",
    "cp_async_commit_group",
    "cp_async_mbarrier_arrive_noinc",
    "cp_async_wait_group",
    "cvt_f32x2_bf16x2",
    "cvt_f32_tf32",
    "cvt_i8_bf16",
    "cvt_i8x2_to_bf16x2",
    "cvt_i8x2_to_f32x2",
    "cvt_i8x4_to_bf16x4",
    "cvt_i8x4_to_f32x4",
    "dynamic_smem_size",
    "elect_one",
    "exp",
    "exp2",
    "exp2_packed_bf16x2",
    "exp2_packed_f16x2",
    "fence_acq_rel_cluster",
    "fence_acq_rel_cta",
    "fence_acq_rel_gpu",
    "fence_acq_rel_sys",
    "fence_proxy",
    "fence_view_async_shared",
    "fma_bf16",
    "fma_f16",
    "fma_packed_bf16x2",
    "fma_packed_f16x2",
    "fma_packed_f32x2",
    "fma_packed_f32x2_bf16x2_f32x2_f32x2",
    "fma_packed_f32x2_f16x2_f32x2_f32x2",
    "fmax",
    "fmin",
    "get_dyn_smem",
    "get_dyn_smem_size",
    "globaltimer",
    "globaltimer_lo",
    "grid_dim",
    "griddepcontrol_launch_dependents",
    "griddepcontrol_wait",
    "gridid",
    "inline_ptx",
    "lane_idx",
    "lanemask_eq",
    "lanemask_ge",
    "lanemask_gt",
    "lanemask_le",
    "lanemask_lt",
    "ldmatrix",
    "load",
    "load_peer",
    "lop3",
    "mad24",
    "make_tensor_map",
    "make_warp_uniform",
    "match_all_sync",
    "match_any_sync",
    "match_sync",
    "mbarrier_arrive",
    "mbarrier_arrive_and_expect_tx",
    "mbarrier_conditional_try_wait",
    "mbarrier_expect_tx",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_test_wait",
    "mbarrier_try_wait",
    "mbarrier_wait",
    "mma",
    "mul24",
    "mul_hi",
    "mul_packed_f32x2",
    "mul_wide",
    "nsmid",
    "nwarpid",
    "physical_warp_id",
    "popc",
    "prefetch_tensor",
    "prefetch_tensor_map",
    "prmt",
    "rcp_approx",
    "red",
    "setmaxregister_decrease",
    "setmaxregister_increase",
    "shf",
    "shuffle_sync",
    "shuffle_sync_bfly",
    "shuffle_sync_down",
    "shuffle_sync_up",
    "smid",
    "stmatrix",
    "store",
    "store_peer",
    "sub_packed_bf16x2",
    "sub_packed_bf16x2_f32x2_f32x2",
    "sub_packed_f16x2",
    "sub_packed_f16x2_f32x2_f32x2",
    "sub_packed_f32x2",
    "sub_packed_f32x2_bf16x2_f32x2",
    "sub_packed_f32x2_f16x2_f32x2",
    "sub_sat_int",
    "sync_threads",
    "sync_warp",
    "thread_idx",
    "total_smem_size",
    "vote_all_sync",
    "vote_any_sync",
    "vote_ballot_sync",
    "vote_uni_sync",
    "warp_idx",
    "warp_reduction",
    "warp_reduction_max",
    "warp_reduction_min",
    "warp_reduction_sum",
    "warp_redux_sync",
    "warp_scan",
    "warpgroup_reg_alloc",
    "warpgroup_reg_dealloc",
    "warpsize",
    "wgmma",
    "wgmma_commit_group",
    "wgmma_fence",
    "wgmma_wait_group",
]


_MORE: Final = MappingProxyType(
    {
        "bits": (
            "add_sat_int",
            "bfe",
            "bfi",
            "bfind",
            "brev",
            "clz",
            "lop3",
            "mad24",
            "mul24",
            "mul_hi",
            "mul_wide",
            "popc",
            "prmt",
            "shf",
            "sub_sat_int",
        ),
        "inline": (
            "activemask",
            "aggr_smem_size",
            "clock",
            "clock64",
            "dynamic_smem_size",
            "get_dyn_smem_size",
            "globaltimer",
            "globaltimer_lo",
            "gridid",
            "inline_ptx",
            "nsmid",
            "nwarpid",
            "physical_warp_id",
            "smid",
            "total_smem_size",
        ),
        "more_arch": (
            "THREADS_PER_WARPGROUP",
            "WARPS_PER_WARPGROUP",
            "atomic_fmax",
            "atomic_fmin",
            "atomic_max_float32",
            "block_idx_in_cluster",
            "cluster_size",
            "cvt_f32x2_bf16x2",
            "cvt_f32_tf32",
            "cvt_i8_bf16",
            "cvt_i8x2_to_bf16x2",
            "cvt_i8x2_to_f32x2",
            "cvt_i8x4_to_bf16x4",
            "cvt_i8x4_to_f32x4",
            "exp",
            "exp2",
            "fence_view_async_shared",
            "lanemask_eq",
            "lanemask_ge",
            "lanemask_gt",
            "lanemask_le",
            "lanemask_lt",
            "load",
            "match_sync",
            "mbarrier_conditional_try_wait",
            "mbarrier_test_wait",
            "red",
            "store",
            "warp_redux_sync",
            "warpgroup_reg_alloc",
            "warpgroup_reg_dealloc",
            "warpsize",
        ),
        "packed": (
            "add_packed_bf16x2",
            "add_packed_f16x2",
            "add_packed_f32x2",
            "add_packed_f32x2_bf16x2_f32x2",
            "add_packed_f32x2_f16x2_f32x2",
            "add_packed_bf16x2_f32x2_f32x2",
            "add_packed_f16x2_f32x2_f32x2",
            "sub_packed_bf16x2_f32x2_f32x2",
            "sub_packed_f16x2_f32x2_f32x2",
            "exp2_packed_bf16x2",
            "exp2_packed_f16x2",
            "fma_bf16",
            "fma_f16",
            "fma_packed_bf16x2",
            "fma_packed_f16x2",
            "fma_packed_f32x2",
            "fma_packed_f32x2_bf16x2_f32x2_f32x2",
            "fma_packed_f32x2_f16x2_f32x2_f32x2",
            "mul_packed_f32x2",
            "sub_packed_bf16x2",
            "sub_packed_f16x2",
            "sub_packed_f32x2",
            "sub_packed_f32x2_bf16x2_f32x2",
            "sub_packed_f32x2_f16x2_f32x2",
        ),
    }
)
"""The names that few kernels use: the module that has them is imported when one is used."""


def __getattr__(name: str) -> Any:
    for module, names in _MORE.items():
        if name in names:
            return getattr(importlib.import_module(f"ferrule.language.faces.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *(name for names in _MORE.values() for name in names)]


def fmax(a: Any, b: Any) -> Any:
    """The larger of two floats; if one is NaN, the other one.  `max` returns NaN there."""
    return where(a != a, b, where(b != b, a, maths.max(a, b)))


def fmin(a: Any, b: Any) -> Any:
    """The smaller of two floats; if one is NaN, the other one.  `min` returns NaN there."""
    return where(a != a, b, where(b != b, a, maths.min(a, b)))


def rcp_approx(a: Any) -> Any:
    """An approximation of 1 / a for a float; on a GPU, for Float32, `rcp.approx` with at most 1
    ulp."""
    outside("arch.rcp_approx")

"""The names of NVVM's intrinsics for tensor cores and asynchronous work."""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import asynchronous, ops
from ferrule.specs import DType, Float8E4M3FN, Float8E5M2, Float16

CONTROLS: Final[dict[asynchronous.ControlKind, str]] = {
    "cp_async_commit_group": "cp.async.commit.group",
    "cp_async_wait_group": "cp.async.wait.group",
    "cp_async_bulk_commit_group": "cp.async.bulk.commit.group",
    "cp_async_bulk_wait_group": "cp.async.bulk.wait.group",
    "cp_async_bulk_wait_group_read": "cp.async.bulk.wait.group.read",
    "griddepcontrol_wait": "griddepcontrol.wait",
    "griddepcontrol_launch_dependents": "griddepcontrol.launch.dependents",
    "cluster_arrive": "barrier.cluster.arrive",
    "cluster_arrive_relaxed": "barrier.cluster.arrive.relaxed",
    "cluster_wait": "barrier.cluster.wait",
    "mbarrier_init_fence": "fence.mbarrier_init.release.cluster",
    "fence_proxy_alias": "fence.proxy.alias",
    "fence_proxy_async": "fence.proxy.async",
    "fence_proxy_async_global": "fence.proxy.async.global",
    "fence_proxy_async_shared_cta": "fence.proxy.async.shared_cta",
    "fence_proxy_async_shared_cluster": "fence.proxy.async.shared_cluster",
    "fence_proxy_tensormap_release": "fence.proxy.tensormap_generic.release.gpu",
    "wgmma_fence": "wgmma.fence.sync.aligned",
    "wgmma_commit_group": "wgmma.commit_group.sync.aligned",
    "wgmma_wait_group": "wgmma.wait_group.sync.aligned",
    "setmaxregister_increase": "setmaxnreg.inc.sync.aligned.u32",
    "setmaxregister_decrease": "setmaxnreg.dec.sync.aligned.u32",
}
"""The intrinsic of each."""
MBARRIERS: Final[dict[ops.MBarrierKind, str]] = {
    "init": "mbarrier.init.shared",
    "arrive": "mbarrier.arrive.shared",
    "expect_tx": "mbarrier.expect.tx.scope.cta.space.cta",
    "arrive_and_expect_tx": "mbarrier.arrive.expect.tx.scope.cta.space.cta",
    "copies_arrive": "cp.async.mbarrier.arrive.noinc.shared",
}
"""The intrinsic of each."""
GIVE_STATE: Final = ("arrive", "arrive_and_expect_tx")
"""The kinds that return the state of the barrier, an i64."""
EIGHT_BITS: Final[dict[DType, str]] = {Float8E4M3FN: "e4m3", Float8E5M2: "e5m2"}
"""Floats of 8 bits in PTX's words."""
CACHES: Final[dict[asynchronous.CacheMode, str]] = {"always": "ca", "global": "cg"}
"""The caches of an asynchronous copy, in PTX's words."""


def mma_types(a: DType, b: DType, d: DType) -> str:
    """The dtypes in NVVM's name."""
    short = {"int8": "s8", "uint8": "u8", "bfloat16": "bf16", "tfloat32": "tf32"}
    total = "f16" if d is Float16 else "f32"
    if a is Float16:
        return f"{total}.{total}"
    if a in EIGHT_BITS:
        return f"{total}.{EIGHT_BITS[a]}.{EIGHT_BITS[b]}.{total}"
    return short[a.name] if a is b else f"{short[a.name]}.{short[b.name]}"

"""Since which architecture GPUs have an instruction, as the PTX manual's "Target ISA Notes" say.

Each row has a line of PTX with it, so that NVIDIA's assembler can be asked, where there is one: it
takes the line for the first architecture, and refuses it for the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.operation import Operation
from ferrule.language.ir.tensor_cores import NARROW_MMA
from ferrule.specs import Float8E4M3FN, Float8E5M2


@dataclass(frozen=True)
class Since:
    """The name that messages have, the first architecture, and a line of PTX."""

    name: str
    least: int
    ptx: str


_MBARRIER: Final = "mbarrier.try_wait.parity.shared.b64 %p0, [%r0], %r1;"
_BULK: Final = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0], "
_BOX: Final = "prefetch.tensormap [%rd0];"
_PEER: Final = "mapa.shared::cluster.u32 %r0, %r1, %r2;"
_MMA: Final = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, "
    "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f0, %f1, %f2, %f3};"
)

_NARROW_MMA: Final = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f0, %f1, %f2, %f3}, "
    "{%r0, %r1, %r2, %r3}, {%r0, %r1}, {%f0, %f1, %f2, %f3};"
)

SINCE: Final[Mapping[type[Operation] | str, Since]] = {
    ops.Mma: Since("mma", 80, _MMA),
    NARROW_MMA: Since(NARROW_MMA, 89, _NARROW_MMA),
    ops.LoadMatrix: Since("ldmatrix", 75, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r1];"),
    ops.StoreMatrix: Since(
        "stmatrix", 90, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r0};"
    ),
    ops.WarpgroupMma: Since("wgmma", 90, "wgmma.commit_group.sync.aligned;"),
    ops.AsyncCopy: Since("cp_async", 80, "cp.async.ca.shared.global [%r0], [%rd0], 4;"),
    ops.TensorCopy: Since("cp_async_bulk_tensor", 90, _BOX),
    ops.MapCopy: Since("cp_async_bulk_tensor", 90, _BOX),
    ops.MapEdit: Since(
        "tensormap_replace",
        90,
        "tensormap.replace.tile.global_address.global.b1024.b64 [%rd0], %rd1;",
    ),
    ops.BulkStore: Since(
        "cp_async_bulk", 90, "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], 16;"
    ),
    ops.BulkCopy: Since("cp_async_bulk", 90, f"{_BULK}16, [%r1];"),
    ops.MBarrier: Since("mbarrier", 90, "mbarrier.expect_tx.relaxed.cta.shared.b64 [%r0], 16;"),
    ops.MBarrierWait: Since("mbarrier", 90, _MBARRIER),
    ops.MBarrierTry: Since("mbarrier", 90, _MBARRIER),
    ops.PeerLoad: Since("load_peer or store_peer", 90, _PEER),
    ops.PeerStore: Since("load_peer or store_peer", 90, _PEER),
    "cp_async_commit_group": Since("cp_async_commit_group", 80, "cp.async.commit_group;"),
    "cp_async_wait_group": Since("cp_async_wait_group", 80, "cp.async.wait_group 0;"),
    "cp_async_bulk_commit_group": Since(
        "cp_async_bulk_commit_group", 90, "cp.async.bulk.commit_group;"
    ),
    "cp_async_bulk_wait_group": Since(
        "cp_async_bulk_wait_group", 90, "cp.async.bulk.wait_group 0;"
    ),
    "cp_async_bulk_wait_group_read": Since(
        "cp_async_bulk_wait_group_read", 90, "cp.async.bulk.wait_group.read 0;"
    ),
    "griddepcontrol_wait": Since("griddepcontrol_wait", 90, "griddepcontrol.wait;"),
    "griddepcontrol_launch_dependents": Since(
        "griddepcontrol_launch_dependents", 90, "griddepcontrol.launch_dependents;"
    ),
    "cluster_arrive": Since("cluster_arrive", 90, "barrier.cluster.arrive.aligned;"),
    "cluster_arrive_relaxed": Since(
        "cluster_arrive_relaxed", 90, "barrier.cluster.arrive.relaxed.aligned;"
    ),
    "cluster_wait": Since("cluster_wait", 90, "barrier.cluster.wait.aligned;"),
    "mbarrier_init_fence": Since("mbarrier_init_fence", 90, "fence.mbarrier_init.release.cluster;"),
    "fence_proxy_alias": Since("fence_proxy_alias", 70, "fence.proxy.alias;"),
    "fence_proxy_async": Since("fence_proxy_async", 90, "fence.proxy.async;"),
    "fence_proxy_async_global": Since("fence_proxy_async_global", 90, "fence.proxy.async.global;"),
    "fence_proxy_async_shared_cta": Since(
        "fence_proxy_async_shared_cta", 90, "fence.proxy.async.shared::cta;"
    ),
    "fence_proxy_async_shared_cluster": Since(
        "fence_proxy_async_shared_cluster", 90, "fence.proxy.async.shared::cluster;"
    ),
    "fence_proxy_tensormap_release": Since(
        "fence_proxy_tensormap_release", 90, "fence.proxy.tensormap::generic.release.gpu;"
    ),
    "setmaxregister_increase": Since(
        "setmaxregister_increase", 90, "setmaxnreg.inc.sync.aligned.u32 64;"
    ),
    "setmaxregister_decrease": Since(
        "setmaxregister_decrease", 90, "setmaxnreg.dec.sync.aligned.u32 64;"
    ),
    "wgmma_fence": Since("wgmma_fence", 90, "wgmma.fence.sync.aligned;"),
    "wgmma_commit_group": Since("wgmma_commit_group", 90, "wgmma.commit_group.sync.aligned;"),
    "wgmma_wait_group": Since("wgmma_wait_group", 90, "wgmma.wait_group.sync.aligned 0;"),
}
"""By the class of an op, the kind of a `Control`, or the name of the younger products."""


def since(op: Operation) -> Since | None:
    """The row of an op."""
    match op:
        case ops.Control(kind=kind):
            return SINCE.get(kind)
        case ops.Mma(a=a) if a.tensor.dtype in (Float8E4M3FN, Float8E5M2):
            return SINCE[NARROW_MMA]
    return SINCE.get(type(op))


def module(row: Since, arch: str) -> str:
    """A module of PTX with the line of a row."""
    return f"""\
.version 8.4
.target {arch}
.address_size 64
.visible .entry k() .reqntid 128
{{
.reg .pred %p<4>;
.reg .b32 %r<4>;
.reg .f32 %f<4>;
.reg .b64 %rd<4>;
{row.ptx}
ret;
}}
"""

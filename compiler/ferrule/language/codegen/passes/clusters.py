"""Clusters of blocks on targets without them: each block is a cluster of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite

REGISTERS: Final[dict[ops.Register, str]] = {
    "cluster_idx": "clusterid",
    "cluster_dim": "nclusterid",
    "block_in_cluster_idx": "cluster.ctaid",
    "block_in_cluster_dim": "cluster.nctaid",
}
"""The special registers on GPUs since sm_90 (PTX ISA, "Special Registers")."""
LEAST: Final = 90
"""Ten times the first compute capability with clusters."""
_SAME: Final[dict[ops.Register, ops.Register]] = {
    "cluster_idx": "block_idx",
    "cluster_dim": "grid_dim",
}
_KNOWN: Final[dict[ops.Register, int]] = {"block_in_cluster_idx": 0, "block_in_cluster_dim": 1}


def uses_clusters(kernel: ops.Function) -> bool:
    """Whether a kernel reads coordinates of its cluster."""
    return any(special.register in REGISTERS for special in kernel.facts.each(ops.Special))


def without_clusters(kernel: ops.Function) -> ops.Function:
    """The kernel with each block as a cluster of its own."""
    return replace(kernel, body=rewrite(kernel.body, _rule)) if uses_clusters(kernel) else kernel


def _rule(b: Builder, op: ops.Op) -> None:
    match op:
        case ops.Special(result, register, axis) if register in _SAME:
            b.append(ops.Special(result, _SAME[register], axis))
        case ops.Special(result, register) if register in _KNOWN:
            b.append(ops.Constant(result, _KNOWN[register]))
        case _:
            b.append(op)

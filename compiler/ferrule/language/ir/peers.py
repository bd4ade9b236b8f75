"""Ops of the kernel IR on the shared memory of other blocks of the cluster.

The element is the first of a compact tensor of one dim in shared memory, at the same place in the
block whose number in the cluster is `peer`, an Int32.  If a cluster is one block, that is the block
itself.
"""

from __future__ import annotations

from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class PeerLoad(
    Operation, text="peer_load {source}, {peer}", effects=("reads",), uniform=True, place="kernel"
):
    """Reads an element of a block of the cluster."""

    result: Result
    source: Value
    peer: Value


@dataclass(frozen=True, slots=True, eq=False)
class PeerStore(
    Operation,
    text="peer_store {value}, {target}, {peer}",
    effects=("writes",),
    writes=("target",),
    place="kernel",
):
    """Writes an element of a block of the cluster."""

    target: Value
    value: Value
    peer: Value

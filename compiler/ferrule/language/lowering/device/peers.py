"""`fe.arch.load_peer` and `store_peer`: shared memory of other blocks of the cluster."""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language import asynchronous as faces
from ferrule.language.ir import ops
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.device.tensor_cores import shared_pointer
from ferrule.language.lowering.device.threads import Intrinsic, integer, require_kernel
from ferrule.language.lowering.tensors import access
from ferrule.language.values import Number
from ferrule.specs import Int32

_PEER: Final = "the peer_cta_rank_in_cluster"


def _load(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Number:
    """`fe.arch.load_peer(ptr, peer_cta_rank_in_cluster)`."""
    pointer, peer = bound(low, "ptr peer_cta_rank_in_cluster", args, kwargs, node)
    require_kernel(low, "load_peer", node)
    source = shared_pointer(low, "load_peer", pointer, node)
    access.require_element(low, source.type.dtype, node)
    result = ops.Value(source.type.dtype, "of_peer")
    block = integer(low, peer, Int32, _PEER, node)
    low.builder.append(ops.PeerLoad(result, source.value, block))
    return Number(result)


def _store(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    """`fe.arch.store_peer(ptr, value, peer_cta_rank_in_cluster)`."""
    pointer, value, peer = bound(low, "ptr value peer_cta_rank_in_cluster", args, kwargs, node)
    require_kernel(low, "store_peer", node)
    target = shared_pointer(low, "store_peer", pointer, node)
    stored = access.stored(low, target.type.dtype, value, target.name, node)
    block = integer(low, peer, Int32, _PEER, node)
    low.state.writes += 1
    low.builder.append(ops.PeerStore(target.value, stored, block))


TABLE: Final[dict[Any, Intrinsic]] = {faces.load_peer: _load, faces.store_peer: _store}
"""What these functions emit."""

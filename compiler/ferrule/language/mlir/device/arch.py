"""Tensor cores and asynchronous copies on a GPU: each op is one of NVVM's intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ferrule.language.codegen.cuda.nvvm import (
    CACHES,
    CONTROLS,
    GIVE_STATE,
    MBARRIERS,
    mma_types,
)
from ferrule.language.ir import ops, tensor_cores
from ferrule.language.mlir import memory
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.types import element_type
from ferrule.specs import Float16, Float32

_HALVES = "vector<2xf16>"
_CLUSTER = "!llvm.ptr<7>"

EmitOp = Callable[[FunctionText, Any], "str | None"]
"""Emits an op of one class; returns the value of its result, if it has one."""


def _try_wait(f: FunctionText, op: ops.MBarrierWait | ops.MBarrierTry) -> str:
    """Whether the phase has ended; the hardware waits for a limited time before it answers."""
    given = [memory.pointer(f, op.barrier), f.values[op.phase]]
    return intrinsic(f, "mbarrier.try.wait.parity.scope.cta.space.cta", "i1", given)


# ---- tensor cores ----


def _mma(f: FunctionText, op: ops.Mma) -> None:
    a, d = op.a.tensor.dtype, op.d.tensor.dtype
    kind = _HALVES if a is Float16 else "i32"
    sums = _HALVES if d is Float16 else "f32" if d is Float32 else "i32"
    given = _loaded(f, op.a, kind) + _loaded(f, op.b, kind) + _loaded(f, op.c, sums)
    types = mma_types(a, op.b.tensor.dtype, d)
    name = f"mma.m16n8k{tensor_cores.depth(op)}.row.col.{types}"
    _store(f, op.d, sums, name, given)


def _load_matrix(f: FunctionText, op: ops.LoadMatrix) -> None:
    form = ".trans" if op.transposed else ""
    name = f"ldmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
    _store(f, op.target, "i32", name, [memory.pointer(f, op.source)])


def _store_matrix(f: FunctionText, op: ops.StoreMatrix) -> None:
    form = ".trans" if op.transposed else ""
    name = f"stmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
    intrinsic(f, name, None, [memory.pointer(f, op.target), *_loaded(f, op.source, "i32")])


def _word(f: FunctionText, start: str, position: int) -> str:
    text = f"llvm.getelementptr {start}[{position}] : (!llvm.ptr) -> !llvm.ptr, i32"
    return f.t.op(text, "!llvm.ptr")


def _loaded(f: FunctionText, fragment: ops.Value, kind: str) -> list[str]:
    """Loads the words of a fragment, each as this type."""
    start = memory.pointer(f, fragment)
    count = tensor_cores.fragment_size(fragment) // tensor_cores.words(fragment)
    places = [_word(f, start, position) for position in range(count)]
    form = f"{{alignment = 4 : i64}} : !llvm.ptr -> {kind}"
    return [f.t.op(f"llvm.load {place} {form}", kind) for place in places]


def _store(
    f: FunctionText, fragment: ops.Value, kind: str, name: str, given: Sequence[str]
) -> None:
    """Stores the words that an intrinsic returns into a fragment."""
    count = tensor_cores.fragment_size(fragment) // tensor_cores.words(fragment)
    several = f"!llvm.struct<({', '.join([kind] * count)})>"
    found = intrinsic(f, name, several if count > 1 else kind, given)
    start = memory.pointer(f, fragment)
    for position in range(count):
        text = f"llvm.extractvalue {found}[{position}] : {several}"
        word = f.t.op(text, kind) if count > 1 else found
        place = _word(f, start, position)
        f.t.line(f"llvm.store {word}, {place} {{alignment = 4 : i64}} : {kind}, !llvm.ptr")


# ---- copies and barriers in shared memory ----


def control(f: FunctionText, op: ops.Control) -> None:
    """The start, a group, or a fence of work in the background."""
    given = [f.t.integer(op.amount, "i32")] if op.kind in ops.WITH_AMOUNT else []
    intrinsic(f, CONTROLS[op.kind], None, given)


def _mbarrier(f: FunctionText, op: ops.MBarrier) -> None:
    if op.peer is not None:
        there = _at_peer(f, op.barrier, op.peer)
        name = "mbarrier.arrive.scope.cluster.space.cluster"
        intrinsic(f, name, None, [there, f.t.integer(1, "i32")])
        return
    result = "i64" if op.kind in GIVE_STATE else None
    numbers = [] if op.amount is None else [f.values[op.amount]]
    intrinsic(f, MBARRIERS[op.kind], result, [memory.pointer(f, op.barrier), *numbers])


def _copy(f: FunctionText, op: ops.AsyncCopy) -> None:
    t, size = f.t, op.count * op.target.tensor.dtype.itemsize
    name = f"cp.async.{CACHES[op.cache]}.shared.global.{size}"
    given = [memory.pointer(f, op.target), memory.in_gmem(f, op.source)]
    if op.holds is None:
        intrinsic(f, name, None, given)
        return
    read = t.select(f.values[op.holds], t.integer(size, "i32"), t.integer(0, "i32"))
    intrinsic(f, f"{name}.s", None, [*given, read])


def _bulk_copy(f: FunctionText, op: ops.BulkCopy) -> None:
    """A bulk copy into shared memory of this block, which is addressed as memory of its cluster."""
    t = f.t
    given = [in_cluster(f, op.target), memory.pointer(f, op.barrier), memory.in_gmem(f, op.source)]
    given += [f.values[op.size], t.integer(0, "i16"), t.const_i64(0)]
    given += [t.const_i1(False), t.const_i1(False)]
    intrinsic(f, "cp.async.bulk.global.to.shared.cluster", None, given)


def _bulk_store(f: FunctionText, op: ops.BulkStore) -> None:
    given = [memory.in_gmem(f, op.target), memory.pointer(f, op.source), f.values[op.size]]
    given += [f.t.const_i64(0), f.t.const_i1(False)]
    intrinsic(f, "cp.async.bulk.shared.cta.to.global", None, given)


def in_cluster(f: FunctionText, tensor: ops.Value) -> str:
    """The address of the block's shared memory in the cluster's address space."""
    place = memory.pointer(f, tensor)
    text = f"llvm.addrspacecast {place} : {f.t.types[place]} to {_CLUSTER}"
    return f.t.op(text, _CLUSTER)


def _at_peer(f: FunctionText, place: ops.Value, peer: ops.Value) -> str:
    """The address of the same place in the shared memory of another block of the cluster."""
    given = [memory.pointer(f, place), f.values[peer]]
    return intrinsic(f, "mapa.shared.cluster", _CLUSTER, given)


def _peer_load(f: FunctionText, op: ops.PeerLoad) -> str:
    kind, there = element_type(op.source.tensor.dtype, f.spaces), _at_peer(f, op.source, op.peer)
    found = f.t.op(f"llvm.load {there} : {_CLUSTER} -> {kind}", kind)
    return memory.loaded(f, op.source, found)


def _peer_store(f: FunctionText, op: ops.PeerStore) -> None:
    value, there = memory.stored(f, op.target, op.value), _at_peer(f, op.target, op.peer)
    f.t.line(f"llvm.store {value}, {there} : {f.t.types[value]}, {_CLUSTER}")


def _wait(f: FunctionText, op: ops.MBarrierWait) -> None:
    """Asks until the phase has ended; each time the hardware waits for a limited time."""
    t = f.t
    t.line("scf.while : () -> () {")
    with t.indented():
        ended = _try_wait(f, op)
        t.line(f"scf.condition({t.not_(ended)})")
    t.line("} do {")
    t.line("  scf.yield")
    t.line("}")


def intrinsic(f: FunctionText, name: str, result: str | None, given: Sequence[str]) -> str:
    """A call of one of NVVM's intrinsics."""
    types = ", ".join(f.t.types[value] for value in given)
    text = f'llvm.call_intrinsic "llvm.nvvm.{name}"({", ".join(given)}) : ({types}) -> '
    if result is None:
        f.t.line(f"{text}()")
        return ""
    return f.t.op(f"{text}{result}", result)


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType(
    {
        ops.Mma: _mma,
        ops.LoadMatrix: _load_matrix,
        ops.StoreMatrix: _store_matrix,
        ops.AsyncCopy: _copy,
        ops.BulkCopy: _bulk_copy,
        ops.BulkStore: _bulk_store,
        ops.MBarrier: _mbarrier,
        ops.MBarrierWait: _wait,
        ops.MBarrierTry: _try_wait,
        ops.PeerLoad: _peer_load,
        ops.PeerStore: _peer_store,
    }
)

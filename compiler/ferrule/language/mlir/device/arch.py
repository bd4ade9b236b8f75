"""Tensor cores and asynchronous copies on a GPU: each op is one of NVVM's intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

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


def lower(f: FunctionText, op: ops.Op) -> bool:
    """Emits an op if it is one of these; returns whether it is."""
    match op:
        case ops.Mma():
            _mma(f, op)
        case ops.LoadMatrix():
            form = ".trans" if op.transposed else ""
            name = f"ldmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
            _store(f, op.target, "i32", name, [memory.pointer(f, op.source)])
        case ops.AsyncCopy():
            _copy(f, op)
        case ops.Control(kind, amount):
            given = [f.t.integer(amount, "i32")] if kind in ops.WITH_AMOUNT else []
            intrinsic(f, CONTROLS[kind], None, given)
        case ops.StoreMatrix():
            form = ".trans" if op.transposed else ""
            name = f"stmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
            intrinsic(f, name, None, [memory.pointer(f, op.target), *_loaded(f, op.source, "i32")])
        case ops.PeerLoad():
            _peer_load(f, op)
        case ops.PeerStore():
            _peer_store(f, op)
        case ops.MBarrier("arrive", barrier, peer=ops.Value() as peer):
            there = _at_peer(f, barrier, peer)
            name = "mbarrier.arrive.scope.cluster.space.cluster"
            intrinsic(f, name, None, [there, f.t.integer(1, "i32")])
        case ops.MBarrier(kind, barrier, amount):
            name, result = MBARRIERS[kind], "i64" if kind in GIVE_STATE else None
            numbers = [] if amount is None else [f.values[amount]]
            intrinsic(f, name, result, [memory.pointer(f, barrier), *numbers])
        case ops.MBarrierWait():
            _wait(f, op)
        case ops.BulkCopy():
            _bulk_copy(f, op)
        case ops.BulkStore(target, source, size):
            given = [memory.in_gmem(f, target), memory.pointer(f, source), f.values[size]]
            given += [f.t.const_i64(0), f.t.const_i1(False)]
            intrinsic(f, "cp.async.bulk.shared.cta.to.global", None, given)
        case _:
            return False
    return True


def try_wait(f: FunctionText, op: ops.MBarrierWait | ops.MBarrierTry) -> str:
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
    given = [_in_cluster(f, op.target), memory.pointer(f, op.barrier), memory.in_gmem(f, op.source)]
    given += [f.values[op.size], t.integer(0, "i16"), t.const_i64(0)]
    given += [t.const_i1(False), t.const_i1(False)]
    intrinsic(f, "cp.async.bulk.global.to.shared.cluster", None, given)


def _in_cluster(f: FunctionText, tensor: ops.Value) -> str:
    """The address of the block's shared memory in the cluster's address space."""
    place = memory.pointer(f, tensor)
    text = f"llvm.addrspacecast {place} : {f.t.types[place]} to {_CLUSTER}"
    return f.t.op(text, _CLUSTER)


def _at_peer(f: FunctionText, place: ops.Value, peer: ops.Value) -> str:
    """The address of the same place in the shared memory of another block of the cluster."""
    given = [memory.pointer(f, place), f.values[peer]]
    return intrinsic(f, "mapa.shared.cluster", _CLUSTER, given)


def _peer_load(f: FunctionText, op: ops.PeerLoad) -> None:
    kind, there = element_type(op.source.tensor.dtype, f.spaces), _at_peer(f, op.source, op.peer)
    found = f.t.op(f"llvm.load {there} : {_CLUSTER} -> {kind}", kind)
    f.values[op.result] = memory.loaded(f, op.source, found)


def _peer_store(f: FunctionText, op: ops.PeerStore) -> None:
    value, there = memory.stored(f, op.target, op.value), _at_peer(f, op.target, op.peer)
    f.t.line(f"llvm.store {value}, {there} : {f.t.types[value]}, {_CLUSTER}")


def tensor_copy(f: FunctionText, op: ops.TensorCopy, map_: str) -> None:
    """A copy by a tensor map; the coordinates begin with the innermost one."""
    t, no = f.t, f.t.const_i1(False)
    if op.kind == "prefetch_map":
        intrinsic(f, "prefetch.tensormap.p0", None, [map_])
        return
    at = [f.values[op.coordinates[dim]] for dim in op.boxes.order]
    form, hint = f"tile.{len(at)}d", t.const_i64(0)
    if op.kind == "prefetch":
        intrinsic(f, f"cp.async.bulk.tensor.prefetch.{form}", None, [map_, *at, hint, no])
        return
    assert op.shared is not None
    if op.kind == "store":
        given = [memory.pointer(f, op.shared), map_, *at, hint, no]
        intrinsic(f, f"cp.async.bulk.tensor.s2g.{form}", None, given)
        return
    assert op.barrier is not None
    mask = t.integer(0, "i16") if op.mask is None else t.cast("trunci", f.values[op.mask], "i16")
    given = [_in_cluster(f, op.shared), memory.pointer(f, op.barrier), map_, *at, mask, hint]
    given += [t.const_i1(op.mask is not None), no, t.integer(0, "i32")]
    intrinsic(f, f"cp.async.bulk.tensor.g2s.{form}", None, given)


def _wait(f: FunctionText, op: ops.MBarrierWait) -> None:
    """Asks until the phase has ended; each time the hardware waits for a limited time."""
    t = f.t
    t.line("scf.while : () -> () {")
    with t.indented():
        ended = try_wait(f, op)
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

"""Tensor cores and asynchronous work on a GPU: each op is one of NVVM's intrinsics.

Each has a minimum architecture: LLVM would abort the process if it finds no instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import binding as llvm
from llvmlite import ir

from ferrule.compiler.cuda import archs
from ferrule.language.codegen.cuda.nvvm import (
    CACHES,
    CONTROLS,
    GIVE_STATE,
    MBARRIERS,
    mma_types,
)
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering
from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops, tensor_cores
from ferrule.runtime.llvm.layouts import F32, I1, I8, I16, I32, I64, VOID
from ferrule.specs import Boolean, Float16, Float32

_MBARRIER_LLVM: Final = 22
"""The version of LLVM since which it has all of these intrinsics."""
_OF_NEW_LLVM: Final = (
    *("mbarrier", "cp_async_bulk", "cp_async_bulk_tensor", "stmatrix"),
    tensor_cores.NARROW_MMA,
)
_WGMMA_ARCH: Final = "sm_90a"
_HALVES: Final = ir.VectorType(ir.HalfType(), 2)
_NO_MASK, _NO_HINT, _NO = ir.Constant(I16, 0), ir.Constant(I64, 0), ir.Constant(I1, 0)
_GLOBAL: Final = ir.PointerType(addrspace=1)
_GENERIC: Final = ir.PointerType()
# NVPTX's address space of the shared memory of a cluster.
_OF_CLUSTER: Final = ir.PointerType(addrspace=7)


def require_architecture(kernel: ops.Function, arch: str) -> None:
    """Raises CodegenError for a kernel with an op that the architecture does not support."""
    for op in kernel.facts.ops:
        if op.since is not None:
            _require(kernel, *op.since, arch)


def _require(kernel: ops.Function, name: str, least: int, arch: str) -> None:
    if name.startswith("wgmma") and arch != _WGMMA_ARCH:
        raise CodegenError(
            f"{kernel.name}: arch.{name} is known to {_WGMMA_ARCH} alone, but the architecture is "
            f"{arch}"
        )
    if name.startswith(("setmaxregister", "tensormap")) and arch[-1].isdigit():
        raise CodegenError(
            f"{kernel.name}: arch.{name} is known to architectures with an a, from sm_90a on, but "
            f"the architecture is {arch}"
        )
    if name in _OF_NEW_LLVM and llvm.llvm_version_info[0] < _MBARRIER_LLVM:
        raise CodegenError(
            f"{kernel.name}: arch.{name} needs an llvmlite with LLVM {_MBARRIER_LLVM} or newer, "
            f"but this one has LLVM {llvm.llvm_version_info[0]}"
        )
    if archs.capability(arch) < least:
        raise CodegenError(
            f"{kernel.name}: arch.{name} is known to GPUs from sm_{least} on, but the "
            f"architecture is {arch}"
        )


def call(lowering: FunctionLowering, name: str, result: ir.Type, given: list[ir.Value]) -> ir.Value:
    """A call of one of NVVM's intrinsics, marked as convergent.

    For some of them LLVM does not know that the lanes of a warp execute them together, and could
    move them into a divergent branch.
    """
    e = lowering.emitter
    kind = ir.FunctionType(result, [value.type for value in given])
    found = e.call(e.symbol(f"llvm.nvvm.{name}", kind), given)
    found.attributes.add("convergent")
    return found


# ---- tensor cores ----


def _mma(lowering: FunctionLowering, op: ops.Mma) -> None:
    a, d = op.a.tensor.dtype, op.d.tensor.dtype
    kind = _HALVES if a is Float16 else I32
    sums = _HALVES if d is Float16 else F32 if d is Float32 else I32
    given = _loaded(lowering, op.a, kind) + _loaded(lowering, op.b, kind)
    given += _loaded(lowering, op.c, sums)
    name = f"mma.m16n8k{tensor_cores.depth(op)}.row.col.{mma_types(a, op.b.tensor.dtype, d)}"
    _store(lowering, op.d, sums, name, given)


def _load_matrix(lowering: FunctionLowering, op: ops.LoadMatrix) -> None:
    form = ".trans" if op.transposed else ""
    name = f"ldmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
    _store(lowering, op.target, I32, name, [lowering.values[op.source]])


def _store_matrix(lowering: FunctionLowering, op: ops.StoreMatrix) -> None:
    form = ".trans" if op.transposed else ""
    name = f"stmatrix.sync.aligned.m8n8.x{op.count}{form}.b16.p3"
    given = [lowering.values[op.target], *_loaded(lowering, op.source, I32)]
    call(lowering, name, VOID, given)


def _loaded(lowering: FunctionLowering, fragment: ops.Value, kind: ir.Type) -> list[ir.Value]:
    """The words of a fragment, each of this type."""
    e, count = lowering.emitter, tensor_cores.fragment_size(fragment)
    start = lowering.values[fragment]
    places = range(count // tensor_cores.words(fragment))
    return [lowering.b.load(e.index(start, I32, at), typ=kind, align=4) for at in places]


def _store(
    lowering: FunctionLowering,
    fragment: ops.Value,
    kind: ir.Type,
    name: str,
    given: list[ir.Value],
) -> None:
    """Fills a fragment with the result words of an intrinsic."""
    e, b = lowering.emitter, lowering.b
    count = tensor_cores.fragment_size(fragment) // tensor_cores.words(fragment)
    several = ir.LiteralStructType([kind] * count)
    found = call(lowering, name, several if count > 1 else kind, given)
    for position in range(count):
        word = b.extract_value(found, position) if count > 1 else found
        b.store(word, e.index(lowering.values[fragment], I32, position), align=4)


def control(lowering: FunctionLowering, op: ops.Control) -> None:
    """Emits the start, a group, or a fence of work in the background."""
    given = [ir.Constant(I32, op.amount)] if op.kind in ops.WITH_AMOUNT else []
    call(lowering, CONTROLS[op.kind], VOID, given)


# ---- copies ----


def _copy(lowering: FunctionLowering, op: ops.AsyncCopy) -> None:
    b, size = lowering.b, op.count * op.target.tensor.dtype.itemsize
    source = _global(lowering, op.source)
    name = f"cp.async.{CACHES[op.cache]}.shared.global.{size}"
    given = [lowering.values[op.target], source]
    if op.holds is None:
        call(lowering, name, VOID, given)
        return
    # PTX's src-size: what is not read of the source is written as zeros.
    read = b.select(lowering.values[op.holds], ir.Constant(I32, size), ir.Constant(I32, 0))
    call(lowering, f"{name}.s", VOID, [*given, read])


def _global(lowering: FunctionLowering, pointer: ops.Value) -> ir.Value:
    """The address as a pointer to global memory."""
    value = lowering.values[pointer]
    if value.type.addrspace == _GLOBAL.addrspace:
        return value
    return lowering.b.addrspacecast(value, _GLOBAL)


def _bulk_copy(lowering: FunctionLowering, op: ops.BulkCopy) -> None:
    """A copy to this block; its shared memory is also an address of its cluster."""
    target = lowering.b.addrspacecast(lowering.values[op.target], _OF_CLUSTER)
    barrier, size = lowering.values[op.barrier], lowering.values[op.size]
    given = [target, barrier, _global(lowering, op.source), size, _NO_MASK, _NO_HINT, _NO, _NO]
    call(lowering, "cp.async.bulk.global.to.shared.cluster", VOID, given)


def _bulk_store(lowering: FunctionLowering, op: ops.BulkStore) -> None:
    values = lowering.values
    given = [_global(lowering, op.target), values[op.source], values[op.size], _NO_HINT, _NO]
    call(lowering, "cp.async.bulk.shared.cta.to.global", VOID, given)


def _map_of(lowering: FunctionLowering, op: ops.TensorCopy) -> ir.Value:
    """The map of a copy: a parameter, or in global memory."""
    if op.descriptor is None:
        return lowering.tensor_maps[op.tensor, op.boxes]
    return lowering.b.addrspacecast(lowering.values[op.descriptor], _GENERIC)


def _tensor_copy(lowering: FunctionLowering, op: ops.TensorCopy) -> None:
    """The map is a parameter of the kernel; the coordinates begin with the innermost one."""
    values, map_ = lowering.values, _map_of(lowering, op)
    if op.kind == "prefetch_map":
        call(lowering, "prefetch.tensormap.p0", VOID, [map_])
        return
    at = [values[op.coordinates[dim]] for dim in op.boxes.order]
    form = f"tile.{len(at)}d"
    if op.kind == "prefetch":
        name = f"cp.async.bulk.tensor.prefetch.{form}"
        call(lowering, name, VOID, [map_, *at, _NO_HINT, _NO])
        return
    assert op.shared is not None
    if op.kind == "store":
        name = f"cp.async.bulk.tensor.s2g.{form}"
        call(lowering, name, VOID, [values[op.shared], map_, *at, _NO_HINT, _NO])
        return
    assert op.barrier is not None
    b = lowering.b
    target = b.addrspacecast(values[op.shared], _OF_CLUSTER)
    mask = _NO_MASK if op.mask is None else b.trunc(values[op.mask], I16)
    several, no_group = ir.Constant(I1, int(op.mask is not None)), ir.Constant(I32, 0)
    given = [target, values[op.barrier], map_, *at, mask, _NO_HINT, several, _NO, no_group]
    call(lowering, f"cp.async.bulk.tensor.g2s.{form}", VOID, given)


# ---- barriers in shared memory ----


def _mbarrier(lowering: FunctionLowering, op: ops.MBarrier) -> None:
    if op.peer is not None:
        _arrive_at_peer(lowering, op, op.peer)
        return
    given = [lowering.values[v] for v in (op.barrier, op.amount) if v is not None]
    call(lowering, MBARRIERS[op.kind], I64 if op.kind in GIVE_STATE else VOID, given)


def _arrive_at_peer(lowering: FunctionLowering, op: ops.MBarrier, peer: ops.Value) -> None:
    """The barrier at the same place of another block of the cluster."""
    there = _at_peer(lowering, op.barrier, peer)
    name = "mbarrier.arrive.scope.cluster.space.cluster"
    call(lowering, name, VOID, [there, ir.Constant(I32, 1)])


def _wait(lowering: FunctionLowering, op: ops.MBarrierWait) -> None:
    """Polls until the phase has ended; at each try the hardware waits for a while."""
    e = lowering.emitter
    again, done = e.block("mbarrier.wait"), e.block("mbarrier.passed")
    e.branch(again)
    e.at(again)
    e.cond_branch(_try_wait(lowering, op), done, again)
    e.at(done)


def _try_wait(lowering: FunctionLowering, op: ops.MBarrierWait | ops.MBarrierTry) -> ir.Value:
    """Whether the phase has ended, after the hardware has waited for a while."""
    given = [lowering.values[op.barrier], lowering.values[op.phase]]
    return call(lowering, "mbarrier.try.wait.parity.scope.cta.space.cta", I1, given)


def _peer_load(lowering: FunctionLowering, op: ops.PeerLoad) -> ir.Value:
    """An element of another block."""
    b, dtype = lowering.b, op.source.tensor.dtype
    there = _at_peer(lowering, op.source, op.peer)
    loaded = b.load(there, typ=memory_type(dtype), align=dtype.itemsize)
    return b.icmp_unsigned("!=", loaded, ir.Constant(I8, 0)) if dtype is Boolean else loaded


def _peer_store(lowering: FunctionLowering, op: ops.PeerStore) -> None:
    stored, dtype = lowering.values[op.value], op.target.tensor.dtype
    stored = lowering.b.zext(stored, I8) if dtype is Boolean else stored
    there = _at_peer(lowering, op.target, op.peer)
    lowering.b.store(stored, there, align=dtype.itemsize)


def _at_peer(lowering: FunctionLowering, place: ops.Value, peer: ops.Value) -> ir.Value:
    """The same place in the shared memory of another block."""
    given = [lowering.values[place], lowering.values[peer]]
    return call(lowering, "mapa.shared.cluster", _OF_CLUSTER, given)


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType(
    {
        ops.Mma: _mma,
        ops.LoadMatrix: _load_matrix,
        ops.StoreMatrix: _store_matrix,
        ops.AsyncCopy: _copy,
        ops.BulkCopy: _bulk_copy,
        ops.BulkStore: _bulk_store,
        ops.TensorCopy: _tensor_copy,
        ops.MBarrier: _mbarrier,
        ops.MBarrierWait: _wait,
        ops.MBarrierTry: _try_wait,
        ops.PeerLoad: _peer_load,
        ops.PeerStore: _peer_store,
    }
)

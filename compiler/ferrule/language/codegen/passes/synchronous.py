"""Replaces asynchronous work for targets without it: a copy is made at once.

A program must not read the target before it has waited, so the difference is invisible.  One kernel
ends before the next begins, so the control ops between kernels do nothing.

A barrier in shared memory is a number that the threads change, of which one runs at a time: bit 0
is the phase, the next `_BITS` are the arrivals of a phase, the next are the missing arrivals in
this phase, the rest the missing bytes.  Its phase has ended when nothing is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.passes.clusters import without_clusters
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.ir.types import TensorType
from ferrule.language.mathlib import expand_maths
from ferrule.specs import Int32, Int64, Uint8

# PTX's largest count of an mbarrier is 2^20 - 1, so three fields fit into its Int64.
_BITS: Final = 20
_MISSING: Final = 1 + _BITS
"""The lowest bit of the missing arrivals."""
_BYTES: Final = 1 + 2 * _BITS
_UNBOUNDED: Final = (1 << 63) - 1
# What a GPU does beside its threads: without units for it, the thread that begins it does it.
_BACKGROUND: Final = (
    ops.AsyncCopy,
    ops.Control,
    ops.MBarrier,
    ops.MBarrierTry,
    ops.BulkCopy,
    ops.BulkStore,
    ops.TensorCopy,
    ops.MapCopy,
    ops.MapEdit,
    ops.StoreMatrix,
    ops.BarrierArrive,
    ops.PeerLoad,
    ops.PeerStore,
    ops.WarpgroupMma,
    ops.InlinePtx,
)


def synchronous(program: ops.Program) -> ops.Program:
    """The program without asynchronous work; an `MBarrierWait` remains.

    What replaces it may convert narrow floats, so its maths is expanded again.
    """
    made = replace(program, kernels=tuple(map(_kernel, program.kernels)))
    changed = any(kernel.facts.has(*_BACKGROUND) for kernel in program.kernels)
    return expand_maths(made) if changed else made


def _kernel(kernel: ops.Function) -> ops.Function:
    kernel = without_clusters(kernel)
    if not kernel.facts.has(*_BACKGROUND):
        return kernel
    return replace(kernel, body=rewrite(kernel.body, _rule))


def _rule(b: Builder, op: ops.Op) -> None:
    match op:
        case ops.AsyncCopy(holds=holds) if holds is None:
            _copy(b, op)
        case ops.AsyncCopy(holds=ops.Value() as holds):
            with b.region() as then:
                _copy(b, op)
            # Where the predicate is false, CuTe DSL's copy writes zeros (PTX's ignore-src).
            with b.region() as otherwise:
                zero = b.cast(op.target.tensor.dtype, b.constant(Int32, 0))
                for position in range(op.count):
                    b.store(op.target, (b.constant(Int32, position),), zero)
            b.if_(holds, then.freeze(), otherwise.freeze(), ())
        case ops.BulkCopy(target, source, size):
            _copy_bytes(b, target, source, size)
            _change(b, op.barrier, _shifted(b, size, _BYTES))
        case ops.BulkStore(target, source, size):
            _copy_bytes(b, target, source, size)
        case ops.TensorCopy():
            _tensor_copy(b, op)
        case ops.MapCopy() | ops.MapEdit() | ops.StoreMatrix() | ops.WarpgroupMma():
            _rare(b, op)
        case ops.MBarrierTry(result, barrier, phase, location):
            # Threads change only where they wait. A loop around a try that fails would run for
            # ever.
            b.mbarrier_wait(barrier, phase, location)
            b.append(ops.Constant(result, value=True))
        case ops.PeerLoad(result, source):
            b.append(ops.Load(result, source, (b.constant(Int32, 0),)))
        case ops.PeerStore(target, value):
            b.store(target, (b.constant(Int32, 0),), value)
        case ops.BarrierArrive():
            raise CodegenError(
                "arch.barrier_arrive is known to GPUs alone: compile it for --target cuda"
            )
        case ops.InlinePtx():
            raise CodegenError(
                "arch.inline_ptx is known to GPUs alone: compile it for --target cuda"
            )
        case ops.MBarrier():
            _barrier(b, op)
        case ops.Control("cluster_wait"):
            b.barrier()  # a cluster is one block, and has arrived when all threads of it have
        case ops.Control():
            pass
        case _:
            b.append(op)


def _rare(b: Builder, op: ops.MapCopy | ops.MapEdit | ops.StoreMatrix | ops.WarpgroupMma) -> None:
    """Ops of few kernels, so that others need no module for them."""
    from ferrule.language.codegen.passes import boxes, map_words

    match op:
        case ops.MapCopy() | ops.MapEdit():
            map_words.lower(b, op)
        case ops.StoreMatrix():
            boxes.store_matrix(b, op)
        case ops.WarpgroupMma():
            from ferrule.language.codegen.passes import warpgroups

            warpgroups.multiply(b, op, boxes.thread(b))


def _copy(b: Builder, op: ops.AsyncCopy) -> None:
    """Loads all elements, then stores, so that a target can merge each into one access."""
    places = [(b.constant(Int32, position),) for position in range(op.count)]
    loaded = [b.load(op.source, place) for place in places]
    for place, value in zip(places, loaded, strict=True):
        b.store(op.target, place, value)


def _tensor_copy(b: Builder, op: ops.TensorCopy) -> None:
    """A prefetch is dropped; for a multicast the cluster is one block, the first bit."""
    if op.kind.startswith("prefetch"):
        return
    from ferrule.language.codegen.passes import boxes  # few kernels need it

    with b.region() as copied:
        boxes.copy_box(b, op)
        if op.barrier is not None:
            size = b.constant(Int32, op.boxes.tiling.bytes)
            _change(b, op.barrier, _shifted(b, size, _BYTES))
    if op.mask is None:
        b.current.ops.extend(copied.ops)
        return
    first = b.binary("and", op.mask, b.constant(Int32, 1))
    is_meant = b.compare("ne", first, b.constant(Int32, 0))
    b.if_(is_meant, copied.freeze(), ops.Region(), ())


def _copy_bytes(b: Builder, to: ops.Value, of: ops.Value, size: ops.Value) -> None:
    index, zero, one = ops.Value(Int32, "byte"), b.constant(Int32, 0), b.constant(Int32, 1)
    target, source = _bytes(b, to), _bytes(b, of)
    with b.region() as body:
        b.store(target, (index,), b.load(source, (index,)))
    b.append(ops.For((), index, zero, size, one, (), (), body.freeze()))


def _bytes(b: Builder, tensor: ops.Value) -> ops.Value:
    type_ = TensorType(Uint8, (_UNBOUNDED,), (1,), tensor.tensor.align, tensor.tensor.space)
    return b.view(tensor, type_)


# ---- barriers in shared memory ----


def _barrier(b: Builder, op: ops.MBarrier) -> None:
    one = b.constant(Int64, 1 << _MISSING)
    match op.kind, op.amount:
        case "init", ops.Value() as count:
            number = b.binary("or", _shifted(b, count, 1), _shifted(b, count, _MISSING))
            b.store(op.barrier, (b.constant(Int32, 0),), number)
        case "expect_tx", ops.Value() as size:
            _change(b, op.barrier, b.unary("neg", _shifted(b, size, _BYTES)))
        case "arrive_and_expect_tx", ops.Value() as size:
            _change(b, op.barrier, b.binary("sub", one, _shifted(b, size, _BYTES)))
        case _:
            _change(b, op.barrier, one)


def _shifted(b: Builder, count: ops.Value, by: int) -> ops.Value:
    return b.binary("shl", b.cast(Int64, count), b.constant(Int64, by))


def _change(b: Builder, barrier: ops.Value, come: ops.Value) -> None:
    """Subtracts arrivals from the missing ones; if nothing is missing, the next phase begins."""
    first = (b.constant(Int32, 0),)
    left = b.binary("sub", b.load(barrier, first), come)
    # The bytes are the highest field, so they can be negative, when a copy has ended before anybody
    # has said that it is expected. The phase goes on then.
    missing = b.binary("shr", left, b.constant(Int64, _MISSING))
    ended = b.compare("eq", missing, b.constant(Int64, 0))
    # The shift brings the arrivals of a phase, from bit 1 on, to the place of the missing ones.
    again = b.binary("shl", left, b.constant(Int64, _BITS))
    count = b.binary("and", again, b.constant(Int64, ((1 << _BITS) - 1) << _MISSING))
    other = b.binary("xor", b.binary("or", left, count), b.constant(Int64, 1))
    b.store(barrier, first, b.select(ended, other, left))

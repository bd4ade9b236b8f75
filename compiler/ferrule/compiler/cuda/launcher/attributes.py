"""The attributes of a launch, as an array of `CUlaunchAttribute` on the stack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import prod

from llvmlite import ir

from ferrule.compiler.cuda.launcher.driver import (
    ATTRIBUTE,
    CLUSTER,
    EVENT,
    ClusterScheduling,
    LaunchAttribute,
)
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """An event that a launch records: its address, and the flags of `cuEventRecordWithFlags`."""

    handle: ir.Value
    flags: int = 0
    at_block_start: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The attributes of a launch; the driver decides the ones that are not set.

    `cluster`: blocks along x, y and z, i32 each; `compiled_cluster`: the number of blocks if the
    kernel itself fixes it; `scheduling`: the placement of a cluster's blocks.  `programmatic`: the
    launch may begin before the previous launch on the stream has ended.  `priority`: i32, like the
    priority of streams, lower numbers run first.  `carveout`: the percentage of an SM's memory for
    shared memory.
    """

    cluster: tuple[ir.Value, ir.Value, ir.Value] | None = None
    cooperative: bool = False
    programmatic: bool = False
    priority: ir.Value | None = None
    carveout: int | None = None
    completion: Event | None = None
    programmatic_event: Event | None = None
    compiled_cluster: int = 1
    scheduling: ClusterScheduling | None = None


def blocks_of_cluster(emitter: Emitter, asked: Asked) -> ir.Value:
    """The number of blocks in a cluster, i32; a constant if it is known."""
    if asked.cluster is None:
        return emitter.const_i32(asked.compiled_cluster)
    sizes = [size for size in asked.cluster if not isinstance(size, ir.Constant)]
    known = prod(size.constant for size in asked.cluster if isinstance(size, ir.Constant))
    return reduce(partial(emitter.binary, "mul"), sizes, emitter.const_i32(known))


def store_attributes(emitter: Emitter, asked: Asked) -> tuple[ir.Value, int]:
    """The address of the attributes, null if there are none, and their number."""
    stores = list(_stores(emitter, asked))
    if not stores:
        return emitter.null(), 0
    first = emitter.alloca(ATTRIBUTE, len(stores), name="attributes")
    for number, (kind, store) in enumerate(stores):
        at = emitter.index(first, I8, number * ATTRIBUTE.size)
        emitter.store_field(at, ATTRIBUTE, "id", emitter.const_i32(kind))
        store(emitter.field_ptr(at, ATTRIBUTE, "value"))
    return first, len(stores)


def _stores(
    emitter: Emitter, asked: Asked
) -> list[tuple[LaunchAttribute, Callable[[ir.Value], None]]]:
    """The kind of each attribute, and a function that stores its value."""
    one = emitter.const_i32(1)
    found: list[tuple[LaunchAttribute, Callable[[ir.Value], None]]] = []
    if asked.cluster is not None:
        store = partial(_store_cluster, emitter, asked.cluster)
        found.append((LaunchAttribute.CLUSTER_DIMENSION, store))
    numbers = (
        (
            LaunchAttribute.CLUSTER_SCHEDULING_POLICY_PREFERENCE,
            None if asked.scheduling is None else emitter.const_i32(asked.scheduling),
        ),
        (LaunchAttribute.COOPERATIVE, one if asked.cooperative else None),
        (LaunchAttribute.PROGRAMMATIC_STREAM_SERIALIZATION, one if asked.programmatic else None),
        (LaunchAttribute.PRIORITY, asked.priority),
        (
            LaunchAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT,
            None if asked.carveout is None else emitter.const_i32(asked.carveout),
        ),
    )
    found += [(kind, partial(emitter.store, value)) for kind, value in numbers if value is not None]
    events = (
        (LaunchAttribute.LAUNCH_COMPLETION_EVENT, asked.completion),
        (LaunchAttribute.PROGRAMMATIC_EVENT, asked.programmatic_event),
    )
    found += [
        (kind, partial(_store_event, emitter, event)) for kind, event in events if event is not None
    ]
    return found


def _store_cluster(
    emitter: Emitter, cluster: tuple[ir.Value, ir.Value, ir.Value], at: ir.Value
) -> None:
    for axis, blocks in zip(CLUSTER.names, cluster, strict=True):
        emitter.store_field(at, CLUSTER, axis, blocks)


def _store_event(emitter: Emitter, event: Event, at: ir.Value) -> None:
    emitter.store_field(at, EVENT, "event", event.handle)
    emitter.store_field(at, EVENT, "flags", emitter.const_i32(event.flags))
    starts = emitter.const_i32(int(event.at_block_start))
    emitter.store_field(at, EVENT, "triggerAtBlockStart", starts)

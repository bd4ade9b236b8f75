"""The objects that a host function owns: their places in its table, see `host.owned`.

A function that owns none needs no frame around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.host import owned, tensors
from ferrule.compiler.host.owned import Frame
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, object_slots
from ferrule.language.ir.walk import merged_by
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I64, PTR, TENSOR_OBJECT
from ferrule.specs import Param, params
from ferrule.specs.deferred import dataclass

Made = ops.Alloc | ops.Shrink
"""Ops that make a tensor object."""
RESULTS: Final = HandleType("results")
"""The type of a `CallBody`'s result: the parts as a body stores them."""


def tensor_count(program: ops.Program) -> int:
    """The number of places for objects that a body of this program needs."""
    return sum(op.objects for op in program.host.facts.ops)


def value_count(program: ops.Program) -> int:
    """The number of places for received tvm-ffi values that a body of this program needs."""
    return sum(op.kept for op in program.host.facts.ops)


def owned_tensors(program: ops.Program) -> frozenset[ops.Value]:
    """The tensors of a host function whose objects are known: those that it makes or receives,
    parameters with objects, and the results of branches and loop-carried values among them."""
    every = program.host.facts.ops
    found = {op.result for op in every if isinstance(op, Made) or _is_owner(op)}
    found.update(program.held)
    flows = [flow for op in every for flow in merged_by(op)]
    flows += [(op.tensor, op.result) for op in every if isinstance(op, ops.View) and op.whole]
    before = -1
    while len(found) != before:
        before = len(found)
        found |= {to for of, to in flows if of in found and isinstance(to.type, TensorType)}
    return frozenset(found)


def _is_owner(op: ops.Op) -> TypeGuard[ops.Received | ops.Peek]:
    """Whether this is a tensor in a received value, whose object is known."""
    if isinstance(op, ops.Peek):
        return op.part == "tensor"
    if not (isinstance(op, ops.Received) and isinstance(op.result.type, TensorType)):
        return False
    return op.owner is not None or op.parts.type == RESULTS


def keeps(program: ops.Program) -> int:
    """The number of values that the caller of a body must keep: parts of the result may be inside
    them."""
    return value_count(program) if _lies_in_values(program.result) else 0


def _lies_in_values(result: Param | None) -> bool:
    if isinstance(result, params.Tuple):
        return any(map(_lies_in_values, result.items))
    return params.payload_of(result) in (params.Payload.BYTES, params.Payload.ANY)


def needs_frame(program: ops.Program) -> bool:
    """Whether a body of this program needs `frame` around it."""
    owns = tensor_count(program) + value_count(program)
    return owns > 0 or bool(object_slots(program.result))


def frame(
    program: ops.Program, e: Emitter, inner: ir.Function, arguments: Sequence[ir.Value]
) -> None:
    """The code of `ferrule_body`; `inner` takes the table before these arguments."""
    Frame(
        tensor_count(program),
        value_count(program),
        kept=arguments[2] if keeps(program) else None,
        results=None if program.result is None else arguments[1],
        returned=object_slots(program.result),
        cells=1,
    ).emit(e, inner, arguments)


@dataclass(slots=True)
class Places:
    """The places of a host function for the objects that it owns, assigned in order.

    A place is reused each time its op runs: its previous content is released before.
    """

    objects: ir.Value
    values: ir.Value
    _objects: int = 0
    _values: int = 0

    def take_objects(self, e: Emitter, count: int = 1) -> ir.Value:
        """The next places for handles of objects, unchanged."""
        first, self._objects = self._objects, self._objects + count
        return e.index(self.objects, PTR, first)

    def clear_objects(self, e: Emitter, places: ir.Value, count: int) -> None:
        """Release the handles in these places."""
        owned.release(e, places, count)
        owned.clear(e, places, count)

    def take_values(self, e: Emitter, count: int = 1) -> ir.Value:
        """The next places for tvm-ffi values, set to None."""
        first, self._values = self._values, self._values + count
        places = e.index(self.values, ANY, first)
        owned.release_values(e, places, count)
        owned.set_none(e, places, count)
        return places


def places_of(program: ops.Program, e: Emitter, arguments: Sequence[ir.Value]) -> Places:
    """The places that `frame` passed in these arguments of a function."""
    table = arguments[0]
    if keeps(program):
        return Places(table, arguments[3])
    return Places(table, e.index(table, I64, max(1, tensor_count(program))))


@dataclass(slots=True)
class Allocator:
    """Emits the `Alloc`s and `Shrink`s of one host function, each with the next place of the
    table."""

    places: Places
    device: DeviceType
    index: ir.Value

    def make(self, lowering: FunctionLowering, op: Made) -> None:
        """A tensor; defines its address and object, and the symbols that it makes."""
        e, sizes = lowering.emitter, op.sizes if isinstance(op, ops.Alloc) else (op.size,)
        for dim, size in zip(op.result.tensor.shape, sizes, strict=False):
            if dim in lowering.made:
                e.store(lowering.values[size], lowering.made[dim])
        place = self.places.take_objects(e)
        if isinstance(op, ops.Alloc):
            self._allocate(lowering, op, place)
        else:
            self._shrink(lowering, op, place)
        handle = e.load(place, PTR, name=op.result.hint)
        lowering.objects[op.result] = handle
        lowering.values[op.result] = tensors.elements(e, handle)

    def _shrink(self, lowering: FunctionLowering, op: ops.Shrink, place: ir.Value) -> None:
        """A view of a tensor takes its place, after a reference to the tensor was put there."""
        from ferrule.compiler.support.allocation import NO_VIEWS

        e, type_ = lowering.emitter, op.result.tensor
        whole = lowering.objects[op.tensor]
        self.places.clear_objects(e, place, 1)
        e.store(whole, place)
        owned.keep(e, place)
        shape, strides = (
            tensors.dims(e, len(dims), map(lowering.dim, dims), name)
            for name, dims in (("shape", type_.shape), ("strides", type_.strides))
        )
        rank, data = len(type_.shape), lowering.values[op.tensor]
        wanted = tensors.DLTensor(data, self.device, self.index, type_.dtype, rank, shape, strides)
        part = wanted.store(e)
        # A tensor that a call gave back may be on another device than this call.
        e.store_field(part, DLTENSOR, "device", e.load_field(whole, TENSOR_OBJECT, "dl.device"))
        status = tensors.shrink(e, part, place)
        lowering.require(status, [Fault(*NO_VIEWS, op.location)], "shrunk")

    def _allocate(self, lowering: FunctionLowering, op: ops.Alloc, place: ir.Value) -> None:
        e = lowering.emitter
        assert lowering.fault_values is not None, "a host function has room for values of faults"
        prototype = self._prototype(lowering, op)
        status = tensors.allocate(e, prototype, place, lowering.fault_values)
        self._check(lowering, status, op)

    def _prototype(self, lowering: FunctionLowering, op: ops.Alloc) -> ir.Value:
        """The DLTensor that describes the new tensor."""
        e, type_ = lowering.emitter, op.result.tensor
        sizes = (lowering.values[size] for size in op.sizes)
        shape = tensors.dims(e, len(op.sizes), sizes, "shape")
        rank, dtype = len(op.sizes), type_.dtype
        wanted = tensors.DLTensor(e.null(), self.device, self.index, dtype, rank, shape, e.null())
        return wanted.store(e)

    def _check(self, lowering: FunctionLowering, status: ir.Value, op: ops.Alloc) -> None:
        """End the function with the allocation's failure."""
        from ferrule.compiler.support.allocation import failures

        faults = failures(self.device.name.lower(), op.location)
        lowering.require(status, faults, "allocated")

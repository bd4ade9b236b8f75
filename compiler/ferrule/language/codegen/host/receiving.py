"""Calls of linked bodies, and parts of the results of calls."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault
from ferrule.compiler.host import tensors
from ferrule.compiler.host.flow import failed
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.host.allocation import RESULTS, Places
from ferrule.language.codegen.host.linking import body_part, receive_part
from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, object_slots, result_types
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    I1,
    I8,
    I32,
    I64,
    OBJECT,
    PACKED,
    PTR,
    SEQ,
    TENSOR_OBJECT,
)
from ferrule.specs import Boolean, Signature
from ferrule.specs.params import Param


def emit_call_body(
    lowering: FunctionLowering, op: ops.CallBody, device: ir.Value, places: Places | None
) -> None:
    """A call of a body; the objects that it returns are stored in places of this function."""
    e, callee = lowering.emitter, op.callee
    assert lowering.fault_values is not None, "a host function has room for values of faults"
    arguments: list[ir.Value] = [lowering.fault_values]
    slots = object_slots(callee.result)
    results = e.alloca(I64, max(1, _slot_count(callee.result)), name="results")
    if callee.result is not None:
        arguments.append(results)
    if callee.keeps:
        assert places is not None
        arguments.append(places.take_values(e, callee.keeps))
    owned: ir.Value = e.null()
    if slots:
        assert places is not None
        owned = places.take_objects(e, len(slots))
        places.clear_objects(e, owned, len(slots))
    arguments += [_given(e, lowering.values[value]) for value in op.arguments]
    if callee.takes_device:
        arguments.append(device)
    kind = ir.FunctionType(I32, [each.type for each in arguments])
    status = e.call(e.symbol(body_part(callee).symbol, kind), arguments, "status")
    _require(lowering, status, callee.faults)
    for position, slot in enumerate(slots):
        handle = e.load(e.index(results, I64, slot), PTR)
        e.store(handle, e.index(owned, PTR, position))
    for symbol, slot, axis in op.made:
        handle = e.load(e.index(results, I64, slot), PTR)
        shape = e.load_field(handle, TENSOR_OBJECT, "dl.shape")
        e.store(e.load(e.index(shape, I64, axis), I64), lowering.made[symbol])
    lowering.values[op.result] = results


def _slot_count(result: Param | None) -> int:
    return 0 if result is None else len(result_types(result))


def _given(e: Emitter, value: ir.Value) -> ir.Value:
    """A value in the form of a body's argument: a bool is a byte."""
    return e.builder.zext(value, I8) if value.type == I1 else value


def _require(lowering: FunctionLowering, status: ir.Value, faults: tuple[Fault, ...]) -> None:
    """End the function with the failure of a body that has these faults."""
    if not faults:
        return
    e = lowering.emitter
    with failed(e, status, "called"):
        # A body may have many faults, whose numbers here have no order: a table is smaller than
        # `number_of`, which compares with each.
        numbers = [lowering.faults.number(fault) for fault in faults]
        table = ir.Constant(ir.ArrayType(I32, len(numbers)), numbers)
        name = f"faults.{len(e.module.globals)}"
        known = e.global_constant(name, table)
        raised = ir.Constant(I32, RAISED)
        is_raised = e.icmp("eq", status, raised)
        # The load is made in any case, and `RAISED` has no place in the table.
        position = e.select(is_raised, e.const_i32(0), e.binary("sub", status, e.const_i32(1)))
        number = e.load(e.index(known, I32, e.builder.zext(position, I64)), I32)
        e.ret(e.select(is_raised, raised, number))


def emit_receive(lowering: FunctionLowering, op: ops.Receive) -> None:
    """Decodes a value, or ends with an error if it does not match its spec."""
    e = lowering.emitter
    count = len(op.made) + _leaf_count(op.param)
    leaves = e.alloca(I64, max(1, count), name="leaves")
    function = e.symbol(receive_part(op).symbol, PACKED)
    arguments = [e.null(), lowering.values[op.value], e.const_i32(1), leaves]
    failed = e.icmp("ne", e.call(function, arguments), e.const_i32(0))
    with e.if_then(failed, likely=False):
        lowering.faults.number(_UNUSED)
        e.ret(ir.Constant(I32, RAISED))
    for symbol, position in op.made:
        value = e.load(e.index(leaves, I64, position), I64)
        e.store(value, lowering.made[symbol])
    lowering.values[op.result] = leaves


_UNUSED: Final = Fault("RuntimeError", "a call gave back what it should not")
"""A fault is needed because only a body with faults may return `RAISED`."""


def _leaf_count(param: Param) -> int:
    return len(leaves_of(param)) + len(Signature("f", (param,)).symbols)


def _object_at(e: Emitter, value: ir.Value, path: tuple[int, ...]) -> ir.Value:
    """The object of a value, or of an item inside it: tuples are Arrays."""
    handle = e.load_field(value, ANY, "v_obj")
    for position in path:
        items = e.load_field(e.index(handle, I8, OBJECT.size), SEQ, "data")
        handle = e.load_field(e.index(items, ANY, position), ANY, "v_obj")
    return handle


def emit_received(lowering: FunctionLowering, op: ops.Received) -> None:
    """One part."""
    e, result = lowering.emitter, op.result
    at = e.index(lowering.values[op.parts], I64, op.position)
    match result.type:
        case TensorType() if op.parts.type == RESULTS:
            handle = e.load(at, PTR, name=result.hint)
            lowering.objects[result] = handle
            lowering.values[result] = tensors.elements(e, handle)
        case TensorType() | HandleType():
            lowering.values[result] = e.load(at, PTR, name=result.hint)
            if op.owner is not None:
                lowering.objects[result] = _object_at(e, lowering.values[op.owner], op.path)
        case dtype:
            loaded = e.load(at, memory_type(dtype), name=result.hint)
            is_bool = dtype is Boolean
            zero = ir.Constant(loaded.type, 0) if is_bool else None
            lowering.values[result] = e.icmp("ne", loaded, zero) if is_bool else loaded

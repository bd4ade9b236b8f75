"""The ops of `ir.objects`: elements, fields and methods, and the parts of any value.

The cache for a field or method is a variable of the object file, one for each type key and name.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, Location
from ferrule.compiler.host import tensors
from ferrule.compiler.support.entries import FIELD, IS_INSTANCE, ITEM, METHOD, SET_FIELD
from ferrule.compiler.support.objects import KNOWN_FIELD, TYPES, Status, failures
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.host.allocation import Places
from ferrule.language.ir import ops
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    F64,
    I8,
    I32,
    I64,
    OBJECT,
    PTR,
    SEQ_OBJECT,
)

_SIZE: Final = SEQ_OBJECT.offset("cell.size")
"""The offset of a container's size, for all kinds."""


def emit_object_op(lowering: FunctionLowering, op: ops.ObjectOp, places: Places | None) -> None:
    """An op with one result; a reference that it gets is stored in a place of the host function."""
    e, values = lowering.emitter, lowering.values
    match op:
        case ops.Item(result, container, index):
            item = _place(e, places)
            e.call(e.symbol(ITEM, TYPES[ITEM]), [values[container], values[index], item])
            values[result] = item
        case ops.Field(result, of, key, name, location):
            item = _place(e, places)
            given = [*_known_field(e, key, name), values[of], item]
            status = e.call(e.symbol(FIELD, TYPES[FIELD]), given, "status")
            lowering.require(status, failures("field", key, name, location), "read")
            values[result] = item
        case ops.Peek(result, source, "tensor"):
            handle = e.load_field(values[source], ANY, "v_obj")
            lowering.objects[result] = handle
            values[result] = tensors.elements(e, handle)
        case ops.Peek(result, source, part):
            values[result] = peek(e, values[source], part)
        case ops.IsInstance(result, source, key):
            known = _variable(e, f"ferrule.type.{key}", I32)
            arguments = [known, e.cstring(key), values[source]]
            values[result] = e.call(e.symbol(IS_INSTANCE, TYPES[IS_INSTANCE]), arguments)


def _place(e: Emitter, places: Places | None) -> ir.Value:
    assert places is not None, "a host function without places for values"
    return places.take_values(e)


def set_field(e: Emitter, setter: ops.Setter, items: ir.Value) -> ir.Value:
    """Set a field of the first item, an object, to the second item; for a trial there is only the
    value.  Returns the status."""
    of = e.null() if setter.is_trial else e.load_field(items, ANY, "v_obj")
    value = items if setter.is_trial else e.index(items, ANY, 1)
    given = [*_known_field(e, setter.type_key, setter.name), of, value]
    return e.call(e.symbol(SET_FIELD, TYPES[SET_FIELD]), given, "status")


def keep(e: Emitter, item: ir.Value, out: ir.Value) -> ir.Value:
    """Copy a value, with a reference of its own; returns the status."""
    for part in ("head", "v_int64"):
        e.store_field(out, ANY, part, e.load_field(item, ANY, part))
    index = e.load_field(out, ANY, "type_index")
    with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))):
        e.call("TVMFFIObjectIncRef", [e.load_field(out, ANY, "v_obj")])
    return e.const_i32(Status.DONE)


def dtype_text(e: Emitter, item: ir.Value, out: ir.Value) -> ir.Value:
    """Make a string of a dtype; returns the status."""
    status = e.call("TVMFFIDataTypeToString", [e.field_ptr(item, ANY, "v_dtype"), out])
    failed = e.icmp("ne", status, e.const_i32(0))
    return e.select(failed, e.const_i32(Status.RAISED), e.const_i32(Status.DONE))


def find_method(e: Emitter, method: ops.Method, out: ir.Value) -> ir.Value:
    """Look up a method, and store its handle in `out`; returns the status."""
    known = _variable(e, f"ferrule.method.{method}", PTR)
    arguments = [known, e.cstring(method.type_key), e.cstring(method.name), out]
    return e.call(e.symbol(METHOD, TYPES[METHOD]), arguments, "status")


def member_failures(member: ops.Member, location: Location | None) -> tuple[Fault, ...]:
    """The faults of looking a member up, and of using it."""
    if isinstance(member, ops.Method):
        return failures("method", member.type_key, member.name, location)
    return failures("field", member.type_key, member.name, location, is_set=True)


def _known_field(e: Emitter, key: str, name: str) -> list[ir.Value]:
    """The cache for a field, the type's key and the field's name."""
    kind = ir.ArrayType(I64, KNOWN_FIELD.size // 8)
    return [_variable(e, f"ferrule.field.{key}.{name}", kind), e.cstring(key), e.cstring(name)]


def _variable(e: Emitter, name: str, kind: ir.Type) -> ir.Value:
    """A variable of the object that is zero at first."""
    known = e.builder.module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(e.builder.module, kind, name)
        known.linkage, known.initializer = "internal", ir.Constant(kind, None)
        known.align = 8
        known.type = PTR
    return known


# ---- parts of a value ----


def peek(e: Emitter, source: ir.Value, part: ops.PeekPart) -> ir.Value:
    """A part of any value at this address; any value is safe to read."""
    match part:
        case "type_index":
            return e.load_field(source, ANY, "type_index")
        case "int" | "device":
            return e.load_field(source, ANY, "v_int64")
        case "dtype":
            return e.load_field(source, ANY, "v_dtype")
        case "object" | "tensor":
            return e.load_field(source, ANY, "v_obj")
        case "float":
            return _float(e, source)
        case "text" | "text_size":
            return _text(e, source, part)
        case "size":
            return e.load(e.index(source, I8, _SIZE), I64, name="size")


def _float(e: Emitter, source: ir.Value) -> ir.Value:
    """A float, or an int as one."""
    index = e.load_field(source, ANY, "type_index")
    is_float = e.icmp("eq", index, e.const_i32(TypeIndex.FLOAT))
    number = e.builder.sitofp(e.load_field(source, ANY, "v_int64"), F64)
    return e.select(is_float, e.load_field(source, ANY, "v_float64"), number)


def _text(e: Emitter, source: ir.Value, part: str) -> ir.Value:
    """The address or length of a text: in the value itself, or in its object.

    Branch-free: if the value is not an object, the loads are from the value.
    """
    index = e.load_field(source, ANY, "type_index")
    is_object = e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))
    array = e.index(e.load_field(source, ANY, "v_obj"), I8, OBJECT.size)
    inside = e.field_ptr(source, ANY, "v_bytes")
    if part == "text":
        data = e.load(e.select(is_object, array, inside), PTR)
        return e.select(is_object, data, inside)
    place = e.select(is_object, e.field_ptr(array, BYTE_ARRAY, "size"), inside)
    small = e.builder.zext(e.load_field(source, ANY, "small_str_len"), I64)
    return e.select(is_object, e.load(place, I64), small)

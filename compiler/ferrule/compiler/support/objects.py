"""Support code of bodies that read containers, and fields and methods of objects.

An `item` is a TVMFFIAny that is None, for the value that is read; the caller releases it.

* `void ferrule_item(ptr container, i64 index, ptr item)`: an element of an Array or List, at a
  position that is in it.
* `i32 ferrule_method(ptr known, ptr key, ptr name, ptr out)`: the handle of a method of a
  registered type; `known` caches it from the first time on.
* `i32 ferrule_field(ptr known, ptr key, ptr name, ptr object, ptr item)`: the value of a field;
  `known` is a `KNOWN_FIELD`.
* `i32 ferrule_set_field(ptr known, ptr key, ptr name, ptr object, ptr item)`: set the value of a
  field; without an object, only test whether the field can hold a number.
* `i1 ferrule_elements_fit(ptr container, i64 kinds, i64 objects, i64 smallest, i64 largest)`:
  whether each element of an Array or List has a type index that is a bit of `kinds`, or for
  objects, counted from the first object's index, of `objects`, and is in this range if it is an int
  or a bool.
* `i1 ferrule_is_instance(ptr known, ptr key, ptr item)`: whether this is an object of a registered
  type, or of one derived from it; `known`, an i32, caches the type's index.

Keys and names are NUL-terminated.  An i32 is a `Status`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, Location, literal
from ferrule.compiler.support.calling import end_if_failed, is_object
from ferrule.compiler.support.entries import (
    ELEMENTS_FIT,
    FIELD,
    IS_INSTANCE,
    ITEM,
    METHOD,
    SET_FIELD,
)
from ferrule.compiler.support.typetable import (
    FIELD_INFO,
    METHOD_INFO,
    TYPE_INFO,
    define_type_table,
    find_field,
    find_method,
    init_of,
    type_of,
)
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    I1,
    I8,
    I32,
    I64,
    PTR,
    SEQ_OBJECT,
    VOID,
    Field,
    Layout,
)

TYPES: Final = {
    ITEM: ir.FunctionType(VOID, [PTR, I64, PTR]),
    METHOD: ir.FunctionType(I32, [PTR, PTR, PTR, PTR]),
    FIELD: ir.FunctionType(I32, [PTR, PTR, PTR, PTR, PTR]),
    SET_FIELD: ir.FunctionType(I32, [PTR, PTR, PTR, PTR, PTR]),
    ELEMENTS_FIT: ir.FunctionType(I1, [PTR, I64, I64, I64, I64]),
    IS_INSTANCE: ir.FunctionType(I1, [PTR, PTR, PTR]),
}

KNOWN_FIELD: Final = Layout(
    "KnownField",
    [
        Field("place", I64),
        Field("getter", PTR),
        Field("setter", PTR),
        Field("flags", I64),
        Field("size", I64),
    ],
)
"""The cache for a field: its offset + 1, 0 while it is empty, and how to read the field."""

_MOST_BYTES: Final = 32
"""The size of the largest field that can hold a number."""

WRITABLE: Final = 1 << 0
SETTER_IS_FUNCTION: Final = 1 << 11
_GETTER: Final = ir.FunctionType(I32, [PTR, PTR])
_KNOW: Final = ir.FunctionType(I32, [PTR, PTR, PTR])


class Status(IntEnum):
    """The result of a step: from 1 on the number of its fault."""

    RAISED = RAISED
    DONE = 0
    NO_TYPE = 1
    NO_MEMBER = 2
    READ_ONLY = 3
    NO_ROOM = 4
    NO_ROOM_FLOAT = 5


def failures(
    kind: str, key: str, name: str, location: Location | None, *, is_set: bool = False
) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …, for a field or method of a type.

    The last two, for setting a field, show the given number.
    """
    key, member = literal(key), literal(f"{key}.{name}")
    messages = {
        Status.NO_TYPE: (
            "TypeError",
            f"Unknown type {key} of {member}: import the module or load the library that "
            f"registers it with tvm-ffi",
        ),
        Status.NO_MEMBER: (
            "AttributeError",
            f"Missing {kind} {member}: the type has none of this name; compile again with the "
            f"type that is registered now",
        ),
        Status.READ_ONLY: ("AttributeError", f"Invalid write of {member}, which is read-only"),
    }
    overflow = f"Invalid write of {member}, expected a number that the field can hold, but got "
    if is_set:
        messages[Status.NO_ROOM] = ("OverflowError", overflow + "{}")
        messages[Status.NO_ROOM_FLOAT] = ("OverflowError", overflow + "{float}")
    return tuple(Fault(*messages[Status(i + 1)], location) for i in range(len(messages)))


def define_objects(emitter: Emitter) -> None:
    """All functions of the module."""
    define_type_table(emitter)
    _define_item(emitter)
    _define_elements_fit(emitter)
    _define_method(emitter)
    _define_know_field(emitter)
    _define_field(emitter)
    _define_set_field(emitter)
    _define_is_instance(emitter)


def _status(value: Status) -> ir.Constant:
    return ir.Constant(I32, int(value))


def _none(emitter: Emitter, name: str) -> ir.Value:
    """A place for a value, with None."""
    place = emitter.alloca(ANY, name=name)
    emitter.store_field(place, ANY, "head", emitter.const_i64(TypeIndex.NONE))
    emitter.store_field(place, ANY, "v_int64", emitter.const_i64(0))
    return place


def _define_item(emitter: Emitter) -> None:
    names = ("container", "index", "item")
    with emitter.define(ITEM, VOID, TYPES[ITEM].args, names=names) as function:
        container, index, item = function.args
        data = emitter.load_field(container, SEQ_OBJECT, "cell.data")
        element = emitter.index(data, ANY, index)
        for part in ("head", "v_int64"):
            emitter.store_field(item, ANY, part, emitter.load_field(element, ANY, part))
        with emitter.if_then(is_object(emitter, item)):
            emitter.call("TVMFFIObjectIncRef", [emitter.load_field(item, ANY, "v_obj")])
        emitter.ret()


def _define_elements_fit(emitter: Emitter) -> None:
    names = ("container", "kinds", "objects", "smallest", "largest")
    types = TYPES[ELEMENTS_FIT].args
    with emitter.define(ELEMENTS_FIT, I1, types, names=names) as function:
        container, kinds, objects, smallest, largest = function.args
        build, no = emitter.builder, ir.Constant(I1, 0)
        data = emitter.load_field(container, SEQ_OBJECT, "cell.data")
        with emitter.loop(emitter.load_field(container, SEQ_OBJECT, "cell.size")) as i:
            element = emitter.index(data, ANY, i)
            index = build.sext(emitter.load_field(element, ANY, "type_index"), I64)
            first = emitter.const_i64(TypeIndex.OBJECT)
            is_object = emitter.icmp("sge", index, first)
            bit = emitter.select(is_object, build.sub(index, first), index)
            known = emitter.select(is_object, objects, kinds)
            # 64 is the index of the first object, and the number of bits of a mask as well.
            known = emitter.select(emitter.icmp("ult", bit, first), known, emitter.const_i64(0))
            shifted = build.lshr(known, build.and_(bit, emitter.const_i64(63)))
            with emitter.if_then(_lacks(emitter, shifted, 1), likely=False):
                emitter.ret(no)
            above = build.sub(index, emitter.const_i64(TypeIndex.INT))
            # INT and BOOL follow each other, and FLOAT them.
            is_number = emitter.icmp("ule", above, emitter.const_i64(1))
            number = emitter.load_field(element, ANY, "v_int64")
            low, high = emitter.icmp("slt", number, smallest), emitter.icmp("sgt", number, largest)
            outside = build.and_(is_number, build.or_(low, high))
            with emitter.if_then(outside, likely=False):
                emitter.ret(no)
        emitter.ret(ir.Constant(I1, 1))


def _define_method(emitter: Emitter) -> None:
    names = ("known", "key", "name", "out")
    with emitter.define(METHOD, I32, TYPES[METHOD].args, names=names) as function:
        known, key, name, out = function.args
        kept = emitter.builder.load_atomic(known, "acquire", 8, typ=PTR)
        emitter.store(kept, out)
        with emitter.if_then(emitter.not_(emitter.is_null(kept)), likely=True):
            emitter.ret(_status(Status.DONE))
        info = _type_or_end(emitter, key)
        row = find_method(emitter, info, name)
        found = emitter.alloca(PTR, name="found")
        with emitter.builder.if_else(emitter.is_null(row)) as (missing, there):
            with missing:
                emitter.store(init_of(emitter, info, name), found)
            with there:
                emitter.store(emitter.load_field(row, METHOD_INFO, "method.v_obj"), found)
        handle = emitter.load(found, PTR)
        with emitter.if_then(emitter.is_null(handle), likely=False):
            emitter.ret(_status(Status.NO_MEMBER))
        emitter.call("TVMFFIObjectIncRef", [handle])
        taken = emitter.builder.cmpxchg(known, emitter.null(), handle, "acq_rel", "acquire")
        # Another thread was faster; its reference is used instead.
        with emitter.if_then(emitter.not_(emitter.builder.extract_value(taken, 1)), likely=False):
            emitter.call("TVMFFIObjectDecRef", [handle])
        emitter.store(emitter.load(known, PTR), out)
        emitter.ret(_status(Status.DONE))


def _type_or_end(emitter: Emitter, key: ir.Value) -> ir.Value:
    info = type_of(emitter, key)
    with emitter.if_then(emitter.is_null(info), likely=False):
        emitter.ret(_status(Status.NO_TYPE))
    return info


def _define_know_field(emitter: Emitter) -> None:
    """`i32 ferrule_know_field(ptr known, ptr key, ptr name)`: fill the cache of a field.

    Threads that do this at the same time write the same values.
    """
    names = ("known", "key", "name")
    with emitter.define(
        "ferrule_know_field", I32, _KNOW.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        known, key, name = function.args
        info = _type_or_end(emitter, key)
        row = find_field(emitter, info, name)
        with emitter.if_then(emitter.is_null(row), likely=False):
            emitter.ret(_status(Status.NO_MEMBER))
        for part in ("getter", "setter", "flags"):
            emitter.store_field(known, KNOWN_FIELD, part, emitter.load_field(row, FIELD_INFO, part))
        emitter.store_field(known, KNOWN_FIELD, "size", _number_size(emitter, row))
        offset = emitter.load_field(row, FIELD_INFO, "offset")
        place = emitter.builder.add(offset, emitter.const_i64(1))
        _put_once(emitter, known, place)
        emitter.ret(_status(Status.DONE))


def _number_size(emitter: Emitter, row: ir.Value) -> ir.Value:
    """The size of a field that may hold a number; for other fields a size that is too large for
    one."""
    static = emitter.load_field(row, FIELD_INFO, "field_static_type_index")
    is_object = emitter.icmp("sge", static, emitter.const_i32(TypeIndex.OBJECT))
    has_none = emitter.is_null(emitter.load_field(row, FIELD_INFO, "setter"))
    other = emitter.builder.or_(is_object, has_none)
    size = emitter.load_field(row, FIELD_INFO, "size")
    return emitter.select(other, emitter.const_i64(_MOST_BYTES + 1), size)


def _put_once(emitter: Emitter, known: ir.Value, value: ir.Value) -> None:
    """Replace 0 by a number; another thread may have stored the same number before."""
    emitter.builder.cmpxchg(known, ir.Constant(value.type, 0), value, "acq_rel", "acquire")


def _known_place(
    emitter: Emitter, known: ir.Value, key: ir.Value, name: ir.Value, of: ir.Value
) -> ir.Value:
    """The address of a field of an object; ends the function if the field is unknown."""
    place = emitter.builder.load_atomic(known, "acquire", 8, typ=I64)
    with emitter.if_then(emitter.icmp("eq", place, emitter.const_i64(0)), likely=False):
        know = emitter.symbol("ferrule_know_field", _KNOW)
        status = emitter.call(know, [known, key, name], "status")
        with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0)), likely=False):
            emitter.ret(status)
    place = emitter.builder.load_atomic(known, "acquire", 8, typ=I64)
    return emitter.index(of, I8, emitter.builder.sub(place, emitter.const_i64(1)))


def _define_field(emitter: Emitter) -> None:
    names = ("known", "key", "name", "object", "item")
    with emitter.define(FIELD, I32, TYPES[FIELD].args, names=names) as function:
        known, key, name, of, item = function.args
        address = _known_place(emitter, known, key, name, of)
        getter = emitter.load_field(known, KNOWN_FIELD, "getter")
        end_if_failed(emitter, emitter.call_pointer(getter, _GETTER, [address, item]))
        emitter.ret(_status(Status.DONE))


def _define_set_field(emitter: Emitter) -> None:
    names = ("known", "key", "name", "object", "item")
    with emitter.define(SET_FIELD, I32, TYPES[SET_FIELD].args, names=names) as function:
        known, key, name, of, item = function.args
        address = _known_place(emitter, known, key, name, of)
        flags = emitter.load_field(known, KNOWN_FIELD, "flags")
        with emitter.if_then(emitter.is_null(of), likely=False):
            with emitter.if_then(_lacks(emitter, flags, SETTER_IS_FUNCTION)):
                _end_unless_held(emitter, known, item)
            emitter.ret(_status(Status.DONE))
        with emitter.if_then(_lacks(emitter, flags, WRITABLE), likely=False):
            emitter.ret(_status(Status.READ_ONLY))
        setter = emitter.load_field(known, KNOWN_FIELD, "setter")
        with emitter.if_then(_lacks(emitter, flags, SETTER_IS_FUNCTION)):
            _end_unless_held(emitter, known, item)
            end_if_failed(emitter, emitter.call_pointer(setter, _GETTER, [address, item]))
            emitter.ret(_status(Status.DONE))
        given = emitter.alloca(ANY, 2, name="given")
        # A setter that is a function takes the address of the field and the value (tvm-ffi's
        # c_api.h).
        emitter.store_field(given, ANY, "head", emitter.const_i64(TypeIndex.OPAQUE_PTR))
        emitter.store_field(given, ANY, "v_ptr", address)
        value = emitter.index(given, ANY, 1)
        for part in ("head", "v_int64"):
            emitter.store_field(value, ANY, part, emitter.load_field(item, ANY, part))
        fresh = _none(emitter, "fresh")
        arguments = [setter, given, emitter.const_i32(2), fresh]
        end_if_failed(emitter, emitter.call("TVMFFIFunctionCall", arguments))
        with emitter.if_then(is_object(emitter, fresh)):
            emitter.call("TVMFFIObjectDecRef", [emitter.load_field(fresh, ANY, "v_obj")])
        emitter.ret(_status(Status.DONE))


def _end_unless_held(emitter: Emitter, known: ir.Value, item: ir.Value) -> None:
    """End the function if a field would not hold a number exactly.

    tvm-ffi's own setters truncate wide values.  So the setter is tried on a separate copy of the
    field first: no other thread sees a wrong value, and nothing must be restored.
    """
    index = emitter.load_field(item, ANY, "type_index")
    above = emitter.builder.sub(index, emitter.const_i32(TypeIndex.INT))
    is_number = emitter.icmp("ule", above, emitter.const_i32(TypeIndex.FLOAT - TypeIndex.INT))
    size = emitter.load_field(known, KNOWN_FIELD, "size")
    is_small = emitter.icmp("ule", size, emitter.const_i64(_MOST_BYTES))
    with emitter.if_then(emitter.builder.and_(is_number, is_small)):
        trial = emitter.alloca(ANY, _MOST_BYTES // ANY.size, name="trial")
        fresh = _none(emitter, "held")
        emitter.call("memset", [trial, emitter.const_i32(0), emitter.const_i64(_MOST_BYTES)])
        for part, arguments in (("setter", [trial, item]), ("getter", [trial, fresh])):
            function = emitter.load_field(known, KNOWN_FIELD, part)
            end_if_failed(emitter, emitter.call_pointer(function, _GETTER, arguments))
        with emitter.if_then(is_object(emitter, fresh), likely=False):
            emitter.call("TVMFFIObjectDecRef", [emitter.load_field(fresh, ANY, "v_obj")])
        _end_if_changed(emitter, item, fresh)


def _end_if_changed(emitter: Emitter, item: ir.Value, fresh: ir.Value) -> None:
    """End the function if an int, or the finiteness of a float, differs from the given value."""
    build = emitter.builder
    kinds = [emitter.load_field(each, ANY, "type_index") for each in (item, fresh)]
    bits = [emitter.load_field(each, ANY, "v_int64") for each in (item, fresh)]
    float_ = emitter.const_i32(TypeIndex.FLOAT)
    are_ints = build.and_(*(emitter.icmp("ult", kind, float_) for kind in kinds))
    differ = emitter.icmp("ne", *bits)
    with emitter.if_then(build.and_(are_ints, differ), likely=False):
        emitter.ret(_status(Status.NO_ROOM))
    are_floats = build.and_(*(emitter.icmp("eq", kind, float_) for kind in kinds))
    infinite = [_is_infinite(emitter, each) for each in bits]
    lost = build.and_(emitter.not_(infinite[0]), infinite[1])
    with emitter.if_then(build.and_(are_floats, lost), likely=False):
        emitter.ret(_status(Status.NO_ROOM_FLOAT))


def _is_infinite(emitter: Emitter, bits: ir.Value) -> ir.Value:
    magnitude = emitter.builder.shl(bits, emitter.const_i64(1))
    # Without the sign all bits of the exponent are set and none of the fraction, which a NaN has.
    return emitter.icmp("eq", magnitude, emitter.const_i64(0x7FF << 53))


def _lacks(emitter: Emitter, flags: ir.Value, flag: int) -> ir.Value:
    bit = emitter.builder.and_(flags, emitter.const_i64(flag))
    return emitter.icmp("eq", bit, emitter.const_i64(0))


def _define_is_instance(emitter: Emitter) -> None:
    names = ("known", "key", "item")
    with emitter.define(IS_INSTANCE, I1, TYPES[IS_INSTANCE].args, names=names) as function:
        known, key, item = function.args
        no = ir.Constant(I1, 0)
        with emitter.if_then(emitter.not_(is_object(emitter, item)), likely=False):
            emitter.ret(no)
        index = emitter.load_field(item, ANY, "type_index")
        wanted = emitter.builder.load_atomic(known, "monotonic", 4, typ=I32)
        with emitter.if_then(emitter.icmp("eq", index, wanted), likely=True):
            emitter.ret(ir.Constant(I1, 1))
        with emitter.if_then(emitter.icmp("eq", wanted, emitter.const_i32(0)), likely=False):
            found = type_of(emitter, key)
            with emitter.if_then(emitter.is_null(found), likely=False):
                emitter.ret(no)
            new = emitter.load_field(found, TYPE_INFO, "type_index")
            _put_once(emitter, known, new)
        wanted = emitter.builder.load_atomic(known, "monotonic", 4, typ=I32)
        with emitter.if_then(emitter.icmp("eq", index, wanted)):
            emitter.ret(ir.Constant(I1, 1))
        _is_derived(emitter, index, wanted)


def _is_derived(emitter: Emitter, index: ir.Value, wanted: ir.Value) -> None:
    """Return whether a type has another type among its ancestors."""
    info = emitter.call("TVMFFIGetTypeInfo", [index])
    base = emitter.call("TVMFFIGetTypeInfo", [wanted])
    depth = emitter.load_field(base, TYPE_INFO, "type_depth")
    deeper = emitter.icmp("sgt", emitter.load_field(info, TYPE_INFO, "type_depth"), depth)
    with emitter.if_then(emitter.not_(deeper)):
        emitter.ret(ir.Constant(I1, 0))
    ancestors = emitter.load_field(info, TYPE_INFO, "type_ancestors")
    # The list begins with the root: at this depth is the only ancestor that the type can be.
    at = emitter.index(ancestors, PTR, emitter.builder.sext(depth, I64))
    ancestor = emitter.load_field(emitter.load(at, PTR), TYPE_INFO, "type_index")
    emitter.ret(emitter.icmp("eq", ancestor, wanted))

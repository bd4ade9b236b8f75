"""Addresses, texts and objects on the hot path."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import partial

from ferrule.compiler.support.entries import ELEMENTS_FIT, IS_INSTANCE
from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.compiler.wrapper.items import Item, Level
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I64, OBJECT, SEQ, SHAPE
from ferrule.runtime.llvm.writer import Value, i32, i64
from ferrule.specs import Boolean, Sym
from ferrule.specs.expr import INT64_MAX, INT64_MIN
from ferrule.specs.params import (
    SIGNED_KINDS,
    Optional,
    Param,
    Payload,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Stream,
    Traits,
)

# A TVMFFIAny has room for 7 bytes of a string and a zero.
_SMALL_BYTES = 7
_ALL = (INT64_MIN, INT64_MAX)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.]+")


def accept_address(hot: Hot, item: Item, spec: Pointer | Stream) -> None:
    """A pointer, an int that is at least 0, or None as null."""
    writer = hot.writer
    index, value = item.index(hot), item.payload(hot)
    is_none = writer.icmp("eq", index, i32(TypeIndex.NONE))
    is_int = writer.icmp("eq", index, i32(TypeIndex.INT))
    is_pointer = writer.icmp("eq", index, i32(TypeIndex.OPAQUE_PTR))
    hot.require(writer.binary("or", is_none, writer.binary("or", is_int, is_pointer)))
    hot.require_that(value, "sge", 0)
    value = writer.select(is_none, i64(0), value)
    match spec:
        case Pointer(nullable=nullable, align=align):
            if not nullable:
                hot.require_that(value, "ne", 0)
            if align > 1:
                hot.require_multiple(value, align)
    item.keep(hot, value)


def accept_shape(hot: Hot, level: Level, item: Item, spec: Shape) -> None:
    """An ffi.Shape of the right length, with its elements."""
    cell = hot.writer.offset(item.object(hot, TypeIndex.SHAPE), OBJECT.size)
    hot.require_that(hot.writer.load_field(cell, SHAPE, "size"), "eq", len(spec.dims))
    if not spec.dims:
        return
    data = hot.writer.load_field(cell, SHAPE, "data")
    signed = spec.kind in SIGNED_KINDS
    for axis, dim in enumerate(spec.dims):
        load = partial(_element, hot, spec, data, axis)
        level.sizes.setdefault((id(spec), axis), load)
        if isinstance(dim, Sym) and not hot.knows(dim):
            hot.bind([(dim, load())], signed=signed)
        else:
            level.require_dim(hot, dim, load, signed=signed)


def _element(hot: Hot, spec: Shape, data: Value, axis: int) -> Value:
    return hot.writer.load(hot.writer.index(data, I64, axis), "i64", f"{spec.name}.d{axis}")


def open_sequence(hot: Hot, item: Item, size: int) -> Value:
    """The items of an Array or List with this many items."""
    writer = hot.writer
    index = item.index(hot)
    is_array = writer.icmp("eq", index, i32(TypeIndex.ARRAY))
    is_list = writer.icmp("eq", index, i32(TypeIndex.LIST))
    hot.require(writer.binary("or", is_array, is_list))
    cell = writer.offset(item.payload(hot, "ptr"), OBJECT.size)
    hot.require_that(writer.load_field(cell, SEQ, "size"), "eq", size)
    return writer.load_field(cell, SEQ, "data")


def accept_text(hot: Hot, item: Item, small: TypeIndex, large: TypeIndex) -> None:
    """A small text, inside its TVMFFIAny, or an object; others go to the checker."""
    writer = hot.writer
    index = item.index(hot)
    inside, outside = writer.block("small"), writer.block("large")
    with writer.apart() as last:
        behind = writer.block("text")
    writer.cond_branch(writer.icmp("eq", index, i32(small)), inside, outside)
    writer.at(inside)
    length = writer.load(item.at(hot, "small_str_len"), "i32", "length")
    hot.require_that(length, "ule", _SMALL_BYTES)
    data = item.at(hot, "v_bytes")
    item.keep(hot, data, writer.cast("zext", length, "i64"))
    writer.branch(behind)
    writer.at(outside)
    hot.require_that(index, "eq", int(large))
    cell = writer.offset(item.payload(hot, "ptr"), OBJECT.size)
    fields = (writer.load_field(cell, BYTE_ARRAY, field) for field in ("data", "size"))
    item.keep(hot, *fields)
    writer.branch(behind)
    writer.arrange(last)
    writer.at(behind)


def accept_bits(hot: Hot, item: Item, index: TypeIndex) -> None:
    """A dtype or device as a value; a name of one goes to the checker."""
    item.require_index(hot, index)
    item.keep(hot, item.payload(hot))


def accept_handle(hot: Hot, item: Item, index: TypeIndex) -> None:
    """An object of one kind."""
    item.keep(hot, item.object(hot, index))


def accept_elements(hot: Hot, item: Item, index: TypeIndex, element: Param | None) -> None:
    """An Array or List of anything, or of plain elements that all fit; Unfit for other elements."""
    if element is None:
        accept_handle(hot, item, index)
        return
    kinds, bounds = _element_kinds(element)
    container, mask = item.object(hot, index), [0, 0]
    for kind in kinds:
        mask[kind >= TypeIndex.OBJECT] |= 1 << kind % TypeIndex.OBJECT
    # LLVM's text writes an i64 with its highest bit set as a negative number.
    numbers = [i64(word - (word >> 63 << 64)) for word in (*mask, *bounds)]
    hot.require(hot.writer.call(ELEMENTS_FIT, "i1", [container, *numbers]))
    item.keep(hot, container)


def _element_kinds(element: Param) -> tuple[Set[int], tuple[int, int]]:
    """The type indices of the elements, and the range of int elements."""
    match element:
        case Scalar(dtype=dtype):
            bounds = (0, 1) if dtype is Boolean else _ALL
            if dtype.is_integer:
                bounds = (max(dtype.range[0], _ALL[0]), min(dtype.range[1], _ALL[1]))
            floats = {TypeIndex.FLOAT} if dtype.kind == "float" else set()
            return {TypeIndex.INT, TypeIndex.BOOL, *floats}, bounds
        case Optional(item=inner):
            kinds, bounds = _element_kinds(inner)
            return {*kinds, TypeIndex.NONE}, bounds
        case Plain(traits=Traits(payload=Payload.BYTES, stored=stored)):
            return set(stored), _ALL
    raise Unfit


def accept_registered(hot: Hot, item: Item, type_key: str) -> None:
    """An object of a registered type, whose index is cached; a check for derived types is a
    call."""
    writer = hot.writer
    index = item.index(hot)
    hot.require_that(index, "sge", int(TypeIndex.OBJECT))
    name = type_key if _PLAIN_NAME.fullmatch(type_key) else type_key.encode().hex()
    known = writer.zeroed(f"ferrule.type.{name}", "i32")
    derived = writer.block("derived")
    with writer.apart() as last:
        behind = writer.block("object")
    writer.cond_branch(writer.icmp("eq", index, writer.load(known, "i32")), behind, derived)
    writer.at(derived)
    key = writer.bytes_constant(type_key.encode() + b"\0", align=1)
    hot.require(writer.call(IS_INSTANCE, "i1", [known, key, item.at(hot)]))
    writer.branch(behind)
    writer.arrange(last)
    writer.at(behind)
    item.keep(hot, item.payload(hot, "ptr"))


def accept_any(hot: Hot, item: Item) -> None:
    """Any value, by its address."""
    item.keep(hot, item.at(hot))

"""Reading values other than tensors: numbers, text, addresses, functions, tuples."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.entry.buffers import WRITTEN
from ferrule.runtime.entry.numbers import NUMBER, NUMBER_TYPE
from ferrule.runtime.entry.objects import (
    FIELDS,
    FIELDS_TYPE,
    HANDLE,
    HANDLE_TYPE,
    learned_symbol,
)
from ferrule.runtime.entry.python import NONE, TRUE, items_of, near, python
from ferrule.runtime.entry.readers import BORROWED, Form, Reader
from ferrule.runtime.entry.structs import PY_CDATA, PY_FLOAT, PY_LONG, PY_VAR, VIEW
from ferrule.runtime.entry.support import BYTES, DROP_ERROR, TEXT
from ferrule.runtime.entry.surroundings import FUNCTION_TYPES
from ferrule.runtime.entry.tensors import READ_TENSOR, READ_TENSOR_TYPE
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, F64, I32, I64, PTR, PY_OBJECT, Layout
from ferrule.runtime.values.foreign import NUMPY_WRITEABLE
from ferrule.specs.deferred import dataclass

FFI_ARRAY: Final = "ffi_Array"
"""The function object that makes an Array."""

_TEXT: Final = ir.FunctionType(I32, [PTR, PTR])


@dataclass(slots=True)
class Frame:
    """The stack frame of one call, into which arguments are read.

    `refused` is the block for an argument that cannot be read. `compact_ints`: whether short ints
    have the layout that `compact_int` reads. `temps` are addresses of temporary objects of tvm-ffi,
    `owned` of references to Python's objects, or null.
    """

    e: Emitter
    instance: Layout
    state: ir.Value
    refused: ir.Block
    compact_ints: bool
    temps: list[ir.Value] = field(default_factory=list)
    owned: list[ir.Value] = field(default_factory=list)

    def temp(self) -> ir.Value:
        """Stack space for a temporary object, which the call releases."""
        slot = self.e.alloca(PTR, name="temp")
        self.temps.append(slot)
        # A call that an earlier argument ends releases this slot as well.
        with self.e.builder.goto_entry_block():
            self.e.store(self.e.null(), slot)
        return slot

    def own(self, count: int) -> ir.Value:
        """Stack space for references to objects of Python, which the call releases."""
        slots = self.e.alloca(PTR, count, name="owned")
        # Null from the entry on, as the slots of temporary objects.
        with self.e.builder.goto_entry_block():
            places = [self.e.index(slots, PTR, i) for i in range(count)]
            for place in places:
                self.e.store(self.e.null(), place)
        self.owned.extend(places)
        return slots

    def require(self, condition: ir.Value) -> None:
        """Continue if the condition holds; otherwise hand the call to the gate."""
        on = self.e.block("on")
        self.e.cond_branch(condition, on, self.refused, LIKELY)
        self.e.at(on)


def read_value(frame: Frame, reader: Reader, argument: ir.Value, out: ir.Value) -> None:
    """Put one argument into a TVMFFIAny, or go to `frame.refused`."""
    e, done = frame.e, frame.e.block("read")
    forms = [form for form in reader.forms if form not in BORROWED]
    if reader.borrows:
        forms.remove(Form.TENSOR)
    kind = e.load_field(argument, PY_OBJECT, "ob_type")
    given = frame.own(len(reader.items)) if Form.RECORD in forms else argument
    for form in forms:
        taken, following = e.block("taken"), e.block("following")
        is_form = _is_form(frame, reader, form, argument, kind, out, given)
        e.cond_branch(is_form, taken, following)
        e.at(taken)
        if form is Form.TUPLE:
            _read_tuple(frame, reader, argument, out)
        elif form is Form.RECORD:
            _make_array(frame, reader, given, out)
        elif form not in (Form.NUMBER, Form.HANDLE):
            _READ[form](frame, argument, out)
        e.branch(done)
        e.at(following)
    if reader.borrows:
        view = e.alloca(VIEW, name="view")
        e.cond_branch(_read_tensor(frame, reader, argument, out, view), done, frame.refused)
    else:
        e.branch(frame.refused)
    e.at(done)


def read_tensors(frame: Frame, reader: Reader, args: ir.Value, outs: ir.Value, count: int) -> None:
    """Read `count` neighbouring tensor arguments with the same reader."""
    e = frame.e
    views = e.alloca(VIEW, count, name="views")
    with e.loop(e.const_i64(count)) as i:
        argument = e.load(e.index(args, PTR, i), PTR)
        out, view = e.index(outs, ANY, i), e.index(views, VIEW, i)
        frame.require(_read_tensor(frame, reader, argument, out, view))


def _read_tensor(
    frame: Frame, reader: Reader, argument: ir.Value, out: ir.Value, view: ir.Value
) -> ir.Value:
    e = frame.e
    frozen, written = (form in reader.forms for form in (Form.FROZEN_ARRAY, Form.ARRAY))
    flags = e.const_i32((0 if frozen else NUMPY_WRITEABLE) | (WRITTEN if written else 0))
    function = near(e, READ_TENSOR, READ_TENSOR_TYPE)
    return e.icmp("ne", e.call(function, [argument, out, view, frame.state, flags]), e.const_i32(0))


def _is_form(
    frame: Frame,
    reader: Reader,
    form: Form,
    argument: ir.Value,
    kind: ir.Value,
    out: ir.Value,
    given: ir.Value,
) -> ir.Value:
    """Whether the argument has this form.

    A number of NumPy and an address have been read then, and a record's fields are in `given`.
    """
    e = frame.e
    match form:
        case Form.RECORD:
            function, count = near(e, FIELDS, FIELDS_TYPE), e.const_i64(len(reader.items))
            learned = e.external(learned_symbol(reader.learned))
            taken = e.call(function, [argument, learned, given, count])
            return e.icmp("ne", taken, e.const_i32(0))
        case Form.HANDLE:
            learned = e.external(learned_symbol(reader.learned))
            read = e.call(near(e, HANDLE, HANDLE_TYPE), [argument, learned, out])
            return e.icmp("ne", read, e.const_i32(0))
        case Form.NUMBER:
            function = near(e, NUMBER, NUMBER_TYPE)
            floats = e.const_i32(int(Form.FLOAT in reader.forms))
            return e.icmp("ne", e.call(function, [argument, out, floats]), e.const_i32(0))
        case Form.NONE:
            return e.icmp("eq", argument, e.external(NONE))
        case Form.FUNCTION:
            base, own = (e.external(name) for name in FUNCTION_TYPES)
            return e.binary("or", e.icmp("eq", kind, base), e.icmp("eq", kind, own))
    return e.icmp("eq", kind, e.external(form.value))


def _put(frame: Frame, out: ir.Value, index: TypeIndex, payload: ir.Value) -> None:
    e = frame.e
    e.store_field(out, ANY, "head", e.const_i64(index))
    if payload.type == F64:
        e.store_field(out, ANY, "v_float64", payload)
    elif payload.type == I64:
        e.store_field(out, ANY, "v_int64", payload)
    else:
        e.store_field(out, ANY, "v_ptr", payload)


def _read_none(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _put(frame, out, TypeIndex.NONE, frame.e.const_i64(0))


def _read_bool(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    e = frame.e
    truth = e.icmp("eq", argument, e.external(TRUE))
    _put(frame, out, TypeIndex.BOOL, e.widened(truth))


def _read_int(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    """Read an int of at most 64 bits; a longer one goes to the gate."""
    e = frame.e
    if not frame.compact_ints:
        _put(frame, out, TypeIndex.INT, _long_int(frame, argument))
        return
    here, compact, long, done = (e.block(name) for name in ("here", "compact", "long", "done"))
    e.branch(here)
    e.at(here)
    word = e.load_field(argument, PY_LONG, "size_or_tag")
    e.cond_branch(_is_compact(e, word), compact, long, LIKELY)
    e.at(compact)
    digit = e.builder.zext(e.load_field(argument, PY_LONG, "digit"), I64)
    short = e.binary("mul", digit, _sign(e, word))
    e.branch(done)
    e.at(long)
    whole, last = _long_int(frame, argument), e.builder.block
    e.branch(done)
    e.at(done)
    number = e.builder.phi(I64, name="number")
    number.add_incoming(short, compact)
    number.add_incoming(whole, last)
    _put(frame, out, TypeIndex.INT, number)


def _is_compact(e: Emitter, word: ir.Value) -> ir.Value:
    """See `compact_int`."""
    if sys.version_info >= (3, 12):
        return e.icmp("ult", word, e.const_i64(16))
    return e.icmp("ult", e.binary("add", word, e.const_i64(1)), e.const_i64(3))


def _sign(e: Emitter, word: ir.Value) -> ir.Value:
    if sys.version_info >= (3, 12):
        return e.binary("sub", e.const_i64(1), e.binary("and", word, e.const_i64(3)))
    return word


def _long_int(frame: Frame, argument: ir.Value) -> ir.Value:
    e = frame.e
    overflow = e.alloca(I32, name="overflow")
    number = python(e, "PyLong_AsLongLongAndOverflow", argument, overflow)
    frame.require(e.icmp("eq", e.load(overflow, I32), e.const_i32(0)))
    return number


def _read_float(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _put(frame, out, TypeIndex.FLOAT, frame.e.load_field(argument, PY_FLOAT, "ob_fval"))


def _read_address(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    e = frame.e
    address = e.load(e.load_field(argument, PY_CDATA, "b_ptr"), PTR)
    _put(frame, out, TypeIndex.OPAQUE_PTR, address)


def _read_function(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _read_object(frame, TypeIndex.FUNCTION, argument, out)


def _read_tensor_object(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _read_object(frame, TypeIndex.TENSOR, argument, out)


def _read_object(frame: Frame, index: TypeIndex, argument: ir.Value, out: ir.Value) -> None:
    e = frame.e
    handle = e.load_field(argument, frame.instance, "handle")
    frame.require(e.not_(e.is_null(handle)))
    _put(frame, out, index, handle)


def _read_text(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _read_bytes_of(frame, TEXT, argument, out)


def _read_bytes(frame: Frame, argument: ir.Value, out: ir.Value) -> None:
    _read_bytes_of(frame, BYTES, argument, out)


def _read_bytes_of(frame: Frame, function: str, argument: ir.Value, out: ir.Value) -> None:
    """Read bytes or text: short ones are stored inline, longer ones are temporary objects."""
    e, slot = frame.e, frame.temp()
    read = e.call(near(e, function, _TEXT), [argument, out])
    frame.require(e.icmp("ne", read, e.const_i32(0)))
    _keep(frame, out, slot)


def _keep(frame: Frame, out: ir.Value, slot: ir.Value) -> None:
    e = frame.e
    is_object = e.icmp("sge", e.load_field(out, ANY, "type_index"), e.const_i32(TypeIndex.OBJECT))
    e.store(e.select(is_object, e.load_field(out, ANY, "v_ptr"), e.null()), slot)


def _read_tuple(frame: Frame, reader: Reader, argument: ir.Value, out: ir.Value) -> None:
    e = frame.e
    size = e.load_field(argument, PY_VAR, "ob_size")
    frame.require(e.icmp("eq", size, e.const_i64(len(reader.items))))
    _make_array(frame, reader, items_of(e, argument), out)


def _make_array(frame: Frame, reader: Reader, given: ir.Value, out: ir.Value) -> None:
    """Convert the given items and make an Array with tvm-ffi's own constructor."""
    e, count, slot = frame.e, len(reader.items), frame.temp()
    items = e.alloca(ANY, max(1, count), name="items")
    for i, item in enumerate(reader.items):
        read_value(frame, item, e.load(e.index(given, PTR, i), PTR), e.index(items, ANY, i))
    e.store_field(out, ANY, "head", e.const_i64(TypeIndex.NONE))
    e.store_field(out, ANY, "v_int64", e.const_i64(0))
    make = [e.external(FFI_ARRAY), items, e.const_i32(count), out]
    failed = e.icmp("ne", e.call("TVMFFIFunctionCall", make), e.const_i32(0))
    with e.if_then(failed, likely=False):
        e.call(near(e, DROP_ERROR, ir.FunctionType(ir.VoidType(), [])), [])
        e.branch(frame.refused)
    _keep(frame, out, slot)


_READ: Final[Mapping[Form, Callable[[Frame, ir.Value, ir.Value], None]]] = MappingProxyType(
    {
        Form.NONE: _read_none,
        Form.BOOL: _read_bool,
        Form.INT: _read_int,
        Form.FLOAT: _read_float,
        Form.TEXT: _read_text,
        Form.BYTES: _read_bytes,
        Form.ADDRESS: _read_address,
        Form.FUNCTION: _read_function,
        Form.TENSOR: _read_tensor_object,
    }
)

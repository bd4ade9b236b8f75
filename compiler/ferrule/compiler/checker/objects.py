"""Handlers of the rows about sequences, texts, dtypes, devices and objects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.format import Op
from ferrule.compiler.checker.frame import SHAPE_OBJECT, TYPE_INFO, Frame
from ferrule.compiler.checker.reports import Said
from ferrule.compiler.messages.context import PlaceKind
from ferrule.compiler.messages.texts import find_text, is_there
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import ANY, I1, I8, I32, I64, PTR, SEQ_OBJECT, Field, Layout
from ferrule.specs import DEVICE_CODES
from ferrule.specs.expr import INT64_MAX, INT64_MIN
from ferrule.specs.typeindex import BIG_INT

DEVICE: Final = ir.FunctionType(I1, [PTR, I64, PTR])

_ENTRY: Final = Layout("DeviceName", [Field("code", I64), Field("offset", I64), Field("size", I64)])
_PACKED: Final = struct.Struct("<QQQ")
# All numbers of nine digits fit into 32 bits.
_MOST_DIGITS: Final = 9


def define_device(emitter: Emitter) -> None:
    """`i1 ferrule_device(ptr data, i64 size, ptr out)`: a device from its name, `cuda:1`."""
    names = ("data", "size", "out")
    with emitter.define(
        "ferrule_device", I1, DEVICE.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        data, size, out = function.args
        table, build = emitter.bytes_constant(_device_names(), align=8), emitter.builder
        with emitter.loop(emitter.const_i64(len(DEVICE_CODES))) as i:
            entry = emitter.index(table, _ENTRY, i)
            length = emitter.load_field(entry, _ENTRY, "size")
            with emitter.if_then(build.icmp_unsigned(">=", size, length)):
                offset = emitter.load_field(entry, _ENTRY, "offset")
                known = emitter.index(table, I8, offset)
                differ = emitter.call("memcmp", [data, known, length])
                with emitter.if_then(build.icmp_signed("==", differ, emitter.const_i32(0))):
                    code = emitter.load_field(entry, _ENTRY, "code")
                    emitter.store(code, out)
                    rest = emitter.index(data, I8, length)
                    _read_index(emitter, rest, build.sub(size, length), out)
        emitter.ret(ir.Constant(I1, 0))


def _device_names() -> bytes:
    entries, texts = b"", b""
    base = len(DEVICE_CODES) * _PACKED.size
    for name, code in DEVICE_CODES.items():
        entries += _PACKED.pack(code, base + len(texts), len(name))
        texts += name.encode()
    return entries + texts


def _read_index(emitter: Emitter, rest: ir.Value, size: ir.Value, out: ir.Value) -> None:
    """Return 1 if the rest of a device's name is empty or an index; store the index in `out`."""
    build, const = emitter.builder, emitter.const_i64
    with emitter.if_then(build.icmp_signed("==", size, const(0))):
        emitter.ret(ir.Constant(I1, 1))
    colon = build.icmp_signed("==", emitter.load(rest, I8), ir.Constant(I8, ord(":")))
    count = build.sub(size, const(1))
    some = build.icmp_unsigned("<", build.sub(count, const(1)), const(_MOST_DIGITS))
    with emitter.if_then(build.and_(colon, some)):
        index = emitter.alloca(I64, name="index")
        emitter.store(const(0), index)
        with emitter.loop(count) as i:
            letter = emitter.load(emitter.index(emitter.index(rest, I8, 1), I8, i), I8)
            digit = build.sub(build.zext(letter, I64), const(ord("0")))
            with emitter.if_then(build.icmp_unsigned(">", digit, const(9))):
                emitter.ret(ir.Constant(I1, 0))
            emitter.store(build.add(build.mul(emitter.load(index, I64), const(10)), digit), index)
        both = build.or_(emitter.load(out, I64), build.shl(emitter.load(index, I64), const(32)))
        emitter.store(both, out)
        emitter.ret(ir.Constant(I1, 1))


# ---- sequences ----


def _check_given(frame: Frame) -> ir.Value:
    """The object, which must not be a null pointer."""
    payload = frame.payload("v_ptr")
    given = frame.build.not_(frame.emitter.is_null(payload))
    frame.check(given, Said.NULL_VALUE)
    return payload


def _check_size(frame: Frame, size: ir.Value, said: Said) -> None:
    wanted = frame.operand("b")
    frame.check(frame.equal(size, wanted), said, wanted=wanted, actual=size)


def _sequence(frame: Frame) -> None:
    payload = _check_given(frame)
    size = frame.emitter.load_field(payload, SEQ_OBJECT, "cell.size")
    _check_size(frame, size, Said.TUPLE_SIZE)
    frame.go_on()


def _shape(frame: Frame) -> None:
    emitter, payload = frame.emitter, _check_given(frame)
    with emitter.if_then(frame.is_type(TypeIndex.SHAPE)):
        size = emitter.load_field(payload, SHAPE_OBJECT, "cell.size")
        _check_size(frame, size, Said.SHAPE_SIZE)
        frame.go_on()
    size = emitter.load_field(payload, SEQ_OBJECT, "cell.size")
    _check_size(frame, size, Said.SHAPE_SIZE)
    items = emitter.load_field(payload, SEQ_OBJECT, "cell.data")
    with emitter.loop(size) as i:
        item = emitter.index(items, ANY, i)
        index = emitter.load_field(item, ANY, "type_index")
        with emitter.if_then(frame.build.not_(frame.equal(index, TypeIndex.INT))):
            axis = frame.build.trunc(i, I32)
            shown = {"any": item, "place": emitter.const_i32(int(PlaceKind.DIMS)), "axis": axis}
            with emitter.if_then(frame.equal(index, BIG_INT)):
                _refuse_big_element(frame, item, shown)
            frame.refuse(Said.ELEMENT_TYPE, **shown)
    frame.go_on()


def _refuse_big_element(frame: Frame, item: ir.Value, shown: dict[str, ir.Value]) -> None:
    value = frame.emitter.load_field(item, ANY, "v_ptr")
    bounds = {"value2": INT64_MIN, "value3": INT64_MAX}
    numbers = {name: frame.emitter.const_i64(bound) for name, bound in bounds.items()}
    large, small = Said.ELEMENT_TOO_LARGE, Said.ELEMENT_TOO_SMALL
    frame.refuse_big_int(value, large, small, {**shown, **numbers})


# ---- texts ----


def _read_text(frame: Frame) -> tuple[ir.Value, ir.Value]:
    """Address and length of the value's text."""
    text = find_text(frame.emitter, frame.any())
    frame.check(is_there(frame.emitter, text), Said.NULL_VALUE)
    return frame.build.extract_value(text, 0), frame.build.extract_value(text, 1)


def _text(frame: Frame) -> None:
    emitter = frame.emitter
    data, size = _read_text(frame)
    with emitter.if_then(frame.equal(frame.operand("kind"), 0)):
        leaf = frame.slot("out", frame.operand("axis"))
        emitter.store(frame.build.ptrtoint(data, I64), leaf)
        emitter.store(size, emitter.index(leaf, I64, 1))
    frame.go_on()


def _constant_text(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    data, size = _read_text(frame)
    wanted, length = frame.text(frame.operand("b"))
    frame.check(frame.equal(size, length), Said.CONSTANT)
    with emitter.if_then(build.not_(frame.equal(size, 0))):
        differ = emitter.call("memcmp", [data, wanted, size])
        frame.check(frame.equal(differ, 0), Said.CONSTANT)
    frame.go_on()


def _forget_error(frame: Frame) -> None:
    """Discard the error that tvm-ffi set, to set one of ours."""
    emitter = frame.emitter
    handle = emitter.alloca(PTR, name="handle")
    emitter.store(emitter.null(), handle)
    emitter.call("TVMFFIErrorMoveFromRaised", [handle])
    error = emitter.load(handle, PTR)
    with emitter.if_then(frame.build.not_(emitter.is_null(error))):
        emitter.call("TVMFFIObjectDecRef", [error])


def _data_type(frame: Frame) -> None:
    emitter = frame.emitter
    with emitter.if_then(frame.is_type(TypeIndex.DATA_TYPE)):
        frame.number(frame.build.zext(frame.payload("v_dtype"), I64))
    array = frame.byte_array(*_read_text(frame))
    out = emitter.alloca(I64, name="dtype")
    emitter.store(emitter.const_i64(0), out)
    status = emitter.call("TVMFFIDataTypeFromString", [array, out])
    with emitter.if_then(frame.build.not_(frame.equal(status, 0))):
        _forget_error(frame)
        frame.refuse(Said.NAMED_VALUE)
    frame.number(emitter.load(out, I64))


def _device_value(frame: Frame) -> None:
    emitter = frame.emitter
    with emitter.if_then(frame.is_type(TypeIndex.DEVICE)):
        frame.number(frame.payload("v_device"))
    data, size = _read_text(frame)
    out = emitter.alloca(I64, name="device")
    ok = emitter.call(emitter.symbol("ferrule_device", DEVICE), [data, size, out])
    frame.check(ok, Said.NAMED_VALUE)
    frame.number(emitter.load(out, I64))


# ---- objects ----


def _object(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    key = frame.byte_array(*frame.text(frame.operand("b")))
    wanted_at = emitter.alloca(I32, name="wanted")
    status = emitter.call("TVMFFITypeKeyToIndex", [key, wanted_at])
    with emitter.if_then(build.not_(frame.equal(status, 0))):
        _forget_error(frame)
        frame.refuse(Said.TYPE_KEY)
    index, wanted = frame.type_index(), emitter.load(wanted_at, I32)
    counted = build.icmp_signed(">=", index, emitter.const_i32(int(TypeIndex.OBJECT)))
    frame.check(counted, Said.TYPE)
    with emitter.if_then(frame.equal(index, wanted)):
        frame.go_on()
    info = emitter.call("TVMFFIGetTypeInfo", [index])
    depth = emitter.load_field(emitter.call("TVMFFIGetTypeInfo", [wanted]), TYPE_INFO, "type_depth")
    deeper = build.icmp_signed(">", emitter.load_field(info, TYPE_INFO, "type_depth"), depth)
    frame.check(deeper, Said.TYPE)
    ancestors = emitter.load_field(info, TYPE_INFO, "type_ancestors")
    ancestor = emitter.load(emitter.index(ancestors, PTR, build.sext(depth, I64)), PTR)
    found = emitter.load_field(ancestor, TYPE_INFO, "type_index")
    frame.check(frame.equal(found, wanted), Said.TYPE)
    frame.go_on()


OBJECTS: Final[Mapping[Op, Callable[[Frame], None]]] = MappingProxyType(
    {
        Op.SEQUENCE: _sequence,
        Op.SHAPE: _shape,
        Op.TEXT: _text,
        Op.CONSTANT_TEXT: _constant_text,
        Op.DATA_TYPE: _data_type,
        Op.DEVICE_VALUE: _device_value,
        Op.OBJECT: _object,
    }
)

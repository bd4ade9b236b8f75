"""The parts of a handler that are functions of their own: what is rare, and what is long."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.operators.jax import frames
from ferrule.compiler.operators.jax.frames import (
    API,
    BUFFER,
    ERROR_CREATE,
    EXTENSION,
    FRAME,
    METADATA,
    METADATA_OF,
    SCALAR_OF,
    Code,
    struct_size,
)
from ferrule.compiler.operators.jax.plans import Plan
from ferrule.compiler.operators.jax.words import WORDS
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    DLTENSOR,
    ERROR_CELL,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    OBJECT,
    PTR,
    TENSOR_OBJECT,
)
from ferrule.specs import Tensor

DTYPES: Final = "ferrule_dtypes"
SAY_VERSION: Final = "ferrule_say_version"
REFUSE: Final = "ferrule_refuse"
RAISED: Final = "ferrule_raised"
NUMBER: Final = "ferrule_number"
TAKE: Final = "ferrule_take"
_CREATE: Final = "ferrule_create_error"
# More than there are numbers of `XLA_FFI_DataType`.
_DTYPES: Final = 64
# On the stack; snprintf cuts what is longer.
_TEXT_ROOM: Final = 1024

_CODES: Final = {
    **dict.fromkeys(
        ("ValueError", "TypeError", "IndexError", "KeyError", "BufferError", "OverflowError"),
        Code.INVALID_ARGUMENT,
    ),
    "MemoryError": Code.RESOURCE_EXHAUSTED,
    "NotImplementedError": Code.UNIMPLEMENTED,
}
"""XLA's codes for the kinds of errors that functions raise; others are INTERNAL."""

_INTEGERS: Final = {
    2: (I8, True),
    3: (I16, True),
    4: (I32, True),
    5: (I64, True),
    6: (I8, False),
    7: (I16, False),
    8: (I32, False),
    9: (I64, False),
}
_FLOATS: Final = {11: ir.FloatType(), 12: F64}
# The numbers of `XLA_FFI_DataType` in xla/ffi/api/c_api.h: PRED; S8 to S64, U8 to U64; F32 and F64.
_BOOL: Final = 1


def define_helpers(e: Emitter, plan: Plan) -> None:
    """Define what the handler of this plan calls."""
    entries = [WORDS.get(i, 0) for i in range(_DTYPES)]
    e.global_constant(DTYPES, ir.Constant(ir.ArrayType(I32, _DTYPES), entries))
    _define_say_version(e)
    _define_create(e)
    _define_refuse(e)
    _define_raised(e)
    if plan.attributes():
        _define_number(e)
    if any(isinstance(each, Tensor) for each in plan.results):
        _define_take(e)


def word_of(e: Emitter, number: ir.Value) -> ir.Value:
    """DLPack's word of one of XLA's dtypes; 0, which no parameter takes, for others."""
    known = e.icmp("ult", number, e.const_i32(_DTYPES))
    position = e.builder.zext(e.select(known, number, e.const_i32(0)), I64)
    place = e.builder.gep(e.module.globals[DTYPES], [position], inbounds=True, source_etype=I32)
    return e.load(place, I32)


def is_text(e: Emitter, place: ir.Value, text: str) -> ir.Value:
    """Whether the bytes at a place are this text, in a few loads."""
    data, at = text.encode(), 0
    differs: ir.Value = e.const_i64(0)
    while at < len(data):
        size = next(each for each in (8, 4, 2, 1) if at + each <= len(data))
        kind = ir.IntType(8 * size)
        chunk = e.builder.load(e.index(place, I8, at), align=1, typ=kind)
        wanted = ir.Constant(kind, int.from_bytes(data[at : at + size], "little"))
        found = e.builder.xor(chunk, wanted)
        differs = e.builder.or_(differs, found if size == 8 else e.builder.zext(found, I64))
        at += size
    return e.icmp("eq", differs, e.const_i64(0))


def _define_say_version(e: Emitter) -> None:
    """`i1 say_version(ptr frame)`: whether XLA asked for the version, which then is there.

    It is the smaller one of ours and XLA's, as an older XLA takes no handler for a newer one.
    """
    with e.define(
        SAY_VERSION, I1, [PTR], names=("frame",), linkage="internal", attributes=COLD
    ) as function:
        place = e.alloca(PTR, name="extension")
        e.store(e.load_field(function.args[0], FRAME, "extension_start"), place)
        head, body, end = (e.block(name) for name in ("head", "body", "end"))
        e.branch(head)
        e.at(head)
        extension = e.load(place, PTR)
        e.cond_branch(e.is_null(extension), end, body)
        e.at(body)
        kind = e.load_field(extension, EXTENSION, "type")
        with e.if_then(e.icmp("eq", kind, e.const_i32(frames.METADATA_EXTENSION))):
            _fill(e, function.args[0], e.load_field(extension, METADATA_OF, "metadata"))
            e.ret(e.const_i1(True))
        e.store(e.load_field(extension, EXTENSION, "next"), place)
        e.branch(head)
        e.at(end)
        e.ret(e.const_i1(False))


def _fill(e: Emitter, frame: ir.Value, metadata: ir.Value) -> None:
    minor = e.alloca(I32, name="minor")
    e.store(e.const_i32(frames.OLDEST_MINOR), minor)
    api = e.load_field(frame, FRAME, "api")
    with e.if_then(e.not_(e.is_null(api))):  # older ones ask without it
        theirs = e.load_field(api, API, "api_version.minor_version")
        ours = e.const_i32(frames.MINOR)
        e.store(e.select(e.icmp("slt", theirs, ours), theirs, ours), minor)
    e.store_field(metadata, METADATA, "api_version.major_version", e.const_i32(frames.MAJOR))
    e.store_field(metadata, METADATA, "api_version.minor_version", e.load(minor, I32))
    e.store_field(metadata, METADATA, "traits", e.const_i32(0))


def _define_create(e: Emitter) -> None:
    """`ptr create(ptr api, ptr message, i32 code)`: an error of XLA's with a copy of the text."""
    names = ("api", "message", "code")
    with e.define(
        _CREATE, PTR, [PTR, PTR, I32], names=names, linkage="internal", attributes=COLD
    ) as function:
        api, message, code = function.args
        made = e.alloca(ERROR_CREATE, name="made")
        size = e.const_i64(struct_size(ERROR_CREATE))
        e.store_field(made, ERROR_CREATE, "struct_size", size)
        e.store_field(made, ERROR_CREATE, "extension_start", e.null())
        e.store_field(made, ERROR_CREATE, "message", message)
        e.store_field(made, ERROR_CREATE, "errc", code)
        address = e.load_field(api, API, "XLA_FFI_Error_Create")
        e.ret(e.call_pointer(address, frames.OF_API, [made]))


def _define_refuse(e: Emitter) -> None:
    """`ptr refuse(ptr api, ptr text, i64 number)`: the error with this text, a format."""
    names = ("api", "text", "number")
    with e.define(
        REFUSE, PTR, [PTR, PTR, I64], names=names, linkage="internal", attributes=COLD
    ) as function:
        api, text, number = function.args
        shown = e.alloca(I8, _TEXT_ROOM, name="shown")
        e.call("snprintf", [shown, e.const_i64(_TEXT_ROOM), text, number])
        code = e.const_i32(Code.INVALID_ARGUMENT)
        e.ret(e.call(e.module.globals[_CREATE], [api, shown, code]))


def _define_raised(e: Emitter) -> None:
    """`ptr raised(ptr api)`: the error that is raised in tvm-ffi's sense, whole."""
    with e.define(
        RAISED, PTR, [PTR], names=("api",), linkage="internal", attributes=COLD
    ) as function:
        (api,) = function.args
        create = e.module.globals[_CREATE]
        place = e.alloca(PTR, name="error")
        e.store(e.null(), place)
        e.call("TVMFFIErrorMoveFromRaised", [place])
        error = e.load(place, PTR)
        internal = e.const_i32(Code.INTERNAL)
        with e.if_then(e.is_null(error)):
            text = e.cstring("the function failed without an error")
            e.ret(e.call(create, [api, text, internal]))
        cell = e.index(error, I8, OBJECT.size)
        kind, message = (e.field_ptr(cell, ERROR_CELL, each) for each in ("kind", "message"))
        text = _joined(e, kind, message)
        with e.if_then(e.is_null(text)):
            e.call("TVMFFIObjectDecRef", [error])
            short = e.cstring("there is no memory for the message of an error")
            e.ret(e.call(create, [api, short, internal]))
        made = e.call(create, [api, text, _code(e, kind)])
        e.call("free", [text])
        e.call("TVMFFIObjectDecRef", [error])
        e.ret(made)


def _joined(e: Emitter, kind: ir.Value, message: ir.Value) -> ir.Value:
    """`kind: message`, in memory of its own; null if there is none."""
    first, second = (e.load_field(each, BYTE_ARRAY, "size") for each in (kind, message))
    between = e.builder.add(first, e.const_i64(2))
    size = e.builder.add(between, second)
    text = e.call("malloc", [e.builder.add(size, e.const_i64(1))])
    with e.if_then(e.not_(e.is_null(text)), likely=True):
        e.call("memcpy", [text, e.load_field(kind, BYTE_ARRAY, "data"), first])
        e.call("memcpy", [e.index(text, I8, first), e.cstring(": "), e.const_i64(2)])
        data = e.load_field(message, BYTE_ARRAY, "data")
        e.call("memcpy", [e.index(text, I8, between), data, second])
        e.store(ir.Constant(I8, 0), e.index(text, I8, size))
    return text


def _code(e: Emitter, kind: ir.Value) -> ir.Value:
    place = e.alloca(I32, name="code")
    e.store(e.const_i32(Code.INTERNAL), place)
    size, data = (e.load_field(kind, BYTE_ARRAY, each) for each in ("size", "data"))
    for name, code in _CODES.items():
        length = e.const_i64(len(name))
        with e.if_then(e.icmp("eq", size, length)):
            with e.if_then(is_text(e, data, name)):
                e.store(e.const_i32(code), place)
    return e.load(place, I32)


def _define_number(e: Emitter) -> None:
    """`i1 number(i32 kind, ptr attribute, ptr any)`: false, and the value of the attribute.

    The text `None` stands for a value that is not there; true for what is no number.
    """
    names = ("kind", "attribute", "any")
    with e.define(
        NUMBER, I1, [I32, PTR, PTR], names=names, linkage="internal", attributes=COLD
    ) as function:
        kind, attribute, place = function.args
        e.store_field(place, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(place, ANY, "v_int64", e.const_i64(0))
        with e.if_then(e.icmp("eq", kind, e.const_i32(frames.STRING))):
            size, data = (e.load_field(attribute, frames.SPAN, each) for each in ("len", "ptr"))
            with e.if_then(e.icmp("eq", size, e.const_i64(len(frames.ABSENT)))):
                with e.if_then(is_text(e, data, frames.ABSENT)):
                    e.ret(e.const_i1(False))
            e.ret(e.const_i1(True))
        with e.if_then(e.icmp("ne", kind, e.const_i32(frames.SCALAR))):
            e.ret(e.const_i1(True))
        dtype = e.load_field(attribute, SCALAR_OF, "dtype")
        at = e.load_field(attribute, SCALAR_OF, "value")
        for number, (width, signed) in _INTEGERS.items():
            with e.if_then(e.icmp("eq", dtype, e.const_i32(number))):
                value = _widened(e, e.load(at, width), signed=signed)
                if not signed and width is I64:
                    with e.if_then(e.icmp("slt", value, e.const_i64(0))):
                        e.ret(e.const_i1(True))
                _found(e, place, TypeIndex.INT, "v_int64", value)
        for number, width in _FLOATS.items():
            with e.if_then(e.icmp("eq", dtype, e.const_i32(number))):
                value = e.load(at, width)
                wide = value if width is F64 else e.builder.fpext(value, F64)
                _found(e, place, TypeIndex.FLOAT, "v_float64", wide)
        with e.if_then(e.icmp("eq", dtype, e.const_i32(_BOOL))):
            value = e.icmp("ne", e.load(at, I8), ir.Constant(I8, 0))
            _found(e, place, TypeIndex.BOOL, "v_int64", e.widened(value))
        e.ret(e.const_i1(True))


def _widened(e: Emitter, value: ir.Value, *, signed: bool) -> ir.Value:
    if value.type.width == 64:
        return value
    return e.builder.sext(value, I64) if signed else e.builder.zext(value, I64)


def _found(e: Emitter, place: ir.Value, index: TypeIndex, name: str, value: ir.Value) -> None:
    e.store_field(place, ANY, "head", e.const_i64(index))
    e.store_field(place, ANY, name, value)
    e.ret(e.const_i1(False))


def _define_take(e: Emitter) -> None:
    """`i1 take(ptr any, ptr buffer, ptr axes, i64 rank)`: copy a tensor that was returned.

    `axes` are its axes from the slowest to the fastest. True, if it is not dense in this order, or
    has another shape or dtype than the buffer.
    """
    names = ("any", "buffer", "axes", "rank")
    with e.define(
        TAKE, I1, [PTR, PTR, PTR, I64], names=names, linkage="internal", attributes=("noinline",)
    ) as function:
        value, buffer, axes, rank = function.args
        index = e.load_field(value, ANY, "type_index")
        _no(e, e.icmp("ne", index, e.const_i32(TypeIndex.TENSOR)))
        tensor = e.load_field(value, ANY, "v_obj")
        dl = e.field_ptr(tensor, TENSOR_OBJECT, "dl")
        word = word_of(e, e.load_field(buffer, BUFFER, "dtype"))
        _no(e, e.icmp("ne", e.load_field(dl, DLTENSOR, "dtype"), word))
        _no(e, e.icmp("ne", e.load_field(buffer, BUFFER, "rank"), rank))
        ndim = e.builder.sext(e.load_field(dl, DLTENSOR, "ndim"), I64)
        _no(e, e.icmp("ne", ndim, rank))
        count = _dense_elements(e, dl, buffer, axes, rank)
        bits = e.builder.zext(e.load_field(dl, DLTENSOR, "dtype_bits"), I64)
        size = e.builder.lshr(e.builder.mul(count, bits), e.const_i64(3))
        data = e.load_field(dl, DLTENSOR, "data")
        source = e.index(data, I8, e.load_field(dl, DLTENSOR, "byte_offset"))
        with e.if_then(e.icmp("ne", size, e.const_i64(0))):
            e.call("memcpy", [e.load_field(buffer, BUFFER, "data"), source, size])
        e.ret(e.const_i1(False))


def _dense_elements(
    e: Emitter, dl: ir.Value, buffer: ir.Value, axes: ir.Value, rank: ir.Value
) -> ir.Value:
    """The number of elements; ends where sizes differ, or strides are not dense."""
    dims = e.load_field(buffer, BUFFER, "dims")
    shape, strides = (e.load_field(dl, DLTENSOR, each) for each in ("shape", "strides"))
    total = e.alloca(I64, name="total")
    e.store(e.const_i64(1), total)
    with e.loop(rank, name="axis") as axis:
        size = e.load(e.index(dims, I64, axis), I64)
        _no(e, e.icmp("ne", size, e.load(e.index(shape, I64, axis), I64)))
        e.store(e.builder.mul(e.load(total, I64), size), total)
    count = e.load(total, I64)
    has_strides = e.builder.and_(e.not_(e.is_null(strides)), e.icmp("ne", count, e.const_i64(0)))
    with e.if_then(has_strides):
        running = e.alloca(I64, name="running")
        e.store(e.const_i64(1), running)
        with e.loop(rank, name="place") as i:
            last = e.builder.sub(e.builder.sub(rank, i), e.const_i64(1))
            axis = e.load(e.index(axes, I64, last), I64)
            size = e.load(e.index(dims, I64, axis), I64)
            stride = e.load(e.index(strides, I64, axis), I64)
            wrong = e.icmp("ne", stride, e.load(running, I64))
            # The stride of an axis with one element is never used, and may be anything.
            _no(e, e.builder.and_(wrong, e.icmp("sgt", size, e.const_i64(1))))
            e.store(e.builder.mul(e.load(running, I64), size), running)
    return count


def _no(e: Emitter, flag: ir.Value) -> None:
    with e.if_then(flag, likely=False):
        e.ret(e.const_i1(True))

"""Support code of bodies that call functions of tvm-ffi.

* `i32 ferrule_find(ptr known, ptr name, ptr out)`: the registered function of a NUL-terminated
  name; `known` caches its handle from the first call on.
* `i32 ferrule_find_imported(ptr module, ptr known, ptr name, ptr out)`: the function of this name
  in the imports of the module at `*module`; the registered one if there is none, or the module is
  null.
* `i32 ferrule_pass_text(ptr data, i64 size, i1 is_text, ptr item, ptr owned)`: a string, or bytes,
  as an argument; if it is an object, its handle goes to `owned`.
* `i32 ferrule_pass_tensor(ptr prototype, ptr item, ptr owned)`: a tensor object over the memory of
  a DLTensor, which the caller keeps alive, as an argument.
* `i32 ferrule_pass_object(ptr handle, ptr item)`: a borrowed object; None for null.
* `i32 ferrule_invoke(ptr function, ptr items, i32 count, ptr result)`: the call of a handle.
* `i32 ferrule_take(ptr result, i32 wanted, ptr out, ptr values)`: convert and release a result;
  `out` gets the i64 or double for `Wanted`.

Each returns a `Status`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, Location, literal
from ferrule.compiler.checker.frame import BIG_INT_OBJECT
from ferrule.compiler.support.entries import (
    FIND,
    FIND_IMPORTED,
    INVOKE,
    PASS_OBJECT,
    PASS_TENSOR,
    PASS_TEXT,
    TAKE,
)
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    BYTE_ARRAY,
    DLTENSOR,
    ERROR_CELL,
    I1,
    I8,
    I32,
    I64,
    MANAGED_TENSOR,
    OBJECT,
    PACKED,
    PTR,
    VOID,
)
from ferrule.specs.typeindex import BIG_INT

LONGEST_BACKTRACE: Final = 1 << 12
"""The largest size in bytes of a callee error's backtrace, some dozens of frames; the innermost
come first."""

_UPDATE: Final = ir.FunctionType(VOID, [PTR, PTR, I32])
_REPLACE: Final = 0  # kTVMFFIBacktraceUpdateModeReplace

TYPES: Final = {
    FIND: ir.FunctionType(I32, [PTR, PTR, PTR]),
    FIND_IMPORTED: ir.FunctionType(I32, [PTR, PTR, PTR, PTR]),
    PASS_TEXT: ir.FunctionType(I32, [PTR, I64, I1, PTR, PTR]),
    PASS_TENSOR: ir.FunctionType(I32, [PTR, PTR, PTR]),
    PASS_OBJECT: ir.FunctionType(I32, [PTR, PTR]),
    INVOKE: PACKED,
    TAKE: ir.FunctionType(I32, [PTR, I32, PTR, PTR]),
}

_DLPACK_MAJOR: Final = 1
_NO_IMPORTS: Final = (
    " is looked up in the modules that this code's module imports, but it was not loaded as one: "
    "it is linked into a program, or was compiled in this process. Write it with the modules, "
    "ferrule.Module(functions, imports=[...]).write_to_file, and load that, or register the "
    "function before this call, ferrule.register_global_func(name, f)"
)
_NOT_CALLABLE: Final = "a function that is null cannot be called"
_PYTHONS_ERROR: Final = -2
"""The status of a tvm-ffi function if Python has an error set, for example by a signal."""
_NO_ERROR: Final = "a function that was called failed, and tvm-ffi could not read its error"


class Status(IntEnum):
    """The result of a step: from 1 on the number of its fault."""

    RAISED = RAISED
    DONE = 0
    WRONG_RESULT = 1
    TOO_LARGE = 2
    """The result is an int that is an object of tvm-ffi, and is not expected or does not fit."""
    OUT_OF_BOUND = 3
    """The result is a number outside of the expected type: a negative one, or not 0 or 1."""


class Wanted(IntEnum):
    """The expected type of a call's result."""

    NOTHING = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    UINT = 4


_RANGES: Final = {"int": "an int in [-2**63, 2**63)", "uint": "an int in [0, 2**64)"}
"""The ranges of int results in messages."""


def failures(callee: str, wanted: str, location: Location | None) -> tuple[Fault, ...]:
    """The faults behind the statuses 1, 2, …; `callee` is the function's name in messages."""
    name, shown = literal(callee), "int" if wanted == "uint" else wanted
    wrong = f"Mismatched type of the result of {name}, expected {shown}, but got {{type}}"
    error, bound = "OverflowError", f"Out of bound result of {name}, expected "
    large = bound + f"{_RANGES.get(wanted, _RANGES['int'])}, but got one outside of it"
    number = bound + "uint64, but got {}"
    if wanted == "bool":
        error = "ValueError"
        bound = f"Invalid result of {name}, expected True, False, 0 or 1, but got "
        large, number = bound + "an int of more than 64 bits", bound + "{}"
    return tuple(
        Fault(kind, text, location)
        for kind, text in (("TypeError", wrong), (error, large), (error, number))
    )


def define_calling(emitter: Emitter) -> None:
    """All functions of the module."""
    _define_find(emitter)
    _define_find_imported(emitter)
    _define_pass_text(emitter)
    _define_pass_tensor(emitter)
    _define_pass_object(emitter)
    _define_invoke(emitter)
    _define_take(emitter)


def _status(value: Status) -> ir.Constant:
    return ir.Constant(I32, int(value))


def _raise(emitter: Emitter, kind: str, *parts: ir.Value) -> None:
    """Set an error with these texts and end the function."""
    texts = emitter.alloca(PTR, len(parts), name="texts")
    for position, part in enumerate(parts):
        emitter.store(part, emitter.index(texts, PTR, position))
    arguments = [emitter.cstring(kind), texts, emitter.const_i32(len(parts))]
    emitter.call("TVMFFIErrorSetRaisedFromCStrParts", arguments)
    emitter.ret(_status(Status.RAISED))


def end_if_failed(emitter: Emitter, status: ir.Value) -> None:
    """Return `RAISED` if a status of tvm-ffi, which has set the error, is not 0."""
    with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0)), likely=False):
        emitter.ret(_status(Status.RAISED))


def _put(emitter: Emitter, item: ir.Value, index: TypeIndex, handle: ir.Value) -> None:
    emitter.store_field(item, ANY, "head", emitter.const_i64(int(index)))
    emitter.store_field(item, ANY, "v_ptr", handle)


def _define_find(emitter: Emitter) -> None:
    names = ("known", "name", "out")
    with emitter.define(FIND, I32, TYPES[FIND].args, names=names) as function:
        known, name, out = function.args
        _keep_registered(emitter, known, name, out)
        with emitter.if_then(emitter.is_null(emitter.load(out, PTR)), likely=False):
            before = emitter.cstring("tvm-ffi has no function ")
            behind = emitter.cstring(
                ": register it before this call, ferrule.register_global_func(name, f)"
            )
            _raise(emitter, "ValueError", before, name, behind)
        emitter.ret(_status(Status.DONE))


def _keep_registered(emitter: Emitter, known: ir.Value, name: ir.Value, out: ir.Value) -> None:
    """Look up the registered function, or null, and cache it; a cached function is returned at
    once."""
    kept = emitter.builder.load_atomic(known, "acquire", 8, typ=PTR)
    emitter.store(kept, out)
    with emitter.if_then(emitter.not_(emitter.is_null(kept)), likely=True):
        emitter.ret(_status(Status.DONE))
    bytes_ = emitter.alloca(BYTE_ARRAY, name="name")
    emitter.store_field(bytes_, BYTE_ARRAY, "data", name)
    emitter.store_field(bytes_, BYTE_ARRAY, "size", emitter.call("strlen", [name]))
    end_if_failed(emitter, emitter.call("TVMFFIFunctionGetGlobal", [bytes_, out]))
    found = emitter.load(out, PTR)
    with emitter.if_then(emitter.not_(emitter.is_null(found)), likely=True):
        taken = emitter.builder.cmpxchg(known, emitter.null(), found, "acq_rel", "acquire")
        # Another thread was faster; its reference is used instead.
        with emitter.if_then(emitter.not_(emitter.builder.extract_value(taken, 1)), likely=False):
            emitter.store(emitter.builder.extract_value(taken, 0), out)
            emitter.call("TVMFFIObjectDecRef", [found])


def _define_find_imported(emitter: Emitter) -> None:
    """A function of a module is not cached: the module owns it, and may be destroyed before this
    code."""
    names = ("module", "known", "name", "out")
    with emitter.define(FIND_IMPORTED, I32, TYPES[FIND_IMPORTED].args, names=names) as function:
        place, known, name, out = function.args
        module = emitter.builder.load_atomic(place, "acquire", 8, typ=PTR)
        with emitter.if_then(emitter.not_(emitter.is_null(module)), likely=True):
            found = emitter.call("TVMFFIEnvModLookupFromImports", [module, name, out])
            end_if_failed(emitter, found)
            emitter.ret(_status(Status.DONE))
        _keep_registered(emitter, known, name, out)
        with emitter.if_then(emitter.is_null(emitter.load(out, PTR)), likely=False):
            quote = emitter.cstring("the function `")
            _raise(emitter, "RuntimeError", quote, name, emitter.cstring("`" + _NO_IMPORTS))
        emitter.ret(_status(Status.DONE))


def _define_pass_text(emitter: Emitter) -> None:
    names = ("data", "size", "is_text", "item", "owned")
    with emitter.define(PASS_TEXT, I32, TYPES[PASS_TEXT].args, names=names) as function:
        data, size, is_text, item, owned = function.args
        bytes_ = emitter.alloca(BYTE_ARRAY, name="bytes")
        emitter.store_field(bytes_, BYTE_ARRAY, "data", data)
        emitter.store_field(bytes_, BYTE_ARRAY, "size", size)
        with emitter.builder.if_else(is_text) as (text, other):
            with text:
                made = emitter.call("TVMFFIStringFromByteArray", [bytes_, item])
                end_if_failed(emitter, made)
            with other:
                end_if_failed(emitter, emitter.call("TVMFFIBytesFromByteArray", [bytes_, item]))
        with emitter.if_then(is_object(emitter, item)):
            emitter.store(emitter.load_field(item, ANY, "v_obj"), owned)
        emitter.ret(_status(Status.DONE))


def is_object(emitter: Emitter, value: ir.Value) -> ir.Value:
    """Whether a TVMFFIAny at this address holds an object, an i1."""
    index = emitter.load_field(value, ANY, "type_index")
    return emitter.icmp("sge", index, emitter.const_i32(TypeIndex.OBJECT))


def _define_pass_tensor(emitter: Emitter) -> None:
    """One block holds the managed tensor, the shape and the strides; its deleter is `free`."""
    names = ("prototype", "item", "owned")
    with emitter.define(PASS_TENSOR, I32, TYPES[PASS_TENSOR].args, names=names) as function:
        prototype, item, owned = function.args
        build = emitter.builder
        count = build.zext(emitter.load_field(prototype, DLTENSOR, "ndim"), I64)
        dims = build.shl(count, emitter.const_i64(3))
        head = emitter.const_i64(MANAGED_TENSOR.size)
        block = emitter.call("malloc", [build.add(head, build.add(dims, dims))], "block")
        with emitter.if_then(emitter.is_null(block), likely=False):
            _raise(emitter, "MemoryError", emitter.cstring("there is no memory for an argument"))
        shape = emitter.index(block, I8, MANAGED_TENSOR.size)
        strides = emitter.index(shape, I8, dims)
        for name, place in (("shape", shape), ("strides", strides)):
            emitter.call("memcpy", [place, emitter.load_field(prototype, DLTENSOR, name), dims])
        _fill(emitter, block, prototype, shape, strides)
        none = emitter.const_i32(0)
        made = emitter.call("TVMFFITensorFromDLPackVersioned", [block, none, none, owned])
        with emitter.if_then(emitter.icmp("ne", made, emitter.const_i32(0)), likely=False):
            emitter.store(emitter.null(), owned)
            emitter.call("free", [block])
            emitter.ret(_status(Status.RAISED))
        _put(emitter, item, TypeIndex.TENSOR, emitter.load(owned, PTR))
        emitter.ret(_status(Status.DONE))


def _fill(
    emitter: Emitter, block: ir.Value, prototype: ir.Value, shape: ir.Value, strides: ir.Value
) -> None:
    values = {
        "version_major": emitter.const_i32(_DLPACK_MAJOR),
        "version_minor": emitter.const_i32(0),
        "manager_ctx": emitter.null(),
        "deleter": emitter.extern("free"),
        "flags": emitter.const_i64(0),
        "dl.shape": shape,
        "dl.strides": strides,
    }
    for name in ("data", "device", "ndim", "dtype", "byte_offset"):
        values[f"dl.{name}"] = emitter.load_field(prototype, DLTENSOR, name)
    for name, value in values.items():
        emitter.store_field(block, MANAGED_TENSOR, name, value)


def _define_pass_object(emitter: Emitter) -> None:
    with emitter.define(
        PASS_OBJECT, I32, TYPES[PASS_OBJECT].args, names=("handle", "item")
    ) as function:
        handle, item = function.args
        _put(emitter, item, TypeIndex.NONE, emitter.null())
        with emitter.if_then(emitter.not_(emitter.is_null(handle))):
            index = emitter.load_field(handle, OBJECT, "type_index")
            emitter.store_field(item, ANY, "head", emitter.builder.zext(index, I64))
            emitter.store_field(item, ANY, "v_ptr", handle)
        emitter.ret(_status(Status.DONE))


def _define_invoke(emitter: Emitter) -> None:
    names = ("function", "items", "count", "result")
    with emitter.define(INVOKE, I32, TYPES[INVOKE].args, names=names) as function:
        with emitter.if_then(emitter.is_null(function.args[0]), likely=False):
            _raise(emitter, "TypeError", emitter.cstring(_NOT_CALLABLE))
        status = emitter.call("TVMFFIFunctionCall", list(function.args))
        with emitter.if_then(emitter.icmp("ne", status, emitter.const_i32(0)), likely=False):
            _end_with_error(emitter, status)
        emitter.ret(_status(Status.DONE))


def _end_with_error(emitter: Emitter, status: ir.Value) -> None:
    """End the function with the error of a callee; if none is set, set one, because callers would
    crash.

    Callbacks in Python set none if tvm-ffi cannot read the exception: its text is not UTF-8 or
    cannot be made, or the recursion is too deep.  Functions in C++ set none if Python has one.
    """
    place = emitter.alloca(PTR, name="error")
    emitter.store(emitter.null(), place)
    emitter.call("TVMFFIErrorMoveFromRaised", [place])
    error = emitter.load(place, PTR)
    with emitter.if_then(emitter.is_null(error), likely=False):
        pythons = emitter.icmp("eq", status, ir.Constant(I32, _PYTHONS_ERROR))
        with emitter.if_then(pythons):
            _raise(emitter, "EnvErrorAlreadySet", emitter.cstring("an error of Python"))
        _raise(emitter, "RuntimeError", emitter.cstring(_NO_ERROR))
    _shorten(emitter, error)
    emitter.call("TVMFFIErrorSetRaised", [error])
    emitter.call("TVMFFIObjectDecRef", [error])
    emitter.ret(_status(Status.RAISED))


def _shorten(emitter: Emitter, error: ir.Value) -> None:
    """Cut an error's backtrace to `LONGEST_BACKTRACE`.

    At every transition between C and Python, tvm-ffi makes a Python frame of each line, and lines
    of the frames: with calls and callbacks a thousand deep there would be millions.
    """
    e, cell = emitter, emitter.index(error, I8, OBJECT.size)
    most = e.const_i64(LONGEST_BACKTRACE)
    is_long = e.icmp("ugt", e.load_field(cell, ERROR_CELL, "backtrace.size"), most)
    with e.if_then(is_long, likely=False):
        kept = e.alloca(BYTE_ARRAY, name="kept")
        data = e.load_field(cell, ERROR_CELL, "backtrace.data")
        e.store_field(kept, BYTE_ARRAY, "data", data)
        e.store_field(kept, BYTE_ARRAY, "size", most)
        update = e.load_field(cell, ERROR_CELL, "update_backtrace")
        e.call_pointer(update, _UPDATE, [error, kept, e.const_i32(_REPLACE)])


def _define_take(emitter: Emitter) -> None:
    names = ("result", "wanted", "out", "values")
    with emitter.define(TAKE, I32, TYPES[TAKE].args, names=names) as function:
        result, wanted, out, values = function.args
        with emitter.if_then(_is(emitter, wanted, Wanted.NOTHING)):
            _release(emitter, result)
            emitter.ret(_status(Status.DONE))
        _take_number(emitter, result, wanted, out, values)
        index = emitter.load_field(result, ANY, "type_index")
        with emitter.if_then(_is_big(emitter, index)):
            _take_big(emitter, result, wanted, out)
        emitter.store(emitter.builder.sext(index, I64), values)
        _release(emitter, result)
        emitter.ret(_status(Status.WRONG_RESULT))


def _is_big(emitter: Emitter, index: ir.Value) -> ir.Value:
    return emitter.icmp("eq", index, emitter.const_i32(BIG_INT))


def _take_big(emitter: Emitter, result: ir.Value, wanted: ir.Value, out: ir.Value) -> None:
    """End the function with an int outside of int64: two words with an upper word of 0 are a
    uint64."""
    big = emitter.load_field(result, ANY, "v_obj")
    two = emitter.icmp(
        "eq", emitter.load_field(big, BIG_INT_OBJECT, "n_words"), emitter.const_i64(2)
    )
    with emitter.if_then(emitter.builder.and_(_is(emitter, wanted, Wanted.UINT), two)):
        top = emitter.load_field(big, BIG_INT_OBJECT, "word1")
        with emitter.if_then(emitter.icmp("eq", top, emitter.const_i64(0))):
            emitter.store(emitter.load_field(big, BIG_INT_OBJECT, "word"), out)
            _release(emitter, result)
            emitter.ret(_status(Status.DONE))
    _release(emitter, result)
    emitter.ret(_status(Status.TOO_LARGE))


def _is(emitter: Emitter, value: ir.Value, wanted: IntEnum) -> ir.Value:
    return emitter.icmp("eq", value, emitter.const_i32(int(wanted)))


def _release(emitter: Emitter, result: ir.Value) -> None:
    with emitter.if_then(is_object(emitter, result)):
        emitter.call("TVMFFIObjectDecRef", [emitter.load_field(result, ANY, "v_obj")])


def _take_number(
    emitter: Emitter, result: ir.Value, wanted: ir.Value, out: ir.Value, values: ir.Value
) -> None:
    """End the function with a number; an int is valid for a float too, and 0 and 1 for a bool."""
    build, index = emitter.builder, emitter.load_field(result, ANY, "type_index")
    number = emitter.load_field(result, ANY, "v_int64")
    is_bool = _is(emitter, index, TypeIndex.BOOL)
    is_number = build.or_(is_bool, _is(emitter, index, TypeIndex.INT))
    is_float = _is(emitter, index, TypeIndex.FLOAT)
    wants_float = _is(emitter, wanted, Wanted.FLOAT)
    with emitter.if_then(build.and_(is_number, wants_float)):
        emitter.store(build.sitofp(number, ir.DoubleType()), out)
        emitter.ret(_status(Status.DONE))
    with emitter.if_then(build.and_(is_number, _is_outside(emitter, number, wanted))):
        emitter.store(number, values)
        emitter.ret(_status(Status.OUT_OF_BOUND))
    with emitter.if_then(build.or_(is_number, build.and_(is_float, wants_float))):
        emitter.store(number, out)
        emitter.ret(_status(Status.DONE))


def _is_outside(emitter: Emitter, number: ir.Value, wanted: ir.Value) -> ir.Value:
    """Whether an int is outside of bool, or of unsigned numbers."""
    build = emitter.builder
    wants_bool = _is(emitter, wanted, Wanted.BOOL)
    no_bool = build.and_(wants_bool, emitter.icmp("ugt", number, emitter.const_i64(1)))
    wants_unsigned = _is(emitter, wanted, Wanted.UINT)
    negative = emitter.icmp("slt", number, emitter.const_i64(0))
    return build.or_(no_bool, build.and_(wants_unsigned, negative))

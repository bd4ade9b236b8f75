"""Handlers of the rows for control flow: paths, jumps, type indices, leaves, loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.code import KEY, VALUE
from ferrule.compiler.checker.format import Op
from ferrule.compiler.checker.frame import HELD, MACHINE, MAP_OBJECT, Frame
from ferrule.compiler.checker.reports import Said
from ferrule.compiler.messages.context import MAX_LOOPS, PATH, PROGRAM, RUNNING
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import (
    ANY,
    I8,
    I32,
    I64,
    PTR,
    SEQ_OBJECT,
    TENSOR_OBJECT,
    VOID,
)
from ferrule.specs.params import DYNAMIC

RELEASE: Final = ir.FunctionType(VOID, [PTR])
RELEASE_ALL: Final = "ferrule_release_all"


def _end(frame: Frame) -> None:
    frame.finish()


def _count(frame: Frame) -> None:
    actual = frame.build.sext(frame.get("context.num_args"), I64)
    ok = frame.equal(actual, frame.operand("b"))
    frame.check(ok, Said.NUM_ARGS)
    frame.go_on()


def _at(frame: Frame) -> None:
    emitter, build, number = frame.emitter, frame.build, frame.operand("a")
    program = frame.get("context.program")
    first = build.zext(emitter.load_field(program, PROGRAM, "paths"), I64)
    path = emitter.index(emitter.index(program, I8, first), PATH, number)
    argument = build.zext(emitter.load_field(path, PATH, "argument"), I64)
    frame.set("context.any", frame.slot("args", argument, ir.ArrayType(I8, ANY.size)))
    steps = emitter.index(program, I8, build.zext(emitter.load_field(path, PATH, "steps"), I64))
    with emitter.loop(build.zext(emitter.load_field(path, PATH, "count"), I64)) as i:
        _take_step(frame, emitter.load(emitter.index(steps, I32, i), I32))
    payload = frame.payload("v_ptr")
    inside = emitter.field_ptr(payload, TENSOR_OBJECT, "dl")
    is_object = frame.is_type(TypeIndex.TENSOR)
    frame.set("context.tensor", build.select(is_object, inside, payload))
    frame.set("context.path", build.trunc(number, I32))
    for name in ("place", "axis", "order"):
        frame.set(f"context.{name}", 0)
    frame.go_on()


def _take_step(frame: Frame, step: ir.Value) -> None:
    emitter, build = frame.emitter, frame.build
    level = build.and_(build.zext(step, I64), emitter.const_i64(MAX_LOOPS - 1))
    held = frame.held(level)

    def has(bit: int) -> ir.Value:
        flag = build.and_(step, emitter.const_i32(bit))
        return build.icmp_signed("!=", flag, emitter.const_i32(0))

    with build.if_else(build.or_(has(KEY), has(VALUE))) as (pair, sequence):
        with pair:
            key, value = (emitter.field_ptr(held, HELD, name) for name in ("key", "value"))
            frame.set("context.any", build.select(has(KEY), key, value))
        with sequence:
            running = emitter.load(frame.loop_index(level), I64)
            position = build.select(has(RUNNING), running, build.zext(step, I64))
            data = emitter.load_field(frame.payload("v_ptr"), SEQ_OBJECT, "cell.data")
            frame.set("context.any", emitter.index(data, ANY, position))


def _jump(frame: Frame) -> None:
    frame.go_to(frame.operand32("a"))


def _in_mask(frame: Frame) -> ir.Value:
    """Whether the value's type index is in the mask of the row."""
    build, index = frame.build, frame.type_index()
    below = build.icmp_unsigned("<", index, frame.emitter.const_i32(64))
    bits = build.select(below, frame.operand("b"), frame.operand("axis"))
    shift = build.and_(build.zext(index, I64), frame.emitter.const_i64(63))
    known = build.icmp_unsigned("<", index, frame.emitter.const_i32(DYNAMIC))
    bit = build.select(known, build.lshr(bits, shift), frame.operand("kind"))
    return build.trunc(bit, ir.IntType(1))


def _unless(frame: Frame) -> None:
    with frame.emitter.if_then(_in_mask(frame)):
        frame.go_on()
    frame.go_to(frame.operand32("a"))


def _type(frame: Frame) -> None:
    frame.check(_in_mask(frame), Said.TYPE)
    frame.go_on()


def _field(frame: Frame) -> None:
    frame.emitter.store(frame.operand("b"), frame.slot("out", frame.operand("a")))
    frame.go_on()


def _clear(frame: Frame) -> None:
    first, count = frame.slot("out", frame.operand("a")), frame.operand("b")
    with frame.emitter.loop(count) as i:
        frame.emitter.store(frame.emitter.const_i64(0), frame.emitter.index(first, I64, i))
    frame.go_on()


def _store(frame: Frame) -> None:
    frame.emitter.store(frame.get("number"), frame.slot("out", frame.operand("a")))
    frame.go_on()


# ---- loops ----


def _reset(frame: Frame) -> None:
    frame.emitter.store(frame.emitter.const_i64(0), frame.loop_index(frame.operand("kind")))
    frame.go_on()


def _each(frame: Frame) -> None:
    emitter, payload = frame.emitter, frame.payload("v_ptr")
    with emitter.if_then(emitter.is_null(payload)):
        frame.go_to(frame.operand32("a"))
    index = emitter.load(frame.loop_index(frame.operand("kind")), I64)
    size = emitter.load_field(payload, SEQ_OBJECT, "cell.size")
    with emitter.if_then(frame.build.icmp_signed("<", index, size)):
        frame.go_on()
    frame.go_to(frame.operand32("a"))


def _next(frame: Frame) -> None:
    emitter, index = frame.emitter, frame.loop_index(frame.operand("kind"))
    one = emitter.const_i64(1)
    emitter.store(frame.build.add(emitter.load(index, I64), one), index)
    frame.go_to(frame.operand32("a"))


def _pairs(frame: Frame) -> None:
    """Begin a loop over a map with tvm-ffi's iterator function: only tvm-ffi knows the layout of
    maps."""
    emitter, level = frame.emitter, frame.operand("kind")
    held, payload = frame.held(level), frame.payload("v_ptr")
    emitter.store(emitter.const_i64(0), frame.loop_index(level))
    frame.set("release", emitter.symbol(RELEASE_ALL, RELEASE))
    release_held(emitter, held)
    with emitter.if_then(emitter.is_null(payload)):
        frame.go_on()
    size = emitter.load_field(payload, MAP_OBJECT, "size")
    with emitter.if_then(frame.equal(size, 0)):
        frame.go_on()
    getter = emitter.alloca(PTR, name="getter")
    emitter.store(emitter.null(), getter)
    _must(frame, emitter.call("TVMFFIFunctionGetGlobal", [_iterator(frame), getter]))
    function = emitter.load(getter, PTR)
    with emitter.if_then(emitter.is_null(function)):
        _missing(frame)
    result = _result(frame)
    one = emitter.const_i32(1)
    status = emitter.call("TVMFFIFunctionCall", [function, frame.any(), one, result])
    emitter.call("TVMFFIObjectDecRef", [function])
    _must(frame, status)
    emitter.store_field(held, HELD, "next", emitter.load_field(result, ANY, "v_ptr"))
    frame.go_on()


def _iterator(frame: Frame) -> ir.Value:
    """The name of tvm-ffi's iterator function, as a byte array."""
    emitter, build = frame.emitter, frame.build
    is_map = frame.equal(frame.operand("axis"), 0)
    names = [f"ffi.{kind}ForwardIterFunctor" for kind in ("Map", "Dict")]
    data = build.select(is_map, *map(emitter.cstring, names))
    size = build.select(is_map, *(emitter.const_i64(len(name)) for name in names))
    return frame.byte_array(data, size)


def _missing(frame: Frame) -> None:
    emitter = frame.emitter
    text = "this version of tvm-ffi cannot iterate over maps"
    kind = emitter.cstring("RuntimeError")
    emitter.call("TVMFFIErrorSetRaisedFromCStr", [kind, emitter.cstring(text)])
    frame.fail()


def _result(frame: Frame) -> ir.Value:
    result = frame.emitter.alloca(ANY, name="result")
    for name in ("head", "v_int64"):
        frame.emitter.store_field(result, ANY, name, frame.emitter.const_i64(0))
    return result


def _must(frame: Frame, status: ir.Value) -> None:
    with frame.emitter.if_then(frame.build.not_(frame.equal(status, 0))):
        frame.fail()


def _pair(frame: Frame) -> None:
    emitter, level = frame.emitter, frame.operand("kind")
    held = frame.held(level)
    following = emitter.load_field(held, HELD, "next")
    with emitter.if_then(emitter.is_null(following)):
        frame.go_to(frame.operand32("a"))
    index = emitter.load(frame.loop_index(level), I64)
    with emitter.if_then(frame.build.icmp_signed(">", index, emitter.const_i64(0))):
        more = _result(frame)
        _ask(frame, following, 2, more)
        with emitter.if_then(frame.equal(emitter.load_field(more, ANY, "v_int64"), 0)):
            release_held(emitter, held)
            frame.go_to(frame.operand32("a"))
    # tvm-ffi's iterator function takes 0 for the key, 1 for the value, and 2 to go on, above.
    for command, name in enumerate(("key", "value")):
        place = emitter.field_ptr(held, HELD, name)
        release_any(emitter, place)
        _ask(frame, following, command, place)
    frame.go_on()


def _ask(frame: Frame, function: ir.Value, command: int, result: ir.Value) -> None:
    emitter = frame.emitter
    argument = emitter.alloca(ANY, name="command")
    emitter.store_field(argument, ANY, "head", emitter.const_i64(int(TypeIndex.INT)))
    emitter.store_field(argument, ANY, "v_int64", emitter.const_i64(command))
    one = emitter.const_i32(1)
    _must(frame, emitter.call("TVMFFIFunctionCall", [function, argument, one, result]))


def define_release(emitter: Emitter) -> None:
    """Functions that release the references of an Any, of a loop over a map, or of all such
    loops."""
    with emitter.define(
        "ferrule_release_any",
        VOID,
        RELEASE.args,
        names=("any",),
        linkage="internal",
        attributes=COLD,
    ) as function:
        (any_value,) = function.args
        index = emitter.load_field(any_value, ANY, "type_index")
        counted = emitter.builder.icmp_signed(">=", index, emitter.const_i32(int(TypeIndex.OBJECT)))
        with emitter.if_then(counted):
            emitter.call("TVMFFIObjectDecRef", [emitter.load_field(any_value, ANY, "v_ptr")])
        for name in ("head", "v_int64"):
            emitter.store_field(any_value, ANY, name, emitter.const_i64(0))
        emitter.ret()
    with emitter.define(
        "ferrule_release",
        VOID,
        RELEASE.args,
        names=("held",),
        linkage="internal",
        attributes=COLD,
    ) as function:
        (held,) = function.args
        following = emitter.load_field(held, HELD, "next")
        with emitter.if_then(emitter.builder.not_(emitter.is_null(following))):
            emitter.call("TVMFFIObjectDecRef", [following])
        emitter.store_field(held, HELD, "next", emitter.null())
        for name in ("key", "value"):
            release_any(emitter, emitter.field_ptr(held, HELD, name))
        emitter.ret()
    with emitter.define(
        RELEASE_ALL,
        VOID,
        RELEASE.args,
        names=("machine",),
        linkage="internal",
        attributes=COLD,
    ) as function:
        (machine,) = function.args
        first = emitter.field_ptr(machine, MACHINE, "held0")
        with emitter.loop(emitter.const_i64(MAX_LOOPS)) as level:
            release_held(emitter, emitter.index(first, HELD, level))
        emitter.ret()


def release_any(emitter: Emitter, any_value: ir.Value) -> None:
    """Release the reference of an Any and set it to None."""
    emitter.call(emitter.symbol("ferrule_release_any", RELEASE), [any_value])


def release_held(emitter: Emitter, held: ir.Value) -> None:
    """Release the references of a loop over a map."""
    emitter.call(emitter.symbol("ferrule_release", RELEASE), [held])


FLOW: Final[Mapping[Op, Callable[[Frame], None]]] = MappingProxyType(
    {
        Op.END: _end,
        Op.COUNT: _count,
        Op.AT: _at,
        Op.JUMP: _jump,
        Op.UNLESS: _unless,
        Op.TYPE: _type,
        Op.FIELD: _field,
        Op.CLEAR: _clear,
        Op.STORE: _store,
        Op.EACH: _each,
        Op.RESET: _reset,
        Op.NEXT: _next,
        Op.PAIRS: _pairs,
        Op.PAIR: _pair,
    }
)

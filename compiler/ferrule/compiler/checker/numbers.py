"""Handlers of the rows about sizes, strides, elements, symbols and their expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.format import ROW, Binary, Op
from ferrule.compiler.checker.frame import SHAPE_OBJECT, Frame
from ferrule.compiler.checker.reports import Said
from ferrule.compiler.checker.tensors import if_empty
from ferrule.compiler.messages.context import PlaceKind
from ferrule.compiler.messages.support import RAISE
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, DLTENSOR, I8, I32, I64, PTR, SEQ_OBJECT
from ferrule.specs.expr import INT64_MAX, INT64_MIN

STRIDE: Final = ir.FunctionType(I64, [PTR, I32])


# ---- loading ----


def _load(frame: Frame) -> None:
    emitter, axis = frame.emitter, frame.operand("axis")
    place = frame.operand32("kind")
    frame.set("context.place", place)
    frame.set("context.axis", frame.operand32("axis"))
    with emitter.if_then(frame.equal(place, PlaceKind.DIMS)):
        _load_element(frame, axis)
    tensor = frame.get("context.tensor")
    shape = emitter.load_field(tensor, DLTENSOR, "shape")
    size = emitter.load(emitter.index(shape, I64, axis), I64)
    with emitter.if_then(frame.equal(place, PlaceKind.SHAPE)):
        _load_scaled(frame, size)
    elsewhere, nowhere = frame.operand32("a"), emitter.const_i32(0)
    is_few = frame.build.icmp_signed("<=", size, emitter.const_i64(1))
    target = if_empty(frame, elsewhere, frame.build.select(is_few, elsewhere, nowhere))
    with emitter.if_then(frame.build.icmp_signed("!=", target, nowhere)):
        frame.go_to(target)
    stride = emitter.symbol("ferrule_stride", STRIDE)
    _load_scaled(frame, emitter.call(stride, [tensor, frame.operand32("axis")]))


def _load_scaled(frame: Frame, value: ir.Value) -> None:
    """Set the number, doubled if the row requests it; the result saturates at 64 bits."""
    build, emitter = frame.build, frame.emitter
    with emitter.if_then(frame.equal(frame.operand("b"), 0)):
        frame.number(value)
    pair = build.sadd_with_overflow(value, value)
    below = build.icmp_signed("<", value, emitter.const_i64(0))
    end = build.select(below, emitter.const_i64(INT64_MIN), emitter.const_i64(INT64_MAX))
    frame.number(build.select(build.extract_value(pair, 1), end, build.extract_value(pair, 0)))


def _load_element(frame: Frame, axis: ir.Value) -> None:
    emitter, payload = frame.emitter, frame.payload("v_ptr")
    with emitter.if_then(frame.is_type(TypeIndex.SHAPE)):
        data = emitter.load_field(payload, SHAPE_OBJECT, "cell.data")
        frame.number(emitter.load(emitter.index(data, I64, axis), I64))
    items = emitter.load_field(payload, SEQ_OBJECT, "cell.data")
    frame.number(emitter.load_field(emitter.index(items, ANY, axis), ANY, "v_int64"))


# ---- checks ----


def _exact(frame: Frame) -> None:
    number, wanted = frame.get("number"), frame.operand("b")
    frame.check(frame.equal(number, wanted), Said.EXACT, wanted=wanted, actual=number)
    frame.go_on()


def _match(frame: Frame) -> None:
    emitter, number, symbol = frame.emitter, frame.get("number"), frame.operand("a")
    wanted = emitter.load(frame.slot("symbols", symbol), I64)
    with emitter.if_then(frame.equal(number, wanted)):
        frame.go_on()
    owner = emitter.load(frame.slot("owners", symbol, I32), I32)
    shown = {"wanted": wanted, "actual": number}
    with emitter.if_then(frame.equal(owner, 0)):
        frame.refuse(Said.EXACT, **shown)
    frame.refuse(Said.MATCH, owner=owner, **shown)


def _related(frame: Frame) -> None:
    number = frame.get("number")
    defined = frame.equal(frame.get("undefined"), 0)
    frame.check(defined, Said.UNDEFINED, actual=number)
    wanted = frame.emitter.load(frame.get("stack"), I64)
    shown = {"wanted": wanted, "actual": number}
    frame.check(frame.equal(number, wanted), Said.RELATED, **shown)
    frame.go_on()


def _range(frame: Frame) -> None:
    build, emitter, number = frame.build, frame.emitter, frame.get("number")
    high = frame.operand("b")
    signed = frame.equal(frame.operand("kind"), 1)
    low = build.select(signed, build.not_(high), emitter.const_i64(0))
    inside = build.and_(build.icmp_signed(">=", number, low), build.icmp_signed("<=", number, high))
    with emitter.if_then(inside):
        frame.go_on()
    shown = {"actual": number, "value2": low, "value3": high}
    is_value = frame.equal(frame.get("context.place"), PlaceKind.VALUE)
    with emitter.if_then(is_value):
        frame.refuse(Said.VALUE_BOUNDS, **shown)
    frame.refuse(Said.BOUNDS, **shown)


def _divisible(frame: Frame) -> None:
    number, step = frame.get("number"), frame.operand("b")
    rest = frame.build.srem(number, step)
    frame.check(frame.equal(rest, 0), Said.DIVISIBLE, wanted=step, actual=number)
    frame.go_on()


def _limit(frame: Frame) -> None:
    build, number, limit = frame.build, frame.get("number"), frame.operand("b")
    shown = {"wanted": limit, "actual": number}
    with frame.emitter.if_then(frame.equal(frame.operand("kind"), 0)):
        frame.check(build.icmp_signed("<=", number, limit), Said.ABOVE, **shown)
        frame.go_on()
    frame.check(build.icmp_signed(">=", number, limit), Said.BELOW, **shown)
    frame.go_on()


def _relation(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    stack = frame.get("stack")
    left = emitter.load(stack, I64)
    right = emitter.load(emitter.index(stack, I64, 1), I64)
    defined = frame.equal(frame.get("undefined"), 0)
    with emitter.if_then(build.and_(defined, frame.equal(left, right))):
        frame.go_on()
    frame.set("context.value0", right)
    frame.set("context.value1", left)
    _say_own(frame, defined, frame.machine)


def _required(frame: Frame) -> None:
    build, stack = frame.build, frame.get("stack")
    holds = build.not_(frame.equal(frame.emitter.load(stack, I64), 0))
    defined = frame.equal(frame.get("undefined"), 0)
    with frame.emitter.if_then(build.and_(defined, holds)):
        frame.go_on()
    _say_own(frame, defined, stack)


def _say_own(frame: Frame, defined: ir.Value, values: ir.Value) -> None:
    """End with a message of the function's own table about these values: `a`, or `b` for an
    undefined one."""
    emitter, build = frame.emitter, frame.build
    with emitter.if_then(emitter.is_null(frame.get("table"))):
        frame.fail()
    message = build.select(defined, frame.operand32("a"), frame.operand32("b"))
    table, args, count = (frame.get(name) for name in ("table", "args", "context.num_args"))
    raised = emitter.symbol("ferrule_raise", RAISE)
    emitter.call(raised, [table, message, args, count, values])
    frame.fail()


# ---- symbols ----


def _set_symbol(frame: Frame, value: ir.Value) -> None:
    symbol = frame.operand("a")
    frame.emitter.store(value, frame.slot("symbols", symbol))
    frame.emitter.store(frame.operand32("b"), frame.slot("owners", symbol, I32))
    frame.go_on()


def _bind(frame: Frame) -> None:
    owner = frame.emitter.load(frame.slot("owners", frame.operand("a"), I32), I32)
    with frame.emitter.if_then(frame.equal(owner, 0)):
        _set_symbol(frame, frame.get("number"))
    frame.go_on()


def _solve(frame: Frame) -> None:
    defined = frame.equal(frame.get("undefined"), 0)
    value = frame.emitter.load(frame.get("stack"), I64)
    _set_symbol(frame, frame.build.select(defined, value, frame.emitter.const_i64(0)))


def _symbol(frame: Frame) -> None:
    frame.set("context.place", PlaceKind.SYMBOL)
    frame.set("context.owner", frame.operand32("b"))
    frame.number(frame.emitter.load(frame.slot("symbols", frame.operand("a")), I64))


# ---- expressions ----


def _formula(frame: Frame) -> None:
    frame.set("depth", 0)
    frame.set("undefined", 0)
    frame.go_on()


def _push_value(frame: Frame, value: ir.Value) -> None:
    depth = frame.get("depth")
    frame.emitter.store(value, frame.slot("stack", frame.build.zext(depth, I64)))
    frame.set("depth", frame.build.add(depth, frame.emitter.const_i32(1)))
    frame.go_on()


def _push(frame: Frame) -> None:
    _push_value(frame, frame.operand("b"))


def _push_symbol(frame: Frame) -> None:
    _push_value(frame, frame.emitter.load(frame.slot("symbols", frame.operand("a")), I64))


def _push_number(frame: Frame) -> None:
    _push_value(frame, frame.get("number"))


def _push_undefined(frame: Frame) -> None:
    frame.set("undefined", 1)
    _push_value(frame, frame.emitter.const_i64(0))


def _binary(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    top = build.sub(frame.get("depth"), emitter.const_i32(1))
    frame.set("depth", top)
    right_at = frame.slot("stack", build.zext(top, I64))
    left_at = emitter.index(right_at, I64, -1)
    left, right = emitter.load(left_at, I64), emitter.load(right_at, I64)
    kind = emitter.load_field(frame.row, ROW, "kind")
    blocks = {operation: emitter.block(operation.name.lower()) for operation in Binary}
    switch = build.switch(kind, blocks[Binary.ADD])
    for operation, block in blocks.items():
        if operation is not Binary.ADD:
            switch.add_case(ir.Constant(I8, int(operation)), block)
        emitter.at(block)
        emitter.store(_result(frame, operation, left, right), left_at)
        frame.go_on()


def _result(frame: Frame, operation: Binary, left: ir.Value, right: ir.Value) -> ir.Value:
    build = frame.build
    match operation:
        case Binary.ADD:
            return _checked(frame, build.sadd_with_overflow(left, right))
        case Binary.SUB:
            return _checked(frame, build.ssub_with_overflow(left, right))
        case Binary.MUL:
            return _checked(frame, build.smul_with_overflow(left, right))
        case Binary.MIN:
            return build.select(build.icmp_signed("<", left, right), left, right)
        case Binary.MAX:
            return build.select(build.icmp_signed(">", left, right), left, right)
        case Binary.LT | Binary.LE | Binary.EQ:
            return build.zext(build.icmp_signed(_SIGNS[operation], left, right), I64)
        case Binary.FLOORDIV | Binary.MOD | Binary.CEILDIV:
            return _divided(frame, operation, left, right)


_SIGNS: Final = {Binary.LT: "<", Binary.LE: "<=", Binary.EQ: "=="}


def _checked(frame: Frame, pair: ir.Value) -> ir.Value:
    _flag(frame, frame.build.extract_value(pair, 1))
    return frame.build.extract_value(pair, 0)


def _flag(frame: Frame, undefined: ir.Value) -> None:
    known = frame.get("undefined")
    frame.set("undefined", frame.build.or_(known, frame.build.zext(undefined, I32)))


def _divided(frame: Frame, operation: Binary, left: ir.Value, right: ir.Value) -> ir.Value:
    build, emitter = frame.build, frame.emitter
    none = frame.equal(right, 0)
    past = build.and_(frame.equal(left, INT64_MIN), frame.equal(right, -1))
    unfit = build.or_(none, past)
    divisor = build.select(unfit, emitter.const_i64(1), right)
    # INT64_MIN % -1 is 0.
    _flag(frame, none if operation is Binary.MOD else unfit)
    quotient, rest = build.sdiv(left, divisor), build.srem(left, divisor)
    inexact = build.not_(frame.equal(rest, 0))
    opposite = build.icmp_signed("<", build.xor(left, divisor), emitter.const_i64(0))
    moved = build.and_(inexact, opposite)
    match operation:
        case Binary.FLOORDIV:
            return build.sub(quotient, build.zext(moved, I64))
        case Binary.MOD:
            return build.select(moved, build.add(rest, divisor), rest)
        case _:
            above = build.and_(inexact, build.not_(opposite))
            return build.add(quotient, build.zext(above, I64))


NUMBERS: Final[Mapping[Op, Callable[[Frame], None]]] = MappingProxyType(
    {
        Op.LOAD: _load,
        Op.EXACT: _exact,
        Op.MATCH: _match,
        Op.RELATED: _related,
        Op.RANGE: _range,
        Op.DIVISIBLE: _divisible,
        Op.LIMIT: _limit,
        Op.REQUIRED: _required,
        Op.RELATION: _relation,
        Op.BIND: _bind,
        Op.SOLVE: _solve,
        Op.SYMBOL: _symbol,
        Op.FORMULA: _formula,
        Op.PUSH: _push,
        Op.PUSH_SYMBOL: _push_symbol,
        Op.PUSH_NUMBER: _push_number,
        Op.PUSH_UNDEFINED: _push_undefined,
        Op.BINARY: _binary,
    }
)

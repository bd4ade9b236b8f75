"""Handlers of the rows about scalars, pointers and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler.checker.format import ROW, Float, Op
from ferrule.compiler.checker.frame import BIG_INT_OBJECT, Frame
from ferrule.compiler.checker.reports import Said
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import F64, I8, I32, I64, PTR
from ferrule.specs.expr import INT64_MAX, INT64_MIN
from ferrule.specs.typeindex import BIG_INT

NARROW: Final = ir.FunctionType(I64, [I64, I64, I64])
BIG_FLOAT: Final = ir.FunctionType(F64, [PTR])
_NOTHING: Final[Mapping[str, ir.Value | int]] = MappingProxyType({})
TF32_ZEROS: Final = 13
"""The number of low bits of a float32 that are 0 in a TFloat32."""
_F64_MANTISSA: Final = 52
_F64_BIAS: Final = 1023
_F64_WORDS: Final = 17
"""An int of more words is larger than any double."""


def define_narrow(emitter: Emitter) -> None:
    """`i64 ferrule_narrow(i64 bits, i64 mantissa, i64 exponent)`: a double in fewer bits.

    It rounds once, to nearest, ties to even; too large values become infinity, NaN stays NaN.  It
    is integer code because not every target has the instruction.
    """
    names = ("bits", "mantissa", "exponent")
    with emitter.define(
        "ferrule_narrow", I64, NARROW.args, names=names, linkage="internal", attributes=COLD
    ) as function:
        bits, mantissa, exponent = function.args
        build, const = emitter.builder, emitter.const_i64
        one = const(1)
        size = build.add(mantissa, exponent)
        sign = build.shl(build.lshr(bits, const(63)), size)
        magnitude = build.and_(bits, const(INT64_MAX))
        infinity = build.shl(build.sub(build.shl(one, exponent), one), mantissa)
        quiet = build.shl(one, build.sub(mantissa, one))
        bias = build.sub(build.shl(one, build.sub(exponent, one)), one)
        shift = build.sub(const(_F64_MANTISSA), mantissa)
        offset = build.sub(const(_F64_BIAS), bias)
        power = build.lshr(magnitude, const(_F64_MANTISSA))
        is_normal = build.icmp_signed(">", power, offset)
        normal = build.sub(_rounded(emitter, magnitude, shift), build.shl(offset, mantissa))
        hidden = const(1 << _F64_MANTISSA)
        fraction = build.or_(build.and_(magnitude, const((1 << _F64_MANTISSA) - 1)), hidden)
        further = build.add(shift, build.sub(build.add(offset, one), power))
        # A fraction is below 2^53, so 63 gives 0 as any larger shift would; LLVM defines none from
        # 64 on.
        far = build.icmp_signed(">", further, const(63))
        small = _rounded(emitter, fraction, build.select(far, const(63), further))
        finite = build.select(is_normal, normal, small)
        # The largest number, rounded up, has the bits of infinity: the comparison leaves it.
        past = build.icmp_signed(">", finite, infinity)
        finite = build.select(past, infinity, finite)
        is_nan = build.icmp_signed(">", magnitude, const(0x7FF << _F64_MANTISSA))
        value = build.select(is_nan, build.or_(infinity, quiet), finite)
        emitter.ret(build.or_(sign, value))


def define_big_float(emitter: Emitter) -> None:
    """`double ferrule_big_float(ptr object)`: a BigInt as a double, rounded to nearest, ties to
    even.

    Values beyond the range of a double become infinity.
    """
    with emitter.define(
        "ferrule_big_float", F64, [PTR], names=("object",), linkage="internal", attributes=COLD
    ) as function:
        value, build, const = function.args[0], emitter.builder, emitter.const_i64
        words = emitter.field_ptr(value, BIG_INT_OBJECT, "word")
        count = _shortest(emitter, words, emitter.load_field(value, BIG_INT_OBJECT, "n_words"))
        one, last = const(1), build.sub(count, const(1))
        high = emitter.load(emitter.index(words, I64, last), I64)
        with emitter.if_then(build.icmp_signed("<=", count, one)):
            emitter.ret(build.sitofp(high, F64))
        sign = build.ashr(high, const(63))
        with emitter.if_then(build.icmp_signed(">", count, const(_F64_WORDS))):
            # The sign is -1 or 0 as an int.
            infinity = build.or_(build.shl(sign, const(63)), const(0x7FF << _F64_MANTISSA))
            emitter.ret(build.bitcast(infinity, F64))
        # Take the 64 bits below the copies of the sign. If any lower bit is set, set the lowest one
        # too (a sticky bit): then one rounding from more bits than a double has is correct.
        second = emitter.load(emitter.index(words, I64, build.sub(last, one)), I64)
        repeated = build.sub(build.ctlz(build.xor(high, sign), emitter.const_i1(False)), one)
        rest = build.lshr(build.lshr(second, one), build.sub(const(63), repeated))
        upper = build.or_(build.shl(high, repeated), rest)
        below = emitter.alloca(I64, name="below")
        emitter.store(build.shl(second, repeated), below)
        with emitter.loop(build.sub(last, one)) as i:
            word = emitter.load(emitter.index(words, I64, i), I64)
            emitter.store(build.or_(emitter.load(below, I64), word), below)
        inexact = build.zext(emitter.icmp("ne", emitter.load(below, I64), const(0)), I64)
        power = build.sub(build.shl(last, const(6)), repeated)
        scale = build.shl(build.add(power, const(_F64_BIAS)), const(_F64_MANTISSA))
        whole = build.sitofp(build.or_(upper, inexact), F64)
        emitter.ret(build.fmul(whole, build.bitcast(scale, F64)))


def _shortest(emitter: Emitter, words: ir.Value, count: ir.Value) -> ir.Value:
    """The number of words without upper words that only repeat the sign; at least one."""
    build, one, before = emitter.builder, emitter.const_i64(1), emitter.builder.block
    look, compare, drop, end = map(emitter.block, ("look", "compare", "drop", "end"))
    emitter.branch(look)
    emitter.at(look)
    left = build.phi(I64, name="left")
    left.add_incoming(count, before)
    emitter.cond_branch(build.icmp_signed(">", left, one), compare, end)
    emitter.at(compare)
    last = build.sub(left, one)
    top, second = (
        emitter.load(emitter.index(words, I64, place), I64)
        for place in (last, build.sub(last, one))
    )
    sign = build.ashr(second, emitter.const_i64(63))
    emitter.cond_branch(emitter.icmp("eq", top, sign), drop, end)
    emitter.at(drop)
    left.add_incoming(last, build.block)
    emitter.branch(look)
    emitter.at(end)
    return build.select(build.icmp_signed(">", left, one), left, one)


def _rounded(emitter: Emitter, value: ir.Value, shift: ir.Value) -> ir.Value:
    """The value shifted right, rounded to nearest, ties to even.  The shift must be at most 62."""
    build, one = emitter.builder, emitter.const_i64(1)
    lowest = build.and_(build.lshr(value, shift), one)
    # One less than a half, and the last bit that stays: a tie is rounded up only from an odd one.
    half = build.sub(build.shl(one, build.sub(shift, one)), one)
    return build.lshr(build.add(value, build.add(half, lowest)), shift)


def _refuse_big_int(
    frame: Frame, large: Said, small: Said, shown: Mapping[str, ir.Value | int] = _NOTHING
) -> None:
    """Refuse an int of more than 64 bits."""
    with frame.emitter.if_then(frame.is_type(BIG_INT)):
        frame.refuse_big_int(frame.payload("v_ptr"), large, small, shown)


def _bounds(low: ir.Value, high: ir.Value) -> dict[str, ir.Value | int]:
    """The bounds of a range, for messages."""
    return {"value2": low, "value3": high}


def _integer(frame: Frame) -> None:
    emitter, build, high = frame.emitter, frame.build, frame.operand("b")
    signed = frame.equal(frame.operand("kind"), 1)
    low = build.select(signed, build.not_(high), emitter.const_i64(0))
    shown = _bounds(low, high)
    _refuse_big_int(frame, Said.ABOVE_INT64, Said.TOO_SMALL, shown)
    number = frame.payload()
    inside = build.and_(build.icmp_signed(">=", number, low), build.icmp_signed("<=", number, high))
    frame.check(inside, Said.VALUE_BOUNDS, actual=number, **shown)
    frame.number(number)


def _boolean(frame: Frame) -> None:
    _refuse_big_int(frame, Said.BOOLEAN_TOO_LARGE, Said.BOOLEAN_TOO_SMALL)
    number = frame.payload()
    ok = frame.build.icmp_unsigned("<=", number, frame.emitter.const_i64(1))
    frame.check(ok, Said.BOOLEAN, actual=number)
    frame.number(number)


def _unsigned(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    shown = _bounds(emitter.const_i64(0), emitter.const_i64(-1))
    with emitter.if_then(frame.is_type(BIG_INT)):
        _big_int(frame, shown)
    number = frame.payload()
    ok = build.icmp_signed(">=", number, emitter.const_i64(0))
    frame.check(ok, Said.VALUE_BOUNDS, actual=number, **shown)
    frame.number(number)


def _big_int(frame: Frame, shown: dict[str, ir.Value | int]) -> None:
    """Accept a BigInt of two words whose upper word is 0: a uint64 that does not fit an int64."""
    emitter, build, value = frame.emitter, frame.build, frame.payload("v_ptr")
    frame.check(build.not_(emitter.is_null(value)), Said.NULL_VALUE, **shown)
    with emitter.if_then(frame.equal(emitter.load_field(value, BIG_INT_OBJECT, "n_words"), 2)):
        words = emitter.field_ptr(value, BIG_INT_OBJECT, "word")
        top = emitter.load(emitter.index(words, I64, 1), I64)
        with emitter.if_then(frame.equal(top, 0)):
            frame.number(emitter.load(words, I64))
    frame.refuse_big_int(value, Said.TOO_LARGE, Said.TOO_SMALL, shown)


def _float(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    place = emitter.alloca(F64, name="value")
    emitter.store(build.sitofp(frame.payload(), F64), place)
    with emitter.if_then(frame.is_type(TypeIndex.FLOAT)):
        emitter.store(frame.payload("v_float64"), place)
    with emitter.if_then(frame.is_type(BIG_INT)):
        emitter.store(_big_float(frame), place)
    value = emitter.load(place, F64)
    bits = build.bitcast(value, I64)
    narrow = emitter.symbol("ferrule_narrow", NARROW)
    kind = emitter.load_field(frame.row, ROW, "kind")
    blocks = {each: emitter.block(each.name.lower()) for each in Float}
    switch = build.switch(kind, blocks[Float.F64])
    for each, block in blocks.items():
        if each is not Float.F64:
            switch.add_case(ir.Constant(I8, int(each)), block)
        emitter.at(block)
        match each:
            case Float.F64:
                frame.number(bits)
            case Float.F32:
                single = build.bitcast(build.fptrunc(value, ir.FloatType()), I32)
                frame.number(build.zext(single, I64))
            case Float.F16:
                sizes = emitter.const_i64(10), emitter.const_i64(5)
                frame.number(emitter.call(narrow, [bits, *sizes]))
            case Float.BF16:
                sizes = emitter.const_i64(7), emitter.const_i64(8)
                frame.number(emitter.call(narrow, [bits, *sizes]))
            case Float.TF32:
                sizes = emitter.const_i64(10), emitter.const_i64(8)
                upper = emitter.call(narrow, [bits, *sizes])
                frame.number(build.shl(upper, emitter.const_i64(TF32_ZEROS)))


def _big_float(frame: Frame) -> ir.Value:
    """A BigInt as a double.  Elements of containers are read later, so they must fit into 64
    bits."""
    emitter, build, value = frame.emitter, frame.build, frame.payload("v_ptr")
    shown = _bounds(emitter.const_i64(INT64_MIN), emitter.const_i64(INT64_MAX))
    frame.check(build.not_(emitter.is_null(value)), Said.NULL_VALUE)
    found = emitter.call(emitter.symbol("ferrule_big_float", BIG_FLOAT), [value])
    bits = build.bitcast(found, I64)
    magnitude = build.and_(bits, emitter.const_i64(INT64_MAX))
    with emitter.if_then(frame.equal(magnitude, 0x7FF << _F64_MANTISSA)):
        frame.check(build.icmp_signed(">=", bits, emitter.const_i64(0)), Said.FLOAT_TOO_SMALL)
        frame.refuse(Said.FLOAT_TOO_LARGE)
    with emitter.if_then(frame.equal(frame.operand("axis"), 1)):
        frame.refuse_big_int(value, Said.ABOVE_INT64, Said.TOO_SMALL, shown)
    return found


def _payload(frame: Frame) -> None:
    frame.number(frame.payload())


def _address(frame: Frame) -> None:
    emitter, build = frame.emitter, frame.build
    shown = _bounds(emitter.const_i64(0), emitter.const_i64(INT64_MAX))
    with emitter.if_then(frame.is_type(TypeIndex.NONE)):
        frame.number(emitter.const_i64(0))
    _refuse_big_int(frame, Said.ABOVE_INT64, Said.TOO_SMALL, shown)
    number = frame.payload()
    positive = build.icmp_signed(">=", number, emitter.const_i64(0))
    ok = build.or_(positive, build.not_(frame.is_type(TypeIndex.INT)))
    frame.check(ok, Said.VALUE_BOUNDS, actual=number, **shown)
    frame.number(number)


def _not_null(frame: Frame) -> None:
    frame.check(frame.build.not_(frame.equal(frame.get("number"), 0)), Said.NULL_POINTER)
    frame.go_on()


def _constant(frame: Frame) -> None:
    _refuse_big_int(frame, Said.CONSTANT_TOO_LARGE, Said.CONSTANT_TOO_SMALL)
    ok = frame.equal(frame.payload(), frame.operand("b"))
    frame.check(ok, Said.CONSTANT)
    frame.go_on()


def _any(frame: Frame) -> None:
    frame.number(frame.build.ptrtoint(frame.any(), I64))


SCALARS: Final[Mapping[Op, Callable[[Frame], None]]] = MappingProxyType(
    {
        Op.INTEGER: _integer,
        Op.BOOLEAN: _boolean,
        Op.UNSIGNED: _unsigned,
        Op.FLOAT: _float,
        Op.PAYLOAD: _payload,
        Op.ADDRESS: _address,
        Op.NOT_NULL: _not_null,
        Op.CONSTANT: _constant,
        Op.ANY: _any,
    }
)

"""The support code of an object: what its wrappers need once a check has failed.

The same LLVM module for every object; what differs is the table of messages that each wrapper
hands over.  Nothing here is on the way of a call that succeeds.

* `i32 ferrule_first(i32 base, i64 term…)`: `base` plus the place of the first term that is not
  zero, -1 where there is none.  `FIRST_TERMS` terms.
* `i64 ferrule_live(ptr shape, i32 ndim, i32 axis)`: all bits set where the stride of this dim
  means something (size above 1, no size is 0), else 0; axis -1 asks whether there are elements.
* `void ferrule_compact(ptr shape, i32 ndim, ptr strides)`: row-major strides.
* `void ferrule_raise(ptr table, i32 id, ptr args, i32 num_args, ptr values)`: set the error.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from ferrule.compiler.messages.names import write_names
from ferrule.compiler.messages.segments import PART, TABLE, define_part, row_field
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR, VOID

FIRST_TERMS = 12
SCRATCH = 96

FIRST = ir.FunctionType(I32, [I32, *[I64] * FIRST_TERMS])
LIVE = ir.FunctionType(I64, [PTR, I32, I32])
COMPACT = ir.FunctionType(VOID, [PTR, I32, PTR])
RAISE = ir.FunctionType(VOID, [PTR, I32, PTR, I32, PTR])


@cache
def support_text() -> str:
    """The module as LLVM assembly.  Pure: it depends on nothing."""
    emitter = Emitter("ferrule.support")
    _define_first(emitter)
    _define_live(emitter)
    _define_compact(emitter)
    part = define_part(emitter, write_names(emitter))
    _define_raise(emitter, part)
    return emitter.text()


def _define_first(emitter: Emitter) -> None:
    kind = FIRST
    with emitter.define("ferrule_first", I32, kind.args, attributes=COLD) as function:
        base, *terms = function.args
        build = emitter.builder
        found: ir.Value = emitter.const_i32(-1)
        for place, term in reversed(list(enumerate(terms))):
            failed = build.icmp_unsigned("!=", term, emitter.const_i64(0))
            found = build.select(failed, build.add(base, emitter.const_i32(place)), found)
        emitter.ret(found)


def _define_live(emitter: Emitter) -> None:
    names = ("shape", "ndim", "axis")
    with emitter.define("ferrule_live", I64, LIVE.args, names=names, attributes=COLD) as function:
        shape, ndim, axis = function.args
        build = emitter.builder
        live = emitter.alloca(I64, name="live")
        emitter.store(emitter.const_i64(-1), live)
        with emitter.loop(ndim) as i:
            size = emitter.load(emitter.index(shape, I64, build.sext(i, I64)), I64)
            one = build.zext(build.icmp_signed("==", i, axis), I64)
            dead = build.icmp_signed("==", build.ashr(size, one), emitter.const_i64(0))
            with emitter.if_then(dead):
                emitter.store(emitter.const_i64(0), live)
        emitter.ret(emitter.load(live, I64))


def _define_compact(emitter: Emitter) -> None:
    names = ("shape", "ndim", "strides")
    with emitter.define(
        "ferrule_compact", VOID, COMPACT.args, names=names, attributes=COLD
    ) as function:
        shape, ndim, strides = function.args
        build = emitter.builder
        running = emitter.alloca(I64, name="running")
        emitter.store(emitter.const_i64(1), running)
        with emitter.loop(ndim) as i:
            back = build.sext(build.sub(build.sub(ndim, i), emitter.const_i32(1)), I64)
            stride = emitter.load(running, I64)
            emitter.store(stride, emitter.index(strides, I64, back))
            size = emitter.load(emitter.index(shape, I64, back), I64)
            emitter.store(build.mul(stride, size), running)
        emitter.ret()


def _define_raise(emitter: Emitter, part: ir.Function) -> None:
    names = ("table", "id", "args", "num_args", "values")
    with emitter.define(
        "ferrule_raise", VOID, RAISE.args, names=names, attributes=COLD
    ) as function:
        table, number = function.args[0], function.args[1]
        build = emitter.builder
        call = _Parts(emitter, part, function)
        first, count = (row_field(emitter, table, number, name) for name in ("first", "count"))
        total = emitter.alloca(I64, name="total")
        emitter.store(emitter.const_i64(0), total)
        with emitter.loop(count) as i:
            call.emit(build.add(first, i), call.out)
            size = emitter.load_field(call.out, PART, "size")
            emitter.store(build.add(emitter.load(total, I64), size), total)
        size = emitter.load(total, I64)
        text = emitter.call("malloc", [build.add(size, emitter.const_i64(1))], "text")
        with emitter.if_then(build.icmp_unsigned("==", text, emitter.null()), likely=False):
            _give_up(emitter)
        emitter.store(text, total)  # from here on: where the next piece goes
        with emitter.loop(count) as i:
            call.emit(build.add(first, i), call.out)
            place = emitter.load(total, PTR)
            piece, length = (emitter.load_field(call.out, PART, n) for n in ("data", "size"))
            emitter.call("memcpy", [place, piece, length])
            emitter.store(emitter.index(place, I8, length), total)
        message = emitter.alloca(PART, name="message")
        emitter.store_field(message, PART, "data", text)
        emitter.store_field(message, PART, "size", size)
        _set_raised(emitter, call, row_field(emitter, table, number, "kind"), message,
                    row_field(emitter, table, number, "trace"))
        emitter.call("free", [text])
        emitter.ret()

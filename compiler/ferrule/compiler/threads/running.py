"""Runs the blocks of a launch, on one thread or on many.

* `i32 ferrule_run_blocks(ptr state, ptr code, ptr frame, ptr values, i64 count, i64 piece,
  i64 grain)`: the blocks 0 <= i < count of `code` (see `CODE`), at first `piece` of them at once;
  later numbers are multiples of `grain`.  A status of `CODE`, `BAD_SETTING` or `INTERRUPTED`.

How long a block takes is measured: the caller runs pieces that double in size until all is done, or
until what is left would take longer than waking other threads does.  Then the team takes pieces
from a counter.  Of the pieces that fail the first one counts: all before it run to their end, so
the error does not depend on the number of threads.  The caller, if it is the main thread of the
process, now and then asks for signals, between two pieces of its own.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import MAX_FAULT_VALUES
from ferrule.compiler.messages.parts import Message, Text
from ferrule.compiler.messages.support import SAY
from ferrule.compiler.messages.table import encoded
from ferrule.compiler.threads.finding import define_finding, prepare
from ferrule.compiler.threads.state import (
    BAD_SETTING,
    CODE,
    DONE,
    INTERRUPTED,
    JOB,
    NO_FAULT,
    RUN,
    RUN_TYPE,
    SIGNALS,
    SIGNALS_TYPE,
    STATE,
    call_found,
)
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID, Field, Layout

ENTRIES: Final = (RUN, SIGNALS)

WORTH_SHARING: Final = 40_000
"""Nanoseconds of work from which on it is shared: waking sleeping threads takes about as long."""

LONG_ENOUGH: Final = 5_000
"""Nanoseconds after which the time so far tells of the rest: beside them looking at the clock, and
what the first blocks find in no cache, are little."""

SHARED_PIECE: Final = 50_000
"""Nanoseconds of a piece: long beside taking it and a look at the clock, short beside a launch."""

PIECES_EACH: Final = 8
"""Of short work each thread gets that many pieces, so that all end at about the same time."""

CHECK_EVERY: Final = 100_000_000
"""Nanoseconds between two looks for signals, for which the GIL is taken."""

_MONOTONIC: Final = 1
_TIME: Final = Layout("timespec", [Field("seconds", I64), Field("nanoseconds", I64)])
_NOW: Final = ir.FunctionType(I64, [])
_TEAM: Final = ir.FunctionType(I32, [PTR, PTR])
_WORK: Final = ir.FunctionType(VOID, [PTR])
_FAIL: Final = ir.FunctionType(VOID, [PTR, I64, I32, PTR])
_FLOAT: Final = ir.DoubleType()
_SHARE: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR, I64, I64, I64, _FLOAT])

_SMALL: Final = ("minsize", "optsize")
"""Attributes of functions that run once or twice a launch."""

_ENDED: Final = encoded(Message("", "EnvErrorAlreadySet", (Text("a signal ended the call"),), ""))
"""The error by whose kind tvm-ffi knows that the one to raise is Python's own.

It has a backtrace, an empty one: without, tvm-ffi makes one, which can take seconds.
"""


def define_threads(emitter: Emitter) -> None:
    """All functions of the module."""
    define_finding(emitter)
    _define_now(emitter)
    _define_team(emitter)
    _define_signals(emitter)
    _define_fail(emitter)
    _define_work(emitter)
    _define_share(emitter)
    _define_run(emitter)


def _own(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    """Call a function of this module."""
    return emitter.call(emitter.symbol(f"ferrule_threads_{name}", kind), list(arguments))


def _define_now(emitter: Emitter) -> None:
    """`i64 ferrule_threads_now()`: a clock that never goes back, in nanoseconds."""
    with emitter.define("ferrule_threads_now", I64, [], attributes=_SMALL):
        time = emitter.alloca(_TIME, name="time")
        emitter.call("clock_gettime", [emitter.const_i32(_MONOTONIC), time])
        seconds = emitter.load_field(time, _TIME, "seconds")
        whole = emitter.builder.mul(seconds, emitter.const_i64(1_000_000_000))
        emitter.ret(emitter.builder.add(whole, emitter.load_field(time, _TIME, "nanoseconds")))


def _define_team(emitter: Emitter) -> None:
    """`i32 ferrule_threads_team(ptr state, ptr values)`: how many threads may work; a status < 0.

    One inside the work of a team, and in a process that was forked from the one that found the
    runtime: GNU's waits there for threads that are no more.
    """
    e, one = emitter, emitter.const_i32(1)
    with e.define(
        "ferrule_threads_team", I32, _TEAM.args, names=("state", "values"), attributes=_SMALL
    ) as function:
        state, values = function.args
        status = prepare(e, state, values)
        with e.if_then(e.icmp("ne", status, e.const_i32(DONE)), likely=False):
            e.ret(e.const_i32(BAD_SETTING))
        wanted = e.load_field(state, STATE, "wanted")
        alone = e.is_null(e.load_field(state, STATE, "GOMP_parallel"))
        with e.if_then(e.binary("or", alone, e.icmp("eq", wanted, one))):
            e.ret(one)
        own = e.icmp("eq", call_found(e, state, "getpid", []), e.load_field(state, STATE, "pid"))
        with e.if_then(e.not_(own), likely=False):
            e.ret(one)
        inside = call_found(e, state, "omp_in_parallel", [])
        with e.if_then(e.icmp("ne", inside, e.const_i32(0)), likely=False):
            e.ret(one)
        with e.if_then(e.icmp("sgt", wanted, e.const_i32(0))):
            e.ret(wanted)
        most = call_found(e, state, "omp_get_max_threads", [])
        e.ret(e.select(e.icmp("sgt", most, one), most, one))


def _define_signals(emitter: Emitter) -> None:
    """`i32 ferrule_threads_signals(ptr state)`: the status `INTERRUPTED` where one is an error."""
    e = emitter
    with e.define(SIGNALS, I32, SIGNALS_TYPE.args, names=("state",), attributes=_SMALL) as function:
        state = function.args[0]
        now = _own(e, "now", _NOW)
        since = e.builder.sub(now, e.load_field(state, STATE, "checked"))
        with e.if_then(e.icmp("slt", since, e.const_i64(CHECK_EVERY)), likely=True):
            e.ret(e.const_i32(DONE))
        e.store_field(state, STATE, "checked", now)
        failed = e.icmp("ne", e.call("TVMFFIEnvCheckSignals", []), e.const_i32(0))
        with e.if_then(failed, likely=False):
            e.call(e.symbol("ferrule_say", SAY), [e.null(), e.bytes_constant(_ENDED)])
            e.ret(e.const_i32(INTERRUPTED))
        e.ret(e.const_i32(DONE))


def _define_fail(emitter: Emitter) -> None:
    """`void ferrule_threads_fail(ptr job, i64 piece, i32 status, ptr values)`: note a failure."""
    e, names = emitter, ("job", "piece", "status", "values")
    with e.define(
        "ferrule_threads_fail", VOID, _FAIL.args, names=names, attributes=COLD
    ) as function:
        job, piece, status, values = function.args
        lock, free, taken = e.field_ptr(job, JOB, "lock"), e.const_i32(0), e.const_i32(1)
        wait, held = e.block("wait"), e.block("held")
        e.branch(wait)
        e.at(wait)
        was = e.builder.cmpxchg(lock, free, taken, "acquire", "monotonic")
        e.cond_branch(e.builder.extract_value(was, 1), held, wait)
        e.at(held)
        failed = e.field_ptr(job, JOB, "failed")
        before = e.builder.load_atomic(failed, "monotonic", 8, typ=I64)
        with e.if_then(e.icmp("slt", piece, before)):
            e.builder.atomic_rmw("xchg", failed, piece, "monotonic")
            e.store_field(job, JOB, "status", status)
            kept, size = e.load_field(job, JOB, "values"), e.const_i64(8 * MAX_FAULT_VALUES)
            e.call("memcpy", [kept, values, size])
        e.builder.atomic_rmw("xchg", lock, free, "release")
        e.ret()


def _define_work(emitter: Emitter) -> None:
    """`void ferrule_threads_work(ptr job)`: what each thread of a team does."""
    e = emitter
    with e.define(
        "ferrule_threads_work", VOID, [PTR], names=("job",), linkage="internal", attributes=_SMALL
    ) as function:
        job, b = function.args[0], e.builder
        values = e.alloca(I64, MAX_FAULT_VALUES, name="values")
        checks = _is_checking(e, job)
        take, run, end = e.block("take"), e.block("run"), e.block("end")
        e.branch(take)
        e.at(take)
        piece = b.atomic_rmw("add", e.field_ptr(job, JOB, "next"), e.const_i64(1), "monotonic")
        size = e.load_field(job, JOB, "piece")
        first = b.add(e.load_field(job, JOB, "base"), b.mul(piece, size))
        count = e.load_field(job, JOB, "count")
        failed = b.load_atomic(e.field_ptr(job, JOB, "failed"), "monotonic", 8, typ=I64)
        goes_on = e.binary("and", e.icmp("slt", first, count), e.icmp("slt", piece, failed))
        e.cond_branch(goes_on, run, end)
        e.at(run)
        last = _least(e, b.add(first, size), count)
        code, frame = e.load_field(job, JOB, "code"), e.load_field(job, JOB, "frame")
        status = e.call_pointer(code, CODE, [frame, values, first, last])
        with e.if_then(e.icmp("ne", status, e.const_i32(DONE)), likely=False):
            _own(e, "fail", _FAIL, job, piece, status, values)
            e.ret()
        with e.if_then(checks):
            ended = _own(e, "signals", SIGNALS_TYPE, e.load_field(job, JOB, "state"))
            with e.if_then(e.icmp("ne", ended, e.const_i32(DONE)), likely=False):
                _own(e, "fail", _FAIL, job, e.const_i64(-1), ended, values)
                e.ret()
        e.branch(take)
        e.at(end)
        e.ret()


def _is_checking(emitter: Emitter, job: ir.Value) -> ir.Value:
    """Whether this thread asks for signals: the caller, where it is the main thread."""
    e, place = emitter, emitter.alloca(I32, name="asks")
    asked = e.load_field(job, JOB, "checks")
    e.store(asked, place)
    is_team = e.icmp("sgt", e.load_field(job, JOB, "team"), e.const_i32(1))
    with e.if_then(is_team):
        number = call_found(e, e.load_field(job, JOB, "state"), "omp_get_thread_num", [])
        is_caller = e.icmp("eq", number, e.const_i32(0))
        e.store(e.select(is_caller, asked, e.const_i32(0)), place)
    return e.icmp("ne", e.load(place, I32), e.const_i32(0))


def _least(emitter: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    return emitter.select(emitter.icmp("slt", x, y), x, y)


def _most(emitter: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    return emitter.select(emitter.icmp("sgt", x, y), x, y)


def _define_share(emitter: Emitter) -> None:
    """`i32 ferrule_threads_share(state, code, frame, values, first, count, grain, each)`.

    The blocks from `first` on; one takes `each` nanoseconds, a double.
    """
    e = emitter
    names = ("state", "code", "frame", "values", "first", "count", "grain", "each")
    with e.define(
        "ferrule_threads_share", I32, _SHARE.args, names=names, attributes=_SMALL
    ) as function:
        state, code, frame, values, first, count, grain, each = function.args
        b = e.builder
        team = _own(e, "team", _TEAM, state, values)
        with e.if_then(e.icmp("slt", team, e.const_i32(1)), likely=False):
            e.ret(team)
        checks = b.zext(_is_main_thread(e, state), I32)
        piece = _piece(e, team, b.sub(count, first), each, grain)
        job = e.alloca(JOB, name="job")
        for name, value in (
            ("state", state),
            ("code", code),
            ("frame", frame),
            ("values", values),
            ("base", first),
            ("count", count),
            ("piece", piece),
            ("next", e.const_i64(0)),
            ("failed", e.const_i64(NO_FAULT)),
            ("team", team),
            ("checks", checks),
            ("lock", e.const_i32(0)),
            ("status", e.const_i32(DONE)),
        ):
            e.store_field(job, JOB, name, value)
        work = e.symbol("ferrule_threads_work", _WORK)
        with b.if_else(e.icmp("eq", team, e.const_i32(1))) as (alone, together):
            with alone:
                e.call(work, [job])
            with together:
                address = ir.FormattedConstant(PTR, work.get_reference())
                call_found(e, state, "GOMP_parallel", [address, job, team, e.const_i32(0)])
        e.ret(e.load_field(job, JOB, "status"))


def _piece(
    emitter: Emitter, team: ir.Value, left: ir.Value, each: ir.Value, grain: ir.Value
) -> ir.Value:
    """How many blocks a piece has: a multiple of the grain."""
    e, b, one = emitter, emitter.builder, emitter.const_i64(1)
    fair = b.sdiv(left, b.mul(b.sext(team, I64), e.const_i64(PIECES_EACH)))
    timed, most = b.fdiv(_float(SHARED_PIECE), each), b.sitofp(fair, _FLOAT)
    blocks = b.fptosi(b.select(b.fcmp_ordered("<", timed, most), timed, most), I64)
    blocks = _most(e, blocks, one)
    grains = b.sdiv(b.add(blocks, b.sub(grain, one)), grain)
    return b.mul(grains, grain)


def _float(number: int) -> ir.Constant:
    return ir.Constant(_FLOAT, float(number))


def _is_main_thread(emitter: Emitter, state: ir.Value) -> ir.Value:
    """Whether signals come to the thread that runs; where the C library cannot tell, it may be."""
    e, place = emitter, emitter.alloca(I32, name="other")
    e.store(e.const_i32(0), place)
    with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "gettid"))), likely=True):
        thread, process = (call_found(e, state, name, []) for name in ("gettid", "getpid"))
        e.store(e.binary("sub", thread, process), place)
    return e.icmp("eq", e.load(place, I32), e.const_i32(0))


def _define_run(emitter: Emitter) -> None:
    e, names = emitter, ("state", "code", "frame", "values", "count", "piece", "grain")
    with e.define(RUN, I32, RUN_TYPE.args, names=names, attributes=_SMALL) as function:
        state, code, frame, values, count, piece, grain = function.args
        b = e.builder
        start, before = _own(e, "now", _NOW), b.block
        loop, on, measure, again, share = map(e.block, ("loop", "on", "measure", "again", "share"))
        e.branch(loop)
        e.at(loop)
        first, size = b.phi(I64, name="first"), b.phi(I64, name="size")
        first.add_incoming(e.const_i64(0), before)
        size.add_incoming(piece, before)
        end = e.select(e.icmp("slt", size, b.sub(count, first)), b.add(first, size), count)
        status = e.call_pointer(code, CODE, [frame, values, first, end])
        failed = e.icmp("ne", status, e.const_i32(DONE))
        over, stop = e.icmp("eq", end, count), e.block("stop")
        e.cond_branch(e.binary("or", failed, over), stop, on)
        e.at(stop)
        e.ret(status)
        e.at(on)
        elapsed = b.sub(_own(e, "now", _NOW), start)
        e.cond_branch(e.icmp("slt", elapsed, e.const_i64(LONG_ENOUGH)), again, measure)
        e.at(measure)
        each = b.fdiv(b.sitofp(elapsed, _FLOAT), b.sitofp(end, _FLOAT))
        rest = b.fmul(each, b.sitofp(b.sub(count, end), _FLOAT))
        worth = b.fcmp_ordered(">", rest, _float(WORTH_SHARING))
        e.cond_branch(worth, share, again)
        e.at(again)
        first.add_incoming(end, b.block)
        size.add_incoming(end, b.block)
        e.branch(loop)
        e.at(share)
        arguments = [state, code, frame, values, end, count, grain, each]
        e.ret(_own(e, "share", _SHARE, *arguments))

"""Runs the blocks of a launch, on one thread or on many.

* `i32 ferrule_run_blocks(ptr state, ptr code, ptr frame, ptr values, i64 count, i64 piece,
  i64 grain)`: the blocks 0 <= i < count of `code` (see `CODE`), at first `piece` of them at once;
  where it is negative one, and then so many.  Later numbers are multiples of `grain`, but where so
  many blocks take very long.  A status of `CODE`, `BAD_SETTING` or `INTERRUPTED`.

How long a block takes is measured: the caller runs pieces that double in size until all is done, or
until what is left would take longer than waking other threads does.  Then the team takes pieces
from a counter, each thread as many blocks as it did in the time of a piece before.  Of the pieces
that fail the first one counts: all before it run to their end, so the error does not depend on the
number of threads.  The caller, if it is the main thread of the process, now and then asks for
signals, when the launch begins and between two pieces of its own.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import MAX_FAULT_VALUES
from ferrule.compiler.messages.parts import Message, Text
from ferrule.compiler.messages.support import SAY
from ferrule.compiler.messages.table import encoded
from ferrule.compiler.threads.finding import define_finding, look_up, prepare
from ferrule.compiler.threads.state import (
    BAD_SETTING,
    CODE,
    DONE,
    INTERRUPTED,
    JOB,
    LIBC,
    NO_FAULT,
    RUN,
    RUN_TYPE,
    SIGNALS,
    SIGNALS_TYPE,
    STATE,
    TRIED,
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

LONGEST_GRAIN: Final = 50_000_000
"""Nanoseconds of a piece from which on it may be shorter than a grain: a signal waits for it."""

LANES_SHARE: Final = 16
"""What part of a grain is done in whole vectors still, in about the time of one of its threads."""

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
_PIECE: Final = ir.FunctionType(I64, [I64, _FLOAT, I64])
_POSSIBLE: Final = ir.FunctionType(I32, [PTR, I32])
_TRY: Final = ir.FunctionType(PTR, [PTR])
_TRIAL: Final = Layout(
    "ThreadsTrial", [Field("state", PTR), Field("left", I32), Field("made", I32)]
)
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
    _define_try(emitter)
    _define_possible(emitter)
    _define_team(emitter)
    _define_signals(emitter)
    _define_piece(emitter)
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
        most = e.alloca(I32, name="most")
        e.store(wanted, most)
        with e.if_then(e.icmp("eq", wanted, e.const_i32(0))):
            e.store(call_found(e, state, "omp_get_max_threads", []), most)
        e.ret(_own(e, "possible", _POSSIBLE, state, e.load(most, I32)))


def _define_try(emitter: Emitter) -> None:
    """`ptr ferrule_threads_try(ptr trial)`: makes a thread that does the same, and waits for it.

    So all that are asked for are there at once, unless one cannot be made.
    """
    e = emitter
    with e.define(
        "ferrule_threads_try", PTR, [PTR], names=("trial",), linkage="internal", attributes=COLD
    ) as function:
        (trial,), b, one = function.args, e.builder, e.const_i32(1)
        state, left = (e.load_field(trial, _TRIAL, name) for name in ("state", "left"))
        with e.if_then(e.icmp("sgt", left, one)):
            e.store_field(trial, _TRIAL, "left", b.sub(left, one))
            thread = e.alloca(I64, name="thread")
            work = ir.FormattedConstant(PTR, e.symbol("ferrule_threads_try", _TRY).get_reference())
            status = call_found(e, state, "pthread_create", [thread, e.null(), work, trial])
            with e.if_then(e.icmp("eq", status, e.const_i32(0)), likely=True):
                call_found(e, state, "pthread_join", [e.load(thread, I64), e.null()])
                made = e.load_field(trial, _TRIAL, "made")
                e.store_field(trial, _TRIAL, "made", b.add(made, one))
        e.ret(e.null())


def _define_possible(emitter: Emitter) -> None:
    """`i32 ferrule_threads_possible(ptr state, i32 team)`: the team, or fewer threads if no more
    can be made.

    OpenMP runtimes end the process where a thread cannot be made.  Each calling thread has a team
    of its own; it is tried before the first one, and again when the number changes.
    """
    e, names, one = emitter, ("state", "team"), emitter.const_i32(1)
    with e.define(
        "ferrule_threads_possible", I32, _POSSIBLE.args, names=names, attributes=_SMALL
    ) as function:
        (state, team), b = function.args, e.builder
        hopeless = e.is_null(e.load_field(state, STATE, "pthread_join"))
        with e.if_then(e.binary("or", hopeless, e.icmp("sle", team, one))):
            e.ret(_most(e, team, one))
        caller = call_found(e, state, "pthread_self", [])
        # An address, of which threads have some that are pages apart.
        word = b.add(caller, b.sext(team, I64))
        slot = b.and_(b.lshr(caller, e.const_i64(12)), e.const_i64(TRIED - 1))
        place = e.index(e.field_ptr(state, STATE, "tried"), I64, slot)
        known = e.icmp("eq", b.load_atomic(place, "monotonic", 8, typ=I64), word)
        with e.if_then(known, likely=True):
            e.ret(team)
        trial = e.alloca(_TRIAL, name="trial")
        e.store_field(trial, _TRIAL, "state", state)
        e.store_field(trial, _TRIAL, "left", team)
        e.store_field(trial, _TRIAL, "made", e.const_i32(0))
        _own(e, "try", _TRY, trial)
        made = b.add(e.load_field(trial, _TRIAL, "made"), one)
        with e.if_then(e.icmp("ne", made, team), likely=False):
            e.store_field(state, STATE, "wanted", made)
        with e.if_then(e.icmp("eq", made, team), likely=True):
            b.atomic_rmw("xchg", place, word, "monotonic")
        e.ret(made)


def _define_signals(emitter: Emitter) -> None:
    """`i32 ferrule_threads_signals(ptr state)`: the status `INTERRUPTED` where one is an error."""
    e, done = emitter, emitter.const_i32(DONE)
    with e.define(SIGNALS, I32, SIGNALS_TYPE.args, names=("state",), attributes=_SMALL) as function:
        state = function.args[0]
        now = _own(e, "now", _NOW)
        e.store_field(state, STATE, "asked", now)
        since = e.builder.sub(now, e.load_field(state, STATE, "checked"))
        with e.if_then(e.icmp("slt", since, e.const_i64(CHECK_EVERY)), likely=True):
            e.ret(done)
        with e.if_then(e.is_null(e.load_field(state, STATE, "gettid")), likely=False):
            look_up(e, e.null(), state, LIBC)
        with e.if_then(e.not_(_is_main_thread(e, state))):
            e.ret(done)
        e.store_field(state, STATE, "checked", now)
        failed = e.icmp("ne", e.call("TVMFFIEnvCheckSignals", []), e.const_i32(0))
        with e.if_then(failed, likely=False):
            e.call(e.symbol("ferrule_say", SAY), [e.null(), e.bytes_constant(_ENDED)])
            e.ret(e.const_i32(INTERRUPTED))
        e.ret(done)


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
        start, before = _own(e, "now", _NOW), b.block
        take, run, end = e.block("take"), e.block("run"), e.block("end")
        state, most = e.load_field(job, JOB, "state"), e.load_field(job, JOB, "piece")
        e.branch(take)
        e.at(take)
        size, since = b.phi(I64, name="size"), b.phi(I64, name="since")
        size.add_incoming(most, before)
        since.add_incoming(start, before)
        piece = b.atomic_rmw("add", e.field_ptr(job, JOB, "next"), size, "monotonic")
        first = b.add(e.load_field(job, JOB, "base"), piece)
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
        # Another thread would wait for the GIL, which the caller may have.
        me, caller = call_found(e, state, "pthread_self", []), e.load_field(job, JOB, "caller")
        with e.if_then(e.icmp("eq", me, caller)):
            ended = _own(e, "signals", SIGNALS_TYPE, state)
            with e.if_then(e.icmp("ne", ended, e.const_i32(DONE)), likely=False):
                _own(e, "fail", _FAIL, job, e.const_i64(-1), ended, values)
                e.ret()
        now = _own(e, "now", _NOW)
        each = b.fdiv(b.sitofp(b.sub(now, since), _FLOAT), b.sitofp(size, _FLOAT))
        next_size = _own(e, "piece", _PIECE, most, each, e.load_field(job, JOB, "grain"))
        size.add_incoming(next_size, b.block)
        since.add_incoming(now, b.block)
        e.branch(take)
        e.at(end)
        e.ret()


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
        fair = b.sdiv(b.sub(count, first), b.mul(b.sext(team, I64), e.const_i64(PIECES_EACH)))
        piece = _own(e, "piece", _PIECE, fair, each, grain)
        job = e.alloca(JOB, name="job")
        for name, value in (
            ("state", state),
            ("code", code),
            ("frame", frame),
            ("values", values),
            ("base", first),
            ("count", count),
            ("caller", call_found(e, state, "pthread_self", [])),
            ("piece", piece),
            ("grain", grain),
            ("next", e.const_i64(0)),
            ("failed", e.const_i64(NO_FAULT)),
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


def _define_piece(emitter: Emitter) -> None:
    """`i64 ferrule_threads_piece(i64 most, double each, i64 grain)`: how many blocks a piece has.

    One takes `each` nanoseconds: at most `most`, rounded up to a multiple of the grain; of a long
    grain what takes no longer than `LONGEST_GRAIN`, but as many as are done in vectors.
    """
    e, names = emitter, ("most", "each", "grain")
    with e.define(
        "ferrule_threads_piece", I64, _PIECE.args, names=names, attributes=_SMALL
    ) as function:
        (most, each, grain), b, one = function.args, e.builder, e.const_i64(1)
        blocks = _most(e, _blocks_in(e, SHARED_PIECE, each, most), one)
        grains = b.sdiv(b.add(blocks, b.sub(grain, one)), grain)
        rounded = b.mul(grains, grain)
        lanes = _most(e, b.sdiv(grain, e.const_i64(LANES_SHARE)), one)
        short = _most(e, _blocks_in(e, LONGEST_GRAIN, each, rounded), lanes)
        e.ret(_least(e, rounded, short))


def _blocks_in(emitter: Emitter, time: int, each: ir.Value, most: ir.Value) -> ir.Value:
    """How many blocks that take `each` nanoseconds end in some time, at most `most`."""
    b = emitter.builder
    timed, limit = b.fdiv(_float(time), each), b.sitofp(most, _FLOAT)
    return b.fptosi(b.select(b.fcmp_ordered("<", timed, limit), timed, limit), I64)


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
        begin = e.alloca(I64, name="begin")
        e.store(_own(e, "now", _NOW), begin)
        asked = b.sub(e.load(begin, I64), e.load_field(state, STATE, "asked"))
        with e.if_then(e.icmp("sge", asked, e.const_i64(CHECK_EVERY)), likely=False):
            ended = _own(e, "signals", SIGNALS_TYPE, state)
            with e.if_then(e.icmp("ne", ended, e.const_i32(DONE)), likely=False):
                e.ret(ended)
            # Not what asking took: it would look like work.
            e.store(_own(e, "now", _NOW), begin)
        start = e.load(begin, I64)
        unknown = e.icmp("slt", piece, e.const_i64(0))
        first_size = e.select(unknown, e.const_i64(1), piece)
        least, before = e.select(unknown, b.neg(piece), piece), b.block
        loop, on, measure, again, share = map(e.block, ("loop", "on", "measure", "again", "share"))
        e.branch(loop)
        e.at(loop)
        first, size = b.phi(I64, name="first"), b.phi(I64, name="size")
        first.add_incoming(e.const_i64(0), before)
        size.add_incoming(first_size, before)
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
        size.add_incoming(_most(e, end, least), b.block)
        e.branch(loop)
        e.at(share)
        arguments = [state, code, frame, values, end, count, grain, each]
        e.ret(_own(e, "share", _SHARE, *arguments))

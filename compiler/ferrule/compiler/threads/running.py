"""Runs the blocks of a launch, on one thread or on many.

* `i32 ferrule_run_blocks(ptr state, ptr code, ptr frame, ptr values, i64 count, i64 piece, i64
  grain)`: runs the blocks 0 <= i < count of `code` (see `CODE`), at first in pieces of `piece`
  blocks; if that is negative, one block and then -`piece`.  Later sizes are multiples of `grain`,
  unless so many blocks take very long.  Returns a status of `CODE`, `BAD_SETTING` or `INTERRUPTED`.

The time of a block is measured: the caller runs pieces of doubling size until all is done, or until
the rest would take longer than waking other threads.  Then the team takes pieces from a counter;
each thread takes as many blocks as it completed before in the time of a piece.  Of the pieces that
fail, the first one counts: all pieces before it are completed, so the error does not depend on the
number of threads.  If the caller is the main thread of the process, it checks for signals at
intervals: when the launch begins, and between its own pieces.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import MAX_FAULT_VALUES
from ferrule.compiler.messages.parts import Message, Text
from ferrule.compiler.messages.support import SAY
from ferrule.compiler.messages.table import encoded
from ferrule.compiler.threads.openmp import define_finding, look_up_libc, prepare
from ferrule.compiler.threads.state import (
    CODE,
    DONE,
    INTERRUPTED,
    JOB,
    RUN,
    RUN_TYPE,
    SIGNALS,
    SIGNALS_TYPE,
    STATE,
    TRIED,
    call_found,
)
from ferrule.runtime.llvm.emitter import COLD, LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID, Field, Layout

WORTH_SHARING: Final = 40_000
"""The nanoseconds of work from which it is distributed: waking sleeping threads takes about as
long."""

LONG_ENOUGH: Final = 5_000
"""The nanoseconds after which the elapsed time predicts the rest: it is long compared with reading
the clock and with the cache misses of the first blocks."""

SHARED_PIECE: Final = 50_000
"""The nanoseconds of a piece: long compared with taking it and reading the clock, short compared
with a launch."""

LONGEST_GRAIN: Final = 50_000_000
"""The nanoseconds of a piece from which it may be shorter than a grain, because signals wait for
it."""

LANES_SHARE: Final = 16
"""A grain divided by this still runs in whole vectors, in about the time of one of its threads."""

PIECES_EACH: Final = 8
"""The number of pieces for each thread in short work, so that all threads end at about the same
time."""

CHECK_EVERY: Final = 100_000_000
"""The nanoseconds between two checks for signals, which need the GIL."""

_MONOTONIC: Final = 1
_COARSE: Final = 6
"""Linux's numbers of clocks; the coarse one has the time of the last tick, some milliseconds ago,
and takes a third of the time to read."""
_TIME: Final = Layout("timespec", [Field("seconds", I64), Field("nanoseconds", I64)])
_NOW: Final = ir.FunctionType(I64, [I32])
_WORK: Final = ir.FunctionType(VOID, [PTR])
_FLOAT: Final = ir.DoubleType()
_PIECE: Final = ir.FunctionType(I64, [I64, I64, I64, I64])
_SHARE: Final = ir.FunctionType(I32, [PTR, I64, I64])
_TRY: Final = ir.FunctionType(PTR, [PTR])

_SMALL: Final = ("minsize", "optsize")
"""Attributes of functions that run once or twice in a launch."""

_ENDED: Final = encoded(Message("", "EnvErrorAlreadySet", (Text("interrupted"),), ""))
"""The error whose kind tells tvm-ffi to raise Python's own error.

It has an empty backtrace: without one, tvm-ffi makes one, which can take seconds.
"""


def define_threads(emitter: Emitter) -> None:
    """All functions of the module."""
    define_finding(emitter)
    _define_now(emitter)
    _define_try(emitter)
    _define_signals(emitter)
    _define_piece(emitter)
    _define_work(emitter)
    _define_share(emitter)
    _define_run(emitter)


def _own(emitter: Emitter, name: str, kind: ir.FunctionType, *arguments: ir.Value) -> ir.Value:
    """Call a function of this module."""
    return emitter.call(emitter.symbol(f"ferrule_threads_{name}", kind), list(arguments))


def _define_now(emitter: Emitter) -> None:
    """`i64 ferrule_threads_now(i32 clock)`: a monotonic clock, in nanoseconds."""
    with emitter.define(
        "ferrule_threads_now", I64, [I32], names=("clock",), attributes=_SMALL
    ) as function:
        time = emitter.alloca(_TIME, name="time")
        emitter.call("clock_gettime", [function.args[0], time])
        seconds = emitter.load_field(time, _TIME, "seconds")
        whole = emitter.builder.mul(seconds, emitter.const_i64(1_000_000_000))
        emitter.ret(emitter.builder.add(whole, emitter.load_field(time, _TIME, "nanoseconds")))


def _now(emitter: Emitter) -> ir.Value:
    return _own(emitter, "now", _NOW, emitter.const_i32(_MONOTONIC))


def _team(emitter: Emitter, state: ir.Value, alone: ir.Block) -> ir.Value:
    """A place with the number of threads that may work; branches to the block `alone` if it is
    certainly one.

    It is one inside the work of a team, and in a process that was forked from the one that found
    the runtime: there GNU's runtime waits for threads that no longer exist.
    """
    e, none = emitter, emitter.const_i32(0)

    def go_on(condition: ir.Value) -> None:
        on = e.block("on")
        e.cond_branch(condition, on, alone)
        e.at(on)

    most = e.alloca(I32, name="most")
    wanted = e.load_field(state, STATE, "wanted")
    e.store(e.const_i32(1), most)
    go_on(e.not_(e.is_null(e.load_field(state, STATE, "GOMP_parallel"))))
    go_on(e.icmp("ne", wanted, e.const_i32(1)))
    go_on(e.icmp("eq", call_found(e, state, "getpid", []), e.load_field(state, STATE, "pid")))
    go_on(e.icmp("eq", call_found(e, state, "omp_in_parallel", []), none))
    e.store(wanted, most)
    with e.if_then(e.icmp("eq", wanted, none)):
        e.store(call_found(e, state, "omp_get_max_threads", []), most)
    return most


def _define_try(emitter: Emitter) -> None:
    """`ptr ferrule_threads_try(ptr job)`: creates a thread that does the same, and waits for it.

    So all requested threads exist at the same time, unless one cannot be created.
    """
    e = emitter
    with e.define(
        "ferrule_threads_try", PTR, [PTR], names=("job",), linkage="internal", attributes=COLD
    ) as function:
        (job,), b, one = function.args, e.builder, e.const_i32(1)
        state, left = (e.load_field(job, JOB, name) for name in ("state", "left"))
        with e.if_then(e.icmp("sgt", left, one)):
            e.store_field(job, JOB, "left", b.sub(left, one))
            thread = e.alloca(I64, name="thread")
            work = ir.FormattedConstant(PTR, e.symbol("ferrule_threads_try", _TRY).get_reference())
            status = call_found(e, state, "pthread_create", [thread, e.null(), work, job])
            with e.if_then(e.icmp("eq", status, e.const_i32(0)), likely=True):
                call_found(e, state, "pthread_join", [e.load(thread, I64), e.null()])
                made = e.load_field(job, JOB, "made")
                e.store_field(job, JOB, "made", b.add(made, one))
        e.ret(e.null())


def _possible(emitter: Emitter, job: ir.Value, caller: ir.Value, team: ir.Value) -> None:
    """Lower the number in the place `team` to the number of threads that can be created.

    OpenMP runtimes end the process if they cannot create a thread.  Each calling thread has a team
    of its own; it is tried before the first one, and again when the number changes.
    """
    e, b, wanted = emitter, emitter.builder, emitter.load(team, I32)
    state = e.load_field(job, JOB, "state")
    # An address that is some pages apart for different threads.
    word = b.add(caller, b.zext(wanted, I64))
    slot = b.and_(b.lshr(caller, e.const_i64(12)), e.const_i64(TRIED - 1))
    place = e.index(e.field_ptr(state, STATE, "tried"), I64, slot)
    with e.if_then(e.icmp("ne", b.load_atomic(place, "monotonic", 8, typ=I64), word)):
        e.store_field(job, JOB, "left", wanted)
        e.store_field(job, JOB, "made", e.const_i32(1))
        _own(e, "try", _TRY, job)
        made = e.load_field(job, JOB, "made")
        e.store(made, team)
        with b.if_else(e.icmp("eq", made, wanted), likely=True) as (all_made, fewer):
            with all_made:
                b.atomic_rmw("xchg", place, word, "monotonic")
            with fewer:
                # Later launches do not ask for more than there can be.
                e.store_field(state, STATE, "wanted", made)


def _define_signals(emitter: Emitter) -> None:
    """`i32 ferrule_threads_signals(ptr state)`: the status `INTERRUPTED` if a signal raised an
    error."""
    e, done = emitter, emitter.const_i32(DONE)
    with e.define(SIGNALS, I32, SIGNALS_TYPE.args, names=("state",), attributes=_SMALL) as function:
        state, b = function.args[0], e.builder
        now = _now(e)
        e.store_field(state, STATE, "asked", now)
        since = b.sub(now, e.load_field(state, STATE, "checked"))
        with e.if_then(e.icmp("slt", since, e.const_i64(CHECK_EVERY)), likely=True):
            e.ret(done)
        # If the C library cannot tell threads apart, signals may be meant for this one.
        with b.if_else(e.is_null(e.load_field(state, STATE, "gettid"))) as (unknown, known):
            with unknown:
                look_up_libc(e, state)
            with known:
                thread, process = (call_found(e, state, name, []) for name in ("gettid", "getpid"))
                with e.if_then(e.icmp("ne", thread, process)):
                    e.ret(done)
        e.store_field(state, STATE, "checked", now)
        failed = e.icmp("ne", e.call("TVMFFIEnvCheckSignals", []), e.const_i32(0))
        with e.if_then(failed, likely=False):
            e.call(e.symbol("ferrule_say", SAY), [e.null(), e.bytes_constant(_ENDED)])
            e.ret(e.const_i32(INTERRUPTED))
        e.ret(done)


def _fail(
    emitter: Emitter, job: ir.Value, values: ir.Value, piece: ir.Value, status: ir.Value
) -> None:
    """Record a failure, with its values."""
    e, b = emitter, emitter.builder
    lock, free, taken = e.field_ptr(job, JOB, "lock"), e.const_i32(0), e.const_i32(1)
    wait, held = e.block("wait"), e.block("held")
    e.branch(wait)
    e.at(wait)
    was = b.cmpxchg(lock, free, taken, "acquire", "monotonic")
    e.cond_branch(b.extract_value(was, 1), held, wait)
    e.at(held)
    failed = e.field_ptr(job, JOB, "failed")
    before = b.load_atomic(failed, "monotonic", 8, typ=I64)
    with e.if_then(e.icmp("slt", piece, before)):
        b.atomic_rmw("xchg", failed, piece, "monotonic")
        e.store_field(job, JOB, "status", status)
        kept, size = e.load_field(job, JOB, "values"), e.const_i64(8 * MAX_FAULT_VALUES)
        e.call("memcpy", [kept, values, size])
    b.atomic_rmw("xchg", lock, free, "release")


def _define_work(emitter: Emitter) -> None:
    """`void ferrule_threads_work(ptr job)`: the work of each thread of a team."""
    e = emitter
    with e.define(
        "ferrule_threads_work", VOID, [PTR], names=("job",), linkage="internal", attributes=_SMALL
    ) as function:
        job, b = function.args[0], e.builder
        values = e.alloca(I64, MAX_FAULT_VALUES, name="values")
        start, before = _now(e), b.block
        take, run, on, fail, end = map(e.block, ("take", "run", "on", "fail", "end"))
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
        # As long as none has failed, `failed` is the number of blocks, so this is the end of the
        # work, too.
        e.cond_branch(e.icmp("slt", piece, failed), run, end)
        e.at(run)
        last = _least(e, b.add(first, size), count)
        code, frame = e.load_field(job, JOB, "code"), e.load_field(job, JOB, "frame")
        status = e.call_pointer(code, CODE, [frame, values, first, last])
        e.cond_branch(e.icmp("eq", status, e.const_i32(DONE)), on, fail, LIKELY)
        failures, ran = [(piece, status, b.block)], e.block("ran")
        e.at(on)
        # Another thread would wait for the GIL, which the caller may hold.
        me, caller = call_found(e, state, "pthread_self", []), e.load_field(job, JOB, "caller")
        with e.if_then(e.icmp("eq", me, caller)):
            ended = _own(e, "signals", SIGNALS_TYPE, state)
            failures.append((e.const_i64(-1), ended, b.block))  # before all pieces: it counts
            e.cond_branch(e.icmp("eq", ended, e.const_i32(DONE)), ran, fail, LIKELY)
        e.branch(ran)
        e.at(ran)
        now = _now(e)
        arguments = [most, b.sub(now, since), size, e.load_field(job, JOB, "grain")]
        size.add_incoming(_own(e, "piece", _PIECE, *arguments), b.block)
        since.add_incoming(now, b.block)
        e.branch(take)
        e.at(fail)
        which, why = b.phi(I64, name="piece"), b.phi(I32, name="status")
        for number, reason, block in failures:
            which.add_incoming(number, block)
            why.add_incoming(reason, block)
        _fail(e, job, values, which, why)
        e.branch(end)
        e.at(end)
        e.ret()


def _least(emitter: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    return emitter.select(emitter.icmp("slt", x, y), x, y)


def _most(emitter: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    return emitter.select(emitter.icmp("sgt", x, y), x, y)


def _define_piece(emitter: Emitter) -> None:
    """`i64 ferrule_threads_piece(i64 most, i64 time, i64 number, i64 grain)`: the blocks of a
    piece.

    `number` blocks took `time` nanoseconds.  The result is at most `most`, rounded up to a multiple
    of the grain; for a long grain as many blocks as fit into `LONGEST_GRAIN`, but at least the
    number that still runs in vectors.
    """
    e, names = emitter, ("most", "time", "number", "grain")
    with e.define(
        "ferrule_threads_piece", I64, _PIECE.args, names=names, attributes=_SMALL
    ) as function:
        (most, time, number, grain), b, one = function.args, e.builder, e.const_i64(1)
        each = b.fdiv(b.sitofp(time, _FLOAT), b.sitofp(number, _FLOAT))
        blocks = _most(e, _blocks_in(e, SHARED_PIECE, each, most), one)
        grains = b.sdiv(b.add(blocks, b.sub(grain, one)), grain)
        rounded = b.mul(grains, grain)
        lanes = _most(e, b.lshr(grain, e.const_i64(LANES_SHARE.bit_length() - 1)), one)
        short = _most(e, _blocks_in(e, LONGEST_GRAIN, each, rounded), lanes)
        e.ret(_least(e, rounded, short))


def _blocks_in(emitter: Emitter, time: int, each: ir.Value, most: ir.Value) -> ir.Value:
    """The number of blocks of `each` nanoseconds that end within some time, at most `most`."""
    b = emitter.builder
    # A time of 0 makes this infinite: then the limit is less, and is taken.
    timed, limit = b.fdiv(_float(time), each), b.sitofp(most, _FLOAT)
    return b.fptosi(b.select(b.fcmp_ordered("<", timed, limit), timed, limit), I64)


def _float(number: int) -> ir.Constant:
    return ir.Constant(_FLOAT, float(number))


def _define_share(emitter: Emitter) -> None:
    """`i32 ferrule_threads_share(ptr job, i64 first, i64 time)`: run the blocks from `first` on.

    The blocks before took `time` nanoseconds.  It uses as many threads as may work, and returns the
    status of all.
    """
    e, names = emitter, ("job", "first", "time")
    with e.define(
        "ferrule_threads_share", I32, _SHARE.args, names=names, attributes=_SMALL
    ) as function:
        (job, first, time), b = function.args, e.builder
        e.store_field(job, JOB, "base", first)
        state, sized, alone, together, end = (
            e.load_field(job, JOB, "state"),
            *map(e.block, ("sized", "alone", "together", "end")),
        )
        prepare(e, state, e.load_field(job, JOB, "values"))
        caller = call_found(e, state, "pthread_self", [])
        e.store_field(job, JOB, "caller", caller)
        place = _team(e, state, sized)
        _possible(e, job, caller, place)
        e.branch(sized)
        e.at(sized)
        team, left = e.load(place, I32), b.sub(e.load_field(job, JOB, "count"), first)
        fair = b.sdiv(left, b.mul(b.zext(team, I64), e.const_i64(PIECES_EACH)))
        piece = _own(e, "piece", _PIECE, fair, time, first, e.load_field(job, JOB, "grain"))
        for name, value in (
            ("piece", piece),
            ("next", e.const_i64(0)),
            ("failed", left),
            ("lock", e.const_i32(0)),
            ("status", e.const_i32(DONE)),
        ):
            e.store_field(job, JOB, name, value)
        work = e.symbol("ferrule_threads_work", _WORK)
        e.cond_branch(e.icmp("eq", team, e.const_i32(1)), alone, together)
        e.at(together)
        address = ir.FormattedConstant(PTR, work.get_reference())
        call_found(e, state, "GOMP_parallel", [address, job, team, e.const_i32(0)])
        e.branch(end)
        e.at(alone)
        e.call(work, [job])
        e.branch(end)
        e.at(end)
        e.ret(e.load_field(job, JOB, "status"))


def _define_run(emitter: Emitter) -> None:
    e, names = emitter, ("state", "code", "frame", "values", "count", "piece", "grain")
    with e.define(RUN, I32, RUN_TYPE.args, names=names, attributes=_SMALL) as function:
        job, result, stop = e.alloca(JOB, name="job"), e.alloca(I32, name="result"), e.block("stop")
        for name, value in zip(names, function.args, strict=True):
            e.store_field(job, JOB, name, value)
        first, time = _run_first(e, job, function.args[0], result, stop)
        e.ret(_own(e, "share", _SHARE, job, first, time))
        e.at(stop)
        e.ret(e.load(result, I32))


def _run_first(
    emitter: Emitter, job: ir.Value, state: ir.Value, result: ir.Value, stop: ir.Block
) -> tuple[ir.Value, ir.Value]:
    """Run pieces of doubling size; returns the number of completed blocks and their time.

    Branches to `stop` with a status if all are done or one failed; otherwise distribution is worth
    it.
    """
    e, b = emitter, emitter.builder
    loop, on, measure, again, share = map(e.block, ("loop", "on", "measure", "again", "share"))
    start = _asked(e, state, result, stop)
    piece = e.load_field(job, JOB, "piece")
    unknown = e.icmp("slt", piece, e.const_i64(0))
    clock_first = e.select(unknown, e.const_i32(_COARSE), e.const_i32(_MONOTONIC))
    size_first, least, before = _most(e, piece, e.const_i64(1)), b.neg(piece), b.block
    e.branch(loop)
    e.at(loop)
    first, size = b.phi(I64, name="first"), b.phi(I64, name="size")
    clock = b.phi(I32, name="clock")
    for place, value in ((first, e.const_i64(0)), (size, size_first), (clock, clock_first)):
        place.add_incoming(value, before)
    code, frame, values, count = (
        e.load_field(job, JOB, name) for name in ("code", "frame", "values", "count")
    )
    last = _least(e, b.add(first, size), count)
    status = e.call_pointer(code, CODE, [frame, values, first, last])
    e.store(status, result)
    failed, over = e.icmp("ne", status, e.const_i32(DONE)), e.icmp("eq", last, count)
    e.cond_branch(e.binary("or", failed, over), stop, on)
    e.at(on)
    elapsed = b.sub(_own(e, "now", _NOW, clock), start)
    e.cond_branch(e.icmp("slt", elapsed, e.const_i64(LONG_ENOUGH)), again, measure)
    e.at(measure)
    rest = b.fmul(b.sitofp(elapsed, _FLOAT), b.sitofp(b.sub(count, last), _FLOAT))
    worth = b.fmul(b.sitofp(last, _FLOAT), _float(WORTH_SHARING))
    e.cond_branch(b.fcmp_ordered(">", rest, worth), share, again)
    e.at(again)
    size_next, clock_next = _most(e, last, least), e.const_i32(_MONOTONIC)
    for place, value in ((first, last), (size, size_next), (clock, clock_next)):
        place.add_incoming(value, b.block)
    e.branch(loop)
    e.at(share)
    return last, elapsed


def _asked(emitter: Emitter, state: ir.Value, result: ir.Value, stop: ir.Block) -> ir.Value:
    """Check for signals if it is time, and stop with the status if there was one; returns the time
    after that."""
    e, b = emitter, emitter.builder
    look, ask, begin = map(e.block, ("look", "ask", "begin"))
    e.branch(look)
    e.at(look)
    now = _now(e)  # again after the check, which takes time and is not work
    since = b.sub(now, e.load_field(state, STATE, "asked"))
    e.cond_branch(e.icmp("sge", since, e.const_i64(CHECK_EVERY)), ask, begin)
    e.at(ask)
    ended = _own(e, "signals", SIGNALS_TYPE, state)
    e.store(ended, result)
    e.cond_branch(e.icmp("ne", ended, e.const_i32(DONE)), stop, look)
    e.at(begin)
    return now

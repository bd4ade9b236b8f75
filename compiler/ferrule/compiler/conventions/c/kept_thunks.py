"""Thunks that a C library keeps: they live as long as a handle that the call gives back.

The frame of a kept callback is in memory of its own.  Its thunk finds it through a *slot*, two
words of a table in the object: a state, and the address of the frame.  Without a context there are
`MOST_CALLS` slots, with a thunk each; with a context one thunk and `MOST_CONTEXTS` slots, and the
context is no address but the number of a slot, of its use and of the table, the *token*.

Libraries hand one `void*` to several functions.  So the kept callbacks with a context of a call
are a *group*: they take slots of one number and one use, each in a table of its own, and have one
token.  A thunk that gets the token of another group, which a later call has set, calls nobody: it
returns `on_error`, and its handles say so.

The state has, from bit 32 on, the number of the slot's use, and below the number of those that use
the frame: the handle, and each thunk that runs now; `_CLOSED` says that no more may begin.  Whoever
leaves last releases the frame.  So nobody waits for anybody, a callback may drop its own handle,
and a library may call from any thread while another one drops it.  A call that finds its slot
closed, or in another use, returns `on_error`.

The handle is a function of tvm-ffi, whose resource is the frame.  Calling it raises the callback's
first error since it was last called; the callback then runs again.

A library may call at any time, also when nobody has the handle any more.  So code with kept
callbacks never leaves the process: an `Engine` that finds `KEPT` in an object stays, and a shared
library is marked so when the first callback is kept.  A process that has had Python may outlive
it, and libraries call at the very end: a callback of then returns `on_error`, too.
"""

from __future__ import annotations

import collections.abc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, literal
from ferrule.compiler.conventions.c.thunks import (
    CLAIMED,
    ERROR,
    FUNCTION,
    MOST_CALLS,
    SLOT,
    STATUS,
    Thunks,
)
from ferrule.compiler.host.flow import number_of
from ferrule.compiler.messages import catalogue
from ferrule.compiler.messages.support import RAISE
from ferrule.compiler.messages.table import Table
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.linking.engine import KEPT
from ferrule.runtime.llvm.layouts import ANY, I32, I64, PTR, VOID

if TYPE_CHECKING:
    from ferrule.compiler.conventions.base import Call
    from ferrule.compiler.conventions.c.callbacks import Callback

MOST_CONTEXTS: Final = 1024
"""The handles of one callback with a context that can be there at the same time."""

_TOKEN, _ALIVE, _WORDS = 6, 7, 8
"""Behind the other words of a frame: the token; Python's function that says whether Python runs, if
it did when the callback was kept, else null."""
# The state of a slot: the users are in the lowest 31 bits, then this one, and above the number of
# the use, which a slot counts up each time that it is taken.
_CLOSED: Final = 1 << 31
_USES: Final = 1 << 32
# A token, from the lowest bit on: the place in the table, the use of this place, a tag of both.
_INDEX_BITS: Final = 10
_USE_BITS: Final = 32
_TAG_BITS: Final = 64 - _INDEX_BITS - _USE_BITS
_SPREAD: Final = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the high bits of a product with it differ for near numbers."""
_ANY_USE: Final = 0
"""The use that a thunk without a context knows; real ones begin at 1."""
_NO_THUNK, _NO_MEMORY = 1, 2
_RTLD_NOW_NOLOAD_NODELETE: Final = 0x2 | 0x4 | 0x1000  # dlfcn.h of glibc and musl
_IS_RUNNING: Final = ir.FunctionType(I32, [])
_SAFE_CALL: Final = (PTR, PTR, I32, PTR)


class KeptThunks(Thunks):
    """The functions of one kept callback in a body."""

    def __init__(self, call: Call, callback: Callback, number: int) -> None:
        super().__init__(call, callback, number)
        self.count: Final = MOST_CALLS if callback.context is None else MOST_CONTEXTS
        self.slots: Final = self._global(f"{KEPT}.{number}", ir.ArrayType(I64, 2 * self.count))
        self.foreign: Final = self._global(f"{self.name}.foreign", I64)

    def make(self, function: ir.Value) -> ir.Value:
        """The handle of a function, which is one of the call's objects; returns the frame, which
        has no slot yet."""
        e, call = self.call.emitter, self.call
        place = e.index(call.handles, PTR, call.owned)
        call.owned += 1
        frames = e.alloca(PTR, name="frame")
        status = e.call(self._keep_function(), [function, place, frames])
        call.require(status, self._faults())
        call.kept_callbacks[id(self.callback)] = e.load(place, PTR, name="handle")
        return e.load(frames, PTR, name="frame")

    def opened(self, frame: ir.Value, leader: KeptThunks) -> tuple[ir.Value, ir.Value]:
        """The thunk for a frame that has a slot, and the context for it."""
        e = self.call.emitter
        self.call.checks.append(lambda: self._require(frame))
        token = e.load(e.index(frame, I64, _TOKEN), I64)
        if self.callback.context is not None:
            return self._thunk_of_token(leader), e.builder.inttoptr(token, PTR)
        return self._thunk_at(token), frame

    def _faults(self) -> list[Fault]:
        name, what = literal(self.callback.name), "without a context "
        if self.callback.context is not None:
            what = ""
        text = (
            f"{name} has {self.count} handles, as many as there can be {what}at the same time: "
            f"drop those that are not needed"
        )
        memory = f"there is no memory for {name}"
        return [Fault("RuntimeError", text), Fault("MemoryError", memory)]

    def claimed(self, frames: collections.abc.Sequence[ir.Value], all_: list[KeptThunks]) -> None:
        """Take slots for the frames of a group, or end the call."""
        e = self.call.emitter
        place = e.alloca(PTR, len(frames), name="group")
        for i, frame in enumerate(frames):
            e.store(frame, e.index(place, PTR, i))
        status = e.call(self._claim(all_), [place])
        self.call.require(status, self._faults())

    def _require(self, frame: ir.Value) -> None:
        """End the call with an error that the callback has had meanwhile."""
        e = self.call.emitter
        with e.if_then(self._was_foreign(), likely=False):
            self._raise_foreign()
            self.call.fail(ir.Constant(I32, RAISED))
        with e.if_then(self._has_error(frame), likely=False):
            self._raise(frame)
            self.call.fail(ir.Constant(I32, RAISED))

    def _has_error(self, frame: ir.Value) -> ir.Value:
        e = self.call.emitter
        status = e.builder.load_atomic(e.index(frame, I64, STATUS), "acquire", 8, typ=I64)
        return e.icmp("ne", status, e.const_i64(0))

    def _raise(self, frame: ir.Value) -> None:
        """Set the error of a frame, which stays there."""
        e = self.call.emitter
        error = e.load(e.index(frame, I64, ERROR), PTR)
        with e.builder.if_else(e.is_null(error), likely=False) as (without, with_one):
            with without:
                texts = "RuntimeError", f"{self.callback.name} failed"
                e.call("TVMFFIErrorSetRaisedFromCStr", [e.cstring(text) for text in texts])
            with with_one:
                e.call("TVMFFIErrorSetRaised", [error])

    # ---- thunks ----

    def _thunk_of_token(self, leader: KeptThunks) -> ir.Function:
        e, position = self.call.emitter, self.callback.context
        assert position is not None
        with self._define(f"{self.name}.thunk", self.types) as function:
            given = list(function.args)
            token = e.builder.ptrtoint(given.pop(position), I64)
            tag = e.builder.lshr(token, e.const_i64(_INDEX_BITS + _USE_BITS))
            index = self._index(token)
            other = e.icmp("ne", tag, leader._tag())
            outside = e.icmp("uge", index, e.const_i64(self.count))
            with e.if_then(e.binary("or", other, outside), likely=False):
                e.builder.atomic_rmw("xchg", self.foreign, e.const_i64(1), "release")
                self._ret_after_error()
            use = e.builder.lshr(token, e.const_i64(_INDEX_BITS))
            use = e.builder.and_(use, e.const_i64(_USES - 1))
            self._ret(e.call(self._through(), [index, use, *given]))
        return function

    def _tag(self) -> ir.Value:
        """A number that tells the groups of a process apart: from the address of the slots."""
        e = self.call.emitter
        place = e.builder.ptrtoint(self.slots, I64)
        spread = e.builder.mul(place, e.const_i64(_SPREAD - (1 << 64)))
        return e.builder.lshr(spread, e.const_i64(64 - _TAG_BITS))

    def _index(self, token: ir.Value) -> ir.Value:
        e = self.call.emitter
        return e.builder.and_(token, e.const_i64((1 << _INDEX_BITS) - 1))

    def _thunk_at(self, token: ir.Value) -> ir.Value:
        """The thunk of a slot, from a table of them."""
        e = self.call.emitter
        thunks = [self._thunk_number(number) for number in range(self.count)]
        table = self._global(f"{self.name}.thunks", ir.ArrayType(PTR, self.count))
        table.initializer = ir.Constant(
            table.value_type,
            [ir.FormattedConstant(PTR, each.get_reference()) for each in thunks],
        )
        table.global_constant = True
        return e.load(e.index(table, PTR, self._index(token)), PTR, name="thunk")

    def _thunk_number(self, number: int) -> ir.Function:
        e = self.call.emitter
        with self._define(f"{self.name}.thunk{number}", self.types) as function:
            which = [e.const_i64(number), e.const_i64(_ANY_USE)]
            self._ret(e.call(self._through(), [*which, *function.args]))
        return function

    def _through(self) -> ir.Function:
        """A function that calls the function of a slot in one of its uses, if that is there."""
        known = self._known("through")
        if known is not None:
            return known
        e, body, enter, leave = self.call.emitter, self._body(), self._enter(), self._leave()
        types = [kind for i, kind in enumerate(self.types) if i != self.callback.context]
        with self._define(f"{self.name}.through", [I64, I64, *types]) as function:
            function.attributes.add("noinline")
            index, use, *given = function.args
            slot = self._slot(index)
            frame = e.call(enter, [slot, use])
            with e.if_then(e.is_null(frame), likely=False):
                self._ret_after_error()
            with e.if_then(self._python_has_ended(frame), likely=False):
                e.call(leave, [slot])
                self._ret_after_error()
            value = e.call(body, [frame, *given])
            e.call(leave, [slot])
            self._ret(value)
        return function

    def _python_has_ended(self, frame: ir.Value) -> ir.Value:
        """Whether Python, whose function this may be, has ended since the callback was kept."""
        e, ended = self.call.emitter, self.call.emitter.alloca(I32, name="ended")
        e.store(e.const_i32(0), ended)
        ask = e.load(e.index(frame, I64, _ALIVE), PTR)
        with e.if_then(e.not_(e.is_null(ask))):
            runs = e.call_pointer(ask, _IS_RUNNING, [])
            e.store(e.builder.zext(e.icmp("eq", runs, e.const_i32(0)), I32), ended)
        return e.icmp("ne", e.load(ended, I32), e.const_i32(0))

    # ---- slots ----

    def _slot(self, index: ir.Value) -> ir.Value:
        e = self.call.emitter
        return e.index(self.slots, I64, e.builder.shl(index, e.const_i64(1)))

    def _enter(self) -> ir.Function:
        """`ptr enter(ptr slot, i64 use)`: the frame, which is used from now on; or null."""
        e = self.call.emitter
        with self._function("enter", PTR, [PTR, I64], ["slot", "use"]) as function:
            slot, use = function.args
            again = e.block("again")
            e.branch(again)
            e.at(again)
            state = e.builder.load_atomic(slot, "acquire", 8, typ=I64)
            low = e.builder.and_(state, e.const_i64(_USES - 1))
            # Free, or closed: the bit for that is above every number of users.
            gone = e.icmp("uge", e.builder.sub(low, e.const_i64(1)), e.const_i64(_CLOSED - 1))
            other = e.icmp("ne", e.builder.lshr(state, e.const_i64(32)), use)
            other = e.binary("and", other, e.icmp("ne", use, e.const_i64(_ANY_USE)))
            with e.if_then(e.binary("or", gone, other), likely=False):
                e.ret(e.null())
            more = e.builder.add(state, e.const_i64(1))
            taken = e.builder.cmpxchg(slot, state, more, "acq_rel", "monotonic")
            inside = e.block("inside")
            e.cond_branch(e.builder.extract_value(taken, 1), inside, again)
            e.at(inside)
            e.ret(e.load(e.index(slot, I64, 1), PTR))
        return function

    def _leave(self) -> ir.Function:
        """`void leave(ptr slot)`: the last one releases the frame."""
        known = self._known("leave")
        if known is not None:
            return known
        e = self.call.emitter
        with self._function("leave", VOID, [PTR], ["slot"]) as function:
            (slot,) = function.args
            before = e.builder.atomic_rmw("sub", slot, e.const_i64(1), "acq_rel")
            users = e.builder.and_(before, e.const_i64(_CLOSED - 1))
            with e.if_then(e.icmp("ne", users, e.const_i64(1))):
                e.ret()
            frame = e.load(e.index(slot, I64, 1), PTR)
            e.builder.atomic_rmw("and", slot, e.const_i64(-_USES), "release")
            self._release(frame)
            e.ret()
        return function

    def _release(self, frame: ir.Value) -> None:
        e = self.call.emitter
        for word in (FUNCTION, ERROR):
            held = e.load(e.index(frame, I64, word), PTR)
            with e.if_then(e.not_(e.is_null(held))):
                e.call("TVMFFIObjectDecRef", [held])
        e.call("free", [frame])

    def _claim(self, group: list[KeptThunks]) -> ir.Function:
        """`i32 claim(ptr frames)`: takes a free slot of one number in the table of each of a group,
        whose frames learn it; searched from another number each time, so that a slot is free for
        long before it is used again.  The use is counted by the first table."""
        e = self.call.emitter
        following = self._global(f"{self.name}.next", I64)
        with self._function("claim", I32, [PTR], ["frames"]) as function:
            (frames,) = function.args
            if self.callback.context is None:  # an absent function needs none of the few
                held = e.load(e.index(e.load(frames, PTR), I64, FUNCTION), PTR)
                with e.if_then(e.is_null(held)):
                    e.ret(e.const_i32(0))
            first = e.builder.atomic_rmw("add", following, e.const_i64(1), "monotonic")
            with e.loop(e.const_i64(self.count)) as i:
                index = e.builder.urem(e.builder.add(first, i), e.const_i64(self.count))
                self._claim_at(index, frames, group)
            e.ret(e.const_i32(_NO_THUNK))
        return function

    def _claim_at(self, index: ir.Value, frames: ir.Value, group: list[KeptThunks]) -> None:
        """Return 0 if the slots of this number are free; leave all of them as they are if not."""
        e, mine = self.call.emitter, self._slot(index)
        behind = e.block("taken")
        before = e.builder.load_atomic(mine, "monotonic", 8, typ=I64)
        use = e.builder.lshr(e.builder.add(before, e.const_i64(_USES)), e.const_i64(32))
        # Closed until the frames are there.
        closed = e.builder.shl(use, e.const_i64(32))
        closed = e.builder.or_(closed, e.const_i64(_CLOSED + 1))
        done: list[tuple[ir.Value, ir.Value]] = []
        for each in group:
            slot = each._slot(index)
            state = before if each is self else e.builder.load_atomic(slot, "monotonic", 8, typ=I64)
            self._if_free(slot, state, closed, done, behind)
            done.append((slot, state))
        high = e.builder.shl(use, e.const_i64(_INDEX_BITS))
        tag = e.builder.shl(self._tag(), e.const_i64(_INDEX_BITS + _USE_BITS))
        token = e.builder.or_(tag, e.builder.or_(high, index))
        for i, (slot, _) in enumerate(done):
            frame = e.load(e.index(frames, PTR, i), PTR)
            e.store(token, e.index(frame, I64, _TOKEN))
            e.store(slot, e.index(frame, I64, SLOT))
            e.store(frame, e.index(slot, I64, 1))
        for slot, _ in done:
            e.builder.atomic_rmw("and", slot, e.const_i64(~_CLOSED), "release")
        e.ret(e.const_i32(0))
        e.at(behind)

    def _if_free(
        self,
        slot: ir.Value,
        state: ir.Value,
        closed: ir.Value,
        done: collections.abc.Sequence[tuple[ir.Value, ir.Value]],
        otherwise: ir.Block,
    ) -> None:
        """Close a slot and go on.  If it is in use, open all slots of `done` again, and branch."""
        e = self.call.emitter
        low = e.builder.and_(state, e.const_i64(_USES - 1))
        swap, back, taken = e.block("swap"), e.block("back"), e.block("closed")
        e.cond_branch(e.icmp("eq", low, e.const_i64(0)), swap, back)
        e.at(swap)
        swapped = e.builder.cmpxchg(slot, state, closed, "acq_rel", "monotonic")
        e.cond_branch(e.builder.extract_value(swapped, 1), taken, back)
        e.at(back)
        for other, earlier in done:
            e.builder.atomic_rmw("xchg", other, earlier, "release")
        e.branch(otherwise)
        e.at(taken)

    # ---- the handle ----

    def _keep_function(self) -> ir.Function:
        """`i32 keep(ptr function, ptr place, ptr frames)`: a handle at the place, and its frame.

        The status is that of `_faults`, or `RAISED`.  An absent function is null.
        """
        e = self.call.emitter
        ask, dispose = self._ask(), self._dispose()
        names = ["function", "place", "frames"]
        with self._function("keep", I32, [PTR, PTR, PTR], names) as keep:
            function, place, frames = keep.args
            self._pin(ask)
            frame = e.call("malloc", [e.const_i64(8 * _WORDS)])
            with e.if_then(e.is_null(frame), likely=False):
                e.ret(e.const_i32(_NO_MEMORY))
            e.store(function, frame)  # first: LLVM makes a calloc of zeros alone
            for word in range(1, _WORDS):
                e.store(e.const_i64(0), e.index(frame, I64, word))
            e.store(frame, frames)
            self._find_python(frame)
            with e.if_then(e.not_(e.is_null(function))):
                e.call("TVMFFIObjectIncRef", [function])
            made = e.call("TVMFFIFunctionCreate", [frame, ask, dispose, place])
            with e.if_then(e.icmp("ne", made, e.const_i32(0)), likely=False):
                e.store(e.null(), place)
                e.call(dispose, [frame])
                e.ret(ir.Constant(I32, RAISED))
            e.ret(e.const_i32(0))
        return keep

    def _find_python(self, frame: ir.Value) -> None:
        e = self.call.emitter
        find = e.call("dlsym", [e.null(), e.cstring("Py_IsInitialized")], "python")
        with e.if_then(e.not_(e.is_null(find))):
            runs = e.call_pointer(find, _IS_RUNNING, [])
            with e.if_then(e.icmp("ne", runs, e.const_i32(0))):
                e.store(find, e.index(frame, I64, _ALIVE))

    def _dispose(self) -> ir.Function:
        """`void dispose(ptr frame)`: the handle is gone."""
        e, leave = self.call.emitter, self._leave()
        with self._function("dispose", VOID, [PTR], ["frame"]) as function:
            (frame,) = function.args
            slot = e.load(e.index(frame, I64, SLOT), PTR)
            with e.if_then(e.is_null(slot)):
                self._release(frame)
                e.ret()
            e.builder.atomic_rmw("or", slot, e.const_i64(_CLOSED), "acq_rel")
            e.call(leave, [slot])
            e.ret()
        return function

    def _ask(self) -> ir.Function:
        """The handle's own function, of tvm-ffi's C type: the first error since the last time."""
        e = self.call.emitter
        names = ["frame", "args", "num_args", "result"]
        with self._function("ask", I32, _SAFE_CALL, names) as function:
            frame, _, count, result = function.args
            with e.if_then(e.icmp("ne", count, e.const_i32(0)), likely=False):
                said = f"the handle of {self.callback.name} takes no arguments"
                texts = [e.cstring("TypeError"), e.cstring(said)]
                e.call("TVMFFIErrorSetRaisedFromCStr", texts)
                e.ret(e.const_i32(-1))
            e.store_field(result, ANY, "head", e.const_i64(TypeIndex.NONE))
            e.store_field(result, ANY, "v_int64", e.const_i64(0))
            with e.if_then(self._was_foreign(), likely=False):
                self._raise_foreign()
                e.ret(e.const_i32(-1))
            place = e.index(frame, I64, STATUS)
            # An exchange: of two threads that ask at once only one gets the error.
            status = e.builder.atomic_rmw("xchg", place, e.const_i64(0), "acq_rel")
            with e.if_then(e.icmp("eq", status, e.const_i64(0))):
                e.ret(e.const_i32(0))
            self._raise(frame)
            error = e.load(e.index(frame, I64, ERROR), PTR)
            e.store(e.null(), e.index(frame, I64, ERROR))
            claimed = e.index(frame, I64, CLAIMED)
            # Last, as from here on a callback may keep another error in the frame.
            e.builder.atomic_rmw("xchg", claimed, e.const_i64(0), "release")
            with e.if_then(e.not_(e.is_null(error))):
                e.call("TVMFFIObjectDecRef", [error])
            e.ret(e.const_i32(-1))
        return function

    def _pin(self, inside: ir.Function) -> None:
        """Keep the shared library that the code is in, if it is in one, in the process."""
        e = self.call.emitter
        done = self._global(f"{self.name}.stays", I64)
        before = e.builder.atomic_rmw("xchg", done, e.const_i64(1), "monotonic")
        with e.if_then(e.icmp("eq", before, e.const_i64(0)), likely=False):
            find = e.call("dlsym", [e.null(), e.cstring("dladdr")], "dladdr")
            with e.if_then(e.not_(e.is_null(find))):
                # `Dl_info` of dlfcn.h: four pointers, of which the first is to the path of the
                # file.
                info = e.alloca(PTR, 4, name="info")
                kind = ir.FunctionType(I32, [PTR, PTR])
                found = e.call_pointer(find, kind, [inside, info])
                with e.if_then(e.icmp("ne", found, e.const_i32(0))):
                    mode = e.const_i32(_RTLD_NOW_NOLOAD_NODELETE)
                    e.call("dlopen", [e.load(info, PTR), mode])

    # ---- errors ----

    def _was_foreign(self) -> ir.Value:
        """Whether C has called with a context that is none of this callback, since last asked."""
        e = self.call.emitter
        was = e.builder.atomic_rmw("xchg", self.foreign, e.const_i64(0), "acq_rel")
        return e.icmp("ne", was, e.const_i64(0))

    def _raise_foreign(self) -> None:
        e = self.call.emitter
        said = (
            f"C called {self.callback.name} with the context of another call: a library that has "
            f"one void* for several functions gets all of them in one call"
        )
        texts = [e.cstring("RuntimeError"), e.cstring(said)]
        e.call("TVMFFIErrorSetRaisedFromCStr", texts)

    def _keep_fault(
        self, frame: ir.Value, value: ir.Value, *faults: Fault, status: ir.Value | None = None
    ) -> None:
        """As an error, since there is no call that would make one of a fault's number."""
        e, table = self.call.emitter, Table()
        for each in faults:
            self.call.fault(each)  # the wrapper brings what its message needs
            table.add(catalogue.body_fault(each))
        number = e.const_i32(1) if status is None else status
        values = e.alloca(I64, name="shown")
        e.store(value, values)
        number = e.builder.sub(number_of(e, number, range(1, len(faults) + 1)), e.const_i32(1))
        given = [e.bytes_constant(table.data()), number, e.null(), e.const_i32(0), values]
        e.call(e.symbol("ferrule_raise", RAISE), given)
        self._keep_raised(frame)

    # ---- definitions ----

    def _global(self, name: str, kind: ir.Type) -> ir.GlobalVariable:
        """A variable of the object that is zero at first."""
        variable = ir.GlobalVariable(self.call.emitter.module, kind, name)
        variable.linkage, variable.initializer = "internal", ir.Constant(kind, None)
        variable.align, variable.type = 8, PTR
        return variable

    def _known(self, name: str) -> ir.Function | None:
        found: ir.Function | None = self.call.emitter.module.globals.get(f"{self.name}.{name}")
        return found

    @contextmanager
    def _function(
        self,
        name: str,
        result: ir.Type,
        arguments: collections.abc.Sequence[ir.Type],
        names: collections.abc.Sequence[str],
    ) -> collections.abc.Iterator[ir.Function]:
        with self.call.emitter.define(
            f"{self.name}.{name}", result, arguments, names=names, linkage="internal",
            attributes=("nounwind", "noinline"),
        ) as function:  # fmt: skip
            yield function


def open_group(
    call: Call, callbacks: collections.abc.Sequence[tuple[Callback, ir.Value]]
) -> list[tuple[ir.Value, ir.Value]]:
    """The thunks of kept callbacks for these functions, and their one context.

    One without a context is a group of its own, and has no slot if its function is null.
    """
    first = len(call.callbacks)
    group = [KeptThunks(call, each, first + i) for i, (each, _) in enumerate(callbacks)]
    pairs = zip(group, (function for _, function in callbacks), strict=True)
    frames = [each.make(function) for each, function in pairs]
    leader = group[0]
    leader.claimed(frames, group)
    return [each.opened(frame, leader) for each, frame in zip(group, frames, strict=True)]

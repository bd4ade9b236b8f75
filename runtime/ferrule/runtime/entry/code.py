"""The code of a direct entry: bind, read, call the wrapper, give its result or its error.

The entry is a vectorcall function, `ptr (self, args, nargsf, kwnames)`. Its hot path is straight:
what it cannot read goes to the gate with the arguments as they came, before anything has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import SYMBOL_PREFIX, TypeIndex
from ferrule.runtime.entry.key import EntryKey
from ferrule.runtime.entry.python import FALSE, NONE, TRUE, VECTORCALL, incref, near, python
from ferrule.runtime.entry.readers import Form, Reader
from ferrule.runtime.entry.structs import NO_DEVICE, PLAN, STATE, UNUSED_DEVICE
from ferrule.runtime.entry.support import BIND, BIND_TYPE, FINISH, RAISE
from ferrule.runtime.entry.values import Frame, read_tensors, read_value
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, I32, PTR, Layout

ENTRY_NAME: Final = "entry"

GATE: Final = "ferrule_gate"
"""The gate that the entry hands other calls to."""

UNPACK: Final = "ferrule_unpack"
"""`ptr (container)`: a tuple or list of it, a new reference."""

SET_ALLOCATOR: Final = "TVMFFIEnvSetDLPackManagedTensorAllocator"

_WRAPPER: Final = ir.FunctionType(I32, [PTR, PTR, I32, PTR])


def entry_text(
    readers: Sequence[Reader],
    key: EntryKey,
    instance: Layout,
    triple: str,
    *,
    compact_ints: bool = True,
) -> str:
    """The entry as LLVM IR, which reads its arguments with `readers`.

    `instance` is the layout of the callable. `compact_ints`: whether short ints are where
    `compact_int` reads them.
    """
    e = Emitter("ferrule.entry", triple)
    names = ("self", "args", "nargsf", "kwnames")
    entry = e.declare(SYMBOL_PREFIX + ENTRY_NAME, PTR, VECTORCALL.args, names=names)
    with e.body(entry):
        _Entry(e, readers, key, instance, compact_ints).emit(*entry.args)
    return e.text()


@dataclass(slots=True)
class _Entry:
    e: Emitter
    readers: Sequence[Reader]
    key: EntryKey
    instance: Layout
    compact_ints: bool

    def emit(self, me: ir.Value, args: ir.Value, nargsf: ir.Value, kwnames: ir.Value) -> None:
        e, count = self.e, self.e.const_i64(len(self.readers))
        refused = e.block("refused")
        self._require_plain(me, args, nargsf, kwnames)
        plan = e.load_field(me, self.instance, "plan")
        state = e.alloca(STATE, name="state")
        e.store_field(state, STATE, "framework", e.null())
        device = NO_DEVICE if self.key.uses_stream else UNUSED_DEVICE
        e.store_field(state, STATE, "device", e.const_i64(device))
        frame = Frame(e, self.instance, state, refused, self.compact_ints)
        packed = self._read(frame, args)
        result = e.alloca(ANY, name="result")
        e.store_field(result, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(result, ANY, "v_int64", e.const_i64(0))
        status = self._call(me, plan, packed, state, result)
        self._finish(frame, status, result)
        with e.within(refused):
            self._release(frame)
            self._leave_to(near(e, GATE, VECTORCALL), [me, args, count, e.null()])

    def _require_plain(
        self, me: ir.Value, args: ir.Value, nargsf: ir.Value, kwnames: ir.Value
    ) -> None:
        """Go on with a value for each parameter, by position; a call of another form leaves here.

        Whoever keeps the call plan must still be there.
        """
        e = self.e
        gone, kept, bind, ready = (e.block(name) for name in ("gone", "kept", "bind", "ready"))
        handle = e.load_field(me, self.instance, "handle")
        owner = e.load_field(me, self.instance, "owner")
        e.cond_branch(e.icmp("eq", handle, owner), kept, gone, LIKELY)
        e.at(kept)
        # The highest bit is a flag of the vectorcall protocol, not a part of the number.
        given = e.binary("shl", nargsf, e.const_i64(1))
        all_given = e.icmp("eq", given, e.const_i64(2 * len(self.readers)))
        plain = e.binary("and", all_given, e.is_null(kwnames))
        e.cond_branch(plain, ready, bind, LIKELY)
        gate = near(e, GATE, VECTORCALL)
        with e.within(gone):
            self._leave_to(gate, [me, args, nargsf, kwnames])
        with e.within(bind):
            self._leave_to(near(e, BIND, BIND_TYPE), [me, args, nargsf, kwnames, gate])
        e.at(ready)

    def _leave_to(self, function: ir.Function, arguments: Sequence[ir.Value]) -> None:
        """Return what another function gives; nothing of this call's stack is needed for it."""
        self.e.ret(self.e.tail_call(function, arguments))

    # ---- arguments ----

    def _read(self, frame: Frame, values: ir.Value) -> ir.Value:
        e, count = self.e, len(self.readers)
        packed = e.alloca(ANY, max(1, count), name="packed")
        for reader, first, number in _runs(self.readers):
            args, outs = e.index(values, PTR, first), e.index(packed, ANY, first)
            if number > 1:
                read_tensors(frame, reader, args, outs, number)
            else:
                read_value(frame, reader, e.load(args, PTR), outs)
        return packed

    # ---- the call ----

    def _call(
        self, me: ir.Value, plan: ir.Value, packed: ir.Value, state: ir.Value, result: ir.Value
    ) -> ir.Value:
        """Call the wrapper, with the surroundings that it can ask for; its status."""
        e, count = self.e, len(self.readers)
        code = e.load_field(plan, PLAN, "code")
        self._enter(state)
        released = e.load_field(me, self.instance, "release_gil")
        keep, release, call = e.builder.block, e.block("release"), e.block("call")
        e.cond_branch(e.icmp("ne", released, e.const_i32(0)), release, call)
        e.at(release)
        saved = python(e, "PyEval_SaveThread")
        e.branch(call)
        e.at(call)
        thread = e.builder.phi(PTR, name="thread")
        thread.add_incoming(e.null(), keep)
        thread.add_incoming(saved, release)
        arguments = [e.null(), packed, e.const_i32(count), result]
        status = e.call_pointer(code, _WRAPPER, arguments, name="status")
        with e.if_then(e.not_(e.is_null(thread))):
            python(e, "PyEval_RestoreThread", thread)
        self._leave(state)
        return status

    @property
    def _knows_torch(self) -> bool:
        return any(map(_reads_torch, self.readers))

    def _enter(self, state: ir.Value) -> None:
        """The framework's stream and allocator become those of the thread.

        tvm-ffi knows no way in which setting them fails.
        """
        e = self.e
        if self.key.uses_stream and self._knows_torch:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.field_ptr(state, STATE, "former_stream")
                self._set_stream(device, e.load_field(state, STATE, "stream"), former)
        if self.key.allocates and self._knows_torch:
            with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "framework")))):
                former = e.field_ptr(state, STATE, "former_allocator")
                self._set_allocator(e.external("torch_allocator"), former)

    def _leave(self, state: ir.Value) -> None:
        e = self.e
        if self.key.uses_stream and self._knows_torch:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.load_field(state, STATE, "former_stream")
                self._set_stream(device, former, e.null())
        if self.key.allocates and self._knows_torch:
            with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "framework")))):
                former = e.load_field(state, STATE, "former_allocator")
                self._set_allocator(former, e.null())

    def _set_stream(self, device: ir.Value, stream: ir.Value, former: ir.Value) -> None:
        e, b = self.e, self.e.builder
        kind, index = b.trunc(device, I32), b.trunc(b.lshr(device, e.const_i64(32)), I32)
        e.call("TVMFFIEnvSetStream", [kind, index, stream, former])

    def _set_allocator(self, allocator: ir.Value, former: ir.Value) -> None:
        e = self.e
        function = near(e, SET_ALLOCATOR, ir.FunctionType(I32, [PTR, I32, PTR]))
        e.call(function, [allocator, e.const_i32(0), former])

    # ---- what comes back ----

    def _finish(self, frame: Frame, status: ir.Value, result: ir.Value) -> None:
        """Return the result in Python, or raise the error that is set."""
        e = self.e
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            # Letting go of objects can run code that sets another error: raise first.
            nothing = e.call(near(e, RAISE, ir.FunctionType(PTR, [])), [])
            self._release(frame)
            e.ret(nothing)
        index = e.load_field(result, ANY, "type_index")
        for kind in (TypeIndex.NONE, TypeIndex.INT, TypeIndex.FLOAT, TypeIndex.BOOL):
            with e.if_then(e.icmp("eq", index, e.const_i32(kind))):
                made = self._plain(kind, result)
                self._release(frame)
                e.ret(made)
        framework = e.load_field(frame.state, STATE, "framework")
        finish = near(e, FINISH, ir.FunctionType(PTR, [PTR, PTR]))
        found = e.call(finish, [result, framework])
        self._release(frame)
        if self.key.unpacks:
            found = self._unpacked(found)
        e.ret(found)

    def _plain(self, kind: TypeIndex, result: ir.Value) -> ir.Value:
        e = self.e
        match kind:
            case TypeIndex.INT:
                return python(e, "PyLong_FromLongLong", e.load_field(result, ANY, "v_int64"))
            case TypeIndex.FLOAT:
                return python(e, "PyFloat_FromDouble", e.load_field(result, ANY, "v_float64"))
            case TypeIndex.BOOL:
                truth = e.icmp("ne", e.load_field(result, ANY, "v_int64"), e.const_i64(0))
                made = e.select(truth, e.external(TRUE), e.external(FALSE))
            case _:
                made = e.external(NONE)
        incref(e, made)
        return made

    def _unpacked(self, packed: ir.Value) -> ir.Value:
        e = self.e
        with e.if_then(e.is_null(packed), likely=False):
            e.ret(e.null())
        found = e.call(near(e, UNPACK, ir.FunctionType(PTR, [PTR])), [packed])
        python(e, "Py_DecRef", packed)
        return found

    def _release(self, frame: Frame) -> None:
        """Let go of the objects that the call made."""
        e = self.e
        for slot in frame.temps:
            made = e.load(slot, PTR)
            with e.if_then(e.not_(e.is_null(made)), likely=False):
                e.call("TVMFFIObjectDecRef", [made])


def _reads_torch(reader: Reader) -> bool:
    return Form.TORCH in reader.forms or any(map(_reads_torch, reader.items))


def _runs(readers: Sequence[Reader]) -> Iterator[tuple[Reader, int, int]]:
    """Readers with their first position; those of tensors that stand side by side as one."""
    first = 0
    for reader, group in groupby(readers):
        number = len(list(group))
        if reader.borrows_only:
            yield reader, first, number
        else:
            yield from ((reader, first + i, 1) for i in range(number))
        first += number

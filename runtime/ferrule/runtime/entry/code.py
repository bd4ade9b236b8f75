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
from ferrule.runtime.entry.python import FALSE, NONE, TRUE, incref, near, python
from ferrule.runtime.entry.readers import Form, Reader
from ferrule.runtime.entry.structs import NO_DEVICE, PLAN, STATE, UNUSED_DEVICE
from ferrule.runtime.entry.support import BIND, FINISH, RAISE
from ferrule.runtime.entry.values import Frame, read_tensors, read_value
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, I32, I64, PTR, Layout

ENTRY_NAME: Final = "entry"

GATE: Final = "ferrule_gate"
"""The gate that the entry hands other calls to."""

UNPACK: Final = "ferrule_unpack"
"""`ptr (container)`: a tuple or list of it, a new reference."""

SET_ALLOCATOR: Final = "TVMFFIEnvSetDLPackManagedTensorAllocator"

_VECTORCALL: Final = ir.FunctionType(PTR, [PTR, PTR, I64, PTR])
_WRAPPER: Final = ir.FunctionType(I32, [PTR, PTR, I32, PTR])


def entry_text(readers: Sequence[Reader], key: EntryKey, instance: Layout, triple: str) -> str:
    """The entry as LLVM IR, which reads its arguments with `readers`.

    `instance` is the layout of the callable.
    """
    e = Emitter("ferrule.entry", triple)
    names = ("self", "args", "nargsf", "kwnames")
    entry = e.declare(SYMBOL_PREFIX + ENTRY_NAME, PTR, _VECTORCALL.args, names=names)
    with e.body(entry):
        _Entry(e, readers, key, instance).emit(*entry.args)
    return e.text()


@dataclass(slots=True)
class _Entry:
    e: Emitter
    readers: Sequence[Reader]
    key: EntryKey
    instance: Layout

    def emit(self, me: ir.Value, args: ir.Value, nargsf: ir.Value, kwnames: ir.Value) -> None:
        e = self.e
        early, refused = e.block("early"), e.block("refused")
        plan = self._plan(me, early)
        values = self._values(plan, args, nargsf, kwnames, early)
        state = e.alloca(STATE, name="state")
        e.store_field(state, STATE, "framework", e.null())
        device = NO_DEVICE if self.key.traits.uses_stream else UNUSED_DEVICE
        e.store_field(state, STATE, "device", e.const_i64(device))
        frame = Frame(e, self.instance, state, refused)
        packed = self._read(frame, values)
        result = e.alloca(ANY, name="result")
        e.store_field(result, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(result, ANY, "v_int64", e.const_i64(0))
        status = self._call(plan, packed, state, result)
        self._finish(frame, status, result)
        with e.within(refused):
            self._release(frame)
            e.branch(early)
        with e.within(early):
            e.ret(e.call(near(e, GATE, _VECTORCALL), [me, args, nargsf, kwnames]))

    def _plan(self, me: ir.Value, early: ir.Block) -> ir.Value:
        """The call plan; the one who keeps it must still be there."""
        e = self.e
        handle = e.load_field(me, self.instance, "handle")
        owner = e.load_field(me, self.instance, "owner")
        kept = e.block("kept")
        e.cond_branch(e.icmp("eq", handle, owner), kept, early, LIKELY)
        e.at(kept)
        return e.load_field(me, self.instance, "plan")

    def _values(
        self,
        plan: ir.Value,
        args: ir.Value,
        nargsf: ir.Value,
        kwnames: ir.Value,
        early: ir.Block,
    ) -> ir.Value:
        """The address of the arguments in the order of the parameters, borrowed."""
        e, count = self.e, len(self.readers)
        # The highest bit is a flag of the vectorcall protocol, not a part of the number.
        given = e.binary("and", nargsf, e.const_i64((1 << 63) - 1))
        all_given = e.icmp("eq", given, e.const_i64(count))
        plain = e.binary("and", all_given, e.is_null(kwnames))
        here, bind, ready = e.builder.block, e.block("bind"), e.block("ready")
        e.cond_branch(plain, ready, bind, LIKELY)
        e.at(bind)
        bound = e.alloca(PTR, max(1, count), name="bound")
        function = near(e, BIND, ir.FunctionType(I32, [PTR, PTR, I64, PTR, PTR]))
        ok = e.call(function, [plan, args, given, kwnames, bound])
        e.cond_branch(e.icmp("ne", ok, e.const_i32(0)), ready, early, LIKELY)
        e.at(ready)
        values = e.builder.phi(PTR, name="values")
        values.add_incoming(args, here)
        values.add_incoming(bound, bind)
        return values

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
        self, plan: ir.Value, packed: ir.Value, state: ir.Value, result: ir.Value
    ) -> ir.Value:
        """Call the wrapper, with the surroundings that it can ask for; its status."""
        e, count = self.e, len(self.readers)
        code = e.load_field(plan, PLAN, "code")
        self._enter(state)
        thread = python(e, "PyEval_SaveThread") if self.key.traits.releases_gil else None
        arguments = [e.null(), packed, e.const_i32(count), result]
        status = e.call_pointer(code, _WRAPPER, arguments, name="status")
        if thread is not None:
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
        if self.key.traits.uses_stream and self._knows_torch:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.field_ptr(state, STATE, "former_stream")
                self._set_stream(device, e.load_field(state, STATE, "stream"), former)
        if self.key.traits.allocates and self._knows_torch:
            with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "framework")))):
                former = e.field_ptr(state, STATE, "former_allocator")
                self._set_allocator(e.external("torch_allocator"), former)

    def _leave(self, state: ir.Value) -> None:
        e = self.e
        if self.key.traits.uses_stream and self._knows_torch:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.load_field(state, STATE, "former_stream")
                self._set_stream(device, former, e.null())
        if self.key.traits.allocates and self._knows_torch:
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
        other = e.block("other")
        switch = e.builder.switch(index, other)
        for kind in (TypeIndex.NONE, TypeIndex.BOOL, TypeIndex.INT, TypeIndex.FLOAT):
            block = e.block(kind.name.lower())
            switch.add_case(ir.Constant(I32, int(kind)), block)
            e.at(block)
            made = self._plain(kind, result)
            self._release(frame)
            e.ret(made)
        e.at(other)
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

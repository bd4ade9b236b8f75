"""The call of a wrapper and the conversion of its result, for direct entries and bound calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.entry.buffers import RELEASE_BUFFERS, RELEASE_BUFFERS_TYPE
from ferrule.runtime.entry.python import FALSE, NONE, TRUE, decref, incref, near, python
from ferrule.runtime.entry.structs import NO_DEVICE, STATE
from ferrule.runtime.entry.support import FINISH, RAISE
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, I32, PACKED, PTR
from ferrule.specs.deferred import dataclass

UNPACK: Final = "ferrule_unpack"
"""`ptr (result, form)`: converts Arrays to tuples where the form says so; a new reference."""

SET_ALLOCATOR: Final = "TVMFFIEnvSetDLPackManagedTensorAllocator"


@dataclass(slots=True)
class Invocation:
    """One call of a wrapper, from the packed arguments to the Python result.

    `streams` and `allocates`: whether the call sets the stream and the allocator of the caller's
    framework. The call releases the temporary objects of tvm-ffi whose addresses are at `temps`,
    and Python's at `owned`; `holds`: and buffers, of which `state` knows.
    """

    e: Emitter
    streams: bool
    allocates: bool
    state: ir.Value
    temps: Sequence[ir.Value] = ()
    owned: Sequence[ir.Value] = ()
    holds: bool = False

    def new_result(self) -> ir.Value:
        """Stack space for the wrapper's result, initialised to None."""
        e, result = self.e, self.e.alloca(ANY, name="result")
        e.store_field(result, ANY, "head", e.const_i64(TypeIndex.NONE))
        e.store_field(result, ANY, "v_int64", e.const_i64(0))
        return result

    def call(
        self,
        code: ir.Value,
        releases_gil: ir.Value,
        packed: ir.Value,
        count: ir.Value,
        result: ir.Value,
    ) -> ir.Value:
        """Call the wrapper, with the framework's stream and allocator set; returns its status.

        `releases_gil` is an i32; 0 keeps the GIL.
        """
        e = self.e
        self._enter()
        keep, release, call = e.builder.block, e.block("release"), e.block("call")
        e.cond_branch(e.icmp("ne", releases_gil, e.const_i32(0)), release, call)
        e.at(release)
        saved = python(e, "PyEval_SaveThread")
        e.branch(call)
        e.at(call)
        # Null says below that the GIL was kept, so one block calls the wrapper for both ways.
        thread = e.builder.phi(PTR, name="thread")
        thread.add_incoming(e.null(), keep)
        thread.add_incoming(saved, release)
        status = e.call_pointer(code, PACKED, [e.null(), packed, count, result], name="status")
        with e.if_then(e.not_(e.is_null(thread))):
            python(e, "PyEval_RestoreThread", thread)
        self._leave()
        return status

    def _enter(self) -> None:
        """Set the framework's stream and allocator for this thread.

        The status is not checked: tvm-ffi's functions for this cannot fail.
        """
        e, state = self.e, self.state
        if self.streams:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.field_ptr(state, STATE, "former_stream")
                self._set_stream(device, e.load_field(state, STATE, "stream"), former)
        if self.allocates:
            with e.if_then(e.not_(e.is_null(e.load_field(state, STATE, "framework")))):
                former = e.field_ptr(state, STATE, "former_allocator")
                self._set_allocator(e.external("torch_allocator"), former)

    def _leave(self) -> None:
        e, state = self.e, self.state
        if self.streams:
            device = e.load_field(state, STATE, "device")
            with e.if_then(e.icmp("ne", device, e.const_i64(NO_DEVICE)), likely=False):
                former = e.load_field(state, STATE, "former_stream")
                self._set_stream(device, former, e.null())
        if self.allocates:
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

    def finish(self, status: ir.Value, result: ir.Value, form: ir.Value | None) -> None:
        """Return the result in Python, or raise the error that is set.

        `form` is the form of the result; None if no Array is converted to a tuple.
        """
        e = self.e
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            # Raise first: to release objects can run code that sets another error.
            nothing = e.call(near(e, RAISE, ir.FunctionType(PTR, [])), [])
            self.release()
            e.ret(nothing)
        index = e.load_field(result, ANY, "type_index")
        for kind in (TypeIndex.NONE, TypeIndex.INT, TypeIndex.FLOAT, TypeIndex.BOOL):
            with e.if_then(e.icmp("eq", index, e.const_i32(kind))):
                made = self._plain(kind, result)
                self.release()
                e.ret(made)
        framework = e.load_field(self.state, STATE, "framework")
        finish = near(e, FINISH, ir.FunctionType(PTR, [PTR, PTR]))
        found = e.call(finish, [result, framework])
        self.release()
        if form is not None:
            found = self._unpacked(found, form)
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

    def _unpacked(self, packed: ir.Value, form: ir.Value) -> ir.Value:
        e = self.e
        with e.if_then(e.is_null(packed), likely=False):
            e.ret(e.null())
        found = e.call(near(e, UNPACK, ir.FunctionType(PTR, [PTR, PTR])), [packed, form])
        python(e, "Py_DecRef", packed)
        return found

    def release(self) -> None:
        """Release the temporary objects of the call."""
        e = self.e
        for slot in self.temps:
            made = e.load(slot, PTR)
            with e.if_then(e.not_(e.is_null(made)), likely=False):
                e.call("TVMFFIObjectDecRef", [made])
        for slot in self.owned:
            object_ = e.load(slot, PTR)
            with e.if_then(e.not_(e.is_null(object_))):
                decref(e, object_)
        if self.holds:
            held = e.load_field(self.state, STATE, "held")
            with e.if_then(e.not_(e.is_null(held)), likely=False):
                e.call(near(e, RELEASE_BUFFERS, RELEASE_BUFFERS_TYPE), [held])

"""Functions of C that call a function of tvm-ffi, and find it in a frame.

C gets a *thunk*, a function of the body with the C types of the callback.  It finds the *frame* of
the call, which has the function and the first error, in two ways:

* with `context`, at a constant distance from the address that the C function hands through;
* without it, in a static variable.  There are `MOST_CALLS` thunks, each with a variable of its own,
  and each call takes one that is free.

So nested, recursive and concurrent calls have a thunk each, and threads that the C function starts
find the frame as the calling thread does.  No code is written while a program runs.
"""

from __future__ import annotations

import collections.abc
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import FAULT_ROOM, RAISED, Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.unicode import utf8_prefix
from ferrule.compiler.conventions.conversions import limits, type_of
from ferrule.compiler.host.flow import number_of
from ferrule.compiler.support.calling import TYPES, Wanted, failures, is_object
from ferrule.compiler.support.entries import INVOKE, TAKE
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import ANY, F64, I32, I64, PTR, VOID
from ferrule.specs import DType

if TYPE_CHECKING:
    from ferrule.compiler.conventions.c.callbacks import Callback

MOST_CALLS: Final = 64
"""The calls that can use one callback without a context at the same time."""

Kind: TypeAlias = "DType | Literal['pointer', 'string']"
_Defined: TypeAlias = AbstractContextManager[ir.Function]
FUNCTION, CLAIMED, ERROR, VALUE, STATUS, SLOT = range(6)
"""The 8-byte words of a frame: the function; whether there is an error; the error, or null and the
value of a fault's message; the status of the body; the thunk's variable, or null."""
FRAME: Final = ir.ArrayType(I64, 6)
_KEEP: Final = "callback.keep"
_KEEP_TYPE: Final = ir.FunctionType(VOID, [PTR, I32, PTR, I64])


def c_type(kind: Kind) -> ir.Type:
    return type_of(kind) if isinstance(kind, DType) else PTR


def require(call: Call, frame: ir.Value) -> None:
    """End the call with the error of a callback."""
    e = call.emitter
    status = e.builder.load_atomic(e.index(frame, I64, STATUS), "acquire", 8, typ=I64)
    with e.if_then(e.icmp("ne", status, e.const_i64(0)), likely=False):
        place = e.index(frame, I64, ERROR)
        error = e.load(place, PTR)
        with e.if_then(e.not_(e.is_null(error))):
            e.call("TVMFFIErrorSetRaised", [error])
        e.store(e.load(e.index(frame, I64, VALUE), I64), call.values)
        call.fail(e.builder.trunc(status, I32))


def close(call: Call, frame: ir.Value) -> None:
    """Release the thunk and the error."""
    e = call.emitter
    slot = e.load(e.index(frame, I64, SLOT), PTR)
    with e.if_then(e.not_(e.is_null(slot))):
        # From here on another call, in any thread, may take the slot.
        e.builder.atomic_rmw("xchg", slot, e.const_i64(0), "release")
    error = e.load(e.index(frame, I64, ERROR), PTR)
    with e.if_then(e.not_(e.is_null(error)), likely=False):
        e.call("TVMFFIObjectDecRef", [error])


class Thunks:
    """The functions of one callback; its frame is `position` frames behind its context."""

    def __init__(self, call: Call, callback: Callback, number: int, position: int = 0) -> None:
        self.call: Final = call
        self.callback: Final = callback
        self.position: Final = position
        self.name: Final = f"callback{number}"
        kinds_ = [c_type(kind) for kind in callback.params]
        if callback.context is not None:
            kinds_.insert(callback.context, PTR)
        self.types: Final = kinds_
        returns = callback.returns
        self.returned: Final = VOID if returns is None else c_type(returns)

    def thunk(self, frame: ir.Value) -> ir.Value:
        """The thunk that finds this frame."""
        body = self._body()
        if self.callback.context is not None:
            return self._with_context(body)
        e = self.call.emitter
        slots = ir.GlobalVariable(e.module, ir.ArrayType(PTR, MOST_CALLS), f"{self.name}.frames")
        slots.linkage, slots.initializer = "internal", ir.Constant(slots.value_type, None)
        slots.type = PTR
        take = self._take(slots, [self._numbered(body, slots, i) for i in range(MOST_CALLS)])
        thunk = e.call(take, [frame])
        none = (
            f"{literal(self.callback.name)} is in use by {MOST_CALLS} calls, as many as there "
            f"can be without a context: make fewer calls at the same time, or hand one through"
        )
        self.call.refuse(e.is_null(thunk), Fault("RuntimeError", none))
        return thunk

    def _with_context(self, body: ir.Function) -> ir.Function:
        e, position = self.call.emitter, self.callback.context
        assert position is not None
        with self._define(f"{self.name}.thunk", self.types) as function:
            given = list(function.args)
            context = given.pop(position)
            with e.if_then(e.is_null(context), likely=False):
                e.builder.atomic_rmw("xchg", self._lost(), e.const_i64(1), "release")
                self._ret_after_error()
            frame = e.index(context, FRAME, self.position)
            self._ret(e.call(body, [frame, *given]))
        return function

    def _lost(self) -> ir.GlobalVariable:
        """Whether C has called a thunk with a null context since this was asked the last time."""
        known = self.call.emitter.module.globals.get(f"{self.name}.lost")
        if isinstance(known, ir.GlobalVariable):
            return known
        made = ir.GlobalVariable(self.call.emitter.module, I64, f"{self.name}.lost")
        made.linkage, made.initializer, made.align = "internal", ir.Constant(I64, 0), 8
        made.type = PTR
        return made

    def require_context(self) -> None:
        """End the call with an error if C has called a thunk with a null context."""
        if self.callback.context is None:
            return
        e, place = self.call.emitter, self._lost()
        text = (
            f"C called {literal(self.callback.name)} with a null context as its parameter "
            f"#{self.callback.context}, so nothing was called: this is not where the library hands "
            f"user_data through, or it does not"
        )
        # Read before it is exchanged: a call whose context arrives does not write.
        lost = e.builder.load_atomic(place, "acquire", 8, typ=I64)
        with e.if_then(e.icmp("ne", lost, e.const_i64(0)), likely=False):
            e.builder.atomic_rmw("xchg", place, e.const_i64(0), "acq_rel")
            self.call.fail(e.const_i32(self.call.fault(Fault("RuntimeError", text))))

    def _numbered(self, body: ir.Function, slots: ir.Value, number: int) -> ir.Function:
        e = self.call.emitter
        with self._define(f"{self.name}.thunk{number}", self.types) as function:
            place = e.index(slots, PTR, number)
            # C may call the thunk in a thread of its own.
            frame = e.builder.load_atomic(place, "acquire", 8, typ=PTR)
            with e.if_then(e.is_null(frame), likely=False):
                self._ret_after_error()  # a call after the end of its call
            self._ret(e.call(body, [frame, *function.args]))
        return function

    def _take(self, slots: ir.Value, thunks: collections.abc.Sequence[ir.Function]) -> ir.Function:
        """A function that takes a free thunk for a frame; it returns null if there is none."""
        e = self.call.emitter
        with e.define(
            f"{self.name}.take", PTR, [PTR], names=["frame"], linkage="internal",
            attributes=("nounwind", "noinline"),
        ) as function:  # fmt: skip
            (frame,) = function.args
            for number, thunk in enumerate(thunks):
                slot = e.index(slots, PTR, number)
                taken = e.builder.cmpxchg(slot, e.null(), frame, "acq_rel", "monotonic")
                with e.if_then(e.builder.extract_value(taken, 1), likely=number == 0):
                    e.store(slot, e.index(frame, I64, SLOT))
                    e.ret(ir.FormattedConstant(PTR, thunk.get_reference()))
            e.ret(e.null())
        return function

    def _define(self, name: str, types: collections.abc.Sequence[ir.Type]) -> _Defined:
        """A function of C with the callback's result."""
        e = self.call.emitter
        function = e.declare(name, self.returned, types, linkage="internal")
        function.attributes.add("nounwind")
        returns = self.callback.returns
        if isinstance(returns, DType) and returns.kind != "float" and returns.bits < 32:
            way = "signext" if returns.kind == "int" else "zeroext"
            function.return_value.add_attribute(way)
        return e.body(function)

    def _ret(self, value: ir.Value) -> None:
        self.call.emitter.ret(None if self.callback.returns is None else value)

    def _ret_after_error(self) -> None:
        returns, value = self.callback.returns, self.callback.on_error
        if isinstance(returns, DType):
            given = float(value) if returns.kind == "float" else int(value)
            self._ret(ir.Constant(type_of(returns), given))
        else:
            self._ret(self.call.emitter.null())

    # ---- the body: from C to tvm-ffi and back ----

    def _body(self) -> ir.Function:
        e = self.call.emitter
        types = [c_type(kind) for kind in self.callback.params]
        with self._define(self.name, [PTR, *types]) as function:
            # `MOST_CALLS` thunks call it: one copy of the body is enough.
            function.attributes.add("noinline")
            frame, *given = function.args
            status = e.builder.load_atomic(e.index(frame, I64, STATUS), "acquire", 8, typ=I64)
            with e.if_then(e.icmp("ne", status, e.const_i64(0)), likely=False):
                self._ret_after_error()
            items = e.alloca(ANY, max(1, len(given)), name="items")
            for position, (kind, value) in enumerate(zip(self.callback.params, given, strict=True)):
                self._put(frame, e.index(items, ANY, position), kind, value, position)
            result = e.alloca(ANY, name="result")
            _set(e, result, TypeIndex.NONE, e.const_i64(0))
            handle = e.load(e.index(frame, I64, FUNCTION), PTR)
            arguments = [handle, items, e.const_i32(len(given)), result]
            status = e.call(e.symbol(INVOKE, TYPES[INVOKE]), arguments)
            with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
                self._keep_raised(frame)
            self._give(frame, result)
        return function

    def _put(
        self, frame: ir.Value, item: ir.Value, kind: Kind, value: ir.Value, position: int
    ) -> None:
        """Store an argument of C as a TVMFFIAny."""
        e, build = self.call.emitter, self.call.emitter.builder
        if kind == "pointer":
            _set(e, item, TypeIndex.OPAQUE_PTR, build.ptrtoint(value, I64))
        elif kind == "string":
            none, text = e.const_i64(TypeIndex.NONE), e.const_i64(TypeIndex.RAW_STR)
            with e.if_then(e.not_(e.is_null(value))):
                self._check_text(frame, value, position)
            _set(e, item, e.select(e.is_null(value), none, text), build.ptrtoint(value, I64))
        elif kind.kind == "float":
            wide = value if kind.bits == 64 else build.fpext(value, F64)
            _set(e, item, TypeIndex.FLOAT, build.bitcast(wide, I64))
        elif kind.kind == "bool":
            _set(e, item, TypeIndex.BOOL, build.and_(build.zext(value, I64), e.const_i64(1)))
        elif kind.bits == 64:
            if kind.kind == "uint":
                text = f"argument #{position} of {literal(self.callback.name)} is {{unsigned}}"
                fault = Fault("OverflowError", f"{text}, expected at most 9223372036854775807")
                with e.if_then(e.icmp("slt", value, e.const_i64(0)), likely=False):
                    self._keep_fault(frame, value, fault)
            _set(e, item, TypeIndex.INT, value)
        else:
            extend = build.sext if kind.kind == "int" else build.zext
            _set(e, item, TypeIndex.INT, extend(value, I64))

    def _check_text(self, frame: ir.Value, text: ir.Value, position: int) -> None:
        """Keep an error for a text that is no UTF-8, which no value of tvm-ffi is."""
        e, size = self.call.emitter, self.call.emitter.call("strlen", [text])
        whole = utf8_prefix(self.call, text, size)
        at = e.select(e.icmp("slt", whole, e.const_i64(0)), e.builder.not_(whole), whole)
        said = f"argument #{position} of {literal(self.callback.name)} is a text that is no UTF-8"
        fault = Fault("ValueError", f"{said} at byte {{}}: a 'pointer' instead has its address")
        with e.if_then(e.icmp("ne", whole, size), likely=False):
            self._keep_fault(frame, at, fault)

    def _give(self, frame: ir.Value, result: ir.Value) -> None:
        """Return a TVMFFIAny as a value of C."""
        returns = self.callback.returns
        if returns == "pointer":
            self._give_pointer(frame, result)
            return
        e, name = self.call.emitter, self.callback.name
        out, values = e.alloca(I64, name="out"), e.alloca(I64, FAULT_ROOM, name="values")
        wanted, word = _wanted(returns)
        given = [result, e.const_i32(wanted), out, values]
        status = e.call(e.symbol(TAKE, TYPES[TAKE]), given)
        if returns is None:
            self._ret(status)
            return
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            faults = failures(name, word, None)
            self._keep_fault(frame, e.load(values, I64), *faults, status=status)
        assert isinstance(returns, DType)
        if returns.kind == "float":
            value = e.load(out, F64)
            self._ret(value if returns.bits == 64 else e.builder.fptrunc(value, type_of(returns)))
            return
        number = e.load(out, I64)
        if returns.kind != "bool" and returns.bits < 64:
            self._check_range(frame, number, returns)
        narrow = returns.bits < 64 or returns.kind == "bool"
        self._ret(e.builder.trunc(number, type_of(returns)) if narrow else number)

    def _check_range(self, frame: ir.Value, number: ir.Value, dtype: DType) -> None:
        e, (low, high) = self.call.emitter, limits(dtype)
        below = e.icmp("slt", number, e.const_i64(low))
        outside = e.binary("or", below, e.icmp("sgt", number, e.const_i64(high)))
        text = f"Out of bound result of {literal(self.callback.name)}, expected {dtype.name}"
        fault = Fault("OverflowError", f"{text}, but got {{}}")
        with e.if_then(outside, likely=False):
            self._keep_fault(frame, number, fault)

    def _give_pointer(self, frame: ir.Value, result: ir.Value) -> None:
        """An opaque pointer, an int, or null for None."""
        e = self.call.emitter
        index = e.load_field(result, ANY, "type_index")
        word = e.load_field(result, ANY, "v_int64")
        for known in (TypeIndex.OPAQUE_PTR, TypeIndex.INT, TypeIndex.NONE):
            with e.if_then(e.icmp("eq", index, e.const_i32(known))):
                is_none = known is TypeIndex.NONE
                self._ret(e.null() if is_none else e.builder.inttoptr(word, PTR))
        name = literal(self.callback.name)
        text = f"Mismatched type of the result of {name}, expected a pointer, but got {{type}}"
        with e.if_then(is_object(e, result)):
            e.call("TVMFFIObjectDecRef", [e.load_field(result, ANY, "v_obj")])
        self._keep_fault(frame, e.builder.sext(index, I64), Fault("TypeError", text))

    # ---- errors ----

    def _keep_raised(self, frame: ir.Value) -> None:
        e = self.call.emitter
        place = e.alloca(PTR, name="error")
        e.store(e.null(), place)
        e.call("TVMFFIErrorMoveFromRaised", [place])
        raised = ir.Constant(I32, RAISED)
        e.call(_keep(e), [frame, raised, e.load(place, PTR), e.const_i64(0)])
        self._ret_after_error()

    def _keep_fault(
        self, frame: ir.Value, value: ir.Value, *faults: Fault, status: ir.Value | None = None
    ) -> None:
        """Keep one of these faults, of which the status tells the number, from 1 on."""
        e = self.call.emitter
        numbers = [self.call.fault(each) for each in faults]
        number = e.const_i32(1) if status is None else status
        e.call(_keep(e), [frame, number_of(e, number, numbers), e.null(), value])
        self._ret_after_error()


def _wanted(returns: Kind | None) -> tuple[Wanted, str]:
    """What a result is converted to, and its name in messages."""
    match returns:
        case DType(kind="bool"):
            return Wanted.BOOL, "bool"
        case DType(kind="float"):
            return Wanted.FLOAT, "float"
        case DType(kind="uint", bits=64):
            return Wanted.UINT, "uint"
        case DType():
            return Wanted.INT, "int"
    return Wanted.NOTHING, ""


def _keep(e: Emitter) -> ir.Function:
    """The function that keeps an error in a frame: the first one; later ones are released."""
    known = e.module.globals.get(_KEEP)
    if known is not None:
        return known
    names = ("frame", "status", "error", "value")
    with e.define(
        _KEEP, VOID, _KEEP_TYPE.args, names=names, linkage="internal",
        attributes=("nounwind", "noinline"),
    ) as function:  # fmt: skip
        frame, status, error, value = function.args
        zero, one = e.const_i64(0), e.const_i64(1)
        claim = e.index(frame, I64, CLAIMED)
        claimed = e.builder.cmpxchg(claim, zero, one, "acq_rel", "monotonic")
        with e.if_then(e.builder.extract_value(claimed, 1)):
            e.store(error, e.index(frame, I64, ERROR))
            e.store(value, e.index(frame, I64, VALUE))
            wide = e.builder.sext(status, I64)
            # The status comes last: a thread that sees it, with acquire, sees the error and the
            # value too.
            e.builder.atomic_rmw("xchg", e.index(frame, I64, STATUS), wide, "release")
            e.ret()
        with e.if_then(e.not_(e.is_null(error))):
            e.call("TVMFFIObjectDecRef", [error])
        e.ret()
    return function


def _set(e: Emitter, item: ir.Value, index: TypeIndex | ir.Value, payload: ir.Value) -> None:
    head = e.const_i64(index) if isinstance(index, TypeIndex) else index
    e.store_field(item, ANY, "head", head)
    e.store_field(item, ANY, "v_int64", payload)

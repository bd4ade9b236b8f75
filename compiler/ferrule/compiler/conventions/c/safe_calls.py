"""Calls of C functions with tvm-ffi's signature: arguments and result are `TVMFFIAny`."""

from __future__ import annotations

import collections.abc
from functools import partial
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import RAISED, Fault, literal
from ferrule.compiler.conventions.arguments import (
    cast,
    check_argument,
    listed,
    shown,
    spoken,
    values,
)
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.dltensors import Lent
from ferrule.compiler.conventions.c.functions import chosen_function, declared
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY, I8, I32, I64, PACKED
from ferrule.specs import (
    Compound,
    Condition,
    Data,
    Dim,
    DType,
    Param,
    Signature,
    Sym,
    Tensor,
    as_dtype,
)
from ferrule.specs import params as kinds
from ferrule.specs.conditions import checked_condition
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim


@dataclass(frozen=True, slots=True, init=False)
class SafeCall:
    """Calls a function of tvm-ffi's C type, `TVMFFISafeCallType`.

        SafeCall("__tvm_ffi_scale", [sig["x"], sig["alpha"]], code=HostCode.from_object("scale.o"))

    `int scale(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result)`: `self` is
    null, a tensor is a `DLTensor*`, an absent optional tensor is None; a size and an integer are an
    int, a float a float64, a flag a bool, a pointer or stream an opaque pointer.  If it does not
    return 0, the error that it has set becomes the error of the call.  Its result is released; with
    `returns`, "int64", "float64" or "bool", the call returns it, and any other type is a TypeError
    of the call.

    Raises TypeError for other arguments, ValueError for other results, and as `CFunction` does.
    """

    function: str
    arguments: tuple[Data | Dim | Param, ...]
    returns: DType | None
    code: HostCode
    when: Condition | None

    def __init__(
        self,
        function: object,
        arguments: collections.abc.Sequence[Data | Dim | Param] = (),
        *,
        returns: DType | str | None = None,
        code: HostCode | None = None,
        when: Condition | None = None,
    ) -> None:
        put = object.__setattr__
        name, found = chosen_function(function, code)
        put(self, "function", name)
        put(self, "code", found)
        put(self, "arguments", listed(arguments, f"the arguments of {name}"))
        put(self, "returns", None if returns is None else as_dtype(returns))
        if self.returns is not None and self.returns.name not in _INDICES:
            raise ValueError(
                f"{name}: it returns {', '.join(_INDICES)} or nothing, not {returns!r}"
            )
        put(self, "when", None if when is None else checked_condition(when))
        for position, argument in enumerate(self.arguments):
            _check_any(argument, f"argument #{position} of {name}")
        if self.when is not None and self.returns is not None:
            raise ValueError(f"{name}: a call that depends on a condition can give nothing back")

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return () if self.returns is None else (kinds.Scalar("result", self.returns),)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        e, count = call.emitter, len(self.arguments)
        args = e.alloca(ANY, max(1, count), name="args")
        for position, argument in enumerate(self.arguments):
            what = f"argument #{position} of {self.function}"
            head, payload = _as_any(call, argument, what)
            _set(call, e.index(args, ANY, position), head, payload)
        result = e.alloca(ANY, name="returned")
        _set(call, result, e.const_i64(TypeIndex.NONE), e.const_i64(0))
        symbol, kind = self.code.symbol(self.function), PACKED
        self.code.require(self.function, kind, call.signature.name)
        self.code.bring(call, self.function)
        call.say(partial(self._line, call.signature))
        given = [e.null(), args, e.const_i32(count), result]
        status = e.builder.call(declared(call, symbol, kind), given)
        self._require(call, status)
        self._give(call, result)

    def _line(self, signature: Signature) -> str:
        given = ", ".join(spoken(signature, argument) for argument in self.arguments)
        returns = "" if self.returns is None else f" -> {self.returns.name}"
        return f"call the tvm-ffi function {self.function}({given}){returns}, or the error it set"

    def _require(self, call: Call, status: ir.Value) -> None:
        """End the call with the error that the function has set: its status is -1 or -2."""
        e = call.emitter
        fault = Fault("RuntimeError", f"{literal(self.function)} returned {{}}, which is no status")
        with e.if_then(e.icmp("ne", status, e.const_i32(0)), likely=False):
            known = e.icmp("sge", status, e.const_i32(-2))
            negative = e.icmp("slt", status, e.const_i32(0))
            is_raised = e.binary("and", known, negative)
            e.store(e.builder.sext(status, I64), call.values)
            number = ir.Constant(I32, call.fault(fault))
            call.fail(e.select(is_raised, ir.Constant(I32, RAISED), number))

    def _give(self, call: Call, result: ir.Value) -> None:
        e = call.emitter
        index = e.load_field(result, ANY, "type_index")
        if self.returns is None:
            with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT)), likely=False):
                e.call("TVMFFIObjectDecRef", [e.load_field(result, ANY, "v_obj")])
            return
        wanted = _index_of(self.returns)
        other = e.icmp("ne", index, e.const_i32(wanted))
        with e.if_then(other, likely=False):
            with e.if_then(e.icmp("sge", index, e.const_i32(TypeIndex.OBJECT))):
                e.call("TVMFFIObjectDecRef", [e.load_field(result, ANY, "v_obj")])
            e.store(e.builder.sext(index, I64), call.values)
            message = f"{literal(self.function)} returned {{type}}, expected {self.returns.name}"
            call.fail(ir.Constant(I32, call.fault(Fault("TypeError", message))))
        call.give([_received(call, result, self.returns)])


_INDICES: Final = ("int64", "float64", "bool")


def _check_any(argument: object, what: str) -> None:
    match argument:
        case Data() | Tensor() | kinds.Pointer() | kinds.Stream() | kinds.EnvStream():
            return
        case kinds.Optional(item=Tensor()) | kinds.Scalar():
            return
    if not is_dim(argument):
        raise TypeError(
            f"{what} must be a tensor, its .data, a number, a size, a pointer or a stream, but got "
            f"{shown(argument)}"
        )
    check_argument(argument, what)


def _as_any(call: Call, argument: Data | Dim | Param, what: str) -> tuple[ir.Value, ir.Value]:
    """The two words of a TVMFFIAny: the type index, and the payload."""
    e = call.emitter
    match argument:
        case Tensor():
            (place,) = Lent(argument).values(call, what)
            return e.const_i64(TypeIndex.DLTENSOR_PTR), e.builder.ptrtoint(place, I64)
        case kinds.Optional(item=Tensor() as tensor):
            (place,) = Lent(tensor, argument).values(call, what)
            there, none = e.const_i64(TypeIndex.DLTENSOR_PTR), e.const_i64(TypeIndex.NONE)
            return e.select(e.is_null(place), none, there), e.builder.ptrtoint(place, I64)
        case kinds.Scalar(dtype=dtype):
            return e.const_i64(_index_of(dtype)), _payload(call, argument, dtype, what)
        case int() | Sym() | Compound():
            return e.const_i64(TypeIndex.INT), call.size(argument, what)
    (address,) = values(call, argument, what)
    return e.const_i64(TypeIndex.OPAQUE_PTR), e.builder.ptrtoint(address, I64)


def _payload(call: Call, param: kinds.Scalar, dtype: DType, what: str) -> ir.Value:
    if dtype.kind == "bool":
        return call.emitter.builder.zext(call.leaves(param)[0], I64)
    wide = cast(param, "float64" if dtype.kind == "float" else "int64")
    (value,) = values(call, wide, what)
    return value if value.type == I64 else call.emitter.builder.bitcast(value, I64)


def _index_of(dtype: DType) -> TypeIndex:
    match dtype.kind:
        case "bool":
            return TypeIndex.BOOL
        case "float":
            return TypeIndex.FLOAT
    return TypeIndex.INT


def _received(call: Call, result: ir.Value, dtype: DType) -> ir.Value:
    """The leaf of a number that was returned."""
    e = call.emitter
    if dtype.kind == "float":
        return e.load_field(result, ANY, "v_float64")
    value = e.load_field(result, ANY, "v_int64")
    return value if dtype.kind == "int" else e.builder.trunc(value, I8)


def _set(call: Call, place: ir.Value, head: ir.Value, payload: ir.Value) -> None:
    call.emitter.store_field(place, ANY, "head", head)
    call.emitter.store_field(place, ANY, "v_int64", payload)

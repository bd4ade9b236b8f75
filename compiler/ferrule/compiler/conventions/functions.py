"""Calls of C functions: of this process, of a library, of an object file, of LLVM IR.

    CFunction("crc32", [cast(sig["crc"], "uint64"), sig["x"].data, cast(sig["x"].nbytes, "uint32")],
              returns="uint64", code=HostCode.from_library("libz.so.1"))

Structs and tensors by their address: `Reference`.
"""

from __future__ import annotations

import collections.abc
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.arguments import (
    Argument,
    Cast,
    InMemory,
    check_argument,
    in_memory,
    listed,
    shown,
    types,
    values,
)
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.returns import (
    UNWANTED,
    ReturnCode,
    Returns,
    as_ir,
    checked_returns,
    received,
    return_type,
    widened,
)
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError
from ferrule.compiler.hostcode import HostCode, LlvmModule
from ferrule.compiler.hostcode.irtext import parameter_types, result_type
from ferrule.runtime.llvm.layouts import I32, PTR
from ferrule.specs import Condition, DType, Param, Pointer, Scalar
from ferrule.specs import params as kinds
from ferrule.specs.conditions import checked_condition

_LOADED: Final = HostCode.from_library(None)


@runtime_checkable
class HostArgument(Protocol):
    """An argument that host code alone can take, such as an address on the stack."""

    def types(self) -> list[ir.Type]:
        """The LLVM types of the values that it becomes."""
        ...

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """The values; `what` names it in errors."""
        ...


CArgument: TypeAlias = "Argument | HostArgument"


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of a struct, number or tensor map on the stack, for the time of the call.

    Raises TypeError for what becomes no single value.
    """

    value: Argument

    def __post_init__(self) -> None:
        check_argument(self.value, "what a Reference refers to")
        if not isinstance(self.value, InMemory) and len(types(self.value)) != 1:
            raise TypeError(
                f"Reference: expected one value, but {shown(self.value)} becomes several"
            )

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        return in_memory(call, self.value, what)


@dataclass(frozen=True, slots=True, init=False)
class CFunction:
    """Calls a C function.

        CFunction("axpy", [sig["x"].data, sig["y"].data, n, sig["alpha"]], code=code)

    calls `axpy(float* x, float* y, int32_t n, float alpha)`.  `function` is the name of one of
    `code`, by default of one that the process has loaded; or an address, a ctypes function or an
    object with an `address`.  The arguments are those of `conventions.arguments` and `Reference`;
    what is narrower than an int is extended as C wants it, a 2-byte float is passed as its bits,
    uint16_t, except to LLVM IR, which may take `half`.

    `returns` is None for a function whose result nobody wants, "status" for one that returns an
    int, 0 where all went well (any other is a RuntimeError of the call), or a `ReturnCode`.  With a
    dtype or "pointer" the call gives the value back.  Made only where `when` holds.

    Raises TypeError for arguments of other kinds and a struct by value; ValueError for what is no
    name of a C function, and for a value given back only sometimes.  When it is built, CompileError
    for a function that the code does not have, or that takes something else where that is known.
    """

    function: str
    arguments: tuple[CArgument, ...]
    returns: ReturnCode | DType | Literal["pointer"] | None
    code: HostCode
    when: Condition | None

    def __init__(
        self,
        function: object,
        arguments: collections.abc.Sequence[CArgument] = (),
        *,
        returns: Returns = None,
        code: HostCode | None = None,
        when: Condition | None = None,
    ) -> None:
        put = object.__setattr__
        name, found = chosen_function(function, code)
        put(self, "function", name)
        put(self, "code", found)
        put(self, "arguments", listed(arguments, f"the arguments of {name}"))
        put(self, "returns", checked_returns(returns))
        put(self, "when", None if when is None else checked_condition(when))
        for position, argument in enumerate(self.arguments):
            _check(argument, f"argument #{position} of {name}")
        if self.when is not None and self.results():
            raise ValueError(
                f"{name}: a call that depends on a condition can give nothing back: write to a "
                f"tensor of `results` instead"
            )

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        match self.returns:
            case None | ReturnCode(value=False):
                return ()
            case ReturnCode(dtype=dtype):
                return (Scalar("result", dtype),)
            case DType() as dtype:
                return (Scalar("result", dtype),)
            case _:
                return (Pointer("result"),)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        value = self.value(call)
        if isinstance(self.returns, ReturnCode):
            self._check_status(call, self.returns, value)
        if self.results():
            call.give([value])

    def value(self, call: Call) -> ir.Value:
        """Make the call; what the function returns."""
        given, kinds_of = [], []
        for position, argument in enumerate(self.arguments):
            what = f"argument #{position} of {self.function}"
            given += _values(call, argument, what)
            kinds_of += _types(argument)
        returned = return_type(self.returns)
        wanted = ir.FunctionType(returned, kinds_of)
        self.code.require(self.function, wanted, call.signature.name)
        given, kind = self._fitted(call, given, wanted)
        self.code.bring(call, self.function)
        signs = [sign for each in self.arguments for sign in _are_signed(each)]
        pairs = zip(kind.args, signs, strict=True)
        extended = {
            position: ("signext" if signed else "zeroext",)
            for position, (each, signed) in enumerate(pairs)
            if isinstance(each, ir.IntType) and each.width < 32
        }
        callee = declared(call, self.code.symbol(self.function), kind)
        value = call.emitter.builder.call(callee, given, arg_attrs=extended)
        return received(call, value, returned, self.returns)

    def _fitted(
        self, call: Call, given: list[ir.Value], kind: ir.FunctionType
    ) -> tuple[list[ir.Value], ir.FunctionType]:
        """The values as LLVM IR takes them, where that is what is called: flags, halves."""
        source = self.code.source
        if not isinstance(source, LlvmModule):
            return given, kind
        found = source.functions[self.function]
        pairs = zip(given, parameter_types(found), strict=True)
        fitted = [as_ir(call, value, wanted) for value, wanted in pairs]
        returned = result_type(found)
        if returned not in UNWANTED:
            raise CompileError(
                f"{call.signature.name}: {self.function} returns {returned}, which no C function "
                f"does: let it write to a pointer"
            )
        result = UNWANTED[returned]
        return fitted, ir.FunctionType(result, [value.type for value in fitted])

    def _check_status(self, call: Call, code: ReturnCode, value: ir.Value) -> None:
        """End the call where the function failed."""
        e = call.emitter
        wide = widened(call, value, code.dtype)
        op: Literal["ne", "slt"] = "ne" if code.fails == "nonzero" else "slt"
        with e.if_then(e.icmp(op, wide, e.const_i64(0)), likely=False):
            for number, kind, text in code.errors:
                flag = e.icmp("eq", wide, e.const_i64(number))
                call.refuse(flag, Fault(kind, literal(text)))
            shown = "{unsigned}" if code.dtype.kind == "uint" else "{}"
            fault = Fault("RuntimeError", f"{literal(self.function)} returned {shown}")
            e.store(wide, call.values)
            call.fail(ir.Constant(I32, call.fault(fault)))


def chosen_function(function: object, code: HostCode | None) -> tuple[str, HostCode]:
    """The name of a function and the code that has it, as `CFunction` documents them."""
    if code is not None and not isinstance(code, HostCode):
        raise TypeError(
            f"CFunction: expected code=HostCode.from_object(…), from_llvm(…) or from_library(…), "
            f"but got {type(code).__name__}"
        )
    if isinstance(function, str):
        if not function or any(letter.isspace() or not letter.isprintable() for letter in function):
            raise ValueError(f"CFunction: {function!r} is no name of a C function")
        return function, _LOADED if code is None else code
    if code is not None:
        raise TypeError(
            f"CFunction: expected the name of a function of the code, but got {function!r}"
        )
    found = HostCode.from_address(function)
    return f"the function at {found.symbol('').removeprefix('ferrule_address_')}", found


def _check(argument: object, what: str) -> None:
    if isinstance(argument, HostArgument):
        return
    check_argument(argument, what)
    if isinstance(argument, InMemory):
        raise TypeError(
            f"{what}: how C passes a {type(argument).__name__} by value depends on the processor; "
            f"let the function take its address, Reference(…)"
        )


def _types(argument: CArgument) -> list[ir.Type]:
    return argument.types() if isinstance(argument, HostArgument) else types(argument)


def _values(call: Call, argument: CArgument, what: str) -> list[ir.Value]:
    if isinstance(argument, HostArgument):
        return argument.values(call, what)
    return values(call, argument, what)


def _are_signed(argument: CArgument) -> list[bool]:
    """Of each value whether it is extended with its sign."""
    match argument:
        case Cast(dtype=dtype) | Scalar(dtype=dtype):
            return [dtype.kind == "int"]
        case kinds.Tuple(items=items):
            return [sign for item in items for sign in _are_signed(item)]
        case kinds.Optional(item=item):
            return [False, *_are_signed(item)]
        case kinds.Union(members=members):
            return [False, *(sign for member in members for sign in _are_signed(member))]
    return [False] * len(_types(argument))


def declared(call: Call, symbol: str, kind: ir.FunctionType) -> ir.Value:
    """The function of this name, whatever type it was declared with."""
    known = call.emitter.module.globals.get(symbol)
    if known is None:
        return ir.Function(call.emitter.module, kind, symbol)
    if known.ftype == kind:
        return known
    callee = ir.FormattedConstant(PTR, known.get_reference())
    callee.function_type = kind
    return callee

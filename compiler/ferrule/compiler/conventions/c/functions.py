"""Calls of C functions: of this process, of a library, of an object file, of LLVM IR.

    CFunction("crc32", [cast(sig["crc"], "uint64"), sig["x"].data, cast(sig["x"].nbytes, "uint32")],
              returns="uint64", code=HostCode.from_library("libz.so.1"))

Structs by value: `Struct`; by their address: `Reference`.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.arguments import InMemory, listed, spoken
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.by_value import Passed, Shape, call_by_value
from ferrule.compiler.conventions.c.callbacks import Callback
from ferrule.compiler.conventions.c.discards import check_references, is_written
from ferrule.compiler.conventions.c.host_arguments import (
    CArgument,
    Reference,
    c_types,
    c_values,
    check_c,
    extensions,
    values_of,
)
from ferrule.compiler.conventions.c.outs import Out, OutField
from ferrule.compiler.conventions.c.promises import kept
from ferrule.compiler.conventions.c.returns import (
    UNWANTED,
    Checked,
    ReturnCode,
    Returns,
    as_ir,
    checked_returns,
    received,
    received_members,
    result_param,
    return_type,
    spoken_returns,
)
from ferrule.compiler.conventions.c.statuses import check_status
from ferrule.compiler.conventions.c.structs import Struct, fields_of
from ferrule.compiler.conventions.c.texts import text_leaves
from ferrule.compiler.conventions.steps import places_of
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import HostCode, Library, LlvmModule, Undefined
from ferrule.compiler.hostcode.irtext import parameter_types, result_type
from ferrule.runtime.cfunctions import C_FUNCTIONS
from ferrule.runtime.llvm.layouts import PTR
from ferrule.specs import Condition, Param, Signature
from ferrule.specs import params as kinds
from ferrule.specs.conditions import checked_condition
from ferrule.specs.deferred import dataclass

_LOADED: Final = HostCode.from_library(None)
_SOME_FUNCTION: Final = ir.FunctionType(PTR, [])
"""The type that declares functions with unknown types."""


@dataclass(frozen=True, slots=True, init=False)
class CFunction:
    """Calls a C function.

        CFunction("axpy", [sig["x"].data, sig["y"].data, n, sig["alpha"]], code=code)

    calls `axpy(float* x, float* y, int32_t n, float alpha)`.  `function` is the name of a function
    in `code`, by default of a function that the process has loaded; or an address, a ctypes
    function or an object with an `address`.  The arguments are those of `conventions.arguments` and
    `Reference`; integers narrower than an int are extended as C requires, a 2-byte float is passed
    as its bits, uint16_t, except to LLVM IR, which may take `half`.  A `Struct` goes by value, as
    on x86-64 and AArch64; a complex number is a struct of two floats.  Behind its
    result, the call returns the value of each `Out` among the arguments and their fields.

    `returns` is None to ignore the result, "status" for an int that is 0 on success (any other
    value is a RuntimeError of the call), a `ReturnCode`, or an `Out` for the value.  With a
    dtype or "pointer" the call returns the value, with "string" a copy of the text at the returned
    address; with a list of dtypes and "pointer" the members of a struct that is returned by value.
    `variadic_from` is the
    position of the first argument in the `...` of a function such as snprintf.  The call is made
    only if `when` holds.

    Raises TypeError for arguments of other kinds; ValueError for an invalid name of a C function,
    for a result of a call with a condition, and for a variadic function of libc without
    `variadic_from`.  When it is built, CompileError for a function that the code does not have, or
    whose known types differ, and for a struct by value to LLVM IR.
    """

    function: str
    arguments: tuple[CArgument, ...]
    returns: Checked
    code: HostCode
    when: Condition | None
    variadic_from: int | None

    def __init__(
        self,
        function: object,
        arguments: collections.abc.Sequence[CArgument] = (),
        *,
        returns: Returns = None,
        code: HostCode | None = None,
        when: Condition | None = None,
        variadic_from: int | None = None,
    ) -> None:
        put = object.__setattr__
        name, found = chosen_function(function, code)
        put(self, "function", name)
        put(self, "code", found)
        put(self, "variadic_from", variadic_from)
        put(self, "arguments", listed(arguments, f"the arguments of {name}"))
        put(self, "returns", checked_returns(returns))
        put(self, "when", None if when is None else checked_condition(when))
        for position, argument in enumerate(self.arguments):
            check_c(argument, f"argument #{position} of {name}")
            if any(isinstance(each, OutField) for each in fields_of(argument)):
                raise TypeError(
                    f"argument #{position} of {name} has the field of an Out in it by value, of "
                    f"which nothing comes back: a C function writes through Reference(Struct(…))"
                )
        check_named(name, found, variadic_from, len(self.arguments))
        returned = self._returned_to()
        if returned is not None and returned in self._written():
            raise ValueError(
                f"{name}: it returns to the Out {returned.name!r} and gets its address"
            )
        if returned is not None and returned.room is not None:
            raise ValueError(
                f"{name}: the Out {returned.name!r} is a buffer, to which no function returns: it "
                f"is an argument, and returns='string' is for a text at an address"
            )
        gives = returned is not None or self._returned() or self._kept()
        if self.when is not None and gives:
            raise ValueError(
                f"{name}: a call that depends on a condition can give nothing back: write to a "
                f"tensor of `results` instead"
            )

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        given = (out.param for out in self._outs() if out.result)
        kept = (each.handle for each in self._kept() if each.handle is not None)
        return (*self._returned(), *given, *kept)

    def _kept(self) -> tuple[Callback, ...]:
        """The callbacks whose handles the call gives back."""
        found = (each for each in places_of(self.arguments) if isinstance(each, Callback))
        return tuple({id(each): each for each in found if each.handle is not None}.values())

    def _outs(self) -> tuple[Out, ...]:
        """Where the function writes to, and what it returns to."""
        returned = self._returned_to()
        given = self._written()
        return given if returned is None else (returned, *given)

    def _written(self) -> tuple[Out, ...]:
        """Each `Out` among the arguments, also as a field of a struct."""
        found = (each for each in places_of(self.arguments) if isinstance(each, Out))
        return tuple(dict.fromkeys(found))

    def _returned_to(self) -> Out | None:
        """The `Out` for what the function returns."""
        value = self.returns.value if isinstance(self.returns, ReturnCode) else self.returns
        return value if isinstance(value, Out) else None

    def _returned(self) -> tuple[Param, ...]:
        """What the function returns, of its results."""
        match self.returns:
            case None | ReturnCode(value=False) | ReturnCode(value=Out()) | Out():
                return ()
            case ReturnCode(dtype=dtype):
                return (result_param(dtype),)
            case tuple() as members:
                return tuple(map(result_param, members))
            case "string":
                return (kinds.String("result"),)
            case returned:
                return (result_param(returned),)

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        self.give(call, self.value(call))

    def give(self, call: Call, value: ir.Value) -> None:
        """Return the function's result, or end the call if it is a failure."""
        out = self._returned_to()
        if out is not None:
            call.emitter.store(value, out.values(call, self.function)[0])
        if isinstance(self.returns, ReturnCode):
            check_status(call, self.function, self.returns, value)
        if isinstance(self.returns, tuple):
            for each in received_members(call, value, self.returns):
                call.give([each])
        elif self.returns == "string":
            call.give(text_leaves(call, value, f"{self.function} returned"))
        elif self._returned():
            call.give([value])
        self.give_written(call)

    def give_written(self, call: Call) -> None:
        """Return the value of each `Out`, as it is at the end of the call."""
        for out in self._outs():
            if out.result:
                call.give_once(out.param, partial(out.given, call))
        for each in self._kept():
            assert each.handle is not None
            call.give_once(each.handle, partial(each.given, call))

    def value(self, call: Call) -> ir.Value:
        """Make the call; returns the function's result, or the address of a struct."""
        name, symbol = self.function, self.code.symbol(self.function)
        given: list[ir.Value] = []
        before = call.handed()
        self._check_written(call)
        for position, argument in enumerate(self.arguments):
            given += c_values(call, argument, f"argument #{position} of {name}")
        for out in self._outs():
            out.owned(call, self.code)
        call.say(partial(self._line, call.signature))
        returned = return_type(self.returns)
        types = [value.type for value in given]
        fixed = self._fixed(types)
        if self._has_structs():
            if isinstance(self.code.source, LlvmModule):
                raise _not_in_ir(call.signature.name, name)
            self.code.require(name, _SOME_FUNCTION, call.signature.name)
            self.code.bring(call, name)
            value = call_by_value(call, symbol, returned, self._passed(), given, fixed)
        else:
            wanted = ir.FunctionType(returned, types[:fixed], var_arg=fixed is not None)
            self.code.require(name, wanted, call.signature.name)
            promises = self.code.promises(name)
            if promises:
                given = kept(call, name, self.arguments, given, promises, before)
            given, kind = self._fitted(call, given, wanted)
            self.code.bring(call, name)
            value = self._plain(call, symbol, kind, given)
        call.take()
        call.check()
        if isinstance(returned, Shape):
            return value
        return received(call, value, returned, self.returns)

    def _line(self, signature: Signature) -> str:
        """The call, as the steps of a function show it."""
        given = [spoken(signature, argument) for argument in self.arguments]
        if self.variadic_from is not None:
            given.insert(self.variadic_from, "...")
        returns = spoken_returns(self.returns)
        return f"call {self.function}({', '.join(given)}){returns and f' -> {returns}'}"

    def _check_written(self, call: Call) -> None:
        """Refuse to lose what the function may write."""
        if not any(isinstance(each, Reference | Struct) for each in self.arguments):
            return
        promises = iter(() if self._has_structs() else self.code.promises(self.function))
        known = [[*islice(promises, values_of(each))] for each in self.arguments]
        pairs = list(zip(self.arguments, known, strict=True))
        check_references(call.signature.name, self.function, pairs)
        self._say_what_is_copied(call)

    def _say_what_is_copied(self, call: Call) -> None:
        """Warn of a struct that two calls get and may write: each gets one of its own."""
        for position, argument in enumerate(self.arguments):
            if not isinstance(argument, Reference) or argument.reads_only:
                continue
            if is_written(argument.value):
                continue
            if call.refers_again(argument) and isinstance(argument.value, InMemory):
                call.remark(
                    f"argument #{position} of {self.function} is a Reference that is handed over "
                    f"before: it is made anew here, so what C wrote there is lost; the .data of a "
                    f"temporary keeps it, and reads_only=True says that C writes nothing"
                )

    def _has_structs(self) -> bool:
        """Whether a struct is passed or returned by value."""
        by_value = any(isinstance(each, InMemory) for each in self.arguments)
        return by_value or isinstance(self.returns, tuple)

    def _plain(
        self, call: Call, symbol: str, kind: ir.FunctionType, given: list[ir.Value]
    ) -> ir.Value:
        """A call without structs."""
        ways = [each for argument in self.arguments for each in extensions(argument)]
        extended = {
            position: (how,)
            for position, (how, value) in enumerate(zip(ways, given, strict=True))
            if how and isinstance(value.type, ir.IntType)
        }
        callee = declared(call, symbol, kind)
        if isinstance(self.code.source, Undefined) and not isinstance(callee, ir.Function):
            raise ValueError(
                f"{call.signature.name}: {self.function} is called with different types, so nobody "
                f"can define it: give the functions names of their own"
            )
        # The declaration has them too, for readers that use it alone, such as MLIR.
        for position, parameter in enumerate(getattr(callee, "args", ())):
            for how in extended.get(position, ()):
                parameter.add_attribute(how)
        return call.emitter.builder.call(callee, given, arg_attrs=extended)

    def _fixed(self, kinds: collections.abc.Sequence[ir.Type]) -> int | None:
        """The number of values before the `...` of a variadic function, given their types; None if
        it is not variadic."""
        if self.variadic_from is None:
            return None
        before = self.arguments[: self.variadic_from]
        fixed = sum(map(values_of, before))
        check_promoted(self.function, fixed, kinds)
        return fixed

    def _passed(self) -> list[Passed]:
        """The parameters of the function, with structs."""
        passed: list[Passed] = []
        for position, argument in enumerate(self.arguments):
            if isinstance(argument, InMemory):
                passed.append(Shape.of(argument, f"argument #{position} of {self.function}"))
                continue
            pairs = zip(c_types(argument), extensions(argument), strict=True)
            passed += [f"{kind} {how}".rstrip() for kind, how in pairs]
        return passed

    def _fitted(
        self, call: Call, given: list[ir.Value], kind: ir.FunctionType
    ) -> tuple[list[ir.Value], ir.FunctionType]:
        """The values with the types of an LLVM IR callee: flags as i1, 2-byte floats as half."""
        source = self.code.source
        if not isinstance(source, LlvmModule):
            return given, kind
        found = source.functions[self.function]
        types = parameter_types(found)[: len(kind.args)]
        pairs = zip(given, types, strict=False)
        fitted = [as_ir(call, value, wanted) for value, wanted in pairs]
        returned = result_type(found)
        if returned not in UNWANTED:
            raise CompileError(
                f"{call.signature.name}: {self.function} returns {returned}, which no C function "
                f"does: let it write to a pointer"
            )
        if self.returns is None and returned in ("i8", "i16", "i32", "i64"):
            call.remark(
                f"{self.function} returns {returned}, which nobody gets: returns='status' makes "
                f"errors of a status, returns='int32' gives the number back",
                quiet=True,
            )
        taken = [value.type for value in fitted]
        wanted = ir.FunctionType(UNWANTED[returned], taken, var_arg=kind.var_arg)
        return [*fitted, *given[len(fitted) :]], wanted


def chosen_function(function: object, code: HostCode | None) -> tuple[str, HostCode]:
    """The name of a function and the code that contains it, as `CFunction` documents them."""
    if code is not None and not isinstance(code, HostCode):
        raise TypeError(
            f"CFunction: expected code=HostCode.from_object(…), from_llvm(…) or from_library(…), "
            f"of ferrule.compiler.conventions, but got {type(code).__name__}"
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


def _not_in_ir(name: str, function: str) -> CompileError:
    return CompileError(
        Diagnostic(
            f"{name}: {function} is LLVM IR, which has no structs of C by value: its compiler has "
            f"made other parameters of them",
            hint="list those as the function's type has them, or give the code as an object file, "
            "conventions.HostCode.from_object(…)",
        )
    )


def declared(call: Call, symbol: str, kind: ir.FunctionType) -> ir.Value:
    """The function of this name, even if it was declared with another type."""
    known = call.emitter.module.globals.get(symbol)
    if known is None and symbol in C_FUNCTIONS:
        known = call.emitter.extern(symbol)  # as ferrule's own calls of it want it
    if known is None:
        return ir.Function(call.emitter.module, kind, symbol)
    if known.ftype == kind:
        return known
    callee = ir.FormattedConstant(PTR, known.get_reference())
    callee.function_type = kind
    return callee


_OF_LIBC: Final = {
    **dict.fromkeys(("printf", "scanf", "wprintf", "warn", "warnx", "syscall", "prctl"), 1),
    **dict.fromkeys(("fprintf", "dprintf", "sprintf", "asprintf", "fscanf", "sscanf"), 2),
    **dict.fromkeys(("fwprintf", "syslog", "open", "fcntl", "ioctl", "err", "errx"), 2),
    **dict.fromkeys(("execl", "execlp", "execle"), 2),
    **dict.fromkeys(("snprintf", "swprintf", "openat", "error"), 3),
}
"""Variadic functions of libc, which has no prototypes at hand, and the position of their `...`."""


def check_named(name: str, code: HostCode, start: object, count: int) -> None:
    """Raise ValueError for a variadic function of libc without the position of its `...`, and for
    an invalid position; TypeError for a value that is not a position."""
    if start is not None:
        if not isinstance(start, int) or isinstance(start, bool):
            raise TypeError(
                f"{name}: variadic_from must be the position of the first argument of its `...`, "
                f"but got {start!r}"
            )
        if not 0 <= start <= count:
            raise ValueError(
                f"{name}: variadic_from={start} is no position among its {count} arguments"
            )
    elif name in _OF_LIBC and isinstance(code.source, Library) and code.source.path is None:
        raise ValueError(
            f"{name} takes any number of arguments, which are passed in another way: say which is "
            f"the first of these, variadic_from={_OF_LIBC[name]}"
        )


def check_promoted(name: str, fixed: int, kinds: Sequence[ir.Type]) -> None:
    """Raise TypeError for a value in the `...` of a type that C would have promoted."""
    for position, kind in enumerate(kinds):
        is_short = isinstance(kind, ir.IntType) and kind.width < 32
        if position >= fixed and (is_short or isinstance(kind, ir.FloatType)):
            wanted = "int32" if is_short else "float64"
            raise TypeError(
                f"{name}: value #{position} is {kind}, which C makes wider where a function takes "
                f"any: write conventions.cast(…, '{wanted}')"
            )

"""Addresses of functions, for the function pointers that are in structs and arguments of C."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import chosen_function, declared
from ferrule.compiler.hostcode import HostCode, Undefined
from ferrule.runtime.llvm.layouts import PTR
from ferrule.specs.deferred import dataclass

_SOME_FUNCTION: Final = ir.FunctionType(PTR, [])
"""The type that declares functions whose types nothing says."""


@dataclass(frozen=True, slots=True, init=False)
class FunctionPointer:
    """The address of a C function: of `code`, or as `CFunction` finds it.

        Struct([..., FunctionPointer("release", code=code), NULL])

    It is valid as long as the built function is.  Raises TypeError and ValueError as `CFunction`
    does; when it is built, CompileError for a function that the code does not have.
    """

    function: str
    code: HostCode

    def __init__(self, function: object, *, code: HostCode | None = None) -> None:
        name, found = chosen_function(function, code)
        if isinstance(found.source, Undefined):
            raise TypeError(f"FunctionPointer: {name} is undefined, so it has no address")
        object.__setattr__(self, "function", name)
        object.__setattr__(self, "code", found)

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        self.code.require(self.function, None, f"{call.signature.name}: {what}")
        self.code.bring(call, self.function)
        symbol = declared(call, self.code.symbol(self.function), _SOME_FUNCTION)
        return [ir.FormattedConstant(PTR, symbol.get_reference())]

"""Addresses of functions, for the function pointers that are in structs and arguments of C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from llvmlite import ir

from ferrule.compiler.conventions.arguments import listed
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.callbacks import checked_kind, checked_result
from ferrule.compiler.conventions.c.functions import chosen_function, declared
from ferrule.compiler.conventions.c.texts import CString
from ferrule.compiler.conventions.c.thunks import Kind, c_type
from ferrule.compiler.hostcode import HostCode, LlvmModule, Undefined
from ferrule.compiler.hostcode.irtext import parameter_types, result_type
from ferrule.runtime.llvm.layouts import PTR, VOID
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

_SOME_FUNCTION: Final = ir.FunctionType(PTR, [])
"""The type that declares functions whose types nothing says."""


@dataclass(frozen=True, slots=True, init=False)
class FunctionPointer:
    """The address of a C function: of `code`, or as `CFunction` finds it.

        Struct([..., FunctionPointer("release", code=code), NULL])

    It is valid as long as the built function is.  `params` and `returns` are its type, in the words
    of a `Callback`, all of its parameters among them: where what C calls is known, as in
    `frontends.c`, they must be the same.  LLVM IR, and a source that declares the function, say it
    themselves.  Raises TypeError and ValueError as `CFunction` and `Callback` do; when it is built,
    CompileError for a function that the code does not have, or has with another type.
    """

    function: str
    code: HostCode
    params: tuple[Kind, ...] | None
    returns: DType | Literal["pointer"] | None

    def __init__(
        self,
        function: object,
        params: Sequence[DType | str | type[CString]] | None = None,
        *,
        returns: DType | str | None = None,
        code: HostCode | None = None,
    ) -> None:
        name, found = chosen_function(function, code)
        if isinstance(found.source, Undefined):
            raise TypeError(f"FunctionPointer: {name} is undefined, so it has no address")
        put, what = object.__setattr__, f"the FunctionPointer of {name}"
        put(self, "function", name)
        put(self, "code", found)
        if params is None and returns is not None:
            raise ValueError(f"{what}: it returns something: say params, too, [] where it has none")
        kinds = None if params is None else listed(params, f"{what}: params")
        put(self, "params", kinds and tuple(checked_kind(each, what) for each in kinds))
        put(self, "returns", None if returns is None else checked_result(returns, what))

    def said(self) -> tuple[tuple[DType | str, ...] | None, DType | str | None]:
        """The types of its parameters, None if nobody knows them, and of its result.  What it does
        not say itself LLVM IR says, whose integers have no sign."""
        source = self.code.source
        if self.params is None and isinstance(source, LlvmModule):
            found = source.functions.get(self.function, "void ()")
            result = result_type(found)
            return tuple(parameter_types(found)), None if result == "void" else result
        return self.params, self.returns

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        kind = None
        if self.params is not None:
            returned = VOID if self.returns is None else c_type(self.returns)
            kind = ir.FunctionType(returned, [c_type(each) for each in self.params])
        self.code.require(self.function, kind, f"{call.signature.name}: {what}")
        self.code.bring(call, self.function)
        symbol = declared(call, self.code.symbol(self.function), _SOME_FUNCTION)
        return [ir.FormattedConstant(PTR, symbol.get_reference())]

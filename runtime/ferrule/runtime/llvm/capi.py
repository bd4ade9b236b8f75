"""LLVM's types of the C functions that generated code may reference."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime import cfunctions
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID

_TYPES: Final[Mapping[str, ir.Type]] = MappingProxyType(
    {str(each): each for each in (I32, I64, PTR, VOID)}
)


def c_function_type(name: str) -> ir.FunctionType:
    """The LLVM type of a function of the table."""
    function = cfunctions.c_function(name)
    arguments = [_TYPES[each] for each in function.arguments]
    return ir.FunctionType(_TYPES[function.result], arguments, var_arg=function.variadic)

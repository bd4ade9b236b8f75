"""Calling conventions: how a wrapper hands decoded values to what it calls.

A convention is a small object with `emit`; adding one touches no other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from ferrule.compiler.artefacts import Body
from ferrule.compiler.wrapper.decoded import Decoded, DecodedCall, DecodedScalar, DecodedTensor
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, PTR
from ferrule.specs import Sym


class CallingConvention(Protocol):
    """Emits the call behind the checks."""

    def emit(self, emitter: Emitter, call: DecodedCall) -> ir.Value:
        """Make the call; the value is an i32, 0 or 1 + the number of the fault."""
        ...


@dataclass(frozen=True, slots=True)
class BodyCall:
    """Calls the function of a `Body`, with the C type that is documented there."""

    body: Body

    def emit(self, emitter: Emitter, call: DecodedCall) -> ir.Value:
        """See `CallingConvention`."""
        arguments = [call.values]
        arguments += [_argument(decoded) for decoded in call.params.values()]
        arguments += [_symbol(emitter, call, symbol) for symbol in self.body.symbols]
        kinds = [PTR, *(argument.type for argument in arguments[1:])]
        callee = emitter.symbol(self.body.symbol, ir.FunctionType(I32, kinds))
        return emitter.call(callee, arguments, "status")


def _argument(decoded: Decoded) -> ir.Value:
    match decoded:
        case DecodedTensor(data=data):
            return data
        case DecodedScalar(value=value):
            return value


def _symbol(emitter: Emitter, call: DecodedCall, symbol: Sym) -> ir.Value:
    value = call.symbols[symbol]
    return value if symbol.width == 64 else emitter.builder.trunc(value, ir.IntType(symbol.width))

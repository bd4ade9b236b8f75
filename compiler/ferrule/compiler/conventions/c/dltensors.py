"""Calls of C functions that take tensors as `DLTensor*`, which are valid during the call.

    DLTensors("scale", [sig["x"], sig["y"], sig["alpha"]], code=HostCode.from_object("scale.o"))

calls `void scale(DLTensor* x, DLTensor* y, float alpha)`.
"""

from __future__ import annotations

import collections.abc
from typing import ClassVar

from llvmlite import ir

from ferrule.compiler.conventions.arguments import listed
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.host_arguments import CArgument
from ferrule.compiler.conventions.c.returns import Returns
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.llvm.layouts import I8, PTR
from ferrule.specs import Condition, Param, Tensor
from ferrule.specs import params as kinds
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Lent:
    """A tensor as a `DLTensor*`; null for an absent optional tensor."""

    word: ClassVar[str] = "DLTensor"
    tensor: Tensor
    optional: kinds.Optional | None = None

    def types(self) -> list[ir.Type]:
        """See `HostArgument`."""
        return [PTR]

    def values(self, call: Call, what: str) -> list[ir.Value]:
        """See `HostArgument`."""
        e = call.emitter
        if self.optional is None:
            return [call.dltensor(self.tensor)]
        present, address = call.leaves(self.optional)
        there = e.icmp("ne", present, ir.Constant(I8, 0))
        return [e.select(there, call.dltensor(self.tensor, address), e.null())]


@dataclass(frozen=True, slots=True, init=False)
class DLTensors:
    """Calls a C function whose tensors are `DLTensor*`, with shape and strides; null for an absent
    optional tensor.

    Everything else is as for `CFunction`, which is `function`.  The callee must not keep the
    pointers after the call.
    """

    function: CFunction

    def __init__(
        self,
        function: object,
        arguments: collections.abc.Sequence[CArgument] = (),
        *,
        returns: Returns = None,
        code: HostCode | None = None,
        when: Condition | None = None,
    ) -> None:
        given = [_lent(each) for each in listed(arguments, "the arguments of DLTensors")]
        made = CFunction(function, given, returns=returns, code=code, when=when)
        object.__setattr__(self, "function", made)

    @property
    def when(self) -> Condition | None:
        """See `CallingConvention`."""
        return self.function.when

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return self.function.results()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        self.function.emit(call)


def _lent(argument: CArgument) -> CArgument:
    match argument:
        case Tensor():
            return Lent(argument)
        case kinds.Optional(item=Tensor() as tensor):
            return Lent(tensor, argument)
    return argument

"""`Give`: gives values of the call back, and calls nothing."""

from __future__ import annotations

from typing import TypeAlias

from llvmlite import ir

from ferrule.compiler.conventions.arguments import Cast, shown
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import converted
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Dim, Int64, Param, Pointer, Scalar
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim

Value: TypeAlias = "Dim | Scalar | Pointer | Cast"


@dataclass(frozen=True, slots=True, init=False)
class Give:
    """Gives numbers and addresses of the call back, in this order.

        build(Signature("shape", [x]), Give(n, m))                 # (n, m)
        Sequence([CFunction("getrf", [.., info]), Give(info.value)])

    A size is an int64, a parameter has its own type, `cast(n, "int32")` another one.  Raises
    TypeError for anything else, also for tensors: the caller has those that it hands over, and a
    call makes others as `results` of `build`.
    """

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        if not values:
            raise ValueError("Give: expected a size or a parameter to give back")
        for each in values:
            if not (is_dim(each) or isinstance(each, Scalar | Pointer | Cast)):
                raise TypeError(
                    f"Give: expected a size, a number or a Pointer of the signature, but got "
                    f"{shown(each)}"
                )
        object.__setattr__(self, "values", values)

    @property
    def when(self) -> None:
        """See `CallingConvention`."""
        return None

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return tuple(map(_result, self.values))

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for position, each in enumerate(self.values):
            call.give([_value(call, each, f"#{position} of what is given back")])


def _result(value: Value) -> Param:
    match value:
        case Scalar(dtype=dtype) | Cast(dtype=dtype):
            return Scalar("result", dtype)
        case Pointer():
            return Pointer("result")
    return Scalar("result", Int64)


def _value(call: Call, value: Value, what: str) -> ir.Value:
    match value:
        case Scalar() | Pointer():
            return call.leaves(value)[0]
        case Cast(value=inner, dtype=dtype):
            return converted(call, inner, dtype, what)
    return call.size(value, what)

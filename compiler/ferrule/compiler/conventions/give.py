"""`Give`: gives values of the call back, and calls nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.conventions.arguments import Cast, shown, spoken
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import converted
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Dim, Int64, Param, Pointer, Scalar, Signature, Tensor
from ferrule.specs import params as kinds
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim
from ferrule.specs.params.base import REQUIRED

Value: TypeAlias = "Dim | Param | Cast"
_WHOLE: Final = (Scalar, Pointer, Tensor, kinds.DataType, kinds.Device)
_PAYLOADS: Final = (kinds.Payload.BYTES, kinds.Payload.OBJECT)


@dataclass(frozen=True, slots=True, init=False)
class Give:
    """Gives sizes and parameters of the call back, in this order.

        build(Signature("shape", [x]), Give(n, m))                 # (n, m)
        build(Signature("same", [text]), Give(text))
        Sequence([CFunction("getrf", [.., info]), Give(info.value)])

    A size is an int64, a number has its own type, `cast(n, "int32")` another one.  Of parameters
    it takes numbers, addresses, texts, bytes, dtypes, devices, and objects of tvm-ffi, such as a
    Tensor, a Function or a List, which come back as the same object.  Raises TypeError for anything
    else.

    A tensor is a parameter or an item of a tuple.  Nothing is copied: the result is the memory of
    the argument, and keeps it alive.  So the argument must be an object, and the parameter is
    `owning` from then on.
    """

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        if not values:
            raise ValueError("Give: expected a size or a parameter to give back")
        for each in values:
            if not (is_dim(each) or isinstance(each, Cast) or _comes_back(each)):
                raise TypeError(
                    f"Give: expected a size, a number, an address, a text or an object of the "
                    f"signature, but got {shown(each)}"
                )
            if isinstance(each, Tensor) and each.read_only:
                raise ValueError(
                    f"Give: {shown(each)} is read_only, but what comes back could be written: "
                    f"leave read_only out, or give a copy, CFunction('memcpy', [y.data, x.data, "
                    f"x.nbytes]) with results=[y]"
                )
        object.__setattr__(self, "values", values)

    @property
    def when(self) -> None:
        """See `CallingConvention`."""
        return None

    @property
    def objects(self) -> tuple[Tensor, ...]:
        """The tensors whose objects it needs, see `Call.object_of`."""
        return tuple(each for each in self.values if isinstance(each, Tensor))

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return tuple(map(_result, self.values))

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        call.say(partial(_line, call.signature, self.values))
        for position, each in enumerate(self.values):
            call.give(_leaves(call, each, f"#{position} of what is given back"))


def _line(signature: Signature, values: tuple[Value, ...]) -> str:
    return f"give back {spoken(signature, values)}"


def _comes_back(value: object) -> bool:
    """Whether this is a parameter that a call can return as it is."""
    return isinstance(value, _WHOLE) or kinds.payload_of(value) in _PAYLOADS


def _result(value: Any) -> Param:
    match value:
        case Cast(dtype=dtype):
            return Scalar("result", dtype)
        case Pointer():
            return Pointer("result")
        case Tensor():
            return changed(value, name="result", owning=False)
    if _comes_back(value):
        made: Param = replace(value, name="result", default=REQUIRED)
        return made
    return Scalar("result", Int64)


def _leaves(call: Call, value: Any, what: str) -> list[ir.Value]:
    if isinstance(value, Cast):
        return [converted(call, value.value, value.dtype, what)]
    if isinstance(value, Tensor):
        return [call.object_of(value)]
    return call.leaves(value) if _comes_back(value) else [call.size(value, what)]

"""`Give`: gives values of the call back, and calls nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.conventions.arguments import Cast, shown, spoken
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.conversions import converted
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.host import tensors
from ferrule.compiler.support.allocation import NO_VIEWS
from ferrule.runtime.llvm.layouts import PTR
from ferrule.specs import Dim, Int64, Param, Pointer, Scalar, Signature, Tensor
from ferrule.specs import params as kinds
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import is_dim, sym_int64
from ferrule.specs.params.base import REQUIRED


@dataclass(frozen=True, slots=True)
class View:
    """A part or another shape of a tensor of the signature, from the element `offset` on: the same
    memory, with these sizes and strides in elements."""

    tensor: Tensor
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0


@dataclass(frozen=True, slots=True)
class Made:
    """A tensor that the call has made: one of the temporaries of a `Sequence`.

    Its sizes may be made of integers of the call; the sizes of `results` may not.
    """

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Given:
    """The place of a result of the convention, see `GIVEN`."""


GIVEN: Final = Given()
"""Among `results` of `build`: here comes the next result that the convention gives."""

Value: TypeAlias = "Dim | Param | Cast | View | Made | str"
_OF_TENSORS: Final = (View, Made)
_WHOLE: Final = (Scalar, Pointer, Tensor, kinds.DataType, kinds.Device)
_PAYLOADS: Final = (kinds.Payload.BYTES, kinds.Payload.OBJECT)


@dataclass(frozen=True, slots=True, init=False)
class Give:
    """Gives sizes and parameters of the call back, in this order.

        build(Signature("shape", [x]), Give(n, m))                 # (n, m)
        build(Signature("same", [text]), Give(text))
        Sequence([CFunction("getrf", [.., info]), Give(info.value)])

    A size is an int64, a number has its own type, `cast(n, "int32")` another one.  A text is the
    same in each call.  A `View` is a part of a tensor, or it in another shape, and `Made` a tensor
    that the call makes.  Of parameters it takes numbers, addresses, texts, bytes, dtypes, devices,
    and objects of tvm-ffi, such as a Tensor, a Function or a List, which come back as the same
    object.  Raises TypeError for anything else.

    A tensor is a parameter or an item of a tuple.  Nothing is copied: the result is the memory of
    the argument, and keeps it alive.  So the argument must be an object, and the parameter is
    `owning` from then on.
    """

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        if not values:
            raise ValueError("Give: expected a size or a parameter to give back")
        for each in values:
            if not (
                is_dim(each) or isinstance(each, Cast | View | Made | str) or _comes_back(each)
            ):
                raise TypeError(
                    f"Give: expected a size, a number, an address, a text or an object of the "
                    f"signature, but got {shown(each)}"
                )
            of = each.tensor if isinstance(each, View) else each
            if isinstance(of, Tensor) and of.read_only:
                raise ValueError(
                    f"Give: {shown(of)} is read_only, but what comes back could be written: "
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
        tensors = (each.tensor if isinstance(each, View) else each for each in self.values)
        return tuple(each for each in tensors if isinstance(each, Tensor))

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
    shown = (each.tensor if isinstance(each, _OF_TENSORS) else each for each in values)
    words = (repr(each) if isinstance(each, str) else spoken(signature, (each,)) for each in shown)
    return f"give back {', '.join(words)}"


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
        case Made(tensor=of):
            return Tensor("result", tuple(map(_as_told, of.shape)), of.dtype, device=of.device)
        case View(tensor=of):
            return Tensor("result", value.shape, of.dtype, strides=value.strides, device=of.device)
        case str():
            return kinds.String("result")
    if _comes_back(value):
        made: Param = replace(value, name="result", default=REQUIRED)
        return made
    return Scalar("result", Int64)


def _as_told(dim: Dim) -> Dim:
    """A size as the result tells it: numbers of the call are no sizes of its signature."""
    return dim if isinstance(dim, int) else sym_int64()


def _leaves(call: Call, value: Any, what: str) -> list[ir.Value]:
    if isinstance(value, Cast):
        return [converted(call, value.value, value.dtype, what)]
    if isinstance(value, Tensor):
        return [call.object_of(value)]
    if isinstance(value, View):
        return [_view(call, value)]
    if isinstance(value, Made):
        return [call.handle_of(value.tensor)]
    if isinstance(value, str):
        text = value.encode()
        e = call.emitter
        return [e.bytes_constant(text + b"\0"), e.const_i64(len(text))]
    return call.leaves(value) if _comes_back(value) else [call.size(value, what)]


def _view(call: Call, view: View) -> ir.Value:
    """The handle of a view, which the body owns; it holds the tensor."""
    e, of = call.emitter, view.tensor
    source, place = call.object_of(of), e.index(call.handles, PTR, call.owned)
    call.owned += 1
    e.call("TVMFFIObjectIncRef", [source])
    e.store(source, place)
    begin = call.address(of.data.byte_offset(view.offset * (of.dtype.bits // 8)))
    like = Tensor(of.name, view.shape, of.dtype, strides=view.strides, device=of.device)
    status = tensors.view(e, call.dltensor(like, begin), place)
    call.require(status, [Fault(*NO_VIEWS)])
    return e.load(place, PTR)

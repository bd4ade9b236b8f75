"""Structs by value, laid out as C does, of what a convention can hand over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.arguments import (
    Argument,
    check_argument,
    listed,
    parameters,
    shown,
    store,
)
from ferrule.compiler.conventions.base import Call
from ferrule.runtime.llvm.layouts import I8
from ferrule.specs import Tensor

_MOST_ALIGNED: Final = 4096


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct by value: its fields one after the other, each at its natural alignment.

    `least_align` is what it is aligned to at least, for one that the callee declares so; `size` and
    `align` are in bytes, `size` with what fills it up, and `offsets` say where each field is.
    """

    fields: tuple[Argument, ...]
    least_align: int = 1

    size: int = field(init=False, repr=False, compare=False)
    align: int = field(init=False, repr=False, compare=False)
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, fields: Sequence[Argument], align: int = 1) -> None:
        put = object.__setattr__
        put(self, "fields", listed(fields, "the fields of a Struct"))
        put(self, "least_align", align)
        if not isinstance(align, int):
            raise TypeError(f"Struct: align must be an int, but got {align!r}")
        if not 1 <= align <= _MOST_ALIGNED or align & (align - 1):
            raise ValueError(
                f"Struct: align must be a power of two up to {_MOST_ALIGNED}, but got {align}"
            )
        for position, each in enumerate(self.fields):
            check_argument(each, f"field #{position} of a struct")
        fitted, end, offsets = list(map(_fitted, self.fields)), 0, []
        for size, least in fitted:
            offsets.append(rounded(end, least))
            end = offsets[-1] + size
        put(self, "offsets", tuple(offsets))
        put(self, "align", max([align, *(least for _, least in fitted)]))
        put(self, "size", rounded(end, self.align))

    def store(self, call: Call, place: ir.Value, what: str) -> None:
        """See `InMemory`; what fills it up is zeros, and not what was on the stack."""
        end = 0
        for position, (each, offset) in enumerate(zip(self.fields, self.offsets, strict=True)):
            fill(call, place, end, offset)
            at = call.emitter.index(place, I8, offset)
            store(call, each, at, f"field #{position} of {what}")
            end = offset + _fitted(each)[0]
        fill(call, place, end, self.size)


@dataclass(frozen=True, slots=True, init=False)
class TensorStruct(Struct):
    """A tensor as CuTe's kernels take it, by value: `{data, {shape, stride}}`.

    Of sizes and strides only those stand there that the spec does not fix: a symbol with its own
    width, an expression as int64; a part that would be empty is left out.
    """

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"TensorStruct: expected a Tensor, but got {shown(tensor)}")
        parts = [
            Struct([dim for dim in dims if not isinstance(dim, int)])
            for dims in (tensor.shape, tensor.strides)
        ]
        inner = [part for part in parts if part.fields]
        Struct.__init__(self, [tensor.data, Struct(inner)] if inner else [tensor.data])


class TensorStructs(tuple[TensorStruct, ...]):
    """A `TensorStruct` for each of some tensors, in their order.

    CudaLaunch(code, "kernel", [*TensorStructs(sig["a"], sig["b"]), n], …)
    """

    __slots__ = ()

    def __new__(cls, *tensors: Tensor) -> TensorStructs:
        return super().__new__(cls, map(TensorStruct, tensors))


def fill(call: Call, place: ir.Value, start: int, stop: int) -> None:
    """Write zeros to the bytes of a struct in which no field is."""
    if start < stop:
        zeros = ir.Constant(ir.ArrayType(I8, stop - start), None)
        call.emitter.store(zeros, call.emitter.index(place, I8, start))


def _fitted(argument: Argument) -> tuple[int, int]:
    """Size and alignment of a field of a struct, which is one value."""
    found = parameters(argument)
    if len(found) != 1:
        raise TypeError(
            f"a field of a struct is one value, but {shown(argument)} becomes {len(found)}"
        )
    return found[0]


def rounded(size: int, align: int) -> int:
    """The next multiple of an alignment."""
    return -(-size // align) * align

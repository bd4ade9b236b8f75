"""Structs by value with C's layout, made of arguments that a convention can pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
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
from ferrule.specs.deferred import dataclass

_MOST_ALIGNED: Final = 4096


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct by value: its fields in order, each at its natural alignment.

    `least_align` is its minimum alignment, for a callee that declares one; `size` and `align` are
    in bytes, `size` includes the padding at the end, and `offsets` are the offsets of the fields.
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
        """See `InMemory`; padding is filled with zeros instead of old stack contents."""
        end = 0
        for position, (each, offset) in enumerate(zip(self.fields, self.offsets, strict=True)):
            fill(call, place, end, offset)
            at = call.emitter.index(place, I8, offset)
            store(call, each, at, f"field #{position} of {what}")
            end = offset + _fitted(each)[0]
        fill(call, place, end, self.size)


@dataclass(frozen=True, slots=True, init=False)
class TensorStruct(Struct):
    """A tensor by value, as CuTe's kernels take it: `{data, {shape, stride}}`.

    It has only the sizes and strides that the spec does not fix: a symbol in its own width, an
    expression as int64; an empty part is omitted.
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
    """Write zeros to the bytes of a struct between its fields."""
    if start < stop:
        zeros = ir.Constant(ir.ArrayType(I8, stop - start), None)
        call.emitter.store(zeros, call.emitter.index(place, I8, start))


def _fitted(argument: Argument) -> tuple[int, int]:
    """Size and alignment of a field of a struct, which must be one value."""
    found = parameters(argument)
    if len(found) != 1:
        raise TypeError(
            f"a field of a struct is one value, but {shown(argument)} becomes {len(found)}"
        )
    return found[0]


def rounded(size: int, align: int) -> int:
    """The next multiple of an alignment."""
    return -(-size // align) * align

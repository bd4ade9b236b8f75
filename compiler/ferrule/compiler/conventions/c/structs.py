"""Structs, arrays and unions with C's layout, made of arguments that a convention can pass.

    dim = Struct([cast(0, "int32"), cast(n, "int32"), cast(1, "int32")])
    Reference(Struct([sig["x"].data, cast(1, "int32"), Reference(Array([dim]))]))

A field can be the address of another struct, to any depth: all of them live until the call returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from llvmlite import ir

from ferrule.compiler.conventions.arguments import (
    CArgument,
    HostArgument,
    InMemory,
    c_types,
    check_field,
    listed,
    parameters,
    shown,
    store,
)
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.outs import OutField
from ferrule.runtime.llvm.layouts import I8
from ferrule.specs import Tensor
from ferrule.specs.deferred import dataclass

_MOST_ALIGNED: Final = 4096


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct by value: its fields in order, each at its natural alignment.

    A field is an argument, or for host code another single value, such as a `Reference` to another
    struct or a `CString`.  A flexible array is an `Array` as the last field: its items begin where
    C puts them.  `least_align` is the minimum alignment, for a callee that declares one; `size` and
    `align` are in bytes, `size` includes the padding at the end, and `offsets` are the offsets of
    the fields.
    """

    fields: tuple[CArgument, ...]
    least_align: int = 1

    size: int = field(init=False, repr=False, compare=False)
    align: int = field(init=False, repr=False, compare=False)
    offsets: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, fields: Sequence[CArgument], align: int = 1) -> None:
        put = object.__setattr__
        put(self, "fields", listed(fields, "the fields of a Struct"))
        put(self, "least_align", _checked_align("Struct", align))
        for position, each in enumerate(self.fields):
            check_field(each, f"field #{position} of a struct")
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


@dataclass(frozen=True, slots=True, init=False)
class Array(Struct):
    """An array of C: items of one type, behind each other.

        Reference(Array([Struct([cast(0, "int32"), cast(size, "int32")]) for size in shape]))

    The number of items is fixed when the function is built.  C passes no array by value: a function
    takes a `Reference`, or a `Struct` with the array in it.  Raises TypeError for items of
    different types, ValueError for an array without items.
    """

    def __init__(self, items: Sequence[CArgument]) -> None:
        Struct.__init__(self, listed(items, "the items of an Array"))
        if not self.fields:
            raise ValueError(
                "Array: expected at least one item: leave an empty array out of its struct, where "
                "align=… keeps the alignment; its address is NULL"
            )
        kinds = [(_fitted(each), tuple(members(each, 0))) for each in self.fields]
        for position, kind in enumerate(kinds):
            if kind != kinds[0]:
                raise TypeError(
                    f"Array: item #{position} has another type in C than item #0: {_said(kind)}, "
                    f"expected {_said(kinds[0])}"
                )


@dataclass(frozen=True, slots=True, init=False)
class Union(Struct):
    """A union of C that holds one of its members; the other bytes are zero.

        Union(cast(sig["alpha"], "float32"), size=8, align=8)

    `size` and `align` are those of the union, which its largest members determine; by default those
    of the value.  Registers depend on all members of a union, so C functions take it, or a struct
    with one, by its address: `Reference`.  Raises ValueError for a size or alignment that is too
    small, or a size that is not a multiple of the alignment.
    """

    room: int = field(init=False)

    def __init__(self, value: CArgument, size: int | None = None, align: int = 1) -> None:
        Struct.__init__(self, [value], _checked_align("Union", align))
        room = self.size if size is None else size
        if isinstance(room, bool) or not isinstance(room, int):
            raise TypeError(f"Union: size must be an int of bytes, but got {size!r}")
        if room < self.size or room % self.align:
            raise ValueError(
                f"Union: expected a size of at least {self.size} bytes and a multiple of the "
                f"alignment, {self.align}, but got {room}"
            )
        object.__setattr__(self, "room", room)
        object.__setattr__(self, "size", room)


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


def members(given: CArgument, start: int) -> Iterator[tuple[int, str]]:
    """The offset and LLVM type of the numbers and addresses in a struct at an offset; none for an
    argument that is just bytes."""
    match given:
        case OutField(place=place) if place.room is not None:
            yield from ((start + at, "i8") for at in range(place.room))
        case OutField():
            yield start, str(given.place.kind)
        case Struct(fields=fields, offsets=offsets):
            for each, offset in zip(fields, offsets, strict=True):
                yield from members(each, start + offset)
        case InMemory():
            return
        case _:
            (kind,) = c_types(given)
            yield start, str(kind)


def fields_of(given: CArgument) -> Iterator[CArgument]:
    """An argument, and what is in it if it is a struct, at any depth."""
    yield given
    if isinstance(given, Struct):
        for each in given.fields:
            yield from fields_of(each)


def is_opaque(given: CArgument) -> bool:
    """Whether an argument is, or has in it, bytes of which the type is not known: a union, or an
    `InMemory` of another kind."""
    match given:
        case Union():
            return True
        case Struct(fields=fields):
            return any(map(is_opaque, fields))
        case HostArgument():
            return False
    return isinstance(given, InMemory)


def _checked_align(what: str, align: int) -> int:
    if isinstance(align, bool) or not isinstance(align, int):
        raise TypeError(f"{what}: align must be an int, but got {align!r}")
    if not 1 <= align <= _MOST_ALIGNED or align & (align - 1):
        raise ValueError(
            f"{what}: align must be a power of two up to {_MOST_ALIGNED}, but got {align}"
        )
    return align


def _said(kind: tuple[tuple[int, int], tuple[tuple[int, str], ...]]) -> str:
    """The type of an item of an array, for errors."""
    (size, align), inner = kind
    shown_members = ", ".join(f"{name} at {at}" for at, name in inner)
    return f"{size} bytes aligned to {align} ({shown_members})"


def _fitted(argument: CArgument) -> tuple[int, int]:
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

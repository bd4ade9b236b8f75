"""What the body of a function is given: the leaves of each parameter, in order.

A leaf is its value as an unsigned number of 64 bits, or what only the memory of a call can tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ferrule.specs import DEVICE_CODES, DEVICE_NAMES, STREAM_DEVICES, DType, Signature
from ferrule.specs import params as kinds
from ferrule.specs.params import Param
from oracle.arguments import Big, Blob, Items, Opaque, Text, View
from oracle.rounding import bits_of
from oracle.values import device_of, dtype_code
from oracle.walk import Site, chosen


@dataclass(frozen=True)
class NotANumber:
    """Any NaN of this dtype."""

    dtype: str


@dataclass(frozen=True)
class Characters:
    """The address of these bytes."""

    data: bytes


@dataclass(frozen=True)
class ObjectAt:
    """The address of the object that stands at this path."""

    path: tuple[int, ...]


@dataclass(frozen=True)
class SlotAt:
    """The address of the TVMFFIAny at this path."""

    path: tuple[int, ...]


@dataclass(frozen=True)
class StreamOf:
    """The caller's current stream of this device; without one null."""

    device: tuple[int, int] | None


Leaf: TypeAlias = int | NotANumber | Characters | ObjectAt | SlotAt | StreamOf


def leaves_of(
    signature: Signature, sites: Sequence[Site], gpu: tuple[int, int] | None
) -> Iterator[Leaf]:
    """The leaves of an accepted call, whose first tensor that is not the CPU's is on `gpu`."""
    given = iter(sites)
    for param in signature.params:
        if isinstance(param, kinds.EnvStream):
            own = None if param.device is None else (DEVICE_CODES[param.device], param.device_id)
            named = None if own is None or own[0] == 1 else (own[0], own[1] or 0)
            yield StreamOf(_with_streams(gpu or named))
        else:
            yield from _leaves(next(given))


def _with_streams(device: tuple[int, int] | None) -> tuple[int, int] | None:
    """The device that has the streams for another one: managed memory has those of the GPU."""
    if device is None:
        return None
    name = DEVICE_NAMES[device[0]]
    return DEVICE_CODES[STREAM_DEVICES.get(name, name)], device[1]


def types_of(param: Param) -> list[str]:
    """The LLVM types of a parameter's leaves."""
    match param:
        case kinds.Scalar(dtype=dtype):
            return [_scalar_type(dtype)]
        case kinds.Shape() | kinds.NoneValue() | kinds.Constant():
            return []
        case kinds.Tuple(items=items):
            return [leaf for item in items for leaf in types_of(item)]
        case kinds.Optional(item=item):
            return ["i8", *types_of(item)]
        case kinds.Union(members=members):
            return ["i32", *(leaf for member in members for leaf in types_of(member))]
        case kinds.String() | kinds.Bytes():
            return ["ptr", "i64"]
        case kinds.DataType():
            return ["i32"]
        case kinds.Device():
            return ["i64"]
    return ["ptr"]


def _scalar_type(dtype: DType) -> str:
    if dtype.kind == "float" and dtype.bits > 16:
        return "float" if dtype.bits == 32 else "double"
    return f"i{dtype.bits}"


def _leaves(site: Site) -> Iterator[Leaf]:
    param, argument, where = site.param, site.argument, site.where
    match param:
        case kinds.Tuple(items=items):
            assert isinstance(argument, Items)
            for i, (item, value) in enumerate(zip(items, argument.items, strict=True)):
                yield from _leaves(Site(item, value, where.item(i)))
        case kinds.Optional(item=item):
            yield int(argument is not None)
            absent = argument is None
            yield from _zeros(item) if absent else _leaves(Site(item, argument, where))
        case kinds.Union(members=members):
            came = chosen(members, argument)
            yield came
            for i, member in enumerate(members):
                inside = Site(member, argument, where)
                yield from _leaves(inside) if i == came else _zeros(member)
        case kinds.Shape() | kinds.NoneValue() | kinds.Constant():
            return
        case _:
            yield from _plain_leaves(param, argument, where.path)


def _zeros(param: Param) -> list[Leaf]:
    return [0 for _ in types_of(param)]


def _plain_leaves(param: Param, argument: Any, path: tuple[int, ...]) -> list[Leaf]:
    match param, argument:
        case kinds.Tensor(), View(data=data, byte_offset=offset):
            return [(data + offset) % (1 << 64)]
        case kinds.Scalar(dtype=dtype), _:
            return [_number(dtype, argument)]
        case ((kinds.Pointer() | kinds.Stream()), _):
            return [argument.address if isinstance(argument, Opaque) else argument or 0]
        case ((kinds.String() | kinds.Bytes()), (Text(data) | Blob(data))):
            return [Characters(data), len(data)]
        case kinds.DataType(), _:
            return [dtype_code(argument)]
        case kinds.Device(), _:
            found = device_of(argument.data.decode() if isinstance(argument, Text) else argument)
            assert found is not None
            return [found[0] | found[1] << 32]
        case kinds.AnyValue(), _:
            return [SlotAt(path)]
    return [ObjectAt(path)]


def _number(dtype: DType, argument: Any) -> Leaf:
    number = argument.value if isinstance(argument, Big) else argument
    if dtype.kind != "float":
        return int(number) % (1 << dtype.bits)
    value = float(number)
    return NotANumber(dtype.name) if math.isnan(value) else bits_of(dtype.name, value)

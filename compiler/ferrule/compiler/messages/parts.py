"""What a message is made of: fixed text, and parts that are read from the call when it fails.

A closed union of frozen dataclasses.  `argument` is the position of an argument; parts that need a
tensor there may stand only in messages of checks behind the one for its kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Order = Literal["row-major", "column-major"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words that are known when the wrapper is built."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A number that the check left in the buffer of values, in decimal."""

    slot: int


@dataclass(frozen=True, slots=True)
class NumArgs:
    """How many arguments came."""


@dataclass(frozen=True, slots=True)
class TypeOf:
    """The kind of an argument, as a Python user names it: None, int, Tensor."""

    argument: int


@dataclass(frozen=True, slots=True)
class IntOf:
    """The value of an argument that is an int or a bool."""

    argument: int


@dataclass(frozen=True, slots=True)
class NdimOf:
    """The number of dims of a tensor."""

    argument: int


@dataclass(frozen=True, slots=True)
class DTypeOf:
    """The dtype of a tensor by ferrule's name, else its code, bits and lanes."""

    argument: int


@dataclass(frozen=True, slots=True)
class DeviceOf:
    """The device of a tensor: `cuda:1`."""

    argument: int


@dataclass(frozen=True, slots=True)
class SizeOf:
    """One size of a tensor."""

    argument: int
    axis: int


@dataclass(frozen=True, slots=True)
class StrideOf:
    """One stride of a tensor in elements; of a compact tensor, where it came without strides."""

    argument: int
    axis: int


@dataclass(frozen=True, slots=True)
class AddressOf:
    """The address of a tensor's first element, in hexadecimal."""

    argument: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """The text whose place among `texts` is the number in a slot of the buffer of values."""

    slot: int
    texts: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Hint:
    """Words that are shown only where a tensor's strides look like those of an order."""

    argument: int
    order: Order
    text: Text


Part: TypeAlias = (
    Text
    | Value
    | NumArgs
    | TypeOf
    | IntOf
    | NdimOf
    | DTypeOf
    | DeviceOf
    | SizeOf
    | StrideOf
    | AddressOf
    | OneOf
    | Hint
)


@dataclass(frozen=True, slots=True)
class Message:
    """One way in which a call can be refused: class of the error, its text, a traceback line."""

    code: str
    error: str
    parts: tuple[Part, ...]
    trace: str = ""

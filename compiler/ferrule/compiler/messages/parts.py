"""The components of a message: fixed text, and parts that are read from the failing call.

A closed union of frozen dataclasses.  Parts about the checker's current place read `context`; only
messages of the checker have them.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ferrule.specs.deferred import dataclass

GivenKind: TypeAlias = Literal["bool", "float", "dtype", "device", "bytes", "type"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words that are known when the wrapper is built."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A number that the check stored in the buffer of values, in decimal."""

    slot: int


@dataclass(frozen=True, slots=True)
class CString:
    """The NUL-terminated text at an address in the buffer of values; nothing for a null pointer."""

    slot: int


@dataclass(frozen=True, slots=True)
class NumArgs:
    """The number of arguments."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of the function, from its program."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The source location of the function, from its program."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of the current argument; `nested`: only if the place is inside of it."""

    nested: bool = False


@dataclass(frozen=True, slots=True)
class Suffix:
    """The place inside the argument: `[1]`.  Nothing for a symbol, unless `nested`."""

    nested: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """The words ` in ` if the place is inside of an argument."""


@dataclass(frozen=True, slots=True)
class ArgumentNumber:
    """The number of the current argument: `argument #0`; or `the result` of a call."""


@dataclass(frozen=True, slots=True)
class Element:
    """The current size, stride or element: `.shape[0]`."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The text in the program that describes the expected values."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The text in the program that tells where a symbol was bound."""


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A number in the buffer of values, in decimal and without a sign."""

    slot: int


@dataclass(frozen=True, slots=True)
class Hexadecimal:
    """A number in the buffer of values, as an address."""

    slot: int


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a kind in the buffer of values, displayed like the placeholder `{kind}` of a
    `Fault`.

    For `bytes` the next slot is the length.
    """

    kind: GivenKind
    slot: int


@dataclass(frozen=True, slots=True)
class TypeHere:
    """The kind of the current value."""


@dataclass(frozen=True, slots=True)
class ValueHere:
    """The current value: a bool, int or float, or a text in quotes."""


@dataclass(frozen=True, slots=True)
class DTypeHere:
    """The dtype of the current tensor."""


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The device of the current tensor."""


@dataclass(frozen=True, slots=True)
class HintHere:
    """The hint for the current strides, if they look like its order."""


ARGUMENT: Final = (
    Name(nested=True),
    Suffix(nested=True),
    Inside(),
    ArgumentNumber(),
)
"""The name of the current argument in messages, and the place inside of it."""

Part: TypeAlias = (
    Text
    | Signature
    | Trace
    | Name
    | Suffix
    | Inside
    | ArgumentNumber
    | Element
    | Expected
    | Owner
    | Unsigned
    | Hexadecimal
    | Given
    | TypeHere
    | ValueHere
    | DTypeHere
    | DeviceHere
    | HintHere
    | Value
    | CString
    | NumArgs
)


@dataclass(frozen=True, slots=True)
class Message:
    """The message of a refused call: class of the error, its text, a traceback line."""

    code: str
    error: str
    parts: tuple[Part, ...]
    trace: str | Trace = ""

"""What a message is made of: fixed text, and parts that are read from the call when it fails.

A closed union of frozen dataclasses.  Parts that speak of where the checker is read `context`; they
stand in the messages of the checker alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GivenKind: TypeAlias = Literal["bool", "float", "dtype", "device", "bytes", "type"]


@dataclass(frozen=True, slots=True)
class Text:
    """Words that are known when the wrapper is built."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A number that the check left in the buffer of values, in decimal."""

    slot: int


@dataclass(frozen=True, slots=True)
class CString:
    """The NUL-terminated text at an address in the buffer of values; nothing for a null pointer."""

    slot: int


@dataclass(frozen=True, slots=True)
class NumArgs:
    """How many arguments came."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of the function, as its program has it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Where the function comes from, as its program has it."""


@dataclass(frozen=True, slots=True)
class Name:
    """The name of the argument that the checker is at; `nested`: only if it is inside of it."""

    nested: bool = False


@dataclass(frozen=True, slots=True)
class Suffix:
    """Where in the argument the checker is: `[1]`.  Nothing for a symbol, unless `nested`."""

    nested: bool = False


@dataclass(frozen=True, slots=True)
class Inside:
    """The words ` in ` where the checker is inside of an argument."""


@dataclass(frozen=True, slots=True)
class ArgumentNumber:
    """Which argument the checker is at: `argument #0`; `the result` of a call."""


@dataclass(frozen=True, slots=True)
class Element:
    """The size, stride or element that the checker is at: `.shape[0]`."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The text of the program that the checker chose as what it expects."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The text of the program that says where a symbol got its value."""


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
    """A value of a kind in the buffer of values, as the placeholder `{kind}` of a `Fault` shows it.

    Of `bytes` the next slot is the length.
    """

    kind: GivenKind
    slot: int


@dataclass(frozen=True, slots=True)
class TypeHere:
    """The kind of the value that the checker is at."""


@dataclass(frozen=True, slots=True)
class ValueHere:
    """The value that the checker is at: a bool, int or float, or a text in quotes."""


@dataclass(frozen=True, slots=True)
class DTypeHere:
    """The dtype of the tensor that the checker is at."""


@dataclass(frozen=True, slots=True)
class DeviceHere:
    """The device of the tensor that the checker is at."""


@dataclass(frozen=True, slots=True)
class HintHere:
    """The hint for the strides that the checker is at, where they look like its order."""


ARGUMENT: Final = (
    Name(nested=True),
    Suffix(nested=True),
    Inside(),
    ArgumentNumber(),
)
"""How messages name the argument that the checker is at, and the place inside of it."""

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
    """One way in which a call can be refused: class of the error, its text, a traceback line."""

    code: str
    error: str
    parts: tuple[Part, ...]
    trace: str | Trace = ""

"""Messages as bytes, and the table of an object's own messages.

A message is three texts, one after the other: the class of the error, the message, and the line of
its backtrace.  A text is UTF-8 with operations in it, and ends with a byte 0.  Bytes from 32 on are
text; smaller ones are operations, some with an operand after them, see `Op`.  `PHRASES` has the
words that many messages share.  `support` reads this format.

A table is the offset (u32) of each message, then the messages.  Invariants: the id of a message is
its place in the order of `add`, and no operand is 0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum, auto
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Final

from ferrule.compiler.messages import parts
from ferrule.compiler.messages.parts import Message, Part, Text

OFFSET: Final = struct.Struct("<I")
PLAIN: Final = 32
"""The smallest byte that is text."""


class Op(IntEnum):
    """The operations, bytes below 32; see the classes of `parts`.

    Those that every wrapper's checker needs come first, so that a table of their handlers can end
    early.
    """

    END = 0
    LITERAL = auto()
    """The next byte is text."""
    # Without an operand.
    SIGNATURE = auto()
    TRACE = auto()
    INSIDE = auto()
    ARGUMENT_NUMBER = auto()
    EXPECTED = auto()
    NUM_ARGS = auto()
    TYPE = auto()
    ELEMENT = auto()
    OWNER = auto()
    DTYPE = auto()
    DEVICE = auto()
    HINT = auto()
    QUOTE = auto()
    VALUE_HERE = auto()
    # With an operand: a number above 0, one more than the value.
    PHRASE = auto()
    """The phrase with this number; phrases do not contain phrases."""
    NAME = auto()
    SUFFIX = auto()
    VALUE = auto()
    UNSIGNED = auto()
    HEXADECIMAL = auto()
    C_STRING = auto()
    GIVEN_BOOL = auto()
    GIVEN_FLOAT = auto()
    GIVEN_DTYPE = auto()
    GIVEN_DEVICE = auto()
    GIVEN_BYTES = auto()
    GIVEN_TYPE = auto()


HANDLED: Final = tuple(op for op in Op if op not in (Op.END, Op.LITERAL, Op.PHRASE))
"""The operations that show a part."""

RARE: Final = (Op.QUOTE, Op.VALUE_HERE, Op.GIVEN_BOOL, Op.GIVEN_FLOAT, Op.GIVEN_BYTES)
"""Operations for values that are not tensors or sizes."""

PARTS: Final = "ferrule_parts"
"""The table of handlers: their offsets from it, starting with the first of `HANDLED`."""

assert max(Op) < PLAIN

_CONTROL: Final = re.compile(rb"[\0-\x1f]")
_ESCAPED: Final = bytes((Op.LITERAL,)) + rb"\g<0>"
_Parts = Sequence[Part]

_PHRASES: Final[tuple[_Parts, ...]] = (
    (
        Text(" on "),
        *parts.ARGUMENT,
        Text(" when calling: `"),
        parts.Signature(),
        Text("`, expected "),
    ),
    (Text(", but got "),),
    (Text("ValueError"),),
    (Text("TypeError"),),
    (Text("Mismatched "),),
    (Text("Invalid "),),
    (Text("Tensor "),),
    (Text("to be in "), parts.Expected(), Text(" range ["), parts.Value(2), Text(", ")),
    (Text("address"),),
    (Text("alignment="),),
    (Text("a null pointer"),),
    (Text("an int above 9223372036854775807"),),
    (Text("an int below -9223372036854775808"),),
    (Text(" size="),),
    (Text("value"),),
)


class Table:
    """Collects messages while a wrapper is built."""

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._shown: set[Op] = set()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def shown(self) -> frozenset[Op]:
        """The operations that show the parts of these messages."""
        return frozenset(self._shown)

    def add(self, message: Message) -> int:
        """Add a message; returns its id."""
        self._messages.append(encoded(message))
        self._shown |= shown(message)
        return len(self._messages) - 1

    def data(self) -> bytes:
        """The table of the messages so far."""
        offset, offsets = OFFSET.size * len(self._messages), []
        for message in self._messages:
            offsets.append(OFFSET.pack(offset))
            offset += len(message)
        return b"".join([*offsets, *self._messages])


def encoded(message: Message) -> bytes:
    """A message as bytes."""
    return b"".join(map(_as_bytes, _texts(message)))


def _texts(message: Message) -> tuple[tuple[Part, ...], ...]:
    trace = message.trace
    last = (Text(trace),) if isinstance(trace, str) else (trace,)
    return (Text(message.error),), message.parts, last


# Most messages of a wrapper are of a few kinds and share their lines, and every launch in a process
# has the same messages.
@lru_cache(1024)
def _as_bytes(text: tuple[Part, ...]) -> bytes:
    return _shortened(_encoded(text)) + b"\0"


@lru_cache(1024)
def shown(message: Message) -> frozenset[Op]:
    """The operations that show the parts of a message."""
    trace = () if isinstance(message.trace, str) else (message.trace,)
    return frozenset(op for part in (*message.parts, *trace) for op in _ops(part))


@cache
def phrases() -> tuple[bytes, ...]:
    """The phrases that all messages share.  Pure."""
    return tuple(map(_encoded, _PHRASES))


def _shortened(text: bytes) -> bytes:
    """The text with its phrases replaced by operations.

    Phrases begin with text, so that none matches inside the operand of an operation.
    """
    for number, phrase in enumerate(phrases()):
        text = text.replace(phrase, bytes((Op.PHRASE, number + 1)))
    return text


def _encoded(text: Iterable[Part]) -> bytes:
    return b"".join(map(_packed, text))


def _packed(part: Part) -> bytes:
    match part:
        case Text(text) if text.isprintable():
            return text.encode()
        case Text(text):
            return _CONTROL.sub(_ESCAPED, text.encode())
        case parts.ValueHere():
            return bytes(_ops(part))
        case _:
            (op,) = _ops(part)
            operand = _operand(part)
            return bytes((op,)) if operand is None else bytes((op, operand + 1))


def _operand(part: Part) -> int | None:
    match part:
        case parts.Name(nested) | parts.Suffix(nested):
            return int(nested)
        case parts.Value(slot) | parts.CString(slot) | parts.Unsigned(slot):
            return slot
        case parts.Hexadecimal(slot) | parts.Given(slot=slot):
            return slot
        case _:
            return None


def _ops(part: Part) -> tuple[Op, ...]:
    match part:
        case Text():
            return ()
        case parts.Given(kind=kind):
            return (Op[f"GIVEN_{kind.upper()}"],)
        case _:
            return _OPS[type(part)]


_OPS: Final = MappingProxyType(
    {
        parts.Value: (Op.VALUE,),
        parts.CString: (Op.C_STRING,),
        parts.Unsigned: (Op.UNSIGNED,),
        parts.Hexadecimal: (Op.HEXADECIMAL,),
        parts.Name: (Op.NAME,),
        parts.Suffix: (Op.SUFFIX,),
        parts.NumArgs: (Op.NUM_ARGS,),
        parts.Signature: (Op.SIGNATURE,),
        parts.Trace: (Op.TRACE,),
        parts.Inside: (Op.INSIDE,),
        parts.ArgumentNumber: (Op.ARGUMENT_NUMBER,),
        parts.Element: (Op.ELEMENT,),
        parts.Expected: (Op.EXPECTED,),
        parts.Owner: (Op.OWNER,),
        parts.TypeHere: (Op.TYPE,),
        parts.ValueHere: (Op.QUOTE, Op.VALUE_HERE, Op.QUOTE),
        parts.DTypeHere: (Op.DTYPE,),
        parts.DeviceHere: (Op.DEVICE,),
        parts.HintHere: (Op.HINT,),
    }
)

"""The table of messages that an object carries: constant bytes without relocations.

Little-endian.  A header (where the segments begin, where the texts begin), a row for each message
(first segment, number of segments, the segments of the error's class and of its backtrace), the
segments (operation, operand or length, offset into the texts), and the texts, each once.
`support` reads it; the layouts below are what both agree on.

Invariant: the id of a message is its place in the order of `add`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from ferrule.compiler.messages import parts
from ferrule.compiler.messages.parts import Message, Part, Text

HEADER = struct.Struct("<II")
ROW = struct.Struct("<IIII")
SEGMENT = struct.Struct("<BxHI")
LONGEST_TEXT = (1 << 16) - 1


class Op(IntEnum):
    """What a segment shows; see the classes of `parts`."""

    TEXT = 0
    VALUE = 1
    NUM_ARGS = 2
    SIGNATURE = 3
    TRACE = 4
    NAME = 5
    SUFFIX = 6
    INSIDE = 7
    ARGUMENT_NUMBER = 8
    ELEMENT = 9
    EXPECTED = 10
    OWNER = 11
    UNSIGNED = 12
    HEXADECIMAL = 13
    TYPE = 14
    QUOTE = 15
    VALUE_HERE = 16
    DTYPE = 17
    DEVICE = 18
    HINT = 19
    C_STRING = 20
    GIVEN_BOOL = 21
    GIVEN_FLOAT = 22
    GIVEN_DTYPE = 23
    GIVEN_DEVICE = 24
    GIVEN_BYTES = 25


class Table:
    """Collects messages while a wrapper is built."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._segments: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._packed: dict[str, bytes] = {}
        self._texts = bytearray()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, message: Message) -> int:
        """Take in a message; its id."""
        kind = self._shared(self._text(message.error))
        trace = self._shared(self._trace(message.trace))
        encoded = [segment for part in message.parts for segment in self._encode(part)]
        self._rows.append((len(self._segments), len(encoded), kind, trace))
        self._segments += encoded
        return len(self._rows) - 1

    def data(self) -> bytes:
        """The table as it stands."""
        segments = HEADER.size + ROW.size * len(self._rows)
        texts = segments + SEGMENT.size * len(self._segments)
        rows = b"".join(ROW.pack(*row) for row in self._rows)
        head = HEADER.pack(segments, texts)
        return head + rows + b"".join(self._segments) + bytes(self._texts)

    def _text(self, text: str) -> bytes:
        """The segment of a text that is short enough for one."""
        known = self._packed.get(text)
        if known is None:
            data = text.encode()
            if len(data) > LONGEST_TEXT:
                raise ValueError(f"{len(data)} bytes of text do not fit one segment of a message")
            known = self._packed[text] = SEGMENT.pack(Op.TEXT, len(data), len(self._texts))
            self._texts += data
        return known

    def _trace(self, trace: str | parts.Trace) -> bytes:
        match trace:
            case str():
                return self._text(trace)
            case _:
                return SEGMENT.pack(Op.TRACE, 0, 0)

    def _shared(self, segment: bytes) -> int:
        """The number of a segment that other segments and rows refer to."""
        place = self._places.get(segment)
        if place is None:
            place = self._places[segment] = len(self._segments)
            self._segments.append(segment)
        return place

    def _encode(self, part: Part) -> list[bytes]:
        match part:
            case Text(text) if len(text) <= LONGEST_TEXT // 4:  # bytes of a character, at most
                return [self._text(text)]
            case Text(text):
                step = LONGEST_TEXT // 4
                return [self._text(text[i : i + step]) for i in range(0, len(text), step)]
            case parts.ValueHere():
                quote = SEGMENT.pack(Op.QUOTE, 0, 0)
                return [quote, SEGMENT.pack(Op.VALUE_HERE, 0, 0), quote]
            case _:
                op, operand = _plain(part)
                return [SEGMENT.pack(op, operand, 0)]


_Plain = (
    parts.Value
    | parts.CString
    | parts.NumArgs
    | parts.Signature
    | parts.Trace
    | parts.Name
    | parts.Suffix
    | parts.Inside
    | parts.ArgumentNumber
    | parts.Element
    | parts.Expected
    | parts.Owner
    | parts.Unsigned
    | parts.Hexadecimal
    | parts.Given
    | parts.TypeHere
    | parts.DTypeHere
    | parts.DeviceHere
    | parts.HintHere
)


def _plain(part: _Plain) -> tuple[Op, int]:
    """Operation and operand of a part that is one segment."""
    match part:
        case parts.Value(slot):
            return Op.VALUE, slot
        case parts.CString(slot):
            return Op.C_STRING, slot
        case parts.Unsigned(slot):
            return Op.UNSIGNED, slot
        case parts.Hexadecimal(slot):
            return Op.HEXADECIMAL, slot
        case parts.Given(kind, slot):
            return Op[f"GIVEN_{kind.upper()}"], slot
        case parts.Name(nested):
            return Op.NAME, int(nested)
        case parts.Suffix(nested):
            return Op.SUFFIX, int(nested)
        case _:
            return _FIXED[type(part)], 0


_FIXED: Final = MappingProxyType(
    {
        parts.NumArgs: Op.NUM_ARGS,
        parts.Signature: Op.SIGNATURE,
        parts.Trace: Op.TRACE,
        parts.Inside: Op.INSIDE,
        parts.ArgumentNumber: Op.ARGUMENT_NUMBER,
        parts.Element: Op.ELEMENT,
        parts.Expected: Op.EXPECTED,
        parts.Owner: Op.OWNER,
        parts.TypeHere: Op.TYPE,
        parts.DTypeHere: Op.DTYPE,
        parts.DeviceHere: Op.DEVICE,
        parts.HintHere: Op.HINT,
    }
)

"""The table of messages that an object carries: constant bytes without relocations.

Little-endian.  A header (where the segments begin, where the texts begin), a row for each message
(first segment, number of segments, the segments of the error's class and of its backtrace), the
segments (operation, axis, argument or length, offset into the texts or number of a segment), and
the texts, each once.  `support` reads it; the layouts below are what both agree on.

Invariant: the id of a message is its place in the order of `add`.
"""

from __future__ import annotations

import struct
from enum import IntEnum

from ferrule.compiler.messages import parts
from ferrule.compiler.messages.parts import Message, Part, Text

HEADER = struct.Struct("<II")
ROW = struct.Struct("<IIII")
SEGMENT = struct.Struct("<BBHI")
LONGEST_TEXT = (1 << 16) - 1


class Op(IntEnum):
    """What a segment shows; see the classes of `parts`."""

    TEXT = 0
    VALUE = 1
    NUM_ARGS = 2
    INT = 3
    TYPE = 4
    NDIM = 5
    DTYPE = 6
    DEVICE = 7
    SIZE = 8
    STRIDE = 9
    ADDRESS = 10
    ONE_OF = 11
    HINT_ROW_MAJOR = 12
    HINT_COLUMN_MAJOR = 13


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
        trace = self._shared(self._text(message.trace))
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
            known = self._packed[text] = SEGMENT.pack(Op.TEXT, 0, len(data), len(self._texts))
            self._texts += data
        return known

    def _shared(self, segment: bytes) -> int:
        """The number of a segment that other segments and rows refer to."""
        place = self._places.get(segment)
        if place is None:
            place = self._places[segment] = len(self._segments)
            self._segments.append(segment)
        return place

    def _block(self, segments: list[bytes]) -> int:
        self._segments += segments
        return len(self._segments) - len(segments)

    def _encode(self, part: Part) -> list[bytes]:
        match part:
            case Text(text) if len(text) <= LONGEST_TEXT // 4:  # bytes of a character, at most
                return [self._text(text)]
            case Text(text):
                step = LONGEST_TEXT // 4
                return [self._text(text[i : i + step]) for i in range(0, len(text), step)]
            case parts.OneOf(slot, texts):
                first = self._block([self._text(each.text) for each in texts])
                return [SEGMENT.pack(Op.ONE_OF, 0, slot, first)]
            case parts.Hint(argument, order, Text(text)):
                op = Op.HINT_ROW_MAJOR if order == "row-major" else Op.HINT_COLUMN_MAJOR
                return [SEGMENT.pack(op, 0, argument, self._shared(self._text(text)))]
            case _:
                op, argument, axis = _plain(part)
                return [SEGMENT.pack(op, axis, argument, 0)]


_Plain = (
    parts.Value
    | parts.NumArgs
    | parts.TypeOf
    | parts.IntOf
    | parts.NdimOf
    | parts.DTypeOf
    | parts.DeviceOf
    | parts.SizeOf
    | parts.StrideOf
    | parts.AddressOf
)


def _plain(part: _Plain) -> tuple[Op, int, int]:
    """Operation, argument and axis of a part that refers to nothing else."""
    match part:
        case parts.Value(slot):
            return Op.VALUE, slot, 0
        case parts.NumArgs():
            return Op.NUM_ARGS, 0, 0
        case parts.TypeOf(argument):
            return Op.TYPE, argument, 0
        case parts.IntOf(argument):
            return Op.INT, argument, 0
        case parts.NdimOf(argument):
            return Op.NDIM, argument, 0
        case parts.DTypeOf(argument):
            return Op.DTYPE, argument, 0
        case parts.DeviceOf(argument):
            return Op.DEVICE, argument, 0
        case parts.SizeOf(argument, axis):
            return Op.SIZE, argument, axis
        case parts.StrideOf(argument, axis):
            return Op.STRIDE, argument, axis
        case parts.AddressOf(argument):
            return Op.ADDRESS, argument, 0

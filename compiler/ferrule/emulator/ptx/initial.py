"""What a variable begins with: numbers in braces, dimension by dimension, and addresses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

from ferrule.emulator.ptx.cursor import BYTES, Cursor
from ferrule.emulator.ptx.module import FloatImmediate, Immediate, PtxError, Symbol
from ferrule.emulator.ptx.tokens import Token

References = tuple[tuple[int, int, Symbol], ...]


class Initial:
    """Reads what stands behind the `=` of a variable of a type."""

    def __init__(self, cursor: Cursor, kind: str) -> None:
        self._cursor = cursor
        self._kind = kind
        self._bytes = BYTES[kind]
        self._references: list[tuple[int, int, Symbol]] = []
        self._data = bytearray()

    def value(self, sizes: Sequence[int | None], name: Token) -> tuple[bytes, References]:
        """The bytes of the whole variable, 0 where nothing is said; `sizes` are its dimensions."""
        self._element(list(sizes), name)
        return bytes(self._data), tuple(self._references)

    def _element(self, sizes: list[int | None], name: Token) -> None:
        """One element of an array of these dimensions, which starts where the data ends."""
        start = len(self._data)
        if not sizes:
            self._scalar()
            return
        cursor, count = self._cursor, 0
        cursor.expect("{")
        if not cursor.taken("}"):
            while True:
                count = self._next(sizes, name, count, start)
                if not cursor.more("}"):
                    break
        whole = count if sizes[0] is None else sizes[0]
        self._fill(start + whole * self._step(sizes))

    def _next(self, sizes: list[int | None], name: Token, count: int, start: int) -> int:
        """An element in braces of its own, or a number that stands for the next of all."""
        token = self._cursor.next
        step = self._step(sizes)
        if sizes[0] is not None and count >= sizes[0]:
            raise PtxError(f"{name.text} begins with more than it holds", token.line)
        if len(sizes) > 1 and token.text != "{":
            raise PtxError(f"{name.text}: wanted '{{' of the next dimension", token.line)
        self._element(sizes[1:], name)
        self._fill(start + (count + 1) * step)
        return count + 1

    def _step(self, sizes: Sequence[int | None]) -> int:
        return self._bytes * prod(each or 0 for each in sizes[1:])

    def _fill(self, end: int) -> None:
        self._data.extend(bytes(max(0, end - len(self._data))))

    def _scalar(self) -> None:
        token = self._cursor.next
        if token.kind == "word":
            place = len(self._data)
            self._references.append((place, self._bytes, reference(self._cursor)))
            self._fill(place + self._bytes)
            return
        self._data.extend(_encoded(self._cursor.constant(), self._kind, token.line))


def reference(cursor: Cursor) -> Symbol:
    """`name`, `name+4` or `generic(name)+4`."""
    token = cursor.word("a name")
    if token.text == "generic" and cursor.taken("("):
        found = reference(cursor)
        cursor.expect(")")
    elif cursor.next.text == "(":
        raise PtxError(f"{token.text}(…) is not emulated here", token.line)
    else:
        found = Symbol(token.text)
    if cursor.taken("+"):
        return Symbol(found.name, found.offset + cursor.integer())
    if cursor.next.text == "-":
        return Symbol(found.name, found.offset + cursor.integer())
    return found


def _encoded(value: Immediate | FloatImmediate, kind: str, line: int) -> bytes:
    size = BYTES[kind]
    if isinstance(value, FloatImmediate):
        return _encoded_float(value, kind, line)
    if kind[0] == "f" or kind.startswith("bf") or kind == "b128":
        raise PtxError(f"an integer does not begin .{kind}", line)
    if not -(1 << 8 * size - 1) <= value.value < 1 << 8 * size:
        raise PtxError(f"{value.value} does not fit .{kind}", line)
    return (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _encoded_float(value: FloatImmediate, kind: str, line: int) -> bytes:
    size = BYTES[kind]
    # A decimal literal of PTX is always a float of 64 bits.
    if value.width == 64 and kind == "f32":
        return single(value.bits, line).to_bytes(4, "little")
    if value.width != size * 8 or kind not in ("f32", "f64"):
        raise PtxError(f"a float of {value.width} bits does not begin .{kind}", line)
    return value.bits.to_bytes(size, "little")


def single(bits: int, line: int) -> int:
    """The bits of the float32 next to a float64.  PtxError where it is none."""
    number = struct.unpack("<d", struct.pack("<Q", bits))[0]
    try:
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    except OverflowError:
        raise PtxError(f"{number!r} does not fit .f32", line) from None

"""Reads PTX's tokens one after the other: words, marks, and numbers with their line."""

from __future__ import annotations

import struct
from typing import Final

from ferrule.emulator.ptx.module import FloatImmediate, Immediate, PtxError
from ferrule.emulator.ptx.tokens import Token, tokens

BYTES: Final = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "b128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "f32": 4, "f64": 8,
}  # fmt: skip
"""The bytes of each type that memory can have."""


class Cursor:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self._at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self._at]

    @property
    def after(self) -> Token:
        """The token behind the next."""
        return self.tokens[min(self._at + 1, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.tokens[self._at]
        self._at += token.kind != "end"
        return token

    def taken(self, text: str) -> bool:
        """Whether the next token is this one, which is then taken."""
        if self.next.text != text or self.next.kind in ("end", "string"):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> Token:
        token = self.take()
        if token.text != text:
            raise PtxError(f"wanted {text!r}, got {token.text!r}", token.line)
        return token

    def word(self, what: str) -> Token:
        token = self.take()
        if token.kind != "word":
            raise PtxError(f"wanted {what}, got {token.text!r}", token.line)
        return token

    def more(self, closes: str) -> bool:
        """Behind an element of a list: True behind a comma, False where the list ends."""
        if self.taken(closes):
            return False
        self.expect(",")
        return True

    def integer(self) -> int:
        token = self.next
        value = self.constant()
        if not isinstance(value, Immediate):
            raise PtxError(f"wanted an integer, got {token.text!r}", token.line)
        return value.value

    def constant(self) -> Immediate | FloatImmediate:
        """A number, as written."""
        negative = self.taken("-")
        token = self.take()
        if token.kind != "number":
            raise PtxError(f"wanted a number, got {token.text!r}", token.line)
        value = _number(token)
        if not negative:
            return value
        if isinstance(value, Immediate):
            return Immediate(-value.value)
        return FloatImmediate(value.bits ^ 1 << value.width - 1, value.width)


def _number(token: Token) -> Immediate | FloatImmediate:
    text = token.text
    if text[:2] in ("0f", "0F"):
        return FloatImmediate(int(text[2:], 16), 32)
    if text[:2] in ("0d", "0D"):
        return FloatImmediate(int(text[2:], 16), 64)
    if "." in text or ("e" in text.lower() and "x" not in text.lower()):
        return FloatImmediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], 64)
    plain = text.rstrip("U")
    octal = len(plain) > 1 and plain[0] == "0" and plain.isdigit()
    try:
        value = int(plain, 8 if octal else 0)
    except ValueError:
        raise PtxError(f"{text!r} is no number of base 8", token.line) from None
    if value >= 1 << 64:
        raise PtxError(f"{text!r} has more than 64 bits", token.line)
    return Immediate(value)

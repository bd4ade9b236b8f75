"""Rewrites floats in LLVM's text so that every version of LLVM reads them.

From version 24 on LLVM prints a float as the nearest decimal number in its own type, or its bits,
`f0x3FB8AA3B`, and `+inf`, `+qnan`, `+nan(0x1)`, `+snan(0x1)`.  Earlier versions read decimal
numbers as double and accept only exact ones.  For the rest they accept only hexadecimal digits:
those of a double for `float` and `double`, `0xH` and `0xR` before the bits of `half` and `bfloat`
(LLVM's language reference, "Simple Constants").
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_NUMBER: Final = (
    r"f0x[0-9a-fA-F]+|[+-](?:inf|qnan|s?nan\(0x[0-9a-fA-F]+\))|-?\d+\.\d+(?:e[+-]?\d+)?"
)
_TOKEN: Final = re.compile(
    r'"[^"]*"|;.*$|\b(?P<type>half|bfloat|float|double)\b'
    rf"|(?<![\w.$%@!-])(?P<number>{_NUMBER})(?![\w.])"
)
_FORMATS: Final = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}
"""The bits of exponent and fraction."""


def readable(text: str) -> str:
    """The module with every float in hexadecimal digits."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    """A line; a number has the type that was named last before it."""
    known = "double"

    def token(found: re.Match[str]) -> str:
        nonlocal known
        if found["type"]:
            known = found["type"]
        return _hexadecimal(found["number"], known) if found["number"] else found[0]

    return _TOKEN.sub(token, line)


def _hexadecimal(number: str, kind: str) -> str:
    bits = _bits(number, *_FORMATS[kind])
    match kind:
        case "half":
            return f"0xH{bits:04X}"
        case "bfloat":
            return f"0xR{bits:04X}"
        case "float":
            return f"0x{_doubled(bits):016X}"
        case _:
            return f"0x{bits:016X}"


def _bits(number: str, exponent_bits: int, fraction_bits: int) -> int:
    """The bits of a literal in a format."""
    if number.startswith("f0x"):
        return int(number[3:], 16)
    sign = int(number[0] == "-") << (exponent_bits + fraction_bits)
    infinite = ((1 << exponent_bits) - 1) << fraction_bits
    word, _, payload = number.lstrip("+-").partition("(")
    quiet = 1 << (fraction_bits - 1)
    match word:
        case "inf":
            return sign | infinite
        case "qnan":
            return sign | infinite | quiet
        case "nan":
            return sign | infinite | quiet | int(payload[:-1], 16)
        case "snan":
            return sign | infinite | int(payload[:-1], 16)
    return sign | min(_nearest(Fraction(word), exponent_bits, fraction_bits), infinite)


def _nearest(value: Fraction, exponent_bits: int, fraction_bits: int) -> int:
    """The bits of the nearest positive number, ties to even."""
    least = 2 - (1 << (exponent_bits - 1))
    exponent = least
    if value:
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        # The difference of the lengths is the exponent, or one more.
        exponent -= value < Fraction(2) ** exponent
        exponent = max(exponent, least)
    steps = round(value / Fraction(2) ** (exponent - fraction_bits))
    # Rounding up to the next power of two carries into the exponent.
    return ((exponent - least) << fraction_bits) + steps


def _doubled(bits: int) -> int:
    """The bits of a double that has the value of a float."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return sign << 63 | 0x7FF << 52 | fraction << 29
    if exponent == 0 and fraction:
        # A subnormal float is a normal double: its highest bit moves to bit 23, and is left out
        # there.
        shift = 24 - fraction.bit_length()
        exponent, fraction = 1 - shift, fraction << shift & 0x7FFFFF
    elif exponent == 0:
        return sign << 63
    return sign << 63 | (exponent + 1023 - 127) << 52 | fraction << 29

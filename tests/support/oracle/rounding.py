"""Floats of fewer bits, by the definition: the nearest number, the even one of two, or infinity."""

from __future__ import annotations

import math
from fractions import Fraction

FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "tfloat32": (11, -126, 127),
    "float32": (24, -126, 127),
}
"""Bits of the significand, least and greatest exponent."""
WIDTHS = {"float16": 16, "bfloat16": 16, "tfloat32": 19, "float32": 32, "float64": 64}
ZEROS = {"tfloat32": 13}
"""Bits below, which are always 0."""


def bits_of(name: str, value: float) -> int:
    """The bits of the number of this dtype that is nearest to `value`, which is no NaN."""
    significand, least, greatest = FORMATS.get(name, (53, -1022, 1023))
    width = WIDTHS[name]
    sign = int(math.copysign(1, value) < 0) << width - 1
    infinity = (greatest - least + 2) << significand - 1
    if math.isinf(value):
        return (sign | infinity) << ZEROS.get(name, 0)
    exponent = max(least, math.frexp(value)[1] - 1) if value else least
    steps = round(Fraction(abs(value)) / Fraction(2) ** (exponent - significand + 1))
    bits = sign | min(infinity, ((exponent - least) << significand - 1) + steps)
    return bits << ZEROS.get(name, 0)


def is_nan(name: str, bits: int) -> bool:
    """Whether these bits are a NaN of this dtype."""
    significand, least, greatest = FORMATS.get(name, (53, -1022, 1023))
    zeros = ZEROS.get(name, 0)
    upper = bits >> zeros
    infinity = (greatest - least + 2) << significand - 1
    return bits == upper << zeros and upper & ((1 << WIDTHS[name] - 1) - 1) > infinity

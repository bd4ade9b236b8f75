"""Floats of fewer than 16 bits: one row of facts for each format, one encoder and one decoder.

The facts are those of the OCP specifications and of `ml_dtypes`, whose plain conversion this is: it
rounds once, to nearest and ties to even, and a number beyond the largest becomes infinity, where
there is none NaN, and where there is no NaN either the largest.  With `saturate` such a number, and
infinity, become the largest, as PTX's `satfinite` says.  Float8E8M0FNU has powers of two alone: a
tie goes up, zero and negative numbers become NaN, what is below the smallest becomes the smallest,
and what is between the two smallest the larger one, as in `ml_dtypes` and PyTorch.

Bits are an int without the bits above the format's width.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal

from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.specs.dtypes import DType

Specials = Literal["ieee", "fn", "fnuz", "fnu", "finite"]
"""`ieee`: infinities and NaNs at the largest exponent; `fn`: only all ones is NaN; `fnuz`: the bits
of -0 are the NaN; `fnu`: no sign, all ones is NaN; `finite`: neither."""


@dataclass(frozen=True, slots=True)
class Format:
    """The bits of a narrow float: exponent, mantissa, bias, and what is no number."""

    exponent: int
    mantissa: int
    bias: int
    specials: Specials

    @property
    def signed(self) -> bool:
        """Whether the upper bit is a sign."""
        return self.specials != "fnu"

    @property
    def sign(self) -> int:
        """The sign bit; 0 without one."""
        return 1 << (self.exponent + self.mantissa) if self.signed else 0

    @property
    def has_negative_zero(self) -> bool:
        """Whether there is a -0."""
        return self.specials not in ("fnuz", "fnu")

    @property
    def infinity(self) -> int | None:
        """The bits of infinity, if there is one."""
        every = (1 << self.exponent) - 1
        return every << self.mantissa if self.specials == "ieee" else None

    @property
    def nan(self) -> int | None:
        """The bits of a NaN without its sign, if there is one."""
        magnitudes = 1 << (self.exponent + self.mantissa)
        match self.specials:
            case "ieee":
                return ((1 << self.exponent) - 1) << self.mantissa | 1 << (self.mantissa - 1)
            case "fn" | "fnu":
                return magnitudes - 1
            case "fnuz":
                return magnitudes
            case "finite":
                return None

    @property
    def largest(self) -> int:
        """The bits of the largest number."""
        magnitudes = 1 << (self.exponent + self.mantissa)
        if self.infinity is not None:
            return self.infinity - 1
        return magnitudes - (2 if self.specials in ("fn", "fnu") else 1)

    @property
    def overflow(self) -> int:
        """The bits, without a sign, of a number beyond the largest in a plain conversion."""
        if self.infinity is not None:
            return self.infinity
        return self.largest if self.nan is None else self.nan

    @property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return (1 if self.signed else 0) - self.bias

    @property
    def maximum(self) -> float:
        """The largest number."""
        return decode(self, self.largest)

    @property
    def minimum(self) -> float:
        """The smallest number: the negative of the largest, or the smallest power of two."""
        return -self.maximum if self.signed else decode(self, 0)


FORMATS: Final[dict[str, Format]] = {
    "float8_e3m4": Format(3, 4, 3, "ieee"),
    "float8_e4m3": Format(4, 3, 7, "ieee"),
    "float8_e4m3b11fnuz": Format(4, 3, 11, "fnuz"),
    "float8_e4m3fn": Format(4, 3, 7, "fn"),
    "float8_e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "float8_e5m2": Format(5, 2, 15, "ieee"),
    "float8_e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "float8_e8m0fnu": Format(8, 0, 127, "fnu"),
    "float6_e2m3fn": Format(2, 3, 1, "finite"),
    "float6_e3m2fn": Format(3, 2, 3, "finite"),
    "float4_e2m1fn": Format(2, 1, 1, "finite"),
}
"""The formats by the names of their dtypes."""


def format_of(dtype: DType) -> Format:
    """The format of a narrow float."""
    return FORMATS[dtype.name]


def decode(form: Format, bits: int) -> float:
    """The number of these bits, exactly."""
    magnitude = bits & ~form.sign
    sign = -1.0 if bits & form.sign else 1.0
    if _is_nan(form, bits):
        return math.nan
    if magnitude == form.infinity:
        return sign * math.inf
    exponent, mantissa = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    # A subnormal number has no implicit bit. A format without a sign, E8M0, has no subnormal ones.
    if exponent or not form.signed:
        mantissa |= 1 << form.mantissa
    # Subnormal numbers have the exponent of the smallest normal ones.
    power = max(exponent - form.bias, form.least_exponent)
    return sign * math.ldexp(mantissa, power - form.mantissa)


def encode(form: Format, value: float, *, saturate: bool = False) -> int:
    """The bits of the nearest number."""
    sign = form.sign if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return form.nan or 0
    if not form.signed and value <= 0:
        return form.nan or 0
    magnitude = _magnitude(form, abs(value))
    if magnitude > form.largest:
        magnitude = form.largest if saturate else form.overflow
    # These formats have no negative zero: its bits are their only NaN.
    if form.specials == "fnuz" and magnitude in (0, form.nan):
        return magnitude
    return sign | magnitude


def rounded(form: Format, value: float, *, saturate: bool = False) -> float:
    """The nearest number of a format."""
    found = decode(form, encode(form, value, saturate=saturate))
    return math.copysign(found, value) if math.isnan(found) else found


def fits(form: Format, value: float) -> bool:
    """Whether a finite number is rounded to a number of the format: not beyond the largest one, and
    not to NaN."""
    if not form.signed and value <= 0:
        return False
    return _magnitude(form, abs(value)) <= form.largest


def _is_nan(form: Format, bits: int) -> bool:
    if form.infinity is not None:
        return bits & ~form.sign > form.infinity
    if form.specials == "fn":
        return bits & ~form.sign == form.nan
    return bits == form.nan


def _magnitude(form: Format, value: float) -> int:
    """The bits of a number that is not negative; beyond the largest bits if it is too large."""
    if math.isinf(value):
        return form.largest + 1
    if not form.signed:
        return _power_of_two(form, value)
    if value == 0:
        return 0
    # frexp's fraction is in [0.5, 1), so its exponent is one more than that of the first bit.
    power = max(math.frexp(value)[1] - 1, form.least_exponent)
    step = power - form.mantissa
    # Bits of a normal number count on from those of the smallest, and a carry is the next exponent.
    count = round(math.ldexp(value, -step))
    return ((power - form.least_exponent) << form.mantissa) + count


def _power_of_two(form: Format, value: float) -> int:
    """The bits of a power of two near a positive number."""
    least = decode(form, 0)
    if value < 2 * least:
        return int(value > least)
    power = math.frexp(value)[1] - 1
    return power + form.bias + (math.ldexp(value, -power) >= 1.5)

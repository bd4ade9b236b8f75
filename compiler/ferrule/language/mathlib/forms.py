"""The two float formats in which the library computes, and operations on their bits."""

from __future__ import annotations

from typing import Final

from ferrule.language.mathlib.formulas import Num
from ferrule.specs import DType, Float32, Float64, Int16, Int32, Int64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One float format: `mantissa` bits are stored, `bits` is the integer dtype of its size."""

    dtype: DType
    bits: DType
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        """Adding this to |x| < 2**(mantissa - 1) rounds to an integer, ties to even.

        Then the integer is in the last bits of the sum.
        """
        return 1.5 * 2.0**self.mantissa

    @property
    def sign(self) -> int:
        """The sign bit, as an integer of `bits`."""
        return self.bits.range[0]

    @property
    def upper(self) -> int:
        """A mask that keeps half of the bits of a mantissa, so that products of two are exact."""
        return -1 << (self.mantissa + 2) // 2

    @property
    def smallest_normal(self) -> float:
        """The smallest number with a full mantissa."""
        return 2.0 ** (1 - self.bias)

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (2 * self.bias + 1) << self.mantissa


FORMS: Final[dict[DType, Form]] = {
    Float32: Form(Float32, Int32, 23, 127),
    Float64: Form(Float64, Int64, 52, 1023),
}


def form_of(x: Num) -> Form:
    """The format of a float32 or float64."""
    return FORMS[x.dtype]


def bits_of(x: Num) -> Num:
    """The bits, as a signed integer."""
    return x.bits(form_of(x).bits)


def absolute(x: Num) -> Num:
    """|x|, also for NaN."""
    form = form_of(x)
    return (bits_of(x) & ~form.sign).bits(form.dtype)


def with_sign(x: Num, sign: Num) -> Num:
    """|x| with the sign bit of another number."""
    form = form_of(x)
    return ((bits_of(x) & ~form.sign) | (bits_of(sign) & form.sign)).bits(form.dtype)


def with_narrow_sign(x: Num, sign: Num) -> Num:
    """The bits, an Int16, of |x| with the sign bit of another number; both have 16 bits."""
    lowest = Int16.range[0]
    return (x.bits(Int16) & ~lowest) | (sign.bits(Int16) & lowest)


def negated_if(x: Num, negative: Num) -> Num:
    """x, or -x if the Boolean is true."""
    return negative.pick(-x, x)


def has_sign(x: Num) -> Num:
    """Whether the sign bit is set, also for zeros and NaN."""
    return bits_of(x) < 0


def upper_half(x: Num) -> Num:
    """x with the lower half of its mantissa cut off."""
    form = form_of(x)
    return (bits_of(x) & form.upper).bits(form.dtype)


def to_integer(x: Num) -> Num:
    """The nearest integer to |x| < 2**(mantissa - 1), a float; ties to even."""
    magic = form_of(x).magic
    return (x + magic) - magic


def integer_bits(z: Num) -> Num:
    """A float that is an integer, |z| < 2**(mantissa - 1), as an integer of that size."""
    form = form_of(z)
    return bits_of(z + form.magic) - _magic_bits(form)


def float_of(n: Num, form: Form) -> Num:
    """A small integer of the size of the format, as a float: without a conversion instruction."""
    return (n + _magic_bits(form)).bits(form.dtype) - form.magic


def _magic_bits(form: Form) -> int:
    # 1.5 * 2**mantissa: the exponent, and the first bit of the mantissa.
    return (form.bias + form.mantissa) << form.mantissa | 1 << (form.mantissa - 1)


def power_of_two(z: Num) -> Num:
    """2**z for a float that is an integer and in the range of normal exponents."""
    form = form_of(z)
    # z + bias is in the last bits of the sum; all others are shifted out.
    shifted = bits_of(z + (form.magic + form.bias)) << form.mantissa
    return shifted.bits(form.dtype)


def scaled(x: Num, z: Num) -> Num:
    """x * 2**z for |x| < 8, or where z is small, with one rounding; |z| < 5/4 of the largest.

    In two steps: the first is exact.
    """
    apart = form_of(x).bias // 4
    negative = z < 0.0
    nearer = z + negative.pick(z.like(float(apart)), -float(apart))
    rest = negative.pick(z.like(2.0**-apart), 2.0**apart)
    return x * rest * power_of_two(nearer)


def raised(less_one: Num, turned: Num) -> Num:
    """(less_one + 1) * 2**z with one rounding, for |less_one| < 1/2.

    `turned` is the sum of z, an integer, |z| < 5/4 of the largest exponent, and of the magic number
    of the format, so that its last bits are those of z.
    """
    form, bits = form_of(less_one), bits_of(turned)
    one = form.bias << form.mantissa
    # 2**z may be beyond the exponents of normal numbers, the two powers are not. What the magic
    # number has above the bits of z is shifted out of both.
    half = bits >> 1
    first = ((half << form.mantissa) + one).bits(form.dtype)
    second = (((bits - half) << form.mantissa) + one).bits(form.dtype)
    return less_one.fma(first, first) * second


def exponent_and_fraction(x: Num, first: float) -> tuple[Num, Num]:
    """k and m with x = m * 2**k and first <= m < 2 first, for a positive finite x.

    k is an integer of the format's size.  1/2 < first <= 1.  Subnormal numbers are right.
    """
    form = form_of(x)
    tiny = x < form.smallest_normal
    scale = form.mantissa + 1
    bits = bits_of(x.unless(tiny, x * 2.0**scale))
    lowest = _constant_bits(first, form)
    moved = bits + ((form.bias << form.mantissa) - lowest)
    k = (moved >> form.mantissa) - tiny.pick(bits.like(form.bias + scale), form.bias)
    m = (moved & ((1 << form.mantissa) - 1)) + lowest
    return k, m.bits(form.dtype)


def _constant_bits(value: float, form: Form) -> int:
    import struct

    letters = ("<f", "<i") if form.mantissa == 23 else ("<d", "<q")
    return int(struct.unpack(letters[1], struct.pack(letters[0], value))[0])

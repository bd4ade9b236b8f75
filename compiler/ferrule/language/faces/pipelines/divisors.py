"""Divisors that are multiplied with: `fe.FastDivmodDivisor`, written in the kernel language.

The quotient of n and d is the upper part of a product of n and a number near 1 / d (Granlund and
Montgomery, "Division by Invariant Integers using Multiplication"): with 2**(l - 1) < d <= 2**l and
m = ceil(2**(31 + l) / d), which has 32 bits, n // d is n * m >> (31 + l) for n from 0 to 2**31 - 1.
A negative n is -1 - k of such a k, and its quotient, rounded down, -1 - k // d.
"""

from __future__ import annotations

from typing import Any

from ferrule import specs
from ferrule.language.faces import maths
from ferrule.language.faces.base import outside, static_assert
from ferrule.specs.deferred import dataclass

# Numbers of the call have operators, which Python's numbers of these dtypes lack.
Int32: Any = specs.Int32
Uint32: Any = specs.Uint32
Uint64: Any = specs.Uint64
_HELD = (specs.Int32, specs.Int16, specs.Int8, specs.Uint16, specs.Uint8, specs.Boolean)


class FastDivmodDivisor:
    """An Int32 from 1 on that divides Int32 without a division: `n // d`, `n % d` and
    `divmod(n, d)` give what Python's integers give.

    A host function makes it, which is where it divides, and hands it to kernels, alone or in a
    dataclass; `divisor` is the number.  A call in which it is below 1 is a ValueError.
    """

    def __init__(self, divisor: Any, is_power_of_2: bool | None = None) -> None:
        """Of this number; whether it is a power of 2 makes no difference."""
        outside("FastDivmodDivisor")


FastDivmodDivisorV2 = FastDivmodDivisor
"""The same: each has its `divisor` in kernels, too."""


@dataclass(frozen=True)
class Divisor(FastDivmodDivisor):
    """One that was made."""

    divisor: Any
    multiplier: Any
    shift: Any

    def _quotient(self, dividend: Any) -> Any:
        n = _dividend(dividend)
        sign = n >> 31
        # For a negative n, floor(n / d) is ~(~n // d), and ~n is n ^ -1.
        product = Uint64(Uint32(n ^ sign)) * Uint64(self.multiplier)
        return Int32(product >> Uint64(self.shift)) ^ sign

    def __rfloordiv__(self, dividend: Any) -> Any:
        return self._quotient(dividend)

    def __rmod__(self, dividend: Any) -> Any:
        return _dividend(dividend) - self._quotient(dividend) * self.divisor


def made(divisor: Any) -> Divisor:
    """What `FastDivmodDivisor` gives in a host function."""
    d = Int32(divisor)
    if d < 1:
        raise ValueError("a FastDivmodDivisor is an Int32 from 1 on")
    bits = 32 - maths.clz(d - 1)
    power = Uint64(1) << Uint64(31 + bits)
    # Granlund and Montgomery: 2^(31 + ceil(log2 d)) / d, rounded up, gives the exact quotient of
    # each dividend of 31 bits. It fits 32 bits, as d is above 2^(bits - 1).
    multiplier = (power + Uint64(d) - 1) // Uint64(d)
    return Divisor(d, Uint32(multiplier), Uint32(31 + bits))


def fast_divmod_create_divisor(divisor: Any) -> FastDivmodDivisor:
    """A divisor by which numbers are divided without a division."""
    return FastDivmodDivisor(divisor)


def fast_divmod_create_divisor_v2(divisor: Any) -> FastDivmodDivisor:
    """`fast_divmod_create_divisor`."""
    return FastDivmodDivisor(divisor)


def _dividend(value: Any) -> Any:
    """An Int32; a number of another dtype, which may be larger, is refused."""
    held = isinstance(value, int) or value.dtype in _HELD
    static_assert(held, "a FastDivmodDivisor divides Int32: convert the number")
    return Int32(value)

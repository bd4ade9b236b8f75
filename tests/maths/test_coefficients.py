"""The fitted coefficients: as precise as the library's methods need, and parts that add up."""

from __future__ import annotations

import mpmath
import pytest
from maths_fits import CONSTANTS, FITS, Fit, error_bits

from ferrule.language.mathlib import constants, polynomials
from ferrule.specs import Float32, Float64

BITS = {"LOG_FAR": (38, 66), "CBRT": (16, 16)}
"""What is needed more or less than of all others."""


@pytest.mark.parametrize("wanted", FITS, ids=lambda fit: fit.name)
def test_errors_of_the_polynomials(wanted: Fit) -> None:
    single, double = BITS.get(wanted.name, (27, 56))
    with mpmath.workdps(40):
        for dtype, bits in ((Float32, single), (Float64, double)):
            if dtype.name in map(str.lower, wanted.counts):
                lowest_first = getattr(polynomials, wanted.name)[dtype][::-1]
                assert error_bits(wanted, lowest_first, 60) <= -bits


def test_constants_are_sums_of_their_parts() -> None:
    with mpmath.workdps(60):
        for constant in CONSTANTS:
            found = getattr(constants, constant.name)
            for dtype, bits in ((Float32, 34), (Float64, 78)):
                total = mpmath.fsum(found[dtype])
                assert abs(total / constant.value() - 1) < mpmath.mpf(2) ** -bits, constant.name


def test_the_words_of_two_over_pi() -> None:
    with mpmath.workdps(450):
        words = len(constants.TWO_OVER_PI)
        wanted = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** (32 * words)))
    found = 0
    for word in constants.TWO_OVER_PI:
        found = found << 32 | word
    assert found == wanted

"""Special values, as C's Annex F has them: zeros with their signs, infinities, NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from cpu_machine import BASELINE
from maths_reference import run

from ferrule.specs import DType, Float32, Float64

INF, NAN = math.inf, math.nan
ODD = (*("expm1", "log1p", "cbrt", "sin", "tan", "asin", "atan", "sinh", "tanh", "erf"), "fabs")
"""f(0.0) is 0.0; but for the last f(-0.0) is -0.0."""

ONE: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-3.0, 0.125)],
    "expm1": [(INF, INF), (-INF, -1.0)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (-1.0, NAN), (INF, INF), (0.125, -3.0)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (-1.0, NAN), (INF, INF), (1000.0, 3.0)],
    "log1p": [(-1.0, -INF), (-2.0, NAN), (INF, INF), (-INF, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN), (4.0, 0.5)],
    "cbrt": [(INF, INF), (-INF, -INF), (27.0, 3.0), (-8.0, -2.0)],
    "sin": [(INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(INF, NAN), (-INF, NAN)],
    "asin": [(1.5, NAN), (-1.5, NAN), (INF, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (-INF, NAN)],
    "atan": [(INF, math.pi / 2), (-INF, -math.pi / 2)],
    "sinh": [(INF, INF), (-INF, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    "tanh": [(INF, 1.0), (-INF, -1.0)],
    "erf": [(INF, 1.0), (-INF, -1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0)],
    "fabs": [(-INF, INF)],
}


def powers() -> Iterator[tuple[float, float, float]]:
    """Every rule of Annex F for pow."""
    for y in (-3.0, -INF, -2.0, -0.5):
        odd = y == -3.0
        yield from [(0.0, y, INF), (-0.0, y, -INF if odd else INF)]
    for y in (3.0, INF, 2.0, 0.5):
        odd = y == 3.0
        yield from [(0.0, y, 0.0), (-0.0, y, -0.0 if odd else 0.0)]
    for y in (INF, -INF):
        yield from [(-1.0, y, 1.0), (1.0, y, 1.0)]
        yield from [(x, y, INF if (abs(x) > 1) == (y > 0) else 0.0) for x in (0.5, -0.5, 2, -2)]
    yield from [(1.0, NAN, 1.0), (NAN, 0.0, 1.0), (NAN, -0.0, 1.0), (INF, 0.0, 1.0)]
    yield from [(-2.0, 0.5, NAN), (-2.0, 3.0, -8.0), (-2.0, 4.0, 16.0), (-2.0, -3.0, -0.125)]
    yield from [(-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.5, INF)]
    yield from [(INF, -0.5, 0.0), (INF, 0.5, INF), (NAN, 2.0, NAN), (2.0, NAN, NAN)]
    yield from [(10.0, 2.0, 100.0), (3.0, 5.0, 243.0), (2.0, -1.0, 0.5), (7.0, 1.0, 7.0)]


def angles() -> Iterator[tuple[float, float, float]]:
    """Every rule of Annex F for atan2."""
    pi = math.pi
    for sign in (1.0, -1.0):
        zero, inf = math.copysign(0.0, sign), sign * INF
        yield from [(zero, x, sign * pi) for x in (-0.0, -1.0, -INF)]
        yield from [(zero, x, zero) for x in (0.0, 1.0, INF)]
        yield from [(sign, x, sign * pi / 2) for x in (0.0, -0.0)]
        yield from [(sign, -INF, sign * pi), (sign, INF, zero)]
        yield from [(inf, x, sign * pi / 2) for x in (1.0, -1.0, 0.0)]
        yield from [(inf, -INF, sign * 3 * pi / 4), (inf, INF, sign * pi / 4)]
    yield from [(NAN, 1.0, NAN), (1.0, NAN, NAN), (NAN, NAN, NAN)]


TWO = {"pow": list(powers()), "atan2": list(angles())}


def cases(op: str) -> list[tuple[float, ...]]:
    """Operands, then the result."""
    if op in TWO:
        return list(TWO[op])
    found: list[tuple[float, ...]] = [*ONE[op], (NAN, NAN)]
    if op in ODD:
        found += [(0.0, 0.0), (-0.0, 0.0 if op == "fabs" else -0.0)]
    return found


@pytest.mark.parametrize(("cpu", "fmad"), [(None, False), (BASELINE, False), (None, True)])
@pytest.mark.parametrize("dtype", [Float32, Float64], ids=lambda d: d.name)
@pytest.mark.parametrize("op", [*ONE, *TWO])
def test_special_values(op: str, dtype: DType, cpu: str | None, fmad: bool) -> None:
    *given, wanted = np.array(cases(op)).T.astype(dtype.name)
    found = run(op, dtype, *given, cpu=cpu, fmad=fmad)
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))

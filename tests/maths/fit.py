"""Fits the polynomials of `ferrule.language.mathlib`: writes its `polynomials.py`, `constants.py`.

    PYTHONPATH=tests/support python tests/maths/fit.py

Each polynomial is the weighted minimax approximation that Remez's exchange algorithm finds in
60-digit arithmetic, its coefficients then rounded to their format.  What is approximated, where,
with which weight and how many coefficients is in `maths_fits`: the weight makes the error relative
to the function that the polynomial is part of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import mpmath as mp
import numpy as np
from maths_fits import CONSTANTS, FITS, Fit, Real, alternating, error_bits, horner

GRID: Final = 40
"""Points of the grid for each coefficient."""


# ---- Remez's algorithm ----


def fit(wanted: Fit, count: int) -> list[Real]:
    """The coefficients, the lowest power first."""
    low, high = mp.mpf(wanted.low), mp.mpf(wanted.high)
    points = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + 0.5) / (GRID * count))
        for i in range(GRID * count)
    ]
    values = [(wanted.function(x), wanted.weight(x)) for x in points]
    chosen = [round(i * (GRID * count - 1) / count) for i in range(count + 1)]
    coefficients: list[Real] = []
    for _ in range(60):
        coefficients, level = solve(points, values, chosen, count)
        errors = [
            (horner(coefficients, x) - f) * w for x, (f, w) in zip(points, values, strict=True)
        ]
        if max(map(abs, errors)) <= abs(level) * (1 + mp.mpf(10) ** -6):
            break
        chosen = exchange(errors, count + 1)
    return coefficients


def solve(
    points: Sequence[Real], values: Sequence[tuple[Real, Real]], chosen: Sequence[int], count: int
) -> tuple[list[Real], Real]:
    """The polynomial whose weighted errors at these points are equal and alternate."""
    rows, right = [], []
    for sign, i in enumerate(chosen):
        (f, w), x = values[i], points[i]
        rows.append([w * x**k for k in range(count)] + [mp.mpf(alternating(sign))])
        right.append(f * w)
    solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
    return [solution[k] for k in range(count)], solution[count]


def exchange(errors: Sequence[Real], count: int) -> list[int]:
    """The points of the largest errors of alternating signs."""
    extrema: list[int] = []
    for i, error in enumerate(errors):
        if extrema and (errors[extrema[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        first = abs(errors[extrema[0]]) < abs(errors[extrema[-1]])
        extrema.pop(0 if first else -1)
    if len(extrema) < count:
        raise ArithmeticError("too few alternations")
    return extrema


# ---- the file ----

POLYNOMIALS: Final = '''"""The library's polynomials: their coefficients, the highest power first.

Written by `tests/maths/fit.py`: minimax fits, rounded.  Below each is what it approximates, and the
largest errors as powers of 2, relative to the function that the polynomial is part of.
"""

from __future__ import annotations

from typing import Final

from ferrule.specs import DType, Float32, Float64

Coefficients = dict[DType, tuple[float, ...]]
'''
PARTS: Final = '''"""Constants as sums of floats, so that they are more precise than one float.

Written by `tests/maths/fit.py`.
"""

from __future__ import annotations

from typing import Final

from ferrule.specs import DType, Float32, Float64

Parts = dict[DType, tuple[float, ...]]
'''


def rounded(name: str, coefficients: Sequence[Real]) -> list[float]:
    """In the format; trigonometry computes its float32 in float64."""
    double = name == "Float64"
    return [float(c) if double else float(np.float32(float(c))) for c in coefficients]


LINE: Final = 100
DOUBLE_FOR_SINGLE: Final = ("SIN", "COS")
"""Polynomials of float32 functions that are computed in float64."""


def polynomial_lines() -> Iterator[str]:
    """The lines of the polynomials."""
    for wanted in FITS:
        fitted: dict[str, list[float]] = {}
        errors = []
        for name, count in wanted.counts.items():
            kept = "Float64" if wanted.name in DOUBLE_FOR_SINGLE else name
            fitted[name] = rounded(kept, fit(wanted, count))
            errors.append(f"{error_bits(wanted, fitted[name]):.1f}")
        yield ""
        yield f"{wanted.name}: Final[Coefficients] = {{"
        for name, coefficients in fitted.items():
            yield f"    {name}: ("
            yield from (f"        {c!r}," for c in reversed(coefficients))
            yield "    ),"
        yield "}"
        yield f'"""{wanted.meaning}'
        yield f"on [{wanted.low:.4g}, {wanted.high:.4g}]; 2**({', '.join(errors)})."
        yield '"""'


def parts(value: Real, widths: Sequence[int], *, double: bool) -> list[float]:
    """The parts of a constant; the last one as precise as the format."""
    found = []
    for width in widths:
        exponent = mp.floor(mp.log(abs(value), 2)) + 1
        scale = mp.mpf(2) ** (width - exponent)
        found.append(float(mp.nint(value * scale) / scale))
        value -= found[-1]
    return [*found, *rounded("Float64" if double else "Float32", [value])]


def two_over_pi(words: int) -> Iterator[str]:
    """The binary fraction 2 / pi in words of 32 bits, behind words that are 0."""
    with mp.workdps(500):
        number = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (32 * words)))
    yield ""
    yield "TWO_OVER_PI: Final = ("
    for i in reversed(range(words)):
        yield f"    0x{number >> 32 * i & 0xFFFFFFFF:08X},"
    yield ")"
    yield '"""The fraction of 2 / pi in words of 32 bits, the first one first."""'


def constant_lines() -> Iterator[str]:
    """The lines of the constants."""
    for constant in CONSTANTS:
        trig = constant.name == "HALF_PI_PARTS"
        single = parts(constant.value(), constant.single, double=trig)
        double = parts(constant.value(), constant.double, double=True)
        yield ""
        yield f"{constant.name}: Final[Parts] = {{"
        for name, numbers in (("Float32", single), ("Float64", double)):
            line = f"    {name}: ({', '.join(map(repr, numbers))}),"
            split = [f"    {name}: (", *(f"        {n!r}," for n in numbers), "    ),"]
            yield from [line] if len(line) <= LINE else split
        yield "}"
        yield f'"""{constant.meaning}."""'
    yield from two_over_pi(42)


def main() -> None:
    mp.mp.dps = 60
    folder = Path(__file__).resolve().parents[2] / "compiler" / "ferrule" / "language" / "mathlib"
    for name, header, lines in (
        ("polynomials", POLYNOMIALS, polynomial_lines()),
        ("constants", PARTS, constant_lines()),
    ):
        text = header + "\n".join(lines) + "\n"
        folder.joinpath(f"{name}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""No function is further from the true value than the table of docs/maths.md says, in ulp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE
from maths_reference import NUMPY, WIDE, compiled, errors, precise_error, run

from ferrule.specs import DType, Float32, Float64

PAGE = Path(__file__).resolve().parents[2] / "docs" / "maths.md"
COUNT = 1 << 14
PAIRS = ("pow", "atan2", "fmod")


def documented() -> dict[str, list[float]]:
    """Each function's bounds for float32 and float64, and for both with fmad."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0].startswith("`"):
            found[cells[0].strip("`")] = [float(cell) for cell in cells[1:5]]
    return found


BOUNDS = documented()
DTYPES = pytest.mark.parametrize("dtype", [Float32, Float64], ids=lambda d: d.name)
FMAD = pytest.mark.parametrize("fmad", [False, True], ids=["", "fmad"])
SAME = ("sqrt", "fmod")
"""They have no other formula."""


def bound(op: str, dtype: DType, fmad: bool = False) -> float:
    return BOUNDS[op][2 * fmad + (dtype is Float64)]


def samples(dtype: DType, seed: int) -> Any:
    """Floats of random bits, of usual magnitudes, and near 1."""
    rng = np.random.default_rng(seed)
    word = np.uint32 if dtype is Float32 else np.uint64
    anything = rng.integers(0, 1 << dtype.bits, COUNT, dtype=word).view(dtype.name)
    usual = rng.standard_normal(COUNT) * np.exp2(rng.integers(-8, 8, COUNT))
    near_one = 1 + rng.standard_normal(COUNT) * np.exp2(-rng.uniform(1, 40, COUNT))
    return np.concatenate([anything, *(x.astype(dtype.name) for x in (usual, near_one))])


def operands(op: str, dtype: DType) -> list[Any]:
    first = samples(dtype, 1)
    if op not in PAIRS:
        return [first]
    second = np.random.default_rng(3).permutation(samples(dtype, 2))
    if op == "pow":
        first = np.abs(first)
        with np.errstate(all="ignore"):
            limit = 150 if dtype is Float32 else 1080
            exponents = np.linspace(-limit, limit, COUNT) / np.log2(first[:COUNT].astype("f8"))
        second[:COUNT] = exponents
    return [first, second]


def test_the_page_has_every_function() -> None:
    assert BOUNDS.keys() == NUMPY.keys()


@FMAD
@DTYPES
@pytest.mark.parametrize("op", [op for op in NUMPY if op not in ("erf", "erfc")])
def test_errors_are_within_the_bounds(op: str, dtype: DType, fmad: bool) -> None:
    if dtype is Float64 and not WIDE:
        pytest.skip("NumPy's long double is a float64 here")
    given = operands(op, dtype)
    found = errors(op, dtype, *given, fmad=fmad)
    worst = int(found.argmax())
    assert found[worst] <= bound(op, dtype, fmad), [array[worst] for array in given]


@FMAD
@pytest.mark.parametrize("op", ["erf", "erfc"])
def test_error_functions_of_float32(op: str, fmad: bool) -> None:
    assert errors(op, Float32, samples(Float32, 1), fmad=fmad).max() <= bound(op, Float32, fmad)


HARD: dict[str, list[tuple[float, ...]]] = {
    "sin": [(6381956970095103 * 2.0**797,), (2.0**1000,), (1e22,), (3.141592653589793,)],
    "cos": [(6381956970095103 * 2.0**797,), (5.0e300,), (1.5707963267948966,), (11.0,)],
    "tan": [(6381956970095103 * 2.0**797,), (1.5707963267948966,), (2.0**20 - 0.5,)],
    "exp": [(-745.13,), (709.78,), (2.0**-60,), (7.541604997696493e-10,)],
    "exp2": [(-1074.4,), (1023.999,), (1e-17,)],
    "expm1": [(1e-300,), (-36.7,), (5e-324,), (0.3465735902799727,)],
    "log": [(1 + 2.0**-52,), (1 - 2.0**-53,), (5e-324,), (1.7e308,)],
    "log2": [(1 + 2.0**-52,), (1 - 2.0**-53,), (5e-324,), (0.7071067811865475,)],
    "log10": [(1 + 2.0**-52,), (1e-5,), (1e15,), (0.7071067811865476,)],
    "log1p": [(1e-300,), (-1 + 2.0**-53,), (5e-324,), (1e300,)],
    "pow": [(1 + 2.0**-52, 2.0**52), (1.7e308, 0.999), (5e-324, 0.9), (0.5, 1074.0)],
    "atan2": [(5e-324, 1.0), (1e308, 1e-308), (3e-324, 4e-324), (1.7e308, -1.7e308)],
    "asin": [(1e-200,), (1 - 2.0**-53,), (0.5 + 2.0**-53,)],
    "acos": [(1 - 2.0**-53,), (-1 + 2.0**-53,), (1e-200,)],
    "sinh": [(5e-324,), (710.4,), (1e-8,)],
    "cosh": [(710.4,), (1e-8,), (22.0,)],
    "tanh": [(5e-324,), (18.9,), (1e-8,)],
    "erf": [(5e-324,), (1e-9,), (0.9999999999999999,), (5.9,)],
    "erfc": [(26.5,), (27.2,), (0.5,), (-3.0,), (1e-17,), (0.4999999999999999,)],
    "sigmoid": [(-745.0,), (36.7,), (-1e-17,)],
    "cbrt": [(5e-324,), (1.7e308,), (-27.0,)],
    "rsqrt": [(5e-324,), (1.7e308,), (3.0,)],
}


@FMAD
@pytest.mark.parametrize("op", HARD)
def test_hard_cases_of_float64(op: str, fmad: bool) -> None:
    for given in HARD[op]:
        (found,) = run(op, Float64, *(np.array([x]) for x in given), fmad=fmad)
        assert precise_error(op, float(found), *given) <= bound(op, Float64, fmad), given


@FMAD
@pytest.mark.parametrize("op", ["erf", "erfc", "exp", "sin", "pow"])
def test_float64_against_mpmath(op: str, fmad: bool) -> None:
    rng = np.random.default_rng(9)
    given = [rng.uniform(0, 3, 300), rng.uniform(-9, 9, 300)][: 2 if op == "pow" else 1]
    for found, *x in zip(run(op, Float64, *given, fmad=fmad), *given, strict=True):
        assert precise_error(op, float(found), *map(float, x)) <= bound(op, Float64, fmad), x


def on_every_cpu(op: str, fmad: bool) -> Any:
    """By day with fma for some: without an instruction for it the code is long to compile."""
    by_day = not fmad or op in ("exp", "log", "sin", "pow", "rsqrt", "tanh")
    name = f"{op}-fmad" if fmad else op
    return pytest.param(op, fmad, id=name, marks=() if by_day else pytest.mark.nightly)


@DTYPES
@pytest.mark.parametrize(
    ("op", "fmad"), [on_every_cpu(op, fmad) for fmad in (False, True) for op in NUMPY]
)
def test_every_cpu_gives_the_same_bits(op: str, dtype: DType, fmad: bool) -> None:
    """Also where fma is computed without an instruction."""
    given = [array[:: 50 if fmad else 5] for array in operands(op, dtype)]
    here, baseline = (run(op, dtype, *given, cpu=cpu, fmad=fmad) for cpu in (None, BASELINE))
    np.testing.assert_array_equal(here, baseline)
    known = ~np.isnan(here)
    np.testing.assert_array_equal(np.signbit(here[known]), np.signbit(baseline[known]))


@DTYPES
@pytest.mark.parametrize("op", [op for op in NUMPY if op not in SAME])
def test_a_formula_with_fma_is_another_one(op: str, dtype: DType) -> None:
    """Otherwise the tests above would try one formula twice."""
    first, second = (compiled(op, dtype, None, fmad).optimised for fmad in (False, True))
    assert "@llvm.fma" in second
    assert "@llvm.fma" not in first

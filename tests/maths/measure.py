"""Measures the largest errors of the maths library, in ulp: the figures of `docs/maths.md`.

    export PYTHONPATH=compiler:runtime:specs:tests/support
    python tests/maths/measure.py [--quick] [--fmad] [NAME …]

float32 functions of one operand are run on all 2**32 floats, those of two on 2**27 pairs; float64
on 2**24 operands (erf and erfc on 2**16) of all magnitudes and where functions bend.  With
`--quick` a thousandth of that; with `--fmad` the formulas with fma.  The references are those of
`maths_reference`; for erf and erfc of float32, PyTorch's float64 where it is installed.  An
infinity says that a special value is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from maths_reference import (
    NUMPY,
    distance,
    errors,
    precise_error,
    run,
)

from ferrule.specs import DType, Float32, Float64

Array = Any
CHUNK: Final = 1 << 20
TWO: Final = ("pow", "atan2", "fmod")
ONLY_FLOAT64: Final = ("erf", "erfc")
"""NumPy has no long double of these."""


def floats(rng: np.random.Generator, dtype: DType, count: int) -> Array:
    """Floats with random bits."""
    word = np.uint32 if dtype is Float32 else np.uint64
    return rng.integers(0, 1 << dtype.bits, count, dtype=word).view(dtype.name)


def operands(rng: np.random.Generator, name: str, dtype: DType, count: int) -> list[Array]:
    """Operands of all magnitudes, and as many where functions bend and where they end."""
    half, quarter = count // 2, count // 4
    near = rng.standard_normal(quarter) * np.exp2(rng.integers(-6, 4, quarter))
    # Where exponentials become subnormal and infinite.
    near = np.concatenate([near, rng.uniform(-760, 760, half - quarter)])
    first = np.concatenate([floats(rng, dtype, half), near]).astype(dtype.name)
    if name not in TWO:
        return [first]
    second = np.concatenate([floats(rng, dtype, half), rng.permutation(near)]).astype(dtype.name)
    if name == "pow":
        first = np.where(rng.random(2 * half) < 0.9, np.abs(first), first)
        limit = 150 if dtype is Float32 else 1080
        wanted = rng.uniform(-limit, limit, half)
        second[:half] = wanted / np.log2(np.abs(first[:half].astype("f8")))
        second[::5] = np.round(second[::5])
    return [first, second]


def reference(name: str, values: Array) -> Array:
    """Of float32 in float64; torch's error functions are faster than Python's."""
    if name in ONLY_FLOAT64:
        try:
            import torch
        except ImportError:
            return NUMPY[name](values.astype("f8"))
        return getattr(torch.special, name)(torch.from_numpy(values.astype("f8"))).numpy()
    return NUMPY[name](values.astype("f8"))


def all_float32(name: str, step: int, fmad: bool) -> tuple[float, float]:
    """The largest error over every `step`-th chunk of all float32s, and where it is."""
    worst, where = 0.5, 0.0
    for start in range(0, 1 << 32, CHUNK * step):
        values = np.arange(start, start + CHUNK, dtype=np.uint32).view(np.float32)
        found, exact = run(name, Float32, values, fmad=fmad), reference(name, values)
        nearest = exact.astype("f4")
        differ = ~((found == nearest) | (np.isnan(found) & np.isnan(exact)))
        if differ.any():
            error = distance(found[differ], exact[differ])
            if error.max() > worst:
                worst, where = float(error.max()), float(values[differ][error.argmax()])
    return worst, where


def sampled(name: str, dtype: DType, count: int, fmad: bool) -> tuple[float, tuple[float, ...]]:
    """The largest error over random operands, and where it is."""
    rng = np.random.default_rng(5)
    worst, where = 0.0, ()
    for _ in range(max(1, count // CHUNK)):
        given = operands(rng, name, dtype, min(count, CHUNK))
        error = errors(name, dtype, *given, fmad=fmad)
        if error.max() > worst:
            worst, where = float(error.max()), tuple(float(a[error.argmax()]) for a in given)
    return worst, where


def against_mpmath(name: str, count: int, fmad: bool) -> tuple[float, float]:
    """The largest error over random float64s; their results are not 0 and not infinite."""
    (given,) = operands(np.random.default_rng(6), name, Float64, count)
    given = given[np.isfinite(given) & (np.abs(given) < 40)]
    pairs = zip(run(name, Float64, given, fmad=fmad), given, strict=True)
    return max((precise_error(name, float(f), float(x)), float(x)) for f, x in pairs)


def lines(names: list[str], part: int, fmad: bool) -> Iterator[str]:
    """The figures, a function a line."""
    for name in names:
        if name in TWO:
            single: Any = sampled(name, Float32, (1 << 27) // part, fmad)
        else:
            single = all_float32(name, part, fmad)
        if name in ONLY_FLOAT64:
            double: Any = against_mpmath(name, (1 << 16) // part, fmad)
        else:
            double = sampled(name, Float64, (1 << 24) // part, fmad)
        yield f"{name:8} {single[0]:.3f} at {single[1]}, {double[0]:.3f} at {double[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The largest errors of the maths library, in ulp")
    parser.add_argument("--quick", action="store_true", help="a thousandth of the operands")
    parser.add_argument("--fmad", action="store_true", help="the formulas with fma")
    parser.add_argument("names", nargs="*", help="functions; all by default")
    given = parser.parse_args()
    print("float32 and float64, in ulp")
    with np.errstate(all="ignore"):
        names = given.names or list(NUMPY)
        for line in lines(names, 1024 if given.quick else 1, given.fmad):
            print(line, flush=True)


if __name__ == "__main__":
    main()

"""Floats of 8 bits in compiled functions, beside `ml_dtypes`, on the CPU or a GPU.

`python -m narrow_float_runs ARCH [DTYPE …]` runs all of it on an emulated GPU, for these dtypes.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

import ferrule as fe
from ferrule.specs import DType
from ferrule.specs.dtypes import as_dtype

FLOATS: tuple[DType, ...] = (
    fe.Float8E3M4,
    fe.Float8E4M3,
    fe.Float8E4M3B11FNUZ,
    fe.Float8E4M3FN,
    fe.Float8E4M3FNUZ,
    fe.Float8E5M2,
    fe.Float8E5M2FNUZ,
    fe.Float8E8M0FNU,
)
EVERY_BYTE = np.arange(256, dtype=np.uint8)
EVERY_HALF = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def kind(dtype: DType) -> Any:
    """NumPy's dtype."""
    return np.dtype(getattr(ml_dtypes, dtype.name, dtype.name))


@fe.jit
def convert(x: fe.Tensor, y: fe.Tensor):
    y[:] = y.element_type(x[:])


@fe.jit
def convert_saturating(x: fe.Tensor, y: fe.Tensor):
    y[:] = x[:].to(y.element_type, saturate=True)


@fe.kernel
def arithmetic_kernel(a: fe.Tensor, b: fe.Tensor, results: fe.Tensor, truths: fe.Tensor):
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        x, y = a[i], b[i]
        results[0, i] = x + y
        results[1, i] = x * y
        results[2, i] = x - y
        results[3, i] = x / y
        results[4, i] = max(x, y)
        truths[0, i] = x < y
        truths[1, i] = x == y
        truths[2, i] = x != y
        truths[3, i] = x >= y


@fe.jit
def arithmetic(a: fe.Tensor, b: fe.Tensor, results: fe.Tensor, truths: fe.Tensor):
    arithmetic_kernel(a, b, results, truths).launch(grid=fe.ceil_div(a.shape[0], 256), block=256)


def row(dtype: DType, *sizes: int) -> Any:
    """An example of a row-major tensor, with these sizes before the free one."""
    return fe.row_major((*sizes, fe.sym_int()), dtype)


@cache
def compiled(function: Any, target: str, *examples: tuple[DType, int]) -> Any:
    """The function for a target."""
    given = [row(dtype, *([size] if size else [])) for dtype, size in examples]
    return fe.compile(function, *given, options=f"--target {target}")


def run(function: Any, target: str, given: list[Any], made: list[tuple[DType, int]]) -> list[Any]:
    """The arrays that a function makes of others."""
    count, form = len(given[0]), [(as_dtype(each.dtype), 0) for each in given]
    arrays = [np.ascontiguousarray(each) for each in given]
    arrays += [np.zeros((n, count) if n else count, kind(dtype)) for dtype, n in made]
    call = compiled(function, target.partition(":")[0], *form, *made)
    if target.startswith("cpu"):
        call(*arrays)
        return arrays[len(given) :]
    there = [fe.cuda.array(each) for each in arrays]
    call(*there)
    return [fe.cuda.to_numpy(each) for each in there[len(given) :]]


def same(found: Any, wanted: Any, what: str) -> None:
    """Requires equal bits, but for those of NaNs."""
    width = f"u{wanted.dtype.itemsize}"
    numbers = wanted.astype(np.float64)
    nan = np.isnan(numbers) & np.isnan(found.astype(np.float64))
    differ = (found.view(width) != wanted.view(width)) & ~nan
    some = np.argwhere(differ)[:5].tolist()
    assert not differ.any(), f"{what}: {differ.sum()} differ, at {some}"


def singles(dtype: DType) -> Any:
    """float32s at each number, each middle between two, beside them, and random bits."""
    numbers = EVERY_BYTE.view(kind(dtype)).astype(np.float64)
    numbers = np.unique(np.abs(numbers[np.isfinite(numbers)]))
    ends = [numbers[-1] * 1.5 - numbers[-2] / 2, numbers[-1] * 2, numbers[0] / 2, 2e-45, 1e30]
    near = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, ends]).astype(np.float32)
    near = np.concatenate([near, np.nextafter(near, 0), np.nextafter(near, np.float32(np.inf))])
    random = np.random.default_rng(7).integers(0, 1 << 32, 20_000, np.uint32).view(np.float32)
    small = np.random.default_rng(8).normal(0, 30, 20_000).astype(np.float32)
    special = np.array([0, np.inf, np.nan], np.float32)
    return np.concatenate([near, -near, special, -special, random, small])


def check(dtype: DType, target: str) -> None:
    """Conversions from and to a dtype."""
    own = kind(dtype)
    every = EVERY_BYTE.view(own)
    for wide in (fe.Float32, fe.Float64, fe.Float16, fe.BFloat16):
        (found,) = run(convert, target, [every], [(wide, 0)])
        same(found, every.astype(np.float32).astype(kind(wide)), f"{dtype} to {wide}")
    for values in _sources(dtype):
        (found,) = run(convert, target, [values], [(dtype, 0)])
        same(found, values.astype(np.float32).astype(own), f"{values.dtype} to {dtype}")
        (found,) = run(convert_saturating, target, [values], [(dtype, 0)])
        same(found, _clipped(values, own).astype(own), f"{values.dtype} to {dtype}, saturating")
    _check_float64(dtype, target)
    _check_integers(dtype, target)
    for other in FLOATS:
        (found,) = run(convert, target, [every], [(other, 0)])
        same(found, every.astype(np.float32).astype(kind(other)), f"{dtype} to {other}")


def _sources(dtype: DType) -> tuple[Any, ...]:
    return singles(dtype), EVERY_HALF.view(np.float16), EVERY_HALF.view(ml_dtypes.bfloat16)


def _clipped(values: Any, own: Any) -> Any:
    most = np.float32(ml_dtypes.finfo(own).max)
    wide = values.astype(np.float32)
    return np.minimum(wide, most) if "e8m0" in own.name else np.clip(wide, -most, most)


def _check_float64(dtype: DType, target: str) -> None:
    """A step beside a tie, which float32 does not have, decides."""
    ties = singles(dtype)[:3000].astype(np.float64)
    ends = np.array([0.0, -0.0, 1e300, -1e300, 1e-300, np.inf, np.nan])
    for beside in (np.nextafter(ties, 0), np.nextafter(ties, np.inf * ties), ends):
        (found,) = run(convert, target, [beside], [(dtype, 0)])
        same(found, _from_exact(beside, kind(dtype)), f"float64 to {dtype}")


def _check_integers(dtype: DType, target: str) -> None:
    own, every = kind(dtype), EVERY_BYTE.view(kind(dtype))
    for integer in (fe.Int8, fe.Uint8, fe.Int32, fe.Uint32, fe.Int64, fe.Uint64):
        limits = np.iinfo(integer.name)
        values = [n + d for n in (0, 17, 136, 248, 464, 61440, 1 << 40) for d in (-1, 0, 1)]
        values += [3 << 60, (3 << 60) + 1, (3 << 61) - 1, limits.min, limits.max]
        numbers = np.array([n for n in values if limits.min <= n <= limits.max], integer.name)
        (found,) = run(convert, target, [numbers], [(dtype, 0)])
        # Rounded to odd, so that float64 decides as the integer does.
        exact = [float(n) if abs(n) < 1 << 53 else float((n >> 11 | (n & 2047 > 0)) << 11)
                 for n in numbers.tolist()]  # fmt: skip
        same(found, _from_exact(exact, own), f"{integer} to {dtype}")
        (found,) = run(convert, target, [every], [(integer, 0)])
        wide = every.astype(np.float64)
        wanted = [0 if np.isnan(x) else max(limits.min, min(limits.max, _whole(x))) for x in wide]
        assert found.tolist() == wanted, f"{dtype} to {integer}"


def _whole(x: float) -> int:
    return int(x) if np.isfinite(x) else (1 << 70) * (1 if x > 0 else -1)


def _from_exact(values: Any, own: Any) -> Any:
    """float64s, with bits below float32's last one recorded in it."""
    wide = np.array(values, np.float64)
    near = wide.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != wide) & ~np.isnan(wide)
    bits = near.view(np.uint32) - (np.abs(back) > np.abs(wide)) | inexact
    return bits.astype(np.uint32).view(np.float32).astype(own)


def check_arithmetic(dtype: DType, target: str) -> None:
    """All pairs."""
    own = kind(dtype)
    a, b = (each.ravel().view(own) for each in np.meshgrid(EVERY_BYTE, EVERY_BYTE))
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    made = [(dtype, 5), (fe.Boolean, 4)]
    results, truths = run(arithmetic, target, [a, b], made)
    x, y = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        for found, wanted in zip(results, (a + b, a * b, a - b, a / b), strict=False):
            same(found, wanted, f"arithmetic of {dtype}")
        # IEEE's maximum puts -0 below 0, NumPy's takes the first.
        zero = (x == 0) & (y == 0)
        same(results[4][~zero], np.maximum(x, y)[~zero].astype(own), f"max of {dtype}")
        for found, truth in zip(truths, (x < y, x == y, x != y, x >= y), strict=True):
            assert (found.astype(bool) == truth).all(), f"comparison of {dtype}"


def main() -> None:
    """Everything, on the emulated GPU that is named."""
    _, arch, *names = sys.argv
    with fe.emulated_gpu(arch), np.errstate(all="ignore"):
        for dtype in FLOATS:
            if not names or dtype.name in names:
                check(dtype, f"cuda:{arch}")
                check_arithmetic(dtype, f"cuda:{arch}")
    print("right")


if __name__ == "__main__":
    main()

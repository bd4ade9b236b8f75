"""1 / x and 1 / sqrt(x) by fma end at the same bits, whatever approximation they start from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from cpu_machine import Compiled, compile_program, elementwise
from nightly import is_nightly

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder, Formulas
from ferrule.language.mathlib.formulas import Num
from ferrule.language.mathlib.reciprocals import nearest_inverse_root, nearest_reciprocal
from ferrule.specs import Float32

FAR = 2
"""A start may be this many ulp away: the manual promises 1 for reciprocals."""
STEP = 1 if is_nightly() else 7
MANTISSAS = np.append(np.arange(0, 1 << 23, STEP, dtype=np.uint32), np.uint32((1 << 23) - 1))
"""By day some of them, and the largest, which is the hardest."""


@cache
def compiled(function: Callable[[Num, Num], Num]) -> Compiled:
    def make(b: Builder, x: ops.Value, start: ops.Value) -> ops.Value:
        b.formulas = Formulas(fma=True, contracts=True)
        return function(Num(b, x), Num(b, start)).value

    return compile_program(elementwise(make, [Float32, Float32], Float32))


def check(function: Callable[[Num, Num], Num], x: Any, wanted: Any) -> None:
    nearest = wanted.astype("f4")
    for distance in range(-FAR, FAR + 1):
        start = (nearest.view("i4") + distance).view("f4")
        found = np.zeros_like(x)
        assert compiled(function)(x, start, found, len(x)) == 0
        np.testing.assert_array_equal(found, nearest, err_msg=f"from {distance} ulp away")


def with_exponent(exponent: int) -> Any:
    return (MANTISSAS | np.uint32((exponent + 127) << 23)).view("f4")


def test_reciprocals_of_all_mantissas() -> None:
    x = with_exponent(0)
    check(nearest_reciprocal, x, 1 / x.astype("f8"))


@pytest.mark.parametrize("exponent", [0, 1])
def test_inverse_roots_of_all_mantissas(exponent: int) -> None:
    x = with_exponent(exponent)
    check(nearest_inverse_root, x, 1 / np.sqrt(x.astype("f8")))


@pytest.mark.parametrize("exponent", [-125, -60, 60, 125])
def test_reciprocals_of_other_exponents(exponent: int) -> None:
    x = np.ascontiguousarray(with_exponent(exponent)[::97])
    check(nearest_reciprocal, x, 1 / x.astype("f8"))


def test_inverse_roots_of_every_exponent() -> None:
    """Subnormal numbers have less bits, and so all of them are tried that have few."""
    every = np.arange(0x00800000, 0x7F800000, 6151, dtype=np.uint32)
    few = np.arange(1, 1 << 12, dtype=np.uint32)
    some = np.arange(1 << 12, 1 << 23, 641, dtype=np.uint32)
    x = np.concatenate([every, few, some]).view("f4")
    check(nearest_inverse_root, x, 1 / np.sqrt(x.astype("f8")))

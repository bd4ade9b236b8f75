"""Conditions that compare float parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from ferrule import compiler, specs
from ferrule.compiler.conventions import CFunction, Require, Sequence
from ferrule.specs import Scalar, Signature, Tensor, compare_float, holds, require
from ferrule.specs.reading import parse_condition

OPS = ("lt", "le", "gt", "ge", "eq", "ne")
NUMBERS = (0.1, -0.0, 1.5, math.inf, -math.inf, 3e-9)
VALUES = (0.0, 0.1, 0.1000001, 1.5, -1.5, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_float_is_compared_as_its_dtype_has_it(dtype: str) -> None:
    """One function with a byte for each condition, against Python."""
    alpha, out = Scalar("alpha", dtype), Tensor("out", (36,), "uint8")
    conditions = [compare_float(op, alpha, number) for op in OPS for number in NUMBERS]
    steps = [
        CFunction("memset", [out.data.byte_offset(at), 1, 1], when=each)
        for at, each in enumerate(conditions)
    ]
    signature = Signature("f", [out, alpha])
    function = compiler.build(signature, Sequence(steps))
    for value in VALUES:
        found = np.zeros(36, np.uint8)
        function(found, value)
        rounded = {"alpha": float(alpha.dtype(value).value)}
        assert found.tolist() == [holds(each, {}, {}, rounded) for each in conditions]
    for each in (*conditions, ~conditions[0] | conditions[1]):
        assert parse_condition(str(each), signature) == each


def test_a_float_condition_is_checked_where_it_stands() -> None:
    alpha, x = Scalar("alpha", "float32"), Tensor("x", (1,), "uint8")
    positive = compare_float("gt", alpha, 0.0)
    steps = [Require(positive, "a rate"), CFunction("memset", [x.data, 1, 1])]
    function = compiler.build(Signature("f", [x, alpha]), Sequence(steps))
    function(np.zeros(1, np.uint8), 0.5)
    with pytest.raises(ValueError, match=r"f: expected alpha > 0\.0: a rate"):
        function(np.zeros(1, np.uint8), math.nan)
    with pytest.raises(ValueError, match="a requirement compares sizes and integers"):
        require(positive)


@pytest.mark.parametrize(
    ("param", "number", "message"),
    [
        (Scalar("k", "int32"), 1.0, "expected a float parameter"),
        (specs.sym_int(), 1.0, "expected a float parameter"),
        (Scalar("a", "float32"), True, "expected a number, but got True"),
        (Scalar("a", "float32"), "1", "expected a number, but got '1'"),
    ],
)
def test_wrong_float_conditions(param: Any, number: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        compare_float("gt", param, number)

"""Drawn expressions over integers and floats, against NumPy's scalars.

An expression is a tuple, known at compile time; `value` computes it, compiled and in NumPy alike.
NumPy's integers wrap, divide towards minus infinity and give 0 for a division by zero: just what a
kernel's do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered import vector
from plain_python import plain_python

import ferrule as fe

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def value(tree, a, b):
    """What an expression is for these two numbers."""
    match_op = tree[0]
    if match_op == "a":
        return a
    if match_op == "b":
        return b
    if match_op == "constant":
        return tree[1]
    x = value(tree[1], a, b)
    if match_op == "negative":
        return -x
    if match_op == "invert":
        return ~x
    if match_op == "absolute":
        return abs(x)
    y = value(tree[2], a, b)
    if match_op == "select":
        return value(tree[3], a, b) if x < y else value(tree[4], a, b)
    return binary(match_op, x, y)


def binary(op, x, y):
    if op == "+":
        result = x + y
    elif op == "-":
        result = x - y
    elif op == "*":
        result = x * y
    elif op == "/":
        result = x / y
    elif op == "//":
        result = x // y
    elif op == "%":
        result = x % y
    elif op == "&":
        result = x & y
    elif op == "|":
        result = x | y
    elif op == "^":
        result = x ^ y
    elif op == "<<":
        result = x << y
    elif op == ">>":
        result = x >> y
    elif op == "max":
        result = fe.math.max(x, y)
    else:
        result = fe.math.min(x, y)
    return result


@fe.kernel
def expression_kernel(out, a, b, tree):
    i = fe.arch.block_idx()[0] * 8 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        out[i] = value(tree, a[i], b[i])


VARIABLES = st.sampled_from([("a",), ("b",)])


def trees(operators: list[str], unary: list[str], constants: Any, *, select: bool) -> Any:
    """Expressions with a variable in every operation; with `select`, choices among them."""
    constant = st.tuples(st.just("constant"), constants)

    def grow(inner: Any) -> Any:
        operator = st.sampled_from(operators)
        ways = [
            st.tuples(operator, inner, inner | constant),
            st.tuples(operator, constant, inner),
            st.tuples(st.sampled_from(unary), inner),
        ]
        if select:
            ways.append(st.tuples(st.just("select"), inner, inner, inner, inner))
        return st.one_of(ways)

    return st.recursive(VARIABLES, grow, max_leaves=8)


BITS = ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "max", "min"]
UNARY = ["negative", "invert", "absolute"]
SMALL = st.integers(0, 9)


def interesting(dtype: str) -> Any:
    """Numbers at the ends of an integer's range and around zero, each with each."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, *(-x for x in (1, 2, 5) if low)}
    return np.array(sorted(numbers), dtype)


def check(tree: Any, a: Any, b: Any) -> None:
    """An expression compiled, and in NumPy, for all pairs of these numbers."""

    def expression(out, a, b):
        expression_kernel(out, a, b, tree).launch(grid=(a.shape[0] + 7) // 8, block=8)

    a, b = (x.ravel() for x in np.meshgrid(a, b))
    with plain_python():
        wanted = np.array([value(tree, x, y) for x, y in zip(a, b, strict=True)])
    out = np.zeros(len(a), wanted.dtype)
    examples = [vector(x.dtype.name, name) for x, name in ((out, "k"), (a, "m"), (b, "n"))]
    fe.compile(expression, *examples, options="--target cpu")(out, a, b)
    np.testing.assert_array_equal(out, wanted)


DRAWN = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@DRAWN
@given(trees(BITS, UNARY, SMALL, select=True), st.sampled_from(INTEGERS))
def test_integers_of_one_type(tree: Any, dtype: str) -> None:
    check(tree, interesting(dtype), interesting(dtype))


@DRAWN
@given(
    trees(BITS, UNARY, SMALL, select=False), st.sampled_from(INTEGERS), st.sampled_from(INTEGERS)
)
def test_integers_of_two_types(tree: Any, left: str, right: str) -> None:
    if {left, right} >= {"uint64"} and left[0] + right[0] in ("iu", "ui"):
        return  # no type holds both
    check(tree, interesting(left), interesting(right))


@DRAWN
@given(
    trees(["+", "-", "*", "/"], ["negative", "absolute"], st.floats(-4, 4, width=16), select=True),
    st.sampled_from(FLOATS),
)
def test_floats(tree: Any, dtype: str) -> None:
    numbers = [0.0, -0.0, 1.0, -2.5, 0.1, 3e4, 6e-8, np.inf, -np.inf, np.nan]
    check(tree, np.array(numbers, dtype), np.array([*numbers[:7], 1e3], dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_operator(dtype: str) -> None:
    for op in BITS:
        check((op, ("a",), ("b",)), interesting(dtype), interesting(dtype))


def test_numbers_are_looked_up_in_tuples_and_sets() -> None:
    @fe.jit
    def found(n: fe.Int32, x: fe.Float64):
        there = n in (43, 45) or n in {7, 8} or n in [n - 1, 2 * n]
        keys = x in {1.5: "a", 2.5: "b"}
        return there, n not in (1, 2), keys, x in (x,), 3 in (n, 4)

    for n, x in ((45, 1.5), (7, 3.0), (2, 2.5), (0, float("nan")), (3, 0.0)):
        there = n in (43, 45) or n in {7, 8} or n in [n - 1, 2 * n]
        wanted = (there, n not in (1, 2), x in (1.5, 2.5), x in (x,), 3 in (n, 4))
        assert tuple(found(n, x)) == wanted

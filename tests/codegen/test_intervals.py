"""The interval of a size holds every value that the size can have."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from ferrule.specs import Dim, ceil_div, evaluate, sym_int
from ferrule.specs.expr import ExprOp, make
from ferrule.specs.intervals import interval

M, N = sym_int(symbol="m"), sym_int(64, symbol="n")
SIZES = st.recursive(
    st.one_of(st.sampled_from([M, N]), st.integers(-9, 9), st.integers(-(1 << 40), 1 << 40)),
    lambda inner: st.builds(make, st.sampled_from(get_args(ExprOp)), inner, inner),
    max_leaves=5,
)


@given(SIZES, st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_values_lie_inside(dim: Dim, m: int, n: int) -> None:
    try:
        value = evaluate(dim, {M: m, N: n})
    except (OverflowError, ZeroDivisionError):
        return
    low, high = interval(dim)
    assert low <= value <= high


def test_blocks_of_a_launch() -> None:
    assert interval((M + 127) // 128)[1] == 1 << 24
    assert interval(ceil_div(M, 128))[1] == 1 << 24

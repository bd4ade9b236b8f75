"""What requirements imply holds in every call that keeps them, and is found where it is plain."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import prod

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ferrule import specs
from ferrule.specs import Condition, Dim, Signature, Sym, Tensor, holds
from ferrule.specs.expr import ExprOp, make
from ferrule.specs.implied import comparisons, implied, most, products, tightened

N, M, PITCH = (specs.sym_int(symbol=name) for name in ("n", "m", "pitch"))
VALUES = range(9)
"""Of sizes; a stride has negative ones, too."""
OPS: tuple[ExprOp, ...] = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "ceildiv")


def signature(*requires: Condition) -> Signature:
    x = Tensor("x", (N, M), "float32", strides=(PITCH, 1))
    return Signature("f", [x], requires=list(requires))


def dims(symbols: list[Sym]) -> st.SearchStrategy[Dim]:
    def compound(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        return st.tuples(st.sampled_from(OPS), inner, inner).map(lambda each: _made(*each))

    return st.recursive(st.sampled_from(symbols) | st.integers(-3, 12), compound, max_leaves=4)


def _made(op: ExprOp, lhs: Dim, rhs: Dim) -> Dim:
    try:
        return make(op, lhs, rhs)
    except ZeroDivisionError:
        return lhs


def conditions() -> st.SearchStrategy[Condition]:
    sizes = dims([N, M, PITCH])
    ops = st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])
    plain = st.builds(specs.conditions.Comparison, ops, sizes, sizes)
    joined = st.builds(lambda a, b: a & b, plain, plain) | st.builds(
        lambda a, b: a | b, plain, plain
    )
    return plain | joined | (plain | joined).map(lambda each: ~each)


def kept(required: list[Condition], values: dict[Sym, int]) -> bool:
    try:
        return all(holds(each, values) for each in required)
    except (ZeroDivisionError, OverflowError):
        return False


@given(required=st.lists(conditions(), min_size=1, max_size=3))
def test_what_is_implied_holds_in_every_call_that_keeps_the_requirements(
    required: list[Condition],
) -> None:
    required = [each for each in required if next(specs.condition_symbols(each), None) is not None]
    about = signature(*required)
    known, facts = implied(about), comparisons(about.requires)
    limits = products(facts)
    note(f"{about.required()} {[each.facts for each in known.values()]} {limits}")
    for n, m, pitch in itertools.product(VALUES, VALUES, range(-4, 9)):
        values = {N: n, M: m, PITCH: pitch}
        if not kept(required, values):
            continue
        for symbol in known.values():
            low, high = symbol.interval()
            assert low <= values[symbol] <= high
            assert values[symbol] % symbol.divisibility == 0
        assert all(holds(fact, values) for fact in facts)
        for limit in limits:
            assert limit.factor * prod(values[each] for each in limit.symbols) <= limit.limit
        reach = most(make("mul", N, M), {N, M}, limits)
        assert reach is None or n < 1 or m < 1 or n * m <= reach


@pytest.mark.parametrize(
    ("required", "facts"),
    [
        (lambda: [N <= 4096, N > 0], {"n": (1, 1, 4096)}),
        (lambda: [(N < 10) & specs.divisible(N, 4)], {"n": (4, None, 9)}),
        (lambda: [~((N > 10) | (M > 5))], {"n": (1, None, 10), "m": (1, None, 5)}),
        (lambda: [N * 4 + 3 <= 103], {"n": (1, None, 25)}),
        (lambda: [specs.ceil_div(N, 8) <= 4, N // 8 >= 1], {"n": (1, 8, 32)}),
        (lambda: [specs.divisible(N * 6, 8)], {"n": (4, None, None)}),
        (lambda: [N * M <= 100, M >= 4], {"n": (1, None, 25), "m": (1, 4, None)}),
        (lambda: [N <= M, M <= 7, N >= 2], {"n": (1, 2, 7), "m": (1, 2, 7)}),
        (lambda: [specs.equal(N, 16)], {"n": (1, 16, 16)}),
        (lambda: [(N < 10) | (M < 10)], {}),
        (lambda: [N * M <= 100], {}),  # one of them may be 0
        (lambda: [N < 0], {}),  # what no call keeps
    ],
)
def test_what_is_found(
    required: Callable[[], list[Condition]],
    facts: dict[str, tuple[int, int | None, int | None]],
) -> None:
    found = implied(signature(*required()))
    assert {str(each): each.facts[1:] for each in found.values()} == facts


def test_a_limit_of_a_product_needs_the_other_sizes_to_be_at_least_one() -> None:
    (limit,) = products(comparisons(signature(2 * N * M <= 1 << 20).requires))
    assert (limit.factor, limit.symbols, limit.limit) == (2, (N, M), 1 << 20)
    assert most(make("mul", M, N), {N, M}, [limit]) == 1 << 19
    assert most(make("mul", M, 4), {N, M}, [limit]) == 4 << 19
    assert most(M, {M}, [limit]) is None
    assert most(make("mul", make("mul", M, N), N), {N, M}, [limit]) is None


def test_the_tightened_signature_has_the_same_symbols() -> None:
    about = signature(N <= 8)
    tight = tightened(about)
    assert tight.symbols == about.symbols and tight["x"].shape[0].max == 8
    assert about["x"].shape[0].max is None and "in ..8" not in about.text()
    assert tightened(signature()) == signature()

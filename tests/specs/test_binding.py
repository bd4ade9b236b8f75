"""Where symbols get their values: from any call that fits, those with which it was made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from draws import hypothesised
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle.signatures import signatures

from ferrule.specs import (
    Dim,
    Float32,
    Scalar,
    Signature,
    Sym,
    Tensor,
    ceil_div,
    evaluate,
    sym_int,
    symbols_of,
)
from ferrule.specs.binding import ACTUAL, Binding, Place, bindings_of, invert, places_of
from ferrule.specs.expr import Compound
from ferrule.specs.params import Optional, Shape, Tuple, Union

N, M, K = (sym_int(symbol=name) for name in "nmk")
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def value_at(place: Place, values: dict[Sym, int]) -> int:
    """What a place holds in a call that was made for these values."""
    try:
        return evaluate(place.dim, values)
    except (OverflowError, ZeroDivisionError):
        return 0


@RELAXED
@given(hypothesised(signatures()), st.data())
def test_bindings_find_the_values_of_a_call(signature: Signature, data: st.DataObject) -> None:
    chosen = {s: data.draw(st.integers(0, 9)) * s.divisibility for s in signature.symbols}
    gone = {
        place.path
        for place in places_of(signature.params)
        if place.optional and data.draw(st.booleans())
    }
    found: dict[Sym, int] = {}
    for binding in signature.bindings:
        here = [place for place in binding.places if place.path not in gone]
        if here:
            actual = value_at(here[0], chosen)
            found[binding.symbol] = evaluate(binding.solution, {**found, ACTUAL: actual})
            assert found[binding.symbol] == chosen[binding.symbol]


@RELAXED
@given(hypothesised(signatures()))
def test_bindings_are_complete_and_in_order(signature: Signature) -> None:
    assert {binding.symbol for binding in signature.bindings} == set(signature.symbols)
    known: set[Sym] = {ACTUAL}
    places = places_of(signature.params)
    for binding in signature.bindings:
        assert set(symbols_of(binding.solution)) <= known
        assert binding.places and set(binding.places) <= set(places)
        _check_binding(binding, places)
        known.add(binding.symbol)


def _check_binding(binding: Binding, places: Sequence[Place]) -> None:
    """A bare required size comes first, alone; an inverted one is required."""
    symbol = binding.symbol
    bare = [place for place in places if place.dim == symbol]
    certain = [p for p in bare if not p.optional and p.kind != "strides"]
    if certain:
        assert (binding.places, binding.solution) == ((certain[0],), ACTUAL)
    elif bare:
        assert (set(binding.places), binding.solution) == (set(bare), ACTUAL)
    else:
        (place,) = binding.places
        assert not place.optional and place.kind != "strides"


@settings(RELAXED, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data())
def test_inverting_undoes_an_expression(data: st.DataObject) -> None:
    expressions = st.recursive(
        st.just(N) | st.sampled_from([M, 1, 2, -3, 7]),
        lambda inner: st.builds(
            _combine, st.sampled_from(["add", "sub", "mul", "div"]), inner, inner
        ),
        max_leaves=6,
    )
    dim = data.draw(expressions)
    inverse = invert(dim, N, ACTUAL) if isinstance(dim, (Sym, Compound)) else None
    assume(inverse is not None and dim != N)
    n, m = data.draw(st.integers(-20, 20)), data.draw(st.integers(-20, 20))
    assert N not in set(symbols_of(inverse))
    try:
        value = evaluate(dim, {N: n, M: m})
    except ZeroDivisionError:  # a part that has no value for these symbols
        return
    assert evaluate(inverse, {ACTUAL: value, M: m}) == n


def _combine(op: str, left: Dim, right: Dim) -> Dim:
    match op:
        case "add":
            return left + right
        case "sub":
            return left - right
        case "mul":
            return left * right
        case _:
            return ceil_div(left, right)


def tensor(name: str, *shape: Dim, strides: Sequence[Dim] | None = None) -> Tensor:
    return Tensor(name, shape, Float32, strides=strides, device="cpu")


def names(binding: Binding) -> list[str]:
    return [place.name for place in binding.places]


def test_paths_and_names_of_places() -> None:
    params = (
        tensor("a", N),
        Tuple("t", (Scalar("0", "int32"), Tuple("1", (tensor("0", M),)))),
        Optional("o", Union("o", (Shape("o", (N, 2)), tensor("o", 4)))),
    )
    found = [(place.name, place.path, place.optional) for place in places_of(params)]
    assert found == [
        ("a.shape[0]", (0,), False),
        ("t[1][0].shape[0]", (1, 1, 0), False),
        ("o[0]", (2,), True),
        ("o[1]", (2,), True),
        ("o.shape[0]", (2,), True),
        ("a.strides[0]", (0,), False),
        ("t[1][0].strides[0]", (1, 1, 0), False),
        ("o.strides[0]", (2,), True),
    ]


def test_where_a_symbol_binds() -> None:
    a, b = tensor("a", N, 2, strides=(M, 1)), tensor("b", M)
    by_symbol = {binding.symbol: names(binding) for binding in bindings_of((a, b))}
    assert by_symbol == {N: ["a.shape[0]"], M: ["b.shape[0]"]}
    optional = Optional("a", tensor("a", N))
    (binding,) = bindings_of((optional, tensor("b", N)))
    assert names(binding) == ["b.shape[0]"]
    (binding,) = bindings_of((optional, Optional("b", tensor("b", N))))
    assert names(binding) == ["a.shape[0]", "b.shape[0]"]


def test_a_symbol_of_strides_alone_binds_where_one_means_something() -> None:
    """Those that are always there come first, but each of them can mean nothing at a call."""
    a = Optional("a", tensor("a", 2, 2, strides=(K, 1)))
    b, c = tensor("b", N, 2, strides=(K, 1)), tensor("c", N, 2, strides=(K, 1))
    by_symbol = {binding.symbol: names(binding) for binding in bindings_of((a, b, c))}
    assert by_symbol[K] == ["b.strides[0]", "c.strides[0]", "a.strides[0]"]


def test_symbols_that_are_solved_for() -> None:
    first, second = bindings_of((tensor("a", N + M), tensor("b", M * 2 + 1)))
    assert (first.symbol, names(first)) == (M, ["b.shape[0]"])
    assert (second.symbol, names(second)) == (N, ["a.shape[0]"])
    assert evaluate(first.solution, {ACTUAL: 33}) == 16
    assert evaluate(second.solution, {ACTUAL: 20, M: 16}) == 4


@pytest.mark.parametrize("dim", [N % 3, N // 2, N * N, N + N * 2, ceil_div(N, 4), M * N])
def test_symbols_that_no_call_tells(dim: Dim) -> None:
    with pytest.raises(ValueError, match="stands only inside expressions"):
        bindings_of((tensor("a", dim),))
    with pytest.raises(ValueError, match="stands only inside expressions"):
        bindings_of((Optional("a", tensor("a", N * 2)),))


def test_symbols_that_not_every_call_tells() -> None:
    """An expression has a symbol only where what gives its value is there."""
    absent = Optional("a", tensor("a", N))
    twice = tensor("b", N * 2)
    message = r"b.shape\[0\] has the symbol n of a.shape\[0\], which can be absent"
    for param in (twice, Optional("b", twice), Union("b", (twice, Scalar("b", "int32")))):
        with pytest.raises(ValueError, match=message):
            bindings_of((absent, param))
    with pytest.raises(ValueError, match="which can be absent"):
        bindings_of((Union("u", (tensor("u", N), Shape("u", (N * 2,)))),))
    within = Optional("t", Tuple("t", (tensor("0", N), Optional("1", tensor("1", N * 2, 3)))))
    assert len(bindings_of((within,))) == 1
    assert len(bindings_of((absent, twice, tensor("c", N)))) == 1
    assert len(bindings_of((Optional("a", tensor("a", M, N, K)),))) == 3

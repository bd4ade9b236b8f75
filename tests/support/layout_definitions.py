"""What layouts mean, read from the definition by enumeration, and layouts for property tests."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from ferrule.language.layouts import Layout
from ferrule.specs import Dim, Sym, evaluate, sym_int

RELAXED = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def flat(value: Any) -> Iterator[Any]:
    """The leaves of nested tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def indices(layout: Layout) -> list[int]:
    """The index of each coordinate of a static layout, the first leaf counting fastest."""
    sizes, strides = list(flat(layout.shape)), list(flat(layout.stride))
    coordinates = itertools.product(*(range(size) for size in reversed(sizes)))
    return [
        sum(at * stride for at, stride in zip(reversed(each), strides, strict=True))
        for each in coordinates
    ]


def index_at(layout: Layout, number: int) -> int:
    """The index of one number, which may lie beyond the domain: the last leaf goes on."""
    result = 0
    sizes, strides = list(flat(layout.shape)), list(flat(layout.stride))
    for size, stride in zip(sizes[:-1], strides[:-1], strict=True):
        result += number % size * stride
        number //= size
    return result + number * strides[-1]


def count(shape: Any) -> int:
    return math.prod(flat(shape))


def is_refinement(shape: Any, coarse: Any) -> bool:
    """Whether every leaf of `coarse` is there, whole or as a tuple of the same size."""
    if isinstance(coarse, tuple):
        return (
            isinstance(shape, tuple)
            and len(shape) == len(coarse)
            and all(map(is_refinement, shape, coarse))
        )
    return count(shape) == coarse


def same_profile(lhs: Any, rhs: Any) -> bool:
    if isinstance(lhs, tuple) and isinstance(rhs, tuple):
        return len(lhs) == len(rhs) and all(map(same_profile, lhs, rhs))
    return not isinstance(lhs, tuple) and not isinstance(rhs, tuple)


# ---- drawing layouts ----


def nested(leaf: st.SearchStrategy[Any], max_leaves: int = 4) -> st.SearchStrategy[Any]:
    """Leaves in tuples of one to three items, nested."""
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple),
        max_leaves=max_leaves,
    )


shapes = nested(st.integers(1, 6))


def like(shape: Any, values: Iterator[Any]) -> Any:
    """The next values in the profile of a shape."""
    if isinstance(shape, tuple):
        return tuple(like(item, values) for item in shape)
    return next(values)


@st.composite
def compact(draw: st.DrawFn, of: Any = shapes) -> Layout:
    """A compact layout in any order of its leaves, sometimes with gaps between them."""
    shape = draw(of)
    sizes = list(flat(shape))
    gap = draw(st.sampled_from([1, 1, 2, 3]))
    strides, current = [0] * len(sizes), draw(st.sampled_from([1, 1, 1, 2]))
    for position in draw(st.permutations(range(len(sizes)))):
        strides[position] = current
        current *= sizes[position] * gap
    return Layout(shape, like(shape, iter(strides)))


@st.composite
def any_layout(draw: st.DrawFn, of: Any = shapes, least: int = -3) -> Layout:
    """A layout of any strides."""
    shape = draw(of)
    strides = [draw(st.integers(least, 12)) for _ in flat(shape)]
    return Layout(shape, like(shape, iter(strides)))


layouts = st.one_of(compact(), any_layout())
tilers = st.one_of(compact(), any_layout(least=0))

Values = Mapping[Sym, int]


@st.composite
def symbolic(draw: st.DrawFn, of: Any = shapes) -> tuple[Layout, dict[Sym, int]]:
    """A compact layout of symbolic sizes in any order, and numbers for the symbols."""
    shape = draw(of)
    values: dict[Sym, int] = {}
    sizes: list[Dim] = []
    for size in flat(shape):
        divisors = [d for d in range(1, size + 1) if size % d == 0]
        if draw(st.booleans()):
            symbol = sym_int(symbol=f"n{len(values)}", divisibility=draw(st.sampled_from(divisors)))
            values[symbol] = size
            sizes.append(symbol)
        else:
            sizes.append(size)
    strides: list[Dim] = [0] * len(sizes)
    current: Dim = draw(st.sampled_from([1, 1, 4]))
    for position in draw(st.permutations(range(len(sizes)))):
        strides[position] = current
        current = current * sizes[position]
    return Layout(like(shape, iter(sizes)), like(shape, iter(strides))), values


def with_values(value: Any, values: Values) -> Any:
    """A layout or tuple with numbers for the symbols."""
    if isinstance(value, Layout):
        return Layout(with_values(value.shape, values), with_values(value.stride, values))
    if isinstance(value, tuple):
        return tuple(with_values(item, values) for item in value)
    return evaluate(value, values)

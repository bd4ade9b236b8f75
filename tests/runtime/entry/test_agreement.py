"""A call by the direct entry and one by the slow path: the same values, the same errors."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from entry_pairs import GROUPS, PARAMS, VALUES, both, good
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.wrapped import Wrapped
from packed_functions import NoOrigin, outcome

from ferrule import specs
from ferrule.runtime import Function, make_function
from ferrule.runtime.calls.callpath import bind, prepare_call
from ferrule.runtime.values.foreign import has_big_ints

WITH_TENSORS = {
    "any strides",
    "complex",
    "read-only",
    "owning",
    "optional",
    "union",
    "tensors",
    "any",
}


@pytest.mark.parametrize("name", PARAMS)
def test_every_value_for_every_kind(name: str) -> None:
    for value in VALUES:
        entry, other = both((name,), (value,))
        assert entry == other, (name, value)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_mixed_signatures(data: st.DataObject) -> None:
    names = data.draw(st.sampled_from(GROUPS))
    pool = st.sampled_from(range(len(VALUES)))
    fitting = [st.sampled_from(good(name)) for name in names]
    picks = [data.draw(st.one_of(each, each, each, pool)) for each in fitting]
    entry, other = both(names, [VALUES[i] for i in picks])
    assert entry == other


def _unfit() -> list[np.ndarray[Any, Any]]:
    """Arrays that NumPy does not give out."""
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    return [frozen, np.zeros(2, object), np.zeros(2, "S3"), np.zeros(2, ">f4")]


@pytest.mark.parametrize("name", sorted(PARAMS.keys() - WITH_TENSORS))
def test_where_no_tensor_belongs_it_is_told_in_its_turn(name: str) -> None:
    """Whether or not it can be handed to the wrapper."""
    for array in _unfit():
        for value in (array, [array], (1, (array,)), {"a": array}):
            entry, other = both(("int8", name), (1, value))
            assert entry == other
            (kind, text), _ = entry
            assert kind in (TypeError, ValueError)
            assert "argument #1 when calling" in text
            assert value is not array or "but got Tensor" in text
            ((_, text), _), _ = both(("int8", name), ("text", value))
            assert "on argument #0" in text


def test_an_object_may_hold_any_array() -> None:
    """Nothing else takes its place, though NumPy does not give it out."""
    array_object = specs.Object("a", "ffi.Array")
    for kind in (array_object, specs.Union("a", (specs.Scalar("0", specs.Int8), array_object))):
        wrapped = Wrapped(specs.Signature("f", (kind,)))
        address = wrapped.engine.address("__tvm_ffi_f")
        called = make_function(address, wrapped.signature, NoOrigin(), owner=wrapped.engine)
        for array in _unfit():
            given = [array]
            assert prepare_call(called, (given,), None)[0] is given


def test_every_kind_takes_something() -> None:
    assert {name for name in PARAMS if not good(name)} == set()
    assert has_big_ints() == (VALUES.index(1 << 63) in good("uint64"))


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 3),
    st.integers(0, 2),
    st.integers(0, 6),
    st.lists(st.sampled_from(["a", "b", "c", "d", "e", "zz"]), max_size=4, unique=True),
    st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2)]),
)
def test_keywords_and_defaults_bind_as_on_the_slow_path(
    required: int, optional: int, given: int, keywords: list[str], ways: tuple[int, int]
) -> None:
    if sum(ways) > required + optional:
        ways = (0, 0)
    called, seen = _numbers(required, optional, ways)
    params = called.signature.arguments
    values = tuple(range(given))
    named = {sys.intern(name): 50 + i for i, name in enumerate(keywords)}
    places = {param.name: i for i, param in enumerate(params)}
    every = (*values, *named.values())
    wanted = outcome(lambda: bind(called.signature, places, every, tuple(named)))
    found = outcome(lambda: called(*values, **named) or list(seen)[1 : len(params) + 1])
    assert found == wanted


@cache
def _numbers(required: int, optional: int, ways: tuple[int, int]) -> tuple[Function, Any]:
    params = [
        specs.Scalar("abcde"[i], specs.Int64, specs.REQUIRED if i < required else 100 + i)
        for i in range(required + optional)
    ]
    wrapped = Wrapped(specs.Signature("f", tuple(params), None, *ways))
    address = wrapped.engine.address("__tvm_ffi_f")
    made = make_function(address, wrapped.signature, NoOrigin(), owner=wrapped.engine)
    return made, wrapped.log

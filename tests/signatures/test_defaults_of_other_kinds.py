"""Defaults of another kind than the argument that a call gives."""

from __future__ import annotations

import inspect

import pytest

import ferrule as fe


@fe.jit
def scaled(x: fe.Float32, alpha=1.0):  # type: ignore[no-untyped-def]
    return x * alpha


@fe.jit
def chosen(x: fe.Int32, b=None):  # type: ignore[no-untyped-def]
    return x if b is None else x + b


@fe.jit
def first(t=(1, 2)):  # type: ignore[no-untyped-def]
    return t[0]


@fe.jit
def named(self: fe.Int32, args: fe.Int32 = 2):  # type: ignore[no-untyped-def]
    return self + args


class Holder:
    """Has a method that was marked."""

    @fe.jit
    def method(self, n: fe.Int32):  # type: ignore[no-untyped-def]
        return n


def test_direct_calls() -> None:
    assert (scaled(3, 2), scaled(3), scaled(3, alpha=0.5)) == (6, 3, 1.5)
    assert (chosen(1, 3), chosen(1), chosen(1, 3.5)) == (4, 1, 4.5)
    assert (first((5, 6, 7)), first(), first((1.5, 2))) == (5, 1, 1.5)
    assert named(self=1, args=5) == 6


def test_a_parameter_may_be_called_self_on_every_way() -> None:
    compiled = fe.compile(named, 1, 2, options="--target cpu")
    assert compiled(self=1, args=5) == 6  # one of the first calls
    assert compiled.bind(self=1, args=5)() == 6
    compiled.prepare()
    assert compiled(self=1, args=5) == 6


def test_a_default_that_does_not_fit_the_example_is_required() -> None:
    compiled = fe.compile(scaled, 3, 2, options="--target cpu")
    assert compiled(3, 4) == 12
    assert inspect.signature(compiled).parameters["alpha"].default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'alpha'"):
        compiled(3)
    assert fe.compile(scaled, 3, 2.0, options="--target cpu")(3) == 3


def test_a_method_has_its_object() -> None:
    assert Holder().method(1) == 1
    assert fe.compile(Holder().method, 1, options="--target cpu")(n=2) == 2

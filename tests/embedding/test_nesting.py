"""Sequences and choices in each other run what their conditions say, and leave nothing behind."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from cuda_device import FakeCuda
from gpu_functions import floats
from host_memory import Memory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch, FirstOf, Sequence, cast
from ferrule.specs import Signature, Tensor

N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")
TEXT = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry %s(.param .u64 x, .param .u64 tag) { ret; }
"""
CODES = tuple(fe.DeviceCode.from_ptx(TEXT % name) for name in ("one", "two"))
SIZES = (0, 1, 4, 7, 40)


class NoChoice(Exception):
    """None of the choices fits."""


def launch(code: fe.DeviceCode, when: specs.Condition | None) -> CudaLaunch:
    return CudaLaunch(code, code.kernels[0], [X.data, cast(0, "int64")], 1, 1, when=when)


CONDITIONS = st.recursive(
    st.one_of(
        st.integers(0, 41).map(lambda limit: N < limit),
        st.integers(1, 8).map(lambda by: specs.divisible(N, by)),
        st.integers(0, 8).map(lambda size: specs.equal(N % 8, size)),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda both: both[0] & both[1]),
        st.tuples(inner, inner).map(lambda both: both[0] | both[1]),
        inner.map(lambda condition: ~condition),
    ),
    max_leaves=3,
)
MAYBE = st.one_of(st.none(), CONDITIONS)
TEMPORARY = st.integers(0, 1).map(lambda count: [Tensor("t", (N + 1,), "float32")] * count)


def sequence(steps: list[Any], when: Any, temporaries: list[Tensor]) -> Sequence:
    own = [Tensor(each.name, each.shape, "float32") for each in temporaries]
    return Sequence(steps, when=when, temporaries=own)


def choices(first: list[Any], last: Any, when: Any) -> FirstOf:
    return FirstOf([*(each for each in first if each.when is not None), last], when=when)


NESTINGS = st.recursive(
    st.builds(launch, st.sampled_from(CODES), MAYBE),
    lambda inner: st.one_of(
        st.builds(sequence, st.lists(inner, min_size=1, max_size=3), MAYBE, TEMPORARY),
        st.builds(choices, st.lists(inner, max_size=2), inner, MAYBE),
    ),
    max_leaves=6,
)


def expected(convention: Any, n: int) -> Iterator[str]:
    """The kernels that are launched, in order.  NoChoice behind those that come before it."""
    if convention.when is not None and not specs.holds(convention.when, {N: n}):
        return
    match convention:
        case CudaLaunch(kernel=kernel):
            yield kernel
        case Sequence(steps=steps):
            for step in steps:
                yield from expected(step, n)
        case FirstOf(choices=all_choices):
            for choice in all_choices:
                if choice.when is None or specs.holds(choice.when, {N: n}):
                    yield from expected(choice, n)
                    return
            raise NoChoice


def outcome(convention: Any, n: int) -> tuple[list[str], bool]:
    """The kernels, and whether the call fails behind them."""
    found: list[str] = []
    try:
        for kernel in expected(convention, n):
            found.append(kernel)
    except NoChoice:
        return found, True
    return found, False


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(convention=NESTINGS)
def test_a_nesting_of_calls_runs_what_its_conditions_say(
    fake_cuda: FakeCuda, memory: Memory, convention: Any
) -> None:
    function = compiler.build(Signature("f", [X]), convention)
    for n, device in itertools.product(SIZES, (0, 1)):
        fake_cuda.clear()
        wanted, fails = outcome(convention, n)
        if fails:
            with pytest.raises(ValueError, match="has no code for these sizes"):
                function(floats(n, device=device))
        else:
            function(floats(n, device=device))
        assert [each.kernel for each in fake_cuda.launches()] == wanted
        assert (fake_cuda.depth, memory.live) == (0, {})

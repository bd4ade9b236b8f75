"""Tensors of the same dims: sizes and strides of later ones are compared with the first's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from oracle.arguments import Argument, View
from oracle.judge import Accepted, judge
from oracle.wrapped import Wrapped

from ferrule.specs import Float32, Signature, Sym, params, sym_int

SIZES, STRIDES = (3, 5, 4, 7, 2), (1000, 300, -90, 17, 1)


def symbols(count: int) -> list[Sym]:
    return [sym_int(64) for _ in range(count)]


def tensor(name: str, shape: Sequence[object], strides: Sequence[object]) -> params.Tensor:
    return params.Tensor(name, tuple(shape), Float32, strides=tuple(strides), device="cpu")


def spoilt(first: View) -> Iterator[View]:
    """With one number that is another, in its low or in its high half."""
    for axis in range(len(first.shape)):
        for more in (1, 1 << 32):
            shape, strides = list(first.shape), list(first.strides or ())
            shape[axis] += more
            strides[axis] += more
            yield replace(first, shape=tuple(shape))
            yield replace(first, strides=tuple(strides))


def check(under_test: Wrapped, arguments: Sequence[Argument], accepted: bool) -> None:
    wanted = judge(under_test.signature, arguments)
    assert isinstance(wanted, Accepted) == accepted
    assert under_test.disagreement(arguments, wanted) is None


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_size_and_stride_counts(rank: int) -> None:
    shape, strides = symbols(rank), symbols(rank)
    under_test = Wrapped(Signature("f", [tensor(name, shape, strides) for name in "abc"]))
    right = View(SIZES[:rank], STRIDES[-rank:])
    check(under_test, [right] * 3, accepted=True)
    for wrong in spoilt(right):
        check(under_test, [right, wrong, right], accepted=False)
        check(under_test, [right, right, wrong], accepted=False)


def test_strides_that_mean_nothing_may_differ() -> None:
    n, s = symbols(2)
    under_test = Wrapped(Signature("f", [tensor(name, (n, 1), (s, 7)) for name in "ab"]))
    check(under_test, [View((3, 1), (2, 7)), View((3, 1), (2, 9))], accepted=True)
    under_test = Wrapped(Signature("f", [tensor(name, (n, 0), (s, 1)) for name in "ab"]))
    check(under_test, [View((3, 0), (2, 1)), View((3, 0), (5, 9))], accepted=True)
    under_test = Wrapped(Signature("f", [tensor(name, (n, 4), (4, 1)) for name in "ab"]))
    check(under_test, [View((1, 4), (4, 1)), View((1, 4), (5, 1))], accepted=True)


def test_a_tensor_that_did_not_come_is_compared_with_nothing() -> None:
    """What is met first inside a branch is not there outside."""
    shape, strides, own = symbols(2), symbols(2), symbols(2)
    optional = [params.Optional(name, tensor(name, own, (5, 1))) for name in "abc"]
    optional += [params.Optional(name, tensor(name, shape, strides)) for name in "de"]
    under_test = Wrapped(Signature("f", [*optional, tensor("x", shape, strides)]))
    mine, other = View((3, 5), (5, 1)), View((3, 4), (9, 2))
    for arguments in (
        [mine, mine, mine, other, other, other],
        [None, mine, mine, None, other, other],
        [None, None, mine, other, None, other],
        [None, None, None, None, None, other],
    ):
        check(under_test, arguments, accepted=True)
    for wrong in spoilt(other):
        check(under_test, [None, None, None, None, wrong, other], accepted=False)
        check(under_test, [None, None, None, other, wrong, other], accepted=False)
    for wrong in spoilt(mine):
        check(under_test, [None, mine, wrong, None, None, other], accepted=False)


def test_equal_numbers_of_packed_tensors_are_other_sizes() -> None:
    shape = (sym_int(64), sym_int(64, divisibility=2))
    packed = params.Tensor("a", shape, "float4_e2m1fnx2", device="cpu")
    plain = tensor("b", shape, packed.strides)
    under_test = Wrapped(Signature("f", [packed, plain]))
    given = View((3, 6), (6, 1), dtype=0x00020411)
    check(under_test, [given, View((3, 12), (12, 1))], accepted=True)
    check(under_test, [given, View((3, 6), (6, 1))], accepted=False)

"""Arithmetic of Booleans: as numbers they are Int32, their bits are Booleans; known ones alike."""

from __future__ import annotations

import numpy as np
import pytest

import ferrule as fe


def computed(b: fe.Boolean, c: fe.Boolean):
    return -b, +b, abs(b), b + c, ~b, b & c, b | c, b ^ c, ~(b == c)


@pytest.mark.parametrize("b", [False, True])
@pytest.mark.parametrize("c", [False, True])
def test_numbers_and_bits(b: bool, c: bool) -> None:
    found = fe.compile(computed, fe.Boolean, fe.Boolean, options="--target cpu")(b, c)
    numbers, bits = found[:4], found[4:]
    assert numbers == (-int(b), int(b), int(b), b + c)
    assert all(type(each) is int for each in numbers)
    wanted = (not b, b and c, b or c, b is not c, b is not c)
    assert bits == wanted and all(type(each) is bool for each in bits)


@pytest.mark.parametrize("b", [False, True])
def test_typed_constants_are_alike(b: bool) -> None:
    found = []

    def host(n: fe.Int32):
        known = fe.Boolean(b)
        found.append((-known, +known, abs(known), ~known))
        return n

    fe.compile(host, fe.Int32, options="--target cpu")
    numbers, bits = found[0][:3], found[0][3]
    assert [type(each) for each in numbers] == [fe.Int32] * 3
    assert [int(each) for each in numbers] == [-int(b), int(b), int(b)]
    assert type(bits) is fe.Boolean and bool(bits) is not b


def test_what_python_makes_of_a_known_bool_is_refused() -> None:
    def host(a):
        if ~(a.shape[0] == 3):
            a[0] = 1

    example = fe.make_fake_compact_tensor(fe.Int32, (3,))
    with pytest.raises(fe.CompileError, match="~ of True, which is known while compiling, is -2"):
        fe.compile(host, example, options="--target cpu")
    with_symbol = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    a = np.zeros(3, np.int32)
    fe.compile(host, with_symbol, options="--target cpu")(a)
    assert not a.any()

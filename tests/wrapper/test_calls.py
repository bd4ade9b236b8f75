"""Calls that are accepted: what the body sees, for real tensors and for forged ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from wrapper_calls import Wrapped, view

from ferrule.specs import (
    Boolean,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    Scalar,
    Tensor,
    Uint8,
    Uint64,
    sym_int,
)


def tensor(name: str, *shape: object, **changes: object) -> Tensor:
    return Tensor(name, shape, changes.pop("dtype", Float32), device="cpu", **changes)


def test_numpy_arrays() -> None:
    wrapped = Wrapped(tensor("a", sym_int(), sym_int()), Scalar("k", Int32))
    array = np.zeros((3, 5), np.float32)
    wrapped.function()(array, 7)
    assert wrapped.seen() == (array.ctypes.data, 7, 3, 5)
    with pytest.raises(ValueError, match=r"Mismatched a.strides\[0\]"):
        wrapped.function()(np.zeros((3, 10), np.float32)[:, ::2], 7)
    with pytest.raises(TypeError, match="expected int, but got float"):
        wrapped.function()(array, 7.5)


@pytest.mark.needs_torch
def test_torch_tensors() -> None:
    import torch

    wrapped = Wrapped(tensor("a", sym_int(), sym_int()))
    held = torch.zeros(3, 5)
    wrapped.function()(held)
    assert wrapped.seen() == (held.data_ptr(), 3, 5)
    wrapped.function()(torch.zeros(0, 5))
    assert wrapped.seen()[1:] == (0, 5)
    with pytest.raises(ValueError, match="expected dtype=float32, but got dtype=bfloat16"):
        wrapped.function()(torch.zeros(3, 5, dtype=torch.bfloat16))


def test_both_kinds_of_tensor_arguments() -> None:
    wrapped = Wrapped(tensor("a", sym_int()), tensor("b", sym_int()))
    assert wrapped(view(3, owned=True), view(4)) == (4096, 4096, 3, 4)


def test_missing_strides_are_row_major() -> None:
    s = sym_int(symbol="s")
    wrapped = Wrapped(tensor("a", sym_int(), 4, 5, strides=(s, 5, 1)))
    assert wrapped(view(3, 4, 5, strides=None)) == (4096, 3, 20)


def test_byte_offset_is_added() -> None:
    wrapped = Wrapped(tensor("a", 4, align=16))
    assert wrapped(view(4, data=4100, byte_offset=12)) == (4112,)


def test_strides_of_small_dims_mean_nothing() -> None:
    wrapped = Wrapped(tensor("a", sym_int(), sym_int()))
    assert wrapped(view(1, 8, strides=(1 << 40, 1)))[1:] == (1, 8)
    assert wrapped(view(8, 1, strides=(1, -5)))[1:] == (8, 1)
    assert wrapped(view(0, 8, strides=(3, 7), data=0))[1:] == (0, 8)
    assert wrapped(view(8, 0, strides=(3, 7)))[1:] == (8, 0)


def test_scalars_and_zero_dims() -> None:
    wrapped = Wrapped(tensor("a"))
    assert wrapped(view()) == (4096,)
    assert wrapped(view(strides=None)) == (4096,)
    assert Wrapped()() == ()


def test_int8_and_uint8_stand_for_each_other() -> None:
    for dtype in (Int8, Uint8):
        wrapped = Wrapped(tensor("a", 2, dtype=dtype))
        assert wrapped(view(2, dtype=0x00010800)) == wrapped(view(2, dtype=0x00010801)) == (4096,)
        assert "dtype=bool" in wrapped.refused(view(2, dtype=0x00010806))


def test_scalars() -> None:
    wrapped = Wrapped(
        Scalar("a", Boolean), Scalar("b", Int8), Scalar("c", Uint64), Scalar("d", Float32),
        Scalar("e", Float64), Scalar("f", Int64),
    )  # fmt: skip
    big = (1 << 63) - 1
    assert wrapped(True, -128, big, 0.1, 0.1, -big) == (
        1, -128, big, float(np.float32(0.1)), 0.1, -big,
    )  # fmt: skip
    assert wrapped(0, True, False, 3, True, True) == (0, 1, 0, 3.0, 1.0, 1)


def test_wide_symbols() -> None:
    wrapped = Wrapped(tensor("a", sym_int(64), 0))
    assert wrapped(view(1 << 40, 0)) == (4096, 1 << 40)
    assert "int64 range" in wrapped.refused(view(-1, 0))


def test_the_two_parts_of_a_call_are_checked_in_order() -> None:
    wrapped = Wrapped(tensor("a", 4), tensor("b", 4))
    assert "argument #1" in wrapped.refused(view(5), view(4, dtype=0))
    assert "argument #0" in wrapped.refused(view(5), view(5))


def test_not_a_number_arrives() -> None:
    wrapped = Wrapped(Scalar("x", Float32), Scalar("y", Float64))
    assert all(map(math.isnan, wrapped(math.nan, math.nan)))
    assert wrapped(1e300, 0.1) == (math.inf, 0.1)
    assert wrapped(True, (1 << 62) + 1) == (1.0, float((1 << 62) + 1))

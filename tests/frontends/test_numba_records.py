"""Functions of Numba with arrays of records, and what the errors of other values say."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import CompileError
from ferrule.frontends import numba as frontend
from ferrule.specs import Tensor

numba = pytest.importorskip("numba")
N = fe.sym_int(symbol="n")
ALIGNED = np.dtype([("mass", "f8"), ("moons", "i4"), ("at", "f4", 3)], align=True)
PACKED = np.dtype([("kind", "i1"), ("mass", "f8"), ("deep", [("x", "i2"), ("y", "u1")])])


def heaviest(x, k):  # type: ignore[no-untyped-def]
    """The sum of masses, and what the last record has besides."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i].mass * k
    return total


def changed(x, out):  # type: ignore[no-untyped-def]
    """Every field is read and written."""
    for i in range(x.size):
        out[i].mass = 2 * x[i].mass
        out[i].moons = x[i].moons + i
        for j in range(3):
            out[i].at[j] = x[i].at[j] - j


def nested(x):  # type: ignore[no-untyped-def]
    """Records in records, in two dims, which are not aligned."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j].mass + x[i, j].deep.x * x[i, j].deep.y + x[i, j].kind
    return total


def filled(dtype: Any, *shape: int) -> np.ndarray[Any, Any]:
    """Records of random bytes that are small numbers in each field."""
    rng, found = np.random.default_rng(len(shape)), np.zeros(shape, dtype)
    for name in dtype.names:
        if dtype[name].names is None:
            found[name] = rng.integers(0, 9, found[name].shape)
        else:
            for inner in dtype[name].names:
                found[name][inner] = rng.integers(0, 9, shape)
    return found


def in_bytes(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As a call gets it."""
    return x.view(np.uint8).reshape(*x.shape, x.itemsize)


def test_records_are_what_numba_makes_of_them(tmp_path: Path) -> None:
    """Aligned and packed ones, of one dim and of two, also from a file."""
    x = filled(ALIGNED, 5)
    one = frontend.compile(heaviest, x, 2.0)
    assert str(one.signature) == "heaviest(x: Tensor([n0, 24], uint8), k: float64) -> float64"
    assert any(each.startswith("x has the bytes of records {") for each in one.notes["assumes"])
    y, path = filled(PACKED, 3, 4), tmp_path / "nested.o"
    other = frontend.compile(nested, frontend.records((N, 4), PACKED))
    assert str(other.signature) == "nested(x: Tensor([n, 4, 12], uint8)) -> float64"
    other.export_to_c(path)
    for call in (other, fe.runtime.load_module(path).nested):
        assert call(in_bytes(y)) == numba.njit(nested)(y)
    for count in (5, 2, 0):
        assert one(in_bytes(x[:count]), 0.5) == numba.njit(heaviest)(x[:count], 0.5)


def test_results_are_records() -> None:
    kind = frontend.records(N, ALIGNED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # fields of elements are written, not read
        fn = frontend.compile(changed, kind, kind, results=["out"])
    x, wanted = filled(ALIGNED, 7), np.zeros(7, ALIGNED)
    numba.njit(changed)(x, wanted)
    found = np.from_dlpack(fn(in_bytes(x))).view(ALIGNED)[:, 0]
    assert (found == wanted).all()


def test_bytes_of_other_records_are_refused() -> None:
    fn, x = frontend.compile(heaviest, filled(ALIGNED, 4), 1.0), filled(ALIGNED, 4)
    for wrong, said in (
        (in_bytes(x)[:, :16], "x.shape.1. .*expected to be 24, but got 16"),
        (in_bytes(x)[::2], "x.strides.0.*expected to be 24, but got 48"),
        (np.zeros(97, np.uint8)[1:].reshape(4, 24), "x"),
    ):
        with pytest.raises(ValueError, match=said):
            fn(wrong, 1.0)
    with pytest.raises(TypeError, match="which DLPack does not have"):
        fn(x, 1.0)
    reading = x.copy()
    reading.flags.writeable = False
    assert frontend.compile(heaviest, reading, 1.0)(in_bytes(reading), 1.0) == x["mass"].sum()


@pytest.mark.parametrize(
    "example, said",
    [
        (filled(ALIGNED, 4)[::2], "a part of an array of records"),
        (filled(ALIGNED, 4)[0], "an array of one record, x.i : i . 1."),
        (np.zeros(2, [("o", "O")]), "dtypes that contain object are not supported"),
        (1 + 2j, "two numbers, z.real and z.imag"),
        (np.complex64(1), "two numbers, z.real and z.imag"),
        ("earth", "np.frombuffer.text.encode"),
        ({1: 2}, "two arrays, of the keys and of the values"),
        ([1, 2], "hand over an array, or each item as a parameter"),
    ],
)
def test_other_examples_say_what_to_hand_over(example: Any, said: str) -> None:
    with pytest.raises(CompileError, match=f"(?s)'x'.*{said}"):
        frontend.compile(heaviest, example, 1.0)


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda x: complex(x[0], 1.0), "return z.real, z.imag"),
        (lambda x: "earth", "an array of uint8"),
        (lambda x: [x[0], 1.0], r"np.array\(items\)"),
        (lambda x: np.zeros(x.size, ALIGNED), "an array of records that is a parameter"),
        (lambda x: {1: 2}[1], "sorted keys and np.searchsorted"),
    ],
)
def test_other_results_say_what_to_return(function: Any, said: str) -> None:
    with pytest.raises(CompileError, match=f"(?s)hint: .*{said}"):
        frontend.compile(function, Tensor("x", (N,), "float64"))


def test_records_have_fields() -> None:
    with pytest.raises(TypeError, match="expected a dtype with fields, but got float64"):
        frontend.records(N, "f8")


def test_kernels_take_no_records() -> None:
    pytest.importorskip("numba_cuda")
    with pytest.raises(CompileError, match="which only functions on the CPU take"):
        frontend.compile(nested, frontend.records((N, 4), PACKED), target="sm_90", grid=1, block=1)

"""Real tensors as examples: which of their sizes a call may change, and which go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.compiler.errors import CompileError
from ferrule.frontends.examples import SeenSizes, spec_of
from ferrule.frontends.launchsizes import checked_sizes
from ferrule.frontends.told import fixed
from ferrule.specs import Signature, Tensor

N = fe.sym_int(symbol="n")
FREE = Signature("f", [Tensor("x", (N,), "float32")])
SIZE = 97


def shown(*shapes: tuple[int, ...], numbers: tuple[int, ...] = ()) -> str:
    """The signature of tensors of these shapes."""
    examples = [np.zeros(shape, np.float32) for shape in shapes]
    sizes = SeenSizes.of(examples, numbers)
    pairs = zip("xyzw", examples, strict=False)
    text = str(Signature("f", [spec_of(name, each, sizes=sizes) for name, each in pairs]))
    return text.replace(", float32", "").replace("Tensor", "")


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        ([(1000,), (1000,)], "f(x: ([n0]), y: ([n0]))"),
        ([(4, 5), (5, 6), (4, 6)], "f(x: ([n0, n1]), y: ([n1, n2]), z: ([n0, n2]))"),
        ([(8, 8), (8, 8)], "f(x: ([n0, n1]), y: ([n0, n1]))"),
        ([(8, 8)], "f(x: ([n0, n1]))"),
        ([(8, 8), (8,)], "f(x: ([n0, n0]), y: ([n0]))"),
        ([(1, 9), (1,), (9,)], "f(x: ([1, n0]), y: ([1]), z: ([n0]))"),
        ([(3,), (7,)], "f(x: ([n0]), y: ([n1]))"),
        ([(0,), (0,)], "f(x: ([n0]), y: ([n0]))"),
    ],
)
def test_sizes_that_were_equal_are_one_symbol(shapes: Any, wanted: str) -> None:
    assert shown(*shapes) == wanted


@pytest.mark.parametrize(
    ("shapes", "numbers", "wanted"),
    [
        ([(1000,), (1000,), (7,)], (1000,), "f(x: ([1000]), y: ([1000]), z: ([n0]))"),
        ([(10, 20), (20,)], (200,), "f(x: ([10, 20]), y: ([20]))"),
        ([(10, 20)], (1, 3), "f(x: ([n0, n1]))"),
    ],
)
def test_a_number_of_every_call_keeps_the_sizes_that_it_is_one_of(
    shapes: Any, numbers: tuple[int, ...], wanted: str
) -> None:
    assert shown(*shapes, numbers=numbers) == wanted


def test_sizes_are_those_of_tensors_in_tuples_too() -> None:
    x, y = np.zeros(5), np.zeros((5, 2))
    assert SeenSizes.of([(x, [y]), 3, "n"]).shapes == [(5,), (5, 2)]


@pytest.mark.parametrize(
    ("grid", "wanted"),
    [
        (fixed(8), 8),
        (fixed((8, 2)), [8, 2]),
        ((N, 4), [N, 4]),
        (lambda sig: sig["x"].shape[0] // 64, N // 64),
        (lambda sig: (fe.ceil_div(N, SIZE), 2), [fe.ceil_div(N, 97), 2]),
        (lambda sig: fixed(SIZE), 97),
    ],
)
def test_a_launch_follows_a_call_or_is_fixed_on_purpose(grid: Any, wanted: Any) -> None:
    found = checked_sizes("grid", grid, FREE)
    assert found == wanted
    assert all(
        type(each) is not type(fixed(1)) for each in (found if wanted == [8, 2] else [found])
    )


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (97, r"f: the grid is 97 in every call, but x.shape\[0\] differs between calls"),
        ((97, 1), r"f: the grid is \(97, 1\) in every call"),
        (lambda sig: SIZE, "grid's x is 97 in every call, of SIZE, which the function takes"),
        (lambda sig: (N, SIZE), "grid's y is 97 in every call, of SIZE"),
        (lambda sig: N * SIZE, "grid's x is a multiple of SIZE"),
        (lambda sig: 97, "the grid is 97 in every call"),
    ],
)
def test_a_launch_of_numbers_alone_is_refused(grid: Any, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        checked_sizes("grid", grid, FREE)


def test_where_no_call_differs_numbers_are_right() -> None:
    alpha = specs.Scalar("alpha", "float32")
    whole = Signature("f", [Tensor("x", (97,), "float32"), alpha])
    assert checked_sizes("grid", lambda sig: SIZE, whole) == 97
    with pytest.raises(CompileError, match="but count differs between calls"):
        checked_sizes("grid", 97, Signature("f", [specs.Scalar("count", "int32")]))


def test_what_tuples_have_differs_between_calls_too() -> None:
    inner = specs.Tuple("pair", (Tensor("0", (N,), "float32"), specs.Scalar("1", "int32")))
    with pytest.raises(CompileError, match=r"but pair.0.shape\[0\], pair.1 differ"):
        checked_sizes("grid", 97, Signature("f", [inner]))


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        ([("a", "i4"), ("b", "f8")], r"let each of its fields be an array, x\['field'\]"),
        ("M8[s]", r"times are integers in a call: x.view\('int64'\)"),
    ],
)
def test_arrays_without_a_dtype_of_calls_say_what_goes_instead(dtype: Any, hint: str) -> None:
    x = np.zeros(2, dtype)
    with pytest.raises(CompileError, match=hint):
        spec_of("x", x, sizes=SeenSizes.of([np.zeros(2)], ()))

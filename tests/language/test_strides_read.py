"""`a.stride[i]` is the stride of the call, also where the dim has size 1 or nothing is in it.

A stride that the code only finds elements by is any number there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import ferrule as fe


def strided(*symbols: Any) -> Any:
    sizes = tuple(fe.sym_int() for _ in symbols)
    return fe.make_fake_tensor(fe.Float32, sizes, stride=symbols)


OUT = fe.make_fake_compact_tensor(fe.Int64, (2,))
CALLS = [
    ((5, 7), (63, 9)),
    ((1, 7), (63, 9)),
    ((5, 1), (4, 4)),
    ((1, 1), (0, -3)),
    ((0, 7), (2, 9)),
]


def array(sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    memory = np.arange(4096, dtype=np.float32)
    return as_strided(memory[1024:], sizes, [4 * each for each in strides])


@fe.kernel
def tell_kernel(a: fe.Tensor, out: fe.Tensor):
    out[0] = a.stride[0] * 1
    out[1] = a.stride(1)


@fe.jit
def tell(a: fe.Tensor, out: fe.Tensor):
    out[0] = a.stride[0]
    out[1] = a.stride[1]


@fe.jit
def tell_by_launch(a: fe.Tensor, out: fe.Tensor):
    tell_kernel(a, out).launch(grid=1, block=1)


@fe.jit
def tell_rows(a: fe.Tensor, out: fe.Tensor):
    for row in range(2):
        out[row] = a.stride[0] if row == 0 else a.stride[1]


def compiled(function: Any, a: Any) -> Any:
    return fe.compile(function, a, OUT, options="--target cpu")


@pytest.mark.parametrize("function", [tell, tell_by_launch, tell_rows])
@pytest.mark.parametrize("loaded", [False, True])
def test_strides_are_those_of_the_call(function: Any, loaded: bool, tmp_path: Path) -> None:
    made = compiled(function, strided(fe.sym_int64(), fe.sym_int64()))
    if loaded:
        made.export_to_c(tmp_path / "f.o")
        made = getattr(fe.runtime.load_module(tmp_path / "f.o"), made.name)
    for sizes, strides in CALLS:
        out = np.zeros(2, np.int64)
        made(array(sizes, strides), out)
        assert (*out,) == strides, sizes


def test_missing_strides_are_those_of_a_compact_tensor() -> None:
    """DLPack leaves them out of what is compact."""
    made = compiled(tell, strided(fe.sym_int64(), fe.sym_int64()))
    x = np.zeros((1, 3), np.float32)
    out = np.zeros(2, np.int64)
    made(x, out)
    assert (*out,) == (3, 1)


def test_a_stride_that_is_read_keeps_what_is_said_of_it() -> None:
    """Code that is compiled for multiples of 4 is not given another number."""
    made = compiled(tell, strided(fe.sym_int64(divisibility=4), fe.sym_int64(max=9)))
    out = np.zeros(2, np.int64)
    made(array((1, 3), (8, 2)), out)
    assert (*out,) == (8, 2)
    with pytest.raises(ValueError, match=r"strides\[0\].*divisible by 4, but got 7"):
        made(array((1, 3), (7, 2)), out)
    with pytest.raises(ValueError, match=r"strides\[1\].*at most 9, but got 10"):
        made(array((1, 1), (8, 10)), out)


@fe.jit
def total(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    out[0] = fe.Int64(a[0, 0] + b[0, 0])


@fe.jit
def total_and_step(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    out[0] = fe.Int64(a[0, 0] + b[0, 0])
    out[1] = a.stride[0]


def test_two_tensors_with_one_stride() -> None:
    """Of elements alone, a row is a row; who reads the stride is not given that of the other."""
    step = fe.sym_int64()
    shared = [strided(step, fe.sym_int64()) for _ in range(2)]
    by_elements, by_number = (
        fe.compile(each, *shared, OUT, options="--target cpu") for each in (total, total_and_step)
    )
    out = np.zeros(2, np.int64)
    one, other = array((1, 3), (8, 1)), array((1, 3), (9, 1))
    by_elements(one, other, out)
    by_number(one, one, out)
    assert out[1] == 8
    by_number(other, other, out)
    assert out[1] == 9
    with pytest.raises(ValueError, match=r"b\.strides\[0\].*a\.strides\[0\]"):
        by_number(one, other, out)


def test_a_stride_of_the_layout_is_the_layouts() -> None:
    """A stride that is written in the example is that in each call, as its layout is."""
    made = compiled(tell, fe.make_fake_tensor(fe.Float32, (fe.sym_int(), 8), stride=(8, 1)))
    out = np.zeros(2, np.int64)
    made(array((1, 8), (100, 1)), out)
    assert (*out,) == (8, 1)


def test_a_function_inside_of_another_has_the_strides_of_the_call() -> None:
    inner = compiled(tell, strided(fe.sym_int64(), fe.sym_int64()))

    @fe.jit
    def outer(a: fe.Tensor, out: fe.Tensor):
        inner(a, out)

    made = compiled(outer, strided(fe.sym_int64(), fe.sym_int64()))
    for sizes, strides in CALLS:
        out = np.zeros(2, np.int64)
        made(array(sizes, strides), out)
        assert (*out,) == strides, sizes

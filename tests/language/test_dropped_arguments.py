"""A compilation keeps no argument alive: neither its examples nor what a direct call was given."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe

_sizes = itertools.count(5)


@fe.jit
def fill(a: fe.Tensor):
    a.fill(1.0)


@fe.jit(dynamic_layout=True)
def fill_any(a: fe.Tensor):
    a.fill(1.0)


@fe.jit
def copy(a: fe.Tensor, b: fe.Tensor):
    a.fill(1.0)
    b.fill(2.0)


def is_kept(use: Callable[[Any], Any]) -> bool:
    """Whether a new array, of a size that no other has, is alive after its use."""
    array = np.zeros(next(_sizes), np.float32)
    alive = weakref.ref(array)
    used = use(array)
    del array
    gc.collect()
    found = alive() is not None
    del used
    return found


@pytest.mark.parametrize("function", [fill, fill_any], ids=["fill", "fill_any"])
def test_direct_calls_keep_no_argument(function: Any) -> None:
    assert [is_kept(function) for _ in range(3)] == [False] * 3


@pytest.mark.parametrize("options", ["", "--no-cache", "--enable-checks"])
def test_compiled_functions_keep_no_example(options: str) -> None:
    assert not is_kept(lambda a: fe.compile(fill, a, options=options))


def test_functions_for_several_dtypes_keep_no_example() -> None:
    free = fe.make_fake_tensor(fe.sym_dtype(fe.Float32, fe.Float64), (fe.sym_int(),), stride=(1,))
    assert not is_kept(lambda a: fe.compile(copy, free, a))

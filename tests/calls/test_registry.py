"""`fe.register_global_func` and `fe.get_global_func`."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import vector

import ferrule as fe

_numbers = itertools.count()


@pytest.fixture
def name() -> Iterator[str]:
    """A name that nobody has, free again after the test."""
    text = f"ferrule.test.registry.{next(_numbers)}"
    yield text
    if tvm_ffi.get_global_func(text, allow_missing=True) is not None:
        tvm_ffi.registry.remove_global_func(text)


def doubled(a: fe.Tensor) -> None:
    a[:] = a[:] * 2


def test_a_compiled_function_is_called_by_its_name(name: str) -> None:
    function = fe.compile(doubled, vector(), options="--target cpu")
    assert fe.register_global_func(name, function) is function
    del function
    gc.collect()
    a = np.ones(3, np.float32)
    fe.get_global_func(name)(a)
    tvm_ffi.get_global_func(name)(a)
    assert a.tolist() == [4, 4, 4]
    with pytest.raises(TypeError, match="Mismatched type on argument #0"):
        fe.get_global_func(name)("text")


def test_a_decorator_registers_and_gives_the_function_back(name: str) -> None:
    @fe.register_global_func(name)
    def plus(x: int, y: int) -> int:
        return x + y

    assert plus(1, 2) == 3
    assert fe.get_global_func(name)(20, 22) == 42


def test_a_taken_name_is_an_error_that_leaves_the_first(name: str) -> None:
    fe.register_global_func(name, lambda: 1)
    with pytest.raises(ValueError, match="is registered already; take another name"):
        fe.register_global_func(name, lambda: 2)
    assert fe.get_global_func(name)() == 1
    fe.register_global_func(name, lambda: 3, override=True)
    assert fe.get_global_func(name)() == 3


def test_a_missing_function_is_named_or_none() -> None:
    with pytest.raises(ValueError, match="tvm-ffi has no function 'ferrule.test.nobody'"):
        fe.get_global_func("ferrule.test.nobody")
    assert fe.get_global_func("ferrule.test.nobody", allow_missing=True) is None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((print, print), TypeError, "expected the name of a function"),
        (("", print), ValueError, "is no name of a function"),
        (("a\0b", print), ValueError, "is no name of a function"),
        (("ferrule.test.number", 3), TypeError, "expected a function to register, but got 3"),
    ],
)
def test_wrong_arguments_are_errors(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fe.register_global_func(*arguments)
    with pytest.raises(TypeError, match="expected the name of a function, but got 3"):
        fe.get_global_func(3)  # type: ignore[arg-type]

"""The error of a call that no candidate of an overload takes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--target cpu")


def vector(dtype: Any) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(symbol="n"),))


def halves(a: fe.Tensor, k):
    return 1


def floats(a: fe.Tensor, k):
    return 2


def numbers(k):
    return 3


@pytest.fixture(scope="module")
def scale() -> fe.Function:
    return fe.overload(
        [
            compiled(halves, vector(fe.Float16), fe.Int8),
            compiled(floats, vector(fe.Float32), fe.Float32),
        ],
        "scale",
    )


HALVES = "`scale(a: Tensor([n], float16), k: int8) -> int32`"
FLOATS = "`scale(a: Tensor([n], float32), k: float32) -> int32`"


def refusal(function: Any, *args: Any) -> str:
    with pytest.raises(TypeError) as caught:
        function(*args)
    return str(caught.value)


def test_it_says_why_each_candidate_refuses(scale):
    assert refusal(scale, np.zeros(2), 1) == (
        "No candidate of `scale` takes these arguments:\n"
        f"  Mismatched Tensor on argument #0 when calling: {HALVES}, "
        "expected dtype=float16, but got dtype=float64\n"
        f"  Mismatched Tensor on argument #0 when calling: {FLOATS}, "
        "expected dtype=float32, but got dtype=float64"
    )
    assert refusal(scale, np.zeros(2, np.float16), 200) == (
        "No candidate of `scale` takes these arguments:\n"
        f"  Out of bound value on argument #1 when calling: {HALVES}, "
        "expected to be in int8 range [-128, 127], but got 200\n"
        f"  Mismatched Tensor on argument #0 when calling: {FLOATS}, "
        "expected dtype=float32, but got dtype=float16"
    )


def test_the_same_text_comes_to_callers_in_other_languages(scale):
    generic = tvm_ffi.Function.__call__
    with pytest.raises(TypeError) as caught:
        generic(scale, 1, 2, 3)
    assert str(caught.value) == (
        "No candidate of `scale` takes these arguments:\n"
        f"  Expects 2 parameters when calling: {HALVES}, but got 3\n"
        f"  Expects 2 parameters when calling: {FLOATS}, but got 3"
    )


def test_binding_fails_as_for_other_functions(scale):
    for args, message in (
        ((1,), r"^scale\(\) missing 1 required positional argument: 'k'$"),
        ((1, 2, 3), r"^scale\(\) takes 2 positional arguments but 3 were given$"),
    ):
        with pytest.raises(TypeError, match=message):
            scale(*args)


def test_an_error_of_the_candidate_that_runs_is_not_one_of_the_choice():
    def checked(k: fe.Int32):
        if k > 0:
            raise ValueError(f"k is {k}")

    both = fe.overload([compiled(checked, fe.Int32), compiled(numbers, fe.Int64)], "f")
    with pytest.raises(ValueError, match="^k is 7$"):
        both(7)
    assert both(1 << 40) == 3


def test_a_refusal_does_not_spoil_the_next_error(scale):
    for _ in range(3):
        first, second = refusal(scale, None, 1), refusal(scale, np.zeros(2, np.float32), "k")
        assert "but got None" in first and "but got str" in second
        assert scale(np.zeros(2, np.float32), 1) == 2


def test_threads_refuse_at_once(scale):
    found: list[str] = []

    def run() -> None:
        for _ in range(100):
            found.append(refusal(scale, np.zeros(2), 1))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400 and len(set(found)) == 1


def test_many_candidates_make_a_long_message():
    many = [compiled(numbers, each) for each in ("x", b"x", vector(fe.Int16), fe.Int8) * 8]
    lines = refusal(fe.overload(many, "f"), 1.5).split("\n")
    assert len(lines) == 33
    assert lines[-1] == (
        "  Mismatched type on argument #0 when calling: `f(k: int8) -> int32`, expected int, "
        "but got float"
    )

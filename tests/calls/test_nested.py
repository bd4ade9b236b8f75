"""Calls and callbacks nested deeply: the error comes in good time, and is the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import vector

import ferrule as fe


@fe.jit
def calls(a: fe.Tensor, f):
    f(1)
    a[0] = a[0] + 1.0


def compiled() -> fe.Function:
    return fe.compile(calls, vector(), fe.specs.params.Function("f"), options="--target cpu")


def frames(error: BaseException) -> list[str]:
    """The names of the functions in an error's traceback."""
    traceback, found = error.__traceback__, []
    while traceback is not None:
        found.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return found


def test_endless_recursion_through_callbacks_is_a_recursion_error() -> None:
    function, a, depth = compiled(), np.zeros(1, np.float32), 0

    def again(_: Any) -> None:
        nonlocal depth
        depth += 1
        function(a, again)

    with pytest.raises(RecursionError) as caught:
        function(a, again)
    assert depth > 100
    assert len(frames(caught.value)) < 150
    assert a[0] == 0


@pytest.mark.parametrize("deep", [1, 10, 300])
def test_the_error_of_the_innermost_callback_comes_out(deep: int) -> None:
    """With its class, its message, and the frames that are nearest to it."""
    function, a = compiled(), np.zeros(1, np.float32)

    def innermost() -> None:
        raise KeyError("the reason")

    def down(left: int) -> Any:
        def callback(_: Any) -> None:
            if left:
                function(a, down(left - 1))
            innermost()

        return callback

    with pytest.raises(KeyError, match="the reason") as caught:
        function(a, down(deep))
    found = frames(caught.value)
    assert "innermost" in found
    assert len(found) < 150
    assert a[0] == 0

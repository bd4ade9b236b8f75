"""Errors inside of the library functions that are written in the language point at the user's line:
at the call of the library's function, or into the function that it was given."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

CPU = "--target cpu"


def text_as_value(a, t):
    a[0] = arch.block_reduction("x", lambda p, q: p)


def text_as_result(a, t):
    a[0] = arch.block_reduction(a[t], lambda p, q: "x")


def too_few_parameters(a, t):
    a[0] = arch.block_scan(a[t], lambda p: p)


def number_as_op(a, t):
    a[0] = arch.warp_reduction(a[t], 3)


def no_op(a, t):
    a[0] = arch.block_reduction(a[t])


def wrong_group(a, t):
    a[0] = arch.warp_reduction(a[t], lambda p, q: p + q, threads_in_group=7)


def fails_in_op(a, t):
    a[0] = arch.block_reduction(a[t], lambda p, q: p + missing)  # noqa: F821


WRONG = {
    text_as_value: "block_reduction takes numbers, but the value is 'x' (str)",
    text_as_result: "op gives 'x' (str) for two values of float32",
    too_few_parameters: "<lambda>(): too many positional arguments",
    number_as_op: "3 (int) cannot be called",
    no_op: "block_reduction(): missing a required argument: 'op'",
    wrong_group: "static assertion failed: threads_in_group is one of (1, 2, 4, 8, 16, 32): 7",
    fails_in_op: "the name 'missing' is not defined",
}


def compiled(body: Callable[..., Any], options: str = CPU) -> fe.Function:
    @fe.kernel
    def kernel(a: fe.Tensor):
        body(a, arch.thread_idx()[0])

    @fe.jit
    def host(a: fe.Tensor):
        kernel(a).launch(grid=1, block=64)

    return fe.compile(host, np.ones(64, np.float32), options=options)


@pytest.mark.parametrize("body", WRONG, ids=lambda body: body.__name__)
def test_while_compiling(body: Callable[..., Any]) -> None:
    with pytest.raises(fe.CompileError) as caught:
        compiled(body)
    diagnostic = caught.value.diagnostic
    assert diagnostic.message == WRONG[body]
    assert diagnostic.span is not None
    assert diagnostic.span.file.endswith("test_library_lines.py")
    assert diagnostic.span.line == body.__code__.co_firstlineno + 1
    assert not any("ferrule/language" in note for note in diagnostic.notes)


def some_of_the_threads(a, t):
    if t < 40:
        a[0] = arch.block_reduction(a[t], lambda p, q: p + q)


def asserts_in_op(a, t):
    def op(p, q):
        assert p > 5, f"p is {p}"
        return p

    a[0] = arch.block_reduction(a[t], op)


def reads_outside_in_op(a, t):
    a[0] = arch.block_scan(a[t], lambda p, q: p + a[t + 64])


FAILING = {
    some_of_the_threads: (
        fe.DivergenceError,
        r"at .*test_library_lines.py:\d+ was reached by 40 of 64 threads",
    ),
    asserts_in_op: (AssertionError, r"^p is 1 in block"),
    reads_outside_in_op: (
        IndexError,
        r"index 65 is out .* at .*test_library_lines.py:\d+",
    ),
}


@pytest.mark.parametrize("body", FAILING, ids=lambda body: body.__name__)
def test_in_a_call(body: Callable[..., Any]) -> None:
    kind, words = FAILING[body]
    function = compiled(body, f"{CPU} --enable-checks")
    with pytest.raises(kind) as caught:
        function(np.ones(64, np.float32))
    assert re.search(words, str(caught.value))
    files = [frame.path for frame in caught.traceback]
    assert str(files[-1]).endswith("test_library_lines.py")

"""Memory and reference counts over many calls of every kind, good and refused.

A few thousand of each in an ordinary run; `FERRULE_CALLS=10000000` says how many instead.  The
count of all references that a debug build of CPython keeps says nothing here: only code that was
built for it counts along, and neither wheels nor generated code are.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
import tvm_ffi

import ferrule as fe

CALLS: Final = int(os.environ.get("FERRULE_CALLS", "5000"))
LONG: Final = "long enough to be on the heap"


def nothing(): ...


def one(x): ...


def three(a, b, c): ...


def mixed(a: fe.Tensor, k: fe.Int64, x: fe.Float64, s: str, t: tuple[fe.Int32, fe.Boolean]):
    return k


def write(a: fe.Tensor):
    a[0, 0] = 1


def pair(k: fe.Int64):
    return k, k + 1


def text(s: str):
    return s


def made(n: fe.Int64):
    return fe.zeros((n,), fe.Float32)


def refused(k: fe.Int64):
    if k > 0:
        fe.raise_error("ValueError", "refused {}", k)


def matrix(**options: Any) -> Any:
    shape = (fe.sym_int(), fe.sym_int())
    return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), **options)


def build(function: Callable[..., Any], *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options="--enable-tvm-ffi --target cpu")


def array() -> Any:
    return np.zeros((4, 2), np.float32)


def _mixed() -> fe.Function:
    return build(mixed, matrix(), fe.Int64, fe.Float64, "", (fe.Int32(0), fe.Boolean(True)))


GOOD: Final[dict[str, Callable[[], tuple[fe.Function, tuple[Any, ...], dict[str, Any]]]]] = {
    "no arguments": lambda: (build(nothing), (), {}),
    "an int": lambda: (build(one, fe.Int64), (1 << 40,), {}),
    "a float": lambda: (build(one, fe.Float64), (1.5,), {}),
    "a bool": lambda: (build(one, fe.Boolean), (True,), {}),
    "a number of NumPy": lambda: (build(one, fe.Int64), (np.int32(7),), {}),
    "a string": lambda: (build(one, "x"), (LONG,), {}),
    "arrays": lambda: (build(three, *(matrix() for _ in range(3))), (array(),) * 3, {}),
    "tensors of tvm-ffi": lambda: (
        build(three, *(matrix() for _ in range(3))),
        (tvm_ffi.from_dlpack(array()),) * 3,
        {},
    ),
    "all at once": lambda: (_mixed(), (array(), 1 << 40, 2.5, LONG, (3, True)), {}),
    "keywords": lambda: (
        _mixed(),
        (array(),),
        {"t": (3, True), "s": LONG, "x": 2.5, "k": 1 << 40},
    ),
    "a tuple back": lambda: (build(pair, fe.Int64), (1 << 40,), {}),
    "a string back": lambda: (build(text, "x"), (LONG,), {}),
    "a tensor back": lambda: (build(made, fe.Int64), (1000,), {}),
}
BAD: Final[dict[str, Callable[[], tuple[fe.Function, tuple[Any, ...], type[Exception]]]]] = {
    "too few": lambda: (_mixed(), (array(),), TypeError),
    "another dtype": lambda: (build(one, matrix()), (np.zeros((4, 2)),), ValueError),
    "another rank": lambda: (build(one, matrix()), (np.zeros(4, np.float32),), ValueError),
    "no tensor": lambda: (build(one, matrix()), (LONG,), TypeError),
    "a read-only array": lambda: (build(write, matrix()), (_read_only(),), BufferError),
    "an int past its range": lambda: (build(one, fe.Int32), (1 << 40,), ValueError),
    "a wrong item": lambda: (
        _mixed(),
        (array(), 1 << 40, 2.5, LONG, (3, "no")),
        TypeError,
    ),
    "an error of the body": lambda: (build(refused, fe.Int64), (1 << 40,), ValueError),
}


def _read_only() -> Any:
    found = array()
    found.flags.writeable = False
    return found


def flat(call: Callable[[], None], held: list[Any], times: int) -> None:
    """Calls so often; nothing is kept."""
    for _ in range(200):
        call()
    gc.collect()
    before = [sys.getrefcount(each) for each in held]
    blocks, pages = sys.getallocatedblocks(), _peak()
    for _ in range(times):
        call()
    gc.collect()
    assert [sys.getrefcount(each) for each in held] == before
    # Other threads of the process keep some; what every tenth call keeps is found.
    assert sys.getallocatedblocks() - blocks < max(100, times // 10)
    assert _peak() - pages < 4 << 10, "kilobytes more than before"


def _peak() -> int:
    """The most memory that the process had, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("kind", GOOD)
def test_a_call_keeps_nothing(kind: str) -> None:
    function, args, kwargs = GOOD[kind]()

    def call() -> None:
        function(*args, **kwargs)

    flat(call, [function, *args, *kwargs.values()], CALLS)


@pytest.mark.parametrize("kind", BAD)
def test_a_refused_call_keeps_nothing(kind: str) -> None:
    function, args, error = BAD[kind]()

    def call() -> None:
        try:
            function(*args)
        except error:
            return
        raise AssertionError("the call was accepted")

    flat(call, [function, *args], CALLS // 5)


@pytest.mark.needs_torch
def test_tensors_of_pytorch_are_not_kept() -> None:
    import torch

    function = build(three, *(matrix() for _ in range(3)))
    tensors = [torch.zeros(4, 2) for _ in range(3)]
    flat(lambda: function(*tensors), [function, *tensors], CALLS)

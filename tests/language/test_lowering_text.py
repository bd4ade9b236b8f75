"""Goldens of the kernel IR: one feature of the language each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from lowered import matrix, text, vector

import ferrule as fe

FACTORS = [1.0, 2.0, 3.0]
OFFSET = 7


@fe.kernel
def device_add_one(a: fe.Tensor, b: fe.Tensor):
    threads_per_block = 128
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * threads_per_block + tid
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


def add_one(a: fe.Tensor, b: fe.Tensor):
    n = a.shape[0]
    device_add_one(a, b).launch(grid=((n + 127) // 128, 1, 1), block=(128, 1, 1))


def whole_tensors(a, b, c, alpha: fe.Float32):
    c[:] = a[:] * alpha + fe.math.exp(b[:])


def loops(a, b):
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    steps = 0
    while total > 1.0:
        total = total / 2
        steps += 1
    b[0] = total
    b[1] = steps


def unrolled(a, b):
    for k, factor in enumerate(FACTORS):
        b[k] = a[k] * factor + OFFSET


def branches(a, b):
    x = a[0]
    if x > 1:
        y, kind = x * 2, 1
    elif x < -1:
        y, kind = -x, 2
    else:
        y, kind = 0.0, 3
    b[0] = y
    b[1] = kind


def short_circuit(a, b):
    i = fe.Int32(a[0])
    if i >= 0 and i < a.shape[0] and a[i] > 0.0:
        b[0] = a[i] if i > 3 else 0.0


def square(x):
    return x * x


def helpers(a, b):
    scale = lambda x, by=2: x * by  # noqa: E731

    def shifted(x):
        return x + OFFSET

    b[0] = shifted(scale(square(a[0])))
    b[1] = a[1] ** 3


@fe.kernel
def fill(a: fe.Tensor, value: fe.Float32, flag):
    i = fe.arch.thread_idx()[0]
    if flag:
        a[i] = value
    else:
        a[i] = -value


def specialised(a, k: fe.Int32):
    fill(a, 1, True).launch(grid=1, block=k)
    fill(a, 2, False).launch(grid=1, block=32)
    fill(a, 1, True).launch(grid=k // 2, block=32)


def integers(a, b):
    x = a[0] // a[1] % 5
    b[0] = (x & 3) | (x ^ ~x)
    b[1] = abs(x) + max(x, 2, a[2])
    b[2] = not (1 < x <= 9)


@pytest.mark.parametrize(
    ("function", "examples"),
    [
        (add_one, lambda: [vector(), vector()]),
        (whole_tensors, lambda: [vector(), vector(symbol="k"), vector(), 1.0]),
        (loops, lambda: [vector(), vector()]),
        (unrolled, lambda: [vector(), vector()]),
        (branches, lambda: [vector(), vector()]),
        (short_circuit, lambda: [vector(), vector()]),
        (helpers, lambda: [vector(fe.Float64), vector(fe.Float64)]),
        (specialised, lambda: [vector(), 64]),
        (integers, lambda: [vector(fe.Int32), vector(fe.Int64)]),
        (whole_tensors, lambda: [matrix(), matrix(rows="k"), matrix(), 1.0]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_golden(
    function: Callable[..., Any], examples: Callable[[], list[Any]], golden: Any
) -> None:
    arguments = examples()
    golden(f"{function.__name__}_{arguments[0].ndim}d.ir", text(function, *arguments))


def test_the_same_function_gives_the_same_text() -> None:
    assert text(specialised, vector(), 64) == text(specialised, vector(), 64)

"""Programs as people write them, compiled, interpreted, and each beside itself in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways
from plain_python import Program, collect, f32, i32, zeros

import ferrule as fe

PROGRAMS: list[Program] = []
program = collect(PROGRAMS)


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Config:
    block: int
    scale: float = 0.5
    taps: tuple[float, ...] = (0.25, 0.5, 0.25)


CONFIG = Config(32)
SCALE = np.float32(1.5)
COUNT = np.int64(3)


# ---- control flow ----


@program(f32(3, -1, 0, 7, 12), zeros(5), zeros(5))
def nested_ifs(a, b, c):
    for i in range(a.shape[0]):
        x = a[i]
        kind, weight = 0, 1.0
        if x < 0:
            kind, weight = 1, 2.0
            x = -x
        elif x == 0:
            if i > 3:
                kind = 2
            else:
                kind, weight = 3, 0.5
        elif 1 < x <= 7:
            if x > 3:
                weight = 4.0
            kind = 4 if x > 5 else 5
        else:
            x, weight = weight, x
        b[i] = kind
        c[i] = x * weight


@program(zeros(10, dtype=np.int64), 4, 3)
def loops_in_loops(out, n: fe.Int32, m: fe.Int32):
    total, pair = 0, (0, 1)
    for i in range(n):
        inner = 0
        for j in range(i, m + i):
            inner += i * j
            pair = (pair[1], pair[0] + 1)
            for k in range(j, 0, -2):
                inner -= k
        total += inner
    out[0], (out[1], out[2]) = total, pair
    for i in range(n, -1, -1):
        out[3 + i] = i * i


@program(zeros(6, dtype=np.int64))
def loop_names(out):
    i = 7
    for i in range(3):
        i = i * 10
    out[0] = i
    for i in range(0):
        out[5] = i
    out[1] = i
    last = -1
    for last in range(2, 9, 3):
        out[4] += last
    out[2] = last
    x = 0
    for _ in range(4):
        x = x + 0.5
    out[3] = 1 if x == 2.0 else 0


@program(zeros(4, dtype=np.int64), 27)
def while_loops(out, start: fe.Int32):
    n, steps, odd = start, 0, False
    while n != 1 and steps < 1000:
        odd = n % 2 == 1
        if odd:
            n = 3 * n + 1
        else:
            n = n // 2
        steps += 1
    out[0], out[1], out[2] = steps, n, odd
    while not (n > 5 or steps < 0):
        n += 1
    out[3] = n


@program(zeros(3), 3)
def an_else_leaves_the_loop_around(out, n: fe.Int32):
    for i in range(10):
        for j in range(n):
            if j > i:
                break
            out[0] += 1
        else:
            if i == 4:
                continue
            w = 0
            while w < n:
                w += 1
            else:
                if out[0] > 14:
                    break
            out[1] += 1
        out[2] += 1


@program(f32(1, 2, -1, 5), zeros(3))
def loops_that_carry_bools(a, out):
    found, every = False, True
    count = 0
    for i in range(a.shape[0]):
        negative = a[i] < 0
        found = found or negative
        every = every and not negative
        count += negative
    out[0], out[1], out[2] = found, every, count


@program(i32(5, 0, 3, 9), zeros(4, dtype=np.int32))
def short_circuits_guard_reads(a, b):
    n = a.shape[0]
    for i in range(n):
        hits = 0
        if i + 1 < n and a[i + 1] > a[i]:
            hits += 1
        if i == 0 or a[i - 1] > a[i]:
            hits += 10
        if not (i >= n - 1 or a[i + 1] == 0):
            hits += 100
        if 0 <= i - 1 < n and a[i - 1] != 0:
            hits += 1000
        if 0 < a[i] <= 20 // a[i] < 15:  # no division by zero: the first part decides
            hits += 10_000
        b[i] = hits


@program(f32(2, -3), zeros(6))
def values_of_conditions(a, b):
    positive = a[0] > 0
    b[0] = positive
    b[1] = a[1] > 0 or positive
    b[2] = (a[0] > 0) & (a[1] > 0) | ~positive
    b[3] = positive * 3 + (a[1] < 0)
    b[4] = -(a[0] * positive)
    b[5] = max(positive, a[1] > 0) + min(positive, a[1] > 0) * 10


@program(i32(0, 0, 1, 2), zeros(4))
def tuples_compare(a, b):
    pair = (a[0], a[1])
    if pair == (0, 0):
        b[0] = 1.0
    if (a[2], a[3]) != (1, 2):
        b[1] = 1.0
    b[2] = (a[2], 5) == (1, 5)
    first, *rest = (a[1], a[2], a[3])
    b[3] = first + rest[0] + rest[-1]


@program(f32(4, 1), zeros(3))
def named_tuples_are_carried(a, b):
    p = Point(a[0], a[1])
    for _ in range(3):
        if p.x > p.y:
            p = Point(p.x / 2, p.y + 1)
    b[0], b[1] = p.x, p.y
    b[2] = -0.0 if p.x > 100 else 0.0


@program(f32(1, -1), zeros(2))
def minus_zero_is_kept(a, b):
    for i in range(2):
        zero = 0.0
        if a[i] < 0:
            zero = -0.0
        b[i] = zero


def put(out, at, value):
    out[at] = value


@program(f32(1, -1), zeros(4))
def helpers_with_effects_in_conditions(a, b):
    for i in range(2):
        put(b, i, 5.0) if a[i] > 0 else put(b, i, 7.0)
        a[i] > 0 and put(b, i + 2, 3.0)


def next_slot(counter):
    counter[0] += 1
    return counter[0] - 1


@program(i32(0), zeros(3))
def an_index_is_evaluated_once(counter, b):
    b[next_slot(counter)] += 1.0
    b[next_slot(counter)] += 2.0
    b[2] = counter[0]


# ---- functions and compile-time values ----


def scaled(x, factor=2.0, *, offset=SCALE, also=None):
    result = x * factor + offset
    return result if also is None else result + also(x)


@program(f32(1, 2), zeros(6))
def helper_functions(a, b):
    bias = 10.0

    def biased(x, y=bias):
        return x + y + bias

    bias = 20.0  # seen by the body, as in Python; the default was made before
    b[0] = scaled(a[0])
    b[1] = scaled(a[1], offset=0, factor=3)
    b[2] = scaled(a[0], also=lambda x: x * 100)
    b[3] = biased(a[0]) + scaled(4.0, also=lambda x: x + 1)
    b[4] = (lambda x, y: x - y)(*(a[1], a[0]))
    b[5] = twice(a[0]) + twice(3)


def make_twice(times: int = 2) -> Any:
    def doubled(function: Any) -> Any:
        def wrapper(*args: Any) -> Any:
            return times * function(*args)

        return wrapper

    return doubled


@make_twice()
def twice(x):
    return x + 1


@program(zeros(4))
def recursion_at_compile_time(b):
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    b[0] = factorial(5)
    b[1] = power(b[0], 3)
    adders = [lambda x, k=k: x + k for k in range(3)]
    late = [lambda x: x + k for k in range(3)]  # noqa: B023
    b[2], b[3] = adders[0](b[0]), late[0](b[0])


@program(f32(*range(8)), zeros(8))
def compile_time_data(a, b):
    taps = [w * 2 for w in CONFIG.taps if w > 0.1]
    table = {"first": 1.0, "second": CONFIG.scale}
    rows = {"x": a[3], "y": a[4]}
    for k, (w, name) in enumerate(zip(taps[:2], table, strict=True)):
        b[k] = a[k] * w + table[name]
    values = []
    for k in fe.range_constexpr(2, 5):
        values.append(a[k] * SCALE)
    values[1] = values[0] + values[-1]
    b[2], b[3], b[4] = values
    b[4] += rows["x"] * rows.get("y")
    b[5] = max(values) + min(*values, 3.0) + len(values) + len(a) + COUNT
    b[6] = len(f"{CONFIG.block:04d}") + {x: x * x for x in (1, 2)}[2]
    for i in range(COUNT):
        b[7] += i if CONFIG.block == 32 else 100


@program(i32(1, -7, 100), zeros(3, dtype=np.int32), zeros(3, dtype=np.int32))
def shifts_and_powers(a, b, c):
    for i in range(a.shape[0]):
        b[i] = (a[i] << 3) ^ (a[i] >> 1) | 1
        c[i] = a[i] ** 3 - abs(a[i]) % 7 + ~a[i] // 2


@program(zeros(3, dtype=np.int64))
def wide_ranges(out):
    for i in range(2**40, 2**40 + 3):
        out[0] += i
    for i in range(np.int64(2**40), np.int64(2**40 + 9), 4):
        out[1] = i
    for i in range(5, -(2**35), -(2**34)):
        out[2] += i


@pytest.mark.parametrize("each", PROGRAMS, ids=lambda p: p[0].__name__)
def test_program(each: Program) -> None:
    run_all_ways(*each, tolerance=1e-6)

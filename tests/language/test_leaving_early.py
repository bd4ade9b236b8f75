"""`return`, `break`, `continue` and the `else` of loops: compiled, interpreted, in plain Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import text, vector
from plain_python import Program, collect, f32, i32, zeros

import ferrule as fe
from ferrule import specs

PROGRAMS: list[Program] = []
program = collect(PROGRAMS)


class Found(NamedTuple):
    where: int
    what: float


# ---- loops that end early ----


@program(i32(3, 8, 4, 4, 9), zeros(8, dtype=np.int32), 4)
def first_of_a_value(a, out, wanted: fe.Int32):
    place = i = -1
    for i in range(a.shape[0]):
        if a[i] == wanted:
            place = i
            break
        out[1] += a[i]
    out[0] = place
    out[2] = i


@program(i32(*range(20)), zeros(3, dtype=np.int32))
def some_iterations_are_skipped(a, out):
    total, seen, x = 0, 0, 0
    for x in range(a.shape[0]):
        if a[x] % 2 == 0:
            continue
        seen += 1
        if a[x] % 3 == 0:
            continue
        total += a[x]
    out[0], out[1], out[2] = total, seen, x


@program(zeros(4, dtype=np.int64), 10, -3, 4)
def ranges_broken_off(out, start: fe.Int32, step: fe.Int32, limit: fe.Int32):
    i = 0
    for i in range(start, -9, step):
        out[0] += i
        if i < limit:
            break
    out[1] = i
    for j in range(2**62, -(2**62), -(2**60)):
        if j < limit:
            break
        out[2] += 1
    for k in range(5, 5 + limit, 2):
        if k > 100:
            break
        out[3] = out[3] * 10 + k


@program(zeros(2, dtype=np.int64))
def ends_of_the_integers(out):
    for i in range(2**63 - 3, 2**63 - 1):
        if i == 0:
            break
        out[0] += i - 2**62
    for i in range(-(2**63), 2**63 - 1, 2**62):
        if i > 2**62:
            break
        out[1] += 1


@program(i32(7, 1, 5), zeros(4, dtype=np.int32))
def while_true_ends_with_break(a, out):
    n = a[0]
    while True:
        n -= 2
        if n < 0:
            break
        out[0] += n
        if n == 3:
            continue
        out[1] += 1
    out[2] = n
    while n < 100:
        n += 7
        if n % 5 == 0:
            break
    out[3] = n


@program(i32(2, 3, 5, 0, 7), zeros(3, dtype=np.int32))
def a_test_does_not_run_after_a_break(a, out):
    i = 0
    while a[i] > 0:
        i += 1
        if i == a.shape[0]:
            break
        out[0] += 100 // a[i - 1]
    out[1] = i
    i = 4
    while a[i] > 0:  # would read behind the end
        i += 1
        if i == a.shape[0]:
            break
    out[2] = i


@program(i32(4, 0, 6, 1, 9, 2), zeros(4, dtype=np.int32))
def nested_loops_break_one_level(a, out):
    n = a.shape[0]
    i = j = 0
    for i in range(n):
        if a[i] == 0:
            continue
        for j in range(n):
            if j == i:
                continue
            if a[j] == 1:
                break
            out[0] += a[i] * a[j]
        else:
            out[1] += 1
        if a[i] > 8:
            break
        out[2] += j
    out[3] = i


@program(i32(1, 2, 3), i32(1, 5, 3), zeros(4, dtype=np.int32))
def the_else_of_loops(a, b, out):
    for i in range(a.shape[0]):
        if a[i] > 5:
            break
    else:
        out[0] = 1
    for i in range(b.shape[0]):
        if b[i] >= 5:
            break
    else:
        out[0] = 100
    n = 3
    while n > 0:
        n -= 1
    else:
        out[1] = n + 5
    for x in (1, 2, 3):
        if b[0] == x:
            break
    else:
        out[2] = 7
    for x in (4, 5):
        if b[0] == x:
            break
    else:
        out[3] = 9


@program(i32(0, 0, 2, 5), zeros(4, dtype=np.int32))
def unrolled_loops_break(a, out):
    for k in fe.range_constexpr(4):
        if a[k] > 4:
            break
        if a[k] == 0:
            continue
        out[k] = k + 1
    for k in (0, 1, 2, 3):
        out[3] += 10
        if k == 2:
            break
    found = 0
    for k, weight in enumerate((1, 10, 100)):
        if a[k] == 2:
            found = weight
            break
    out[0] = found + k


@program(i32(3, 1, 2), f32(0.5, 1.5, 2.5), zeros(3))
def tuples_are_carried_out_of_a_loop(a, b, out):
    best = Found(-1, 0.0)
    for i in range(a.shape[0]):
        if a[i] == 2:
            best = Found(i, b[i])
            break
        best = Found(best.where, best.what + 1.0)
    out[0], out[1] = best.where, best.what


# ---- functions that return early ----


def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


def position(a, wanted):
    for i in range(a.shape[0]):
        if a[i] == wanted:
            return i
    return -1


def position_of_pair(a, total):
    for i in range(a.shape[0]):
        for j in range(i):
            if a[i] + a[j] == total:
                return i, j
            if a[j] < 0:
                break
    return -1, -1


def forever(n):
    while True:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        if n == 1:
            return n
        if n == 4:
            return 10 * n


def kind_of(x):
    if x > 0:
        if x > 10:
            return 2
        if x == 5:
            return 7
    elif x == 0:
        return 0
    else:
        x = -x
    return x + 20


def store_unless(out, i, x):
    if x < 0:
        return
    out[i] = x


@program(i32(-4, 0, 5, 7, 12), zeros(5, dtype=np.int32), zeros(5, dtype=np.int32))
def helpers_return_early(a, b, c):
    for i in range(a.shape[0]):
        b[i] = clamp(a[i], -1, 6) * 100 + kind_of(a[i])
        store_unless(c, i, a[i] - 5)


@program(i32(4, 8, -1, 6, 2), zeros(7, dtype=np.int32))
def helpers_return_from_loops(a, out):
    out[0] = position(a, 6)
    out[1] = position(a, 5)
    out[2], out[3] = position_of_pair(a, 12)
    out[4], _ = position_of_pair(a, 100)
    out[5] = forever(6)
    out[6] = forever(a[1])


@program(i32(1, 0), zeros(2, dtype=np.int32))
def the_host_function_returns_early(a, out):
    if a[0] == 0:
        return
    out[0] = 1
    for i in range(a.shape[0]):
        if a[i] == 0:
            return
        out[0] += 1
    out[1] = 1


@program(i32(0, 3), zeros(2, dtype=np.int32))
def both_sides_return(a, out):
    if a[0] > 0:
        out[0] = 1
        return
    else:
        out[0] = 2
        if a[1] == 3:
            out[1] = 3
            return
        out[1] = 4
    out[0] = 5


@program(i32(5, 6), zeros(2))
def a_name_may_be_another_thing_where_nobody_reads_it(a, out):
    x = a[0]
    for i in range(2):
        if a[i] == 6:
            x = "found"
            out[1] = len(x)
            break
        y = 1 if i == 0 else 2
        out[0] += y
    t = 1
    if a[0] > 3:
        t = 0.5 + a[0]
        out[0] += t
    for i in range(2):
        t = (i, i + 1)
        out[1] += t[1]


@program(np.arange(12, dtype=np.float64).reshape(3, 4), zeros(4, dtype=np.float64))
def numbers_take_the_type_that_inner_code_gives_them(a, out):
    total, largest, count, pair = 0, 0, 0, (0, 0.0)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 9:
                break
            if a[i, j] < 0.5:
                largest = -1
                continue
            total += a[i, j] / 3
            if a[i, j] > largest:
                largest = a[i, j]
                pair = (i, a[i, j] / 7)
            count += 1
    out[0], out[1], out[2] = total, largest, count
    out[3] = pair[0] + pair[1]


@program(i32(4, 7), zeros(3, dtype=np.int32))
def views_behind_an_early_return(a, out):
    for k in (0, 1):
        if a[k] > 5:
            return
        whole = a
        out[k] = whole[k]
    out[2] = 3


@fe.kernel
def guarded(a, out):
    i = fe.arch.block_idx()[0] * 8 + fe.arch.thread_idx()[0]
    if i >= a.shape[0]:
        return
    if a[i] < 0:
        out[i] = -1
        return
    total = 0
    for j in range(a.shape[0]):
        if a[j] < 0:
            continue
        total += a[j]
        if total > 20:
            break
    else:
        total = -total
    for k in (0, 1):
        if a[k] == i:
            return
    out[i] = total + clamp(a[i], 1, 3)


@program(i32(*range(-3, 13)), zeros(16, dtype=np.int32))
def threads_return_early(a, out):
    guarded(a, out).launch(grid=3, block=8)
    for n in range(3, 6):
        if n == 4:
            continue
        guarded(a, out).launch(grid=n, block=8)


@pytest.mark.parametrize("each", PROGRAMS, ids=lambda p: p[0].__name__)
def test_program(each: Program) -> None:
    run_all_ways(*each)


@fe.kernel
def returning_guard(a, out):
    i = fe.arch.thread_idx()[0]
    if i >= a.shape[0]:
        return
    out[i] = a[i]


@fe.kernel
def nesting_guard(a, out):
    i = fe.arch.thread_idx()[0]
    if i >= a.shape[0]:
        pass
    else:
        out[i] = a[i]


def test_an_early_return_is_as_good_as_a_guard_around_the_rest() -> None:
    def returning(a, out):
        returning_guard(a, out).launch(grid=1, block=32)

    def nesting(a, out):
        nesting_guard(a, out).launch(grid=1, block=32)

    ours, theirs = (text(f, vector(), vector()) for f in (returning, nesting))
    assert ours.replace("returning", "nesting") == theirs


def test_a_bound_that_is_read_again_does_not_hide_the_end() -> None:
    """LLVM 22.1 takes the loop's own test out of such a loop, if it can see it."""

    @fe.jit
    def asserted(a: fe.Tensor, limit: fe.Tensor, out: fe.Tensor, n: fe.Int64, k: fe.Int64):
        found = 0
        for i in range(n):
            assert i < limit[0]
            out[i] = 7
            if a[i] == k:
                break
            found += 1
        return found

    @fe.jit
    def left(a: fe.Tensor, limit: fe.Tensor, out: fe.Tensor, n: fe.Int64, k: fe.Int64):
        found = 0
        for i in range(n):
            if i >= limit[0]:
                break
            out[i] = 7
            if a[i] == k:
                break
            found += 1
        return found

    @fe.jit
    def counted(a: fe.Tensor, limit: fe.Tensor, out: fe.Tensor, n: fe.Int64, k: fe.Int64):
        i = fe.Int64(0)
        while i < n:
            if i >= limit[0]:
                raise ValueError("too far")
            out[i] = 7
            if a[i] == k:
                break
            i += 1
        return i

    @fe.kernel
    def alone(a: fe.Tensor, limit: fe.Tensor, out: fe.Tensor, n: fe.Int64, k: fe.Int64):
        for i in range(n):
            if i >= limit[0]:
                return
            out[i] = 7
            if a[i] == k:
                break

    @fe.jit
    def launched(a: fe.Tensor, limit: fe.Tensor, out: fe.Tensor, n: fe.Int64, k: fe.Int64):
        alone(a, limit, out, n, k).launch(grid=1, block=1)
        return n

    for program in (asserted, left, counted, launched):
        for options in ("--target cpu", "--target cpu --enable-checks"):
            a, out = np.arange(64), np.zeros(12, np.int64)
            limit = np.array([50])
            function = fe.compile(program, a, limit, out, fe.Int64, fe.Int64, options=options)
            assert function(a, limit, out, 3, 6) == 3
            assert out.tolist() == [7] * 3 + [0] * 9, program


@pytest.mark.parametrize("way", ["items", "index", "length"])
def test_loops_over_arrays_that_end_early(way: str) -> None:
    spec = specs.Array("x", specs.Scalar("item", "int64"))

    def items(x: Any, k: Any) -> Any:
        for v in x:
            if v == k:
                return True
        return False

    def index(x: Any, k: Any) -> Any:
        found = -1
        for i in range(len(x)):
            if x[i] == k:
                found = i
                break
        return found

    def length(x: Any, k: Any) -> Any:
        found = 0
        for v in x:
            if v == k:
                break
            found += v
        return found

    python = {"items": items, "index": index, "length": length}[way]
    function = fe.compile(fe.jit(python), spec, fe.Int64, options="--target cpu")
    for values in ([], [5], [5, 6], [5, 6, 7, 8]):
        for k in (5, 7, 9):
            assert function(values, k) == python(values, k), (values, k)

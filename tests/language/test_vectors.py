"""Vectors: what threads read, compute and write at once; compiled, interpreted, and by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from lowered import lower, vector
from parts import ramp, run

import ferrule as fe

ADD, MUL, MAX, MIN = fe.ReductionOp


def of_part(compute: Callable[[Any, Any], Any], width: int = 4) -> Callable[..., None]:
    """A host function: threads compute with parts of a and b, and write to c."""

    @fe.kernel
    def device(a, b, c):
        i, _, _ = fe.arch.thread_idx()
        x = fe.zipped_divide(a, (width,))[None, i].load()
        y = fe.zipped_divide(b, (width,))[None, i].load()
        fe.zipped_divide(c, (width,))[None, i].store(compute(x, y))

    def host(a, b, c):
        device(a, b, c).launch(grid=1, block=c.shape[0] // width)

    return host


def computed(
    compute: Callable[[Any, Any], Any], dtype: Any = np.float32, result: Any = np.float32
) -> tuple[Any, Any, Any]:
    """Both operands and the result of a computation with parts of two arrays."""
    a, b = ramp(16, dtype=dtype), ramp(16, dtype=dtype)[::-1].copy()
    *_, c = run(of_part(compute), a, b, np.zeros(16, result))
    return a, b, c


# ---- operators ----


def arithmetic(x, y):
    return (x + y) * (x - y) / x


def integers(x, y):
    return (x // y) + (x % y) + ((x & y) | (x ^ 3)) + (x << 2) - (x >> 1)


def numbers_beside_it(x, y):
    return 2.0 * x - y[0] + 1


def chosen(x, y):
    return fe.where((x < y) & (x != 3.0), x, -y)


def compared(x, y):
    return (x == y) | (y == x + 1)


def functions(x, y):
    return fe.math.sqrt(max(x, y)) + abs(-x) + min(x, 3.0) + fe.math.fma(x, y, 1.0)


def powers(x, y):
    return x**3 + -y + ~x


def converted(x, y):
    return (x / 3).to(fe.Int32) + fe.Int32(y * 0)


def wrapped(x, y):
    return x * 100 + y


def filled(x, y):
    ones = fe.ones_like(x) + fe.zeros_like(y) + fe.full_like(x, y[1])
    return ones + fe.full((4,), 2, fe.Float32)


def chosen_from_numbers(x, y):
    return fe.where(x[0] > 2.0, x, fe.where(x > 1.0, 1, 0.5))


def heads(a: Any) -> Any:
    """The first of each four, four times."""
    return np.repeat(a[::4], 4)


HALF, ONE, THREE = np.float32(0.5), np.float32(1), np.float32(3)


def smaller(a: Any) -> Any:
    return np.minimum(a, THREE)


OPERATORS: list[tuple[Any, Callable[[Any, Any], Any], Any, Any]] = [
    (arithmetic, lambda a, b: (a + b) * (a - b) / a, "f4", "f4"),
    (
        integers,
        lambda a, b: a // b + a % b + (a & b | a ^ 3) + (a << 2) - (a >> 1),
        "i4",
        "i4",
    ),
    (numbers_beside_it, lambda a, b: 2 * a - heads(b) + 1, "f4", "f4"),
    (chosen, lambda a, b: np.where((a < b) & (a != 3), a, -b), "f4", "f4"),
    (compared, lambda a, b: (a == b) | (b == a + 1), "i4", "?"),
    (
        functions,
        lambda a, b: np.sqrt(np.maximum(a, b)) + a + smaller(a) + (a * b + 1),
        "f4",
        "f4",
    ),
    (powers, lambda a, b: a**3 - b + ~a, "i4", "i4"),
    (converted, lambda a, b: (a / THREE).astype("i4"), "f4", "i4"),
    (wrapped, lambda a, b: (a.astype(int) * 100 + b).astype("i1"), "i1", "i1"),
    (filled, lambda a, b: 3 + heads(b[1:]), "f4", "f4"),
    (
        chosen_from_numbers,
        lambda a, b: np.where(heads(a) > 2, a, np.where(a > 1, ONE, HALF)),
        "f4",
        "f4",
    ),
]


@pytest.mark.parametrize(
    ("compute", "wanted", "dtype", "result"), OPERATORS, ids=lambda x: getattr(x, "__name__", "")
)
def test_operators_are_element_by_element(
    compute: Any, wanted: Callable[[Any, Any], Any], dtype: Any, result: Any
) -> None:
    a, b, c = computed(compute, dtype, result)
    np.testing.assert_array_equal(c, wanted(a, b))


def test_dtypes_are_those_of_scalars() -> None:
    seen = []

    def compute(x, y):
        seen.append((x + 1).dtype)
        seen.append((x + 1.5).dtype)
        seen.append((x + y.to(fe.Int64)).dtype)
        seen.append((x < y).element_type)
        return x

    lower(of_part(compute), *(vector(fe.Int16, symbol) for symbol in "xyz"))
    assert seen == [fe.Int16, fe.Float32, fe.Int64, fe.Boolean]


# ---- parts and reductions ----


def test_elements_are_taken_with_ints() -> None:
    def host(a, out):
        v = a.load()
        assert v.shape == (2, 3)
        out[0] = v[0, 0] + v[1, 2] * 10
        out[1] = v[1]
        out[2] = v[5]
        column = v[None, 1]
        assert column.shape == (2,)
        out[3] = column[0] * 10 + column[1]

    fixed = fe.make_fake_compact_tensor(fe.Float32, (2, 3), stride_order=(1, 0))
    a, out = ramp(2, 3), np.zeros(4, np.float32)
    fe.compile(host, fixed, vector(), options="--target cpu")(a, out)
    # As of a layout, one number counts the elements with the first mode fastest.
    np.testing.assert_array_equal(out, [1 + 60, a[1, 0], a[1, 2], 25])


@pytest.mark.parametrize(
    ("op", "wanted"), [(ADD, 1 + 10), (MUL, 24), (MAX, 4), (MIN, 1)], ids=lambda x: str(x)
)
def test_a_reduction_begins_with_its_initial_value(op: Any, wanted: int) -> None:
    def compute(x, _):
        return fe.full_like(x, x.reduce(op, 1.0, 0))

    *_, c = computed(compute)
    assert c[0] == wanted


def test_a_reduction_goes_from_the_first_to_the_last() -> None:
    def compute(x, y):
        big = fe.full_like(x, 1e8)
        return fe.full_like(x, (x + big - y).reduce(ADD, 0.0, reduction_profile=0))

    a, b, c = computed(compute)
    total = np.float32(0)
    for value in (a[:4] + np.float32(1e8)) - b[:4]:
        total += value
    assert c[0] == total


def test_a_profile_keeps_modes() -> None:
    @fe.kernel
    def device(a, rows, columns):
        tile = fe.local_tile(a, (2, 3), (0, 0)).load()
        row_sums = tile.reduce(ADD, 0.0, (None, 1))
        assert row_sums.shape == (2,)
        for i in fe.range_constexpr(2):
            rows[i] = row_sums[i]
        column_sums = tile.reduce(MAX, 0.0, (1, None))
        for j in fe.range_constexpr(3):
            columns[j] = column_sums[j]

    def host(a, rows, columns):
        device(a, rows, columns).launch(grid=1, block=1)

    a = ramp(2, 3)
    _, rows, columns = run(host, a, np.zeros(2, np.float32), np.zeros(3, np.float32))
    np.testing.assert_array_equal(rows, a.sum(1))
    np.testing.assert_array_equal(columns, a.max(0))


def test_any_and_all() -> None:
    def compute(x, y):
        one = fe.any_(x > 7.0)
        every = fe.all_(x > y)
        return fe.where(one, 1.0, 0.0) + fe.where(every, 2.0, 0.0) + fe.zeros_like(x)

    a, b, c = computed(compute)
    one = (a.reshape(4, 4) > 7).any(1)
    every = (a > b).reshape(4, 4).all(1)
    np.testing.assert_array_equal(c[::4], one * 1.0 + every * 2.0)


def test_sum_and_max_of_a_vector() -> None:
    def compute(x, y):
        return fe.full_like(x, fe.sum(x) + fe.max(y) - fe.min(y) + fe.prod(x))

    a, b, c = computed(compute)
    x, y = a.reshape(4, 4), b.reshape(4, 4)
    np.testing.assert_array_equal(c[::4], x.sum(1) + y.max(1) - y.min(1) + x.prod(1))


# ---- control flow ----


def test_vectors_are_carried_through_loops_and_branches() -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        rows = fe.zipped_divide(a, (1, 4))
        total = fe.full((1, 4), 0.0, fe.Float32)
        for j in range(a.shape[1] // 4):
            part = rows[None, (i, j)].load()
            if part[0] > 5.0:
                total = total + part * 2.0
            else:
                total += part
        k = 0
        while total[0] > 100.0 and k < 3:
            total = total / 2.0
            k += 1
        fe.zipped_divide(c, (1, 4))[None, (i, 0)].store(total)

    def host(a, c):
        device(a, c).launch(grid=1, block=a.shape[0])

    a = ramp(3, 12)
    _, c = run(host, a, np.zeros((3, 4), np.float32))
    parts = a.reshape(3, 3, 4)
    wanted = np.where(parts[:, :, :1] > 5, parts * 2, parts).sum(1)
    for _ in range(3):
        wanted = np.where(wanted[:, :1] > 100, wanted / 2, wanted)
    np.testing.assert_array_equal(c, wanted)


class Pair(NamedTuple):
    x: Any
    y: Any


def swapped(pair: Any, often: Any) -> Any:
    """A helper with a loop that carries vectors in a named tuple, and an early return."""
    for _ in range(often):
        pair = Pair(pair.y, pair.x)
    if often > 2:
        return pair.x - pair.y
    return pair.y - pair.x


@pytest.mark.parametrize("often", [1, 2, 3])
def test_vectors_in_tuples_and_results_of_helpers(often: int) -> None:
    @fe.kernel
    def device(a, b, c, n):
        v = swapped(Pair(a.load(), b.load()), n)
        c.store(v)

    def host(a, b, c, n: fe.Int32):
        device(a, b, c, n).launch(grid=1, block=1)

    fixed = fe.make_fake_compact_tensor(fe.Float32, (4,))
    compiled = fe.compile(host, fixed, fixed, fixed, 1, options="--target cpu")
    a, b, c = ramp(4), ramp(4) * 10, np.zeros(4, np.float32)
    compiled(a, b, c, often)
    np.testing.assert_array_equal(c, {1: a - b, 2: b - a, 3: b - a}[often])


# ---- memory ----


def test_a_vector_is_assigned_to_a_part() -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        c[i, None] = fe.local_tile(a, (4,), (i,)).load() + 1.0

    def host(a, c):
        device(a, c).launch(grid=1, block=c.shape[0])

    rows = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), 4), stride_order=(1, 0))
    a, c = ramp(8), np.zeros((2, 4), np.float32)
    fe.compile(host, vector(), rows, options="--target cpu")(a, c)
    np.testing.assert_array_equal(c, a.reshape(2, 4) + 1)


def test_a_copy_reads_everything_before_it_writes() -> None:
    def shift(a):
        fe.autovec_copy(fe.make_tensor(a.iterator, (4,)), fe.make_tensor(a.iterator + 1, (4,)))

    (a,) = run(shift, ramp(6))
    np.testing.assert_array_equal(a, [1, 1, 2, 3, 4, 6])


def test_a_pointer_that_is_said_to_be_aligned_is_checked() -> None:
    def host(p: fe.Pointer, c):
        c[0] = fe.make_tensor(p, (4,)).load().reduce(ADD, 0.0, 0)

    pointer = fe.make_ptr(fe.Float32, 0, assumed_align=16)
    compiled = fe.compile(host, pointer, vector(), options="--target cpu")
    room, c = ramp(16), np.zeros(1, np.float32)
    first = -room.ctypes.data % 16 // 4
    compiled(room.ctypes.data + first * 4, c)
    assert c[0] == room[first : first + 4].sum()
    with pytest.raises(ValueError, match="expected alignment=16 bytes"):
        compiled(room.ctypes.data + first * 4 + 4, c)


def test_strided_parts_of_any_layout() -> None:
    def host(a, c):
        part = fe.make_tensor(a.iterator, fe.make_layout(((2, 2), 2), stride=((8, 1), 4)))
        v = part.load()
        assert v.shape == ((2, 2), 2)
        for n in fe.range_constexpr(8):
            c[n] = v[n]

    a = ramp(16)
    _, c = run(host, a, np.zeros(8, np.float32))
    np.testing.assert_array_equal(c, a[[0, 8, 1, 9, 4, 12, 5, 13]])


def test_fill_and_store_convert_as_a_store_of_an_element_does() -> None:
    @fe.kernel
    def device(a, c):
        fe.local_tile(c, (4,), (0,)).fill(7)
        fe.local_tile(c, (4,), (1,)).store(fe.local_tile(a, (4,), (0,)).load())

    def host(a, c):
        device(a, c).launch(grid=1, block=1)

    a = ramp(4, dtype=np.int32)
    _, c = run(host, a, np.zeros(8, np.float16))
    np.testing.assert_array_equal(c, [7, 7, 7, 7, 1, 2, 3, 4])


# ---- names of CuTe DSL ----


def test_a_reshaped_vector_has_the_first_mode_fastest() -> None:
    def host(a, out):
        v = fe.make_tensor(a.iterator, fe.make_layout((2, 4), stride=(4, 1))).load()
        fe.make_tensor(out.iterator, fe.make_layout((4, 2), stride=(2, 1))).store(v.reshape((4, 2)))
        w = v.reshape((2, (2, 2)))
        out[8] = w[1, (0, 1)]
        out[9] = v.reshape(8)[5] + v.to_elements()[3] * 100

    a = np.arange(8, dtype=np.float32)
    *_, out = run(host, a, np.zeros(10, np.float32))
    in_order = a.reshape(2, 4).reshape(-1, order="F")
    np.testing.assert_array_equal(out[:8].reshape(4, 2), in_order.reshape(4, 2, order="F"))
    assert out[8] == in_order.reshape(2, 2, 2, order="F")[1, 0, 1]
    assert out[9] == in_order[5] + in_order[3] * 100


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge"]
)
def test_an_operation_is_a_function_of_python(name: str) -> None:
    op = getattr(operator, name)
    a, _, c = computed(lambda x, y: x.apply_op(op, 2.0).to(fe.Float32))
    np.testing.assert_array_equal(c, op(a, np.float32(2)).astype(np.float32))
    a, b, c = computed(lambda x, y: x.apply_op(op, y, flip=True).to(fe.Float32))
    np.testing.assert_allclose(c, op(b, a).astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("name", ["eq", "ne", "and_", "or_", "xor", "lshift", "rshift"])
def test_an_operation_of_integers_is_a_function_of_python(name: str) -> None:
    op = getattr(operator, name)
    a, _, c = computed(lambda x, y: x.apply_op(op, 2).to(fe.Int32), np.int32, np.int32)
    np.testing.assert_array_equal(c, op(a, 2).astype(np.int32))
    a, _, c = computed(lambda x, y: operator.neg(operator.invert(x)), np.int32, np.int32)
    np.testing.assert_array_equal(c, -~a)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda x, y: x.reshape((3, 2)), r"is reshaped to \(3,2\), which has 6 elements"),
        (lambda x, y: x.reshape((2, y[0])), "is known only at the call|known at compile time"),
        (lambda x, y: x.apply_op(3, y), "apply_op got 3"),
        (lambda x, y: x.apply_op(operator.add, y, flip=2), "apply_op got flip=2"),
    ],
)
def test_what_cannot_be_reshaped_or_applied_is_an_error(compute: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        computed(compute)

"""Vectors: what threads read, compute and write at once; compiled, interpreted, and by NumPy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import interpreted, lowered, run_all_ways
from cpu_machine import BASELINE, compile_program
from interpreter import Unwritten, upwards
from lowered import lower, text, vector
from ptxas import ARCHS, assemble

import ferrule as fe

ADD, MUL, MAX, MIN = fe.ReductionOp


def ramp(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape)) + 1).astype(dtype).reshape(shape)


def run(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The arrays after a call, which the interpreter agrees with."""
    done = run_all_ways(function, arguments, plain=False)
    assert done.error is None, done.error
    return done.arrays()


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


# ---- what becomes of it ----


def copy_of_parts(width: int) -> Callable[..., None]:
    """A host function whose threads copy aligned parts."""

    @fe.kernel
    def device(a, c):
        i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
        if i < a.shape[0] // width:
            part = fe.zipped_divide(a, (width,))[None, i].load()
            fe.zipped_divide(c, (width,))[None, i].store(part)

    def host(a, c):
        blocks = (a.shape[0] // width + 127) // 128
        device(a, c).launch(grid=blocks, block=128)

    return host


def aligned(dtype: Any, align: int, divisibility: int = 16) -> fe.specs.FakeTensor:
    size = fe.sym_int(divisibility=divisibility)
    return fe.make_fake_compact_tensor(dtype, (size,), assumed_align=align)


def accesses(function: Callable[..., Any], *examples: Any) -> Counter[str]:
    """How often each instruction that reads or writes global memory stands in the PTX."""
    options = "--target cuda --gpu-arch sm_90a"
    ptx = fe.compile(function, *examples, options=options).inspect_ptx()
    return Counter(re.findall(r"(?:ld|st)\.global\S*", ptx))


@pytest.mark.parametrize(
    ("dtype", "width", "wanted"),
    [
        (fe.Float32, 2, "v2.b32"),
        (fe.Float32, 4, "v4.b32"),
        (fe.Float64, 2, "v2.b64"),
        (fe.Int32, 4, "v4.b32"),
        (fe.Int64, 2, "v2.b64"),
        (fe.BFloat16, 8, "v4.b32"),
        (fe.Float16, 8, "v4.b32"),
        (fe.Uint8, 16, "v4.b32"),
        (fe.Boolean, 16, "v4.b32"),
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_an_aligned_part_is_one_access_on_a_gpu(dtype: Any, width: int, wanted: str) -> None:
    found = accesses(copy_of_parts(width), aligned(dtype, 16), aligned(dtype, 16))
    assert found == {f"ld.global.{wanted}": 1, f"st.global.{wanted}": 1}


def test_parts_of_more_than_16_bytes_are_as_few_accesses_as_can_be() -> None:
    found = accesses(copy_of_parts(16), aligned(fe.Float32, 64), aligned(fe.Float32, 64))
    assert found == {"ld.global.v4.b32": 4, "st.global.v4.b32": 4}


def test_without_alignment_elements_are_read_one_by_one() -> None:
    found = accesses(copy_of_parts(4), aligned(fe.Float32, 4), aligned(fe.Float32, 4))
    assert found == {"ld.global.b32": 4, "st.global.b32": 4}


def test_strides_that_are_known_to_be_divisible_keep_the_alignment_of_rows() -> None:
    @fe.kernel
    def device(a, c):
        i, j = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
        fe.local_tile(c, (1, 4), (i, j)).store(fe.local_tile(a, (1, 4), (i, j)).load())

    def host(a, c):
        device(a, c).launch(grid=a.shape[0], block=a.shape[1] // 4)

    def rows(divisibility: int) -> Any:
        shape = (fe.sym_int(), fe.sym_int(divisibility=divisibility))
        return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)

    assert accesses(host, rows(4), rows(4)) == {"ld.global.v4.b32": 1, "st.global.v4.b32": 1}
    assert "ld.global.v4.b32" not in accesses(host, rows(2), rows(2))


def test_indices_written_by_hand_are_followed_too() -> None:
    @fe.kernel
    def device(a, c):
        i = 4 * (fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0])
        if i < a.shape[0]:
            w, x, y, z = a[i], a[i + 1], a[i + 2], a[i + 3]
            c[i], c[i + 1], c[i + 2], c[i + 3] = z, y, x, w

    def host(a, c):
        device(a, c).launch(grid=(a.shape[0] // 4 + 127) // 128, block=128)

    found = accesses(host, aligned(fe.Float32, 16), aligned(fe.Float32, 16))
    assert found == {"ld.global.v4.b32": 1, "st.global.v4.b32": 1}


@pytest.mark.parametrize("width", [4, 16])
def test_parts_are_vectors_on_the_cpu(width: int) -> None:
    examples = aligned(fe.Float32, 16), aligned(fe.Float32, 16)
    optimised = compile_program(lower(copy_of_parts(width), *examples), BASELINE).optimised
    assert "load <4 x float>" in optimised
    assert "store <4 x float>" in optimised


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_aligned_parts_are_right(width: int) -> None:
    examples = aligned(fe.Float32, 16), aligned(fe.Float32, 16)
    compiled = fe.compile(copy_of_parts(width), *examples, options="--target cpu")
    room = np.zeros((2, 1040), np.float32)
    first = -room.ctypes.data % 64 // 4
    a, c = room[:, first : first + 1008]
    a[:] = np.arange(1, 1009)
    compiled(a, c)
    np.testing.assert_array_equal(c, a)
    assert not room[1, :first].any()
    assert not room[1, first + 1008 :].any()


# ---- fragments ----


def test_a_fragment_holds_what_a_thread_writes_to_it() -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        own = fe.make_fragment(4, fe.Float32)
        own.fill(0.0)
        for j in range(a.shape[1]):
            own[j % 4] += a[i, j]
        fe.local_tile(c, (4,), (i,)).store(own.load())

    def host(a, c):
        device(a, c).launch(grid=1, block=a.shape[0])

    a = ramp(40, 8)
    _, c = run(host, a, np.zeros(160, np.float32))
    np.testing.assert_array_equal(c.reshape(40, 4), a.reshape(40, 2, 4).sum(1))


def test_fragments_have_layouts() -> None:
    seen = []

    def host(a, c):
        for wanted in (6, (2, 3), fe.make_layout((2, 3), stride=(4, 1)), ((2, 2), 3)):
            fragment = fe.make_rmem_tensor(wanted, fe.Int16)
            seen.append(str(fragment.layout))
        like = fe.make_fragment_like(
            fe.make_tensor(a.iterator, fe.make_layout((2, 3), stride=(9, 2)))
        )
        seen.append((str(like.layout), like.element_type))
        other = fe.make_fragment_like(like.layout, fe.Float64)
        seen.append((str(other.layout), other.element_type))
        other.fill(1.5)
        c[0] = other[1, 2]

    lower(host, vector(), vector())
    assert seen == [
        "(6):(1)",
        "(2,3):(1,2)",
        "(2,3):(4,1)",
        "((2,2),3):((1,2),4)",
        ("(2,3):(3,1)", fe.Float32),
        ("(2,3):(3,1)", fe.Float64),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float16, np.float64])
def test_fragments_of_other_dtypes(dtype: Any) -> None:
    @fe.kernel
    def device(a, c):
        i, _, _ = fe.arch.thread_idx()
        own = fe.make_fragment_like(fe.local_tile(a, (3,), (i,)))
        fe.autovec_copy(fe.local_tile(a, (3,), (i,)), own)
        for j in range(3):
            c[i * 3 + j] = own[2 - j]

    def host(a, c):
        device(a, c).launch(grid=1, block=a.shape[0] // 3)

    a = (ramp(12) % 5).astype(dtype)
    _, c = run(host, a, np.zeros(12, dtype))
    np.testing.assert_array_equal(c, a.reshape(4, 3)[:, ::-1].ravel())


def test_fragments_can_be_cut_viewed_and_pointed_to() -> None:
    def host(c):
        own = fe.make_fragment((2, 4), fe.Int32)
        own.fill(0)
        own[1, None].store(fe.full_like(own[0, None].load(), 5))
        row = own[0, None]
        row[2] = 7
        own.iterator[0] = 9
        half = own.recast(fe.Int16)
        flat = fe.coalesce(own)
        for n in range(8):
            c[n] = flat[n]
        c[8] = half[2, 1] + 100

    (c,) = run(host, np.zeros(9, np.int32))
    np.testing.assert_array_equal(c, [9, 5, 0, 5, 7, 5, 0, 5, 105])


def test_a_fragment_with_static_indices_is_in_registers() -> None:
    @fe.kernel
    def device(a, c):
        own = fe.make_fragment(4, fe.Float32)
        own.fill(1.0)
        i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            for k in fe.range_constexpr(4):
                own[k] = own[k] + a[i] * float(k)
            c[i] = own.load().reduce(ADD, 0.0, 0)

    def host(a, c):
        device(a, c).launch(grid=(a.shape[0] + 63) // 64, block=64)

    optimised = compile_program(lower(host, vector(), vector()), BASELINE).optimised
    assert "fadd <4 x float>" in optimised
    assert "alloca" not in optimised
    assert "masked" not in optimised
    options = "--target cuda --gpu-arch sm_90a"
    ptx = fe.compile(host, vector(), vector(), options=options).inspect_ptx()
    assert ".local" not in ptx
    a = ramp(100)
    _, c = run(host, a, np.zeros(100, np.float32))
    np.testing.assert_array_equal(c, a * 6 + 4)


def test_threads_of_a_vectorised_loop_do_not_share_a_fragment() -> None:
    @fe.kernel
    def device(a, k, c):
        i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            own = fe.make_fragment(2, fe.Float32)
            own[0] = 0.0
            own[1] = 0.0
            own[k[i]] = a[i]
            c[i] = own[0] - own[1]

    def host(a, k, c):
        device(a, k, c).launch(grid=(a.shape[0] + 63) // 64, block=64)

    a, k = ramp(200), np.arange(200, dtype=np.int32) % 2
    *_, c = run(host, a, k, np.zeros(200, np.float32))
    np.testing.assert_array_equal(c, np.where(k, -a, a))


def test_what_was_not_written_is_undefined_to_the_interpreter() -> None:
    def host(c):
        own = fe.make_fragment(2, fe.Float32)
        own[0] = 1.0
        c[0] = own[1]

    with pytest.raises(Unwritten, match="byte 4"):
        interpreted(lowered(host, vector()), upwards, np.zeros(1, np.float32))


def test_a_fragment_begins_anew_in_every_iteration() -> None:
    def host(n: fe.Int32, c):
        for i in range(n):
            own = fe.make_fragment(2, fe.Int32)
            own.fill(0)
            own[i % 2] = i
            c[i] = own[0] * 10 + own[1]

    (c,) = run(host, 4, np.zeros(4, np.int32))
    np.testing.assert_array_equal(c, [0, 1, 20, 3])


def test_the_text_of_a_fragment() -> None:
    def host(c):
        own = fe.make_fragment((2, 2), fe.Float32)
        own.fill(0.0)
        c[0] = own[1, 1]

    printed = text(host, vector())
    assert "%fragment = fragment : tensor<[2, 2]:[1, 2], float32, align 16, rmem>" in printed


# ---- kernels as people write them ----


@fe.kernel
def vectorised_add(ga, gb, gc):
    """Four elements a thread, as a CuTe user writes it."""
    tidx, _, _ = fe.arch.thread_idx()
    bidx, _, _ = fe.arch.block_idx()
    bdim, _, _ = fe.arch.block_dim()
    thread = bidx * bdim + tidx
    _, (m, n) = ga.shape
    if thread < m * n:
        ni, mi = thread % n, thread // n
        a = ga[(None, (mi, ni))].load()
        b = gb[(None, (mi, ni))].load()
        gc[(None, (mi, ni))] = a + b


@fe.jit
def vectorised(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    ga, gb, gc = (fe.zipped_divide(t, (1, 4)) for t in (a, b, c))
    vectorised_add(ga, gb, gc).launch(
        grid=((fe.size(gc, mode=[1]) + 255) // 256, 1, 1), block=(256, 1, 1)
    )


@fe.kernel
def row_sums_kernel(a, out):
    """A row a thread; the partial sums are in a fragment."""
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        partial = fe.make_fragment(4, fe.Float32)
        partial.fill(0.0)
        for j in range(a.shape[1] // 4):
            partial.store(partial.load() + fe.local_tile(a, (1, 4), (i, j)).load()[0, None])
        out[i] = partial.load().reduce(ADD, 0.0, 0)


@fe.jit
def row_sums(a: fe.Tensor, out: fe.Tensor):
    row_sums_kernel(a, out).launch(grid=(a.shape[0] + 63) // 64, block=64)


def rows_of_four() -> fe.specs.FakeTensor:
    shape = (fe.sym_int(symbol="m"), fe.sym_int(symbol="n", divisibility=4))
    return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)


def test_a_vectorised_addition() -> None:
    a, b = ramp(5, 12), ramp(5, 12) * 2
    *_, c = run(vectorised, a, b, np.zeros((5, 12), np.float32))
    np.testing.assert_array_equal(c, a + b)
    found = accesses(vectorised, rows_of_four(), rows_of_four(), rows_of_four())
    assert found == {"ld.global.v4.b32": 2, "st.global.v4.b32": 1}


def test_row_sums_with_a_fragment() -> None:
    a = ramp(70, 8)
    _, out = run(row_sums, a, np.zeros(70, np.float32))
    np.testing.assert_array_equal(out, a.sum(1))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ARCHS)
def test_their_ptx_assembles(arch: str, tmp_path: Path) -> None:
    options = f"--target cuda --gpu-arch {arch}"
    examples = rows_of_four(), rows_of_four(), rows_of_four()
    assemble(fe.compile(vectorised, *examples, options=options).inspect_ptx(), arch, tmp_path)
    compiled = fe.compile(row_sums, rows_of_four(), vector(symbol="k"), options=options)
    assemble(compiled.inspect_ptx(), arch, tmp_path)


# ---- errors ----


def fragment_of_a_size(a):
    fe.make_fragment(a.shape[0], fe.Float32)


def fragment_of_nothing(a):
    fe.make_fragment(0, fe.Float32)


def fragment_of_much(a):
    fe.make_fragment((1000, 1000), fe.Float32)


def fragment_of_fp8(a):
    fe.make_fragment(4, fe.Float8E4M3FN)


def fragment_without_dtype(a):
    fe.make_fragment(4)


def fragments_of_much(a):
    for _ in fe.range_constexpr(5):
        fe.make_fragment(15000, fe.Float32).fill


def part_that_is_added_to(a):
    four(a)[None] += four(a).load()


def load_of_a_size(a):
    a.load()


def load_of_much(a):
    fe.make_tensor(a.iterator, (64, 64)).load()


def shapes_that_differ(a):
    four(a).load() + fe.make_tensor(a.iterator, (2,)).load()


def store_of_another_shape(a):
    four(a).store(fe.make_tensor(a.iterator, (2,)).load())


def store_of_another_dtype(a):
    fe.make_fragment(4, fe.Int32).store(four(a).load())


def store_of_a_number(a):
    four(a).store(1.0)


def index_out_of_range(a):
    four(a).load()[4]


def index_at_run_time(a):
    for i in range(4):
        a[i] = four(a).load()[i]


def vector_assigned_to(a):
    v = four(a).load()
    v[0] = 1.0


def vector_as_condition(a):
    if four(a).load() > 0.0:
        a[0] = 1.0


def vector_iterated(a):
    for x in four(a).load():
        a[0] = x


def vector_for_an_element(a):
    a[0] = four(a).load()


def vector_changes_shape(a):
    v = four(a).load()
    for _ in range(a.shape[0]):
        v = v[None] if False else fe.make_tensor(a.iterator, (2,)).load()
    a[0] = v[0]


def vector_with_a_whole_tensor(a):
    a[:] = four(a).load() + a[:]


def reduction_by_a_name(a):
    a[0] = four(a).load().reduce("add", 0.0, 0)


def copy_of_another_dtype(a):
    fe.autovec_copy(four(a), fe.make_fragment(4, fe.Int32))


def fragment_for_a_kernel(a):
    taking_kernel(fe.make_fragment(4, fe.Float32)).launch(grid=1, block=1)


def whole_fragment(a):
    own = fe.make_fragment(4, fe.Float32)
    own[:] = 1.0


def part_filled_by_assignment(a):
    assigning_kernel(a).launch(grid=1, block=1)


def four(a):
    return fe.make_tensor(a.iterator, (4,))


@fe.kernel
def taking_kernel(a):
    a[0] = 1.0


@fe.kernel
def assigning_kernel(a):
    a[None] = 1.0


WRONG = [
    (fragment_of_a_size, "whose sizes are known only at the call"),
    (fragment_of_nothing, "a fragment of shape 0 has 0 bytes"),
    (fragment_of_much, "has 4000000 bytes"),
    (fragment_of_fp8, "float8_e4m3fn cannot be read or written yet"),
    (fragment_without_dtype, "expected the arguments layout_or_shape, dtype"),
    (fragments_of_much, "have more than 262144 bytes altogether"),
    (part_that_is_added_to, "a vector is computed with the tensor"),
    (load_of_a_size, "a has the shape (n), which is known only at the call"),
    (load_of_much, "has 4096 elements"),
    (shapes_that_differ, "the shapes of two vectors differ: (4) and (2)"),
    (store_of_another_shape, "a vector of shape (2) is stored to a.iterator, whose shape is (4)"),
    (store_of_another_dtype, "a float32 is stored to fragment, whose elements are int32"),
    (store_of_a_number, "1.0 (float) is stored to all of a.iterator"),
    (index_out_of_range, "the index 4 is outside of a vector of float32, of shape (4)"),
    (index_at_run_time, "is indexed with a run-time int32"),
    (vector_assigned_to, "a vector of float32, of shape (4) has no elements to assign to"),
    (vector_as_condition, "a vector of bool, of shape (4) has no truth value"),
    (vector_iterated, "a vector of float32, of shape (4) cannot be iterated"),
    (vector_for_an_element, "a vector of shape (4) is stored to a[0], whose shape is ()"),
    (vector_changes_shape, "'v' is a vector of float32, of shape (4) before this loop"),
    (vector_with_a_whole_tensor, "a vector is computed with a whole-tensor expression of float32"),
    (reduction_by_a_name, "reduce got 'add' (str)"),
    (copy_of_another_dtype, "autovec_copy copies float32 to fragment, whose elements are int32"),
    (fragment_for_a_kernel, "a kernel takes a fragment of the host function for 'a'"),
    (whole_fragment, "fragment is in registers"),
    (part_filled_by_assignment, "a part of a is assigned to in a kernel"),
]


@pytest.mark.parametrize(("function", "message"), WRONG, ids=lambda x: getattr(x, "__name__", ""))
def test_wrong_programs(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(fe.CompileError) as caught:
        lower(function, vector())
    diagnostic = caught.value.diagnostic
    assert message in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.hint or diagnostic.expected


def test_host_code_does_not_reach_the_memory_of_a_gpu() -> None:
    def host(a):
        a[0, None].load()

    rows = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), 4), stride_order=(1, 0))
    with pytest.raises(fe.CompileError, match="is on a GPU"):
        fe.compile(host, rows, options="--target cuda --gpu-arch sm_90a")


def test_outside_of_a_compiled_function_they_say_so() -> None:
    for call in (lambda: fe.make_fragment(4, fe.Float32), lambda: fe.where(True, 1, 2)):
        with pytest.raises(RuntimeError, match="only in a function that is compiled"):
            call()

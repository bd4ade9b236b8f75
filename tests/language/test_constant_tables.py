"""Lists and arrays from outside, indexed at run time: constant memory, with the values that they
have when a function is compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import run_all_ways
from emulated_alone import run_alone
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered import lower, text, vector

import ferrule as fe
from ferrule.language.ir import ops
from ferrule.language.ir.rules.verifier import VerifierError, verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import Int32

CPU = "--target cpu"


class Point(NamedTuple):
    at: int
    weight: float


PRIMES = [2, 3, 5, 7]
HALVES = (0.5, 1.5, -2.5, 3.5)
MATRIX = [[1, 2, 3], [4, 5, 6]]
POINTS = [Point(1, 0.5), Point(3, 0.25)]
ROWS = [(1, True, 2.0), (2, False, 4.0)]
FLAGS = [True, False, True]
WIDE = np.arange(24, dtype=np.float64).reshape(4, 6)[::-1, ::2]
SMALL = np.array([250, 3], np.uint8)
SWAPPED = np.array([1.5, 2.5], ">f4")
HALF = np.array([0.1, 0.2], np.float16)
TYPED = [fe.Int64(2**40), 5]
HOLDS = {"inner": [PRIMES, [1, 1, 1, 1]]}


def reads_all(o):
    for i in range(o.shape[0]):
        at = i % 3
        row = MATRIX[i % 2]
        a, b, c = row
        point, (n, flag, w) = POINTS[i % 2], ROWS[(i + 1) % 2]
        total = PRIMES[at] * HALVES[at] + MATRIX[i % 2][at] + row[at] + a * b - c + len(row)
        total += max(row) - sum(row)
        total += point.at * point.weight + n * w + sum(k * v for k, v in enumerate(row))
        total += WIDE[i % 4, at] + WIDE[i % 4][2] + HALVES[-1] + row[-1]
        total += WIDE[fe.Int32(3), at] + MATRIX[fe.Int64(-1)][at]
        if flag and FLAGS[at]:
            total += HOLDS["inner"][i % 2][at]
        o[i] = total


def typed(o):
    for i in range(o.shape[0]):
        o[i] = SMALL[i % 2] + 10
        if i == 1:
            o[i] = TYPED[i % 2] + (1 if HALF[i] > HALF[0] else 0)


def made_inside(o):
    squares = [k * k for k in fe.range_constexpr(5)]
    for i in range(o.shape[0]):
        o[i] = squares[i % 5]
    squares.append(7)
    for i in range(o.shape[0]):
        o[i] = o[i] + squares[i % 2 + 4]


@fe.kernel
def meets(o):
    t = fe.arch.thread_idx()[0]
    seen = fe.arch.alloc_smem(fe.Float32, 64)
    seen[t] = HALVES[t % 4]
    fe.arch.sync_threads()
    o[t] = seen[63 - t] + MATRIX[t % 2][t % 3]


@fe.jit
def met(o):
    meets(o).launch(grid=1, block=o.shape[0])


@pytest.mark.parametrize("program", [reads_all, typed, made_inside])
def test_it_reads_what_python_does(program: Any) -> None:
    outcome = run_all_ways(program, [np.zeros(7)])
    assert outcome.error is None
    assert outcome.arrays()[0].any()


def test_it_reads_on_a_gpu_from_constant_memory() -> None:
    run_alone(__file__, "here.reads_on_a_gpu()")


def reads_on_a_gpu() -> None:
    fake = fe.make_fake_compact_tensor(fe.Float32, (64,))
    wanted = np.zeros(64, np.float32)
    fe.compile(met, fake, options=CPU)(wanted)
    assert wanted[:3].tolist() == [3.5 + 1, -2.5 + 5, 1.5 + 3]
    with fe.emulated_gpu("sm_80"):
        compiled = fe.compile(met, fake, options="--target cuda")
        found = fe.cuda.array(np.zeros(64, np.float32))
        compiled(found)
        assert fe.cuda.to_numpy(found).tolist() == wanted.tolist()
    ptx = compiled.inspect_ptx()
    assert ptx.count(".const .align 16 .b8") == 2
    assert "ld.const.b32" in ptx


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64]),
    st.lists(st.integers(0, 100), min_size=1, max_size=9),
    st.booleans(),
)
def test_every_item_of_every_dtype(dtype: Any, values: list[int], is_list: bool) -> None:
    table: Any = np.array(values, dtype)
    if is_list:
        table = [fe.Float32(v) for v in values]
    found = np.zeros(len(values))

    @fe.jit
    def copied(o):
        for i in range(o.shape[0]):
            o[i] = table[i]

    fe.compile(copied, vector(fe.Float64), options=CPU)(found)
    assert found.tolist() == values


def test_a_changed_table_compiles_a_direct_call_again() -> None:
    small, large, long = [1, 2], np.arange(2000), list(range(5000))

    @fe.jit
    def first(o, i: fe.Int32):
        o[0] = small[i] + large[i] + long[i]

    fixed = fe.compile(first, vector(), 0, options=CPU)
    found = np.zeros(1, np.float32)
    wanted = 1
    for change in (
        lambda: small.__setitem__(0, 11),
        lambda: large.__setitem__(0, 100),
        lambda: long.__setitem__(0, 1000),
    ):
        first(found, 0)
        assert found[0] == wanted
        change()
        first(found, 0)
        assert found[0] == small[0] + large[0] + long[0] != wanted
        wanted = found[0]
    fixed(found, 0)
    assert found[0] == 1


def test_checks_find_an_index_out_of_range() -> None:
    def read(o, i: fe.Int32, k: fe.Int32):
        o[0] = PRIMES[i] + MATRIX[1][k]

    compiled = fe.compile(read, vector(), 1, 1, options=f"{CPU} --enable-checks")
    found = np.zeros(1, np.float32)
    compiled(found, 3, 2)
    assert found[0] == 13
    with pytest.raises(IndexError, match=r"index 4 is out of range for dim 0 of PRIMES, which has"):
        compiled(found, 4, 0)
    with pytest.raises(IndexError, match=r"index -1 is out of range for dim 0 of MATRIX\[1\], whi"):
        compiled(found, 0, -1)


RAGGED, MIXED, EMPTY = [[1], [1, 2]], [1, "two"], []
TWO_DTYPES, HUGE = [fe.Int8(1), fe.Int64(2)], [2**40]
LARGE, ENORMOUS = np.zeros(20_000, np.float32), np.zeros(300_000, np.float32)
OBJECTS = np.array([None, 1], object)
KEYED = {0: 1}

REFUSED = {
    "RAGGED is indexed at run time, but its items have different lengths": lambda n: RAGGED[n],
    "MIXED is indexed at run time, but it holds 'two' (str)": lambda n: MIXED[n],
    "EMPTY has no items, but one is asked for": lambda n: EMPTY[n],
    "TWO_DTYPES is indexed at run time, but its items differ in dtype": lambda n: TWO_DTYPES[n],
    "the constant 1099511627776 does not fit int32": lambda n: HUGE[n],
    "ENORMOUS has 1200000 bytes, and all tables of the function 1200000": lambda n: ENORMOUS[n],
    "ValueError at compile time: dtype('>f4') is in another byte order": lambda n: SWAPPED[n],
    "TypeError at compile time": lambda n: OBJECTS[n],
    "dicts are indexed while compiling, but this index is a run-time int32": lambda n: KEYED[n],
    "lists are indexed while compiling": lambda n: [n, 1][n],
    "PRIMES is indexed with a run-time float32": lambda n: PRIMES[fe.Float32(n)],
    "index 3 of MATRIX is asked for, but it has 3 items": lambda n: MATRIX[n][3],
    "WIDE has 1 dims here, but 2 coordinates are given": lambda n: WIDE[n][n, 0],
    "expected a number, but got a part of the table MATRIX": lambda n: MATRIX[n] + 1,
    "a part of the table MATRIX has no elements": lambda n: put(MATRIX[n]),
    "a part of the table MATRIX has no attribute 'mean'": lambda n: MATRIX[n].mean(),
}


def put(row):
    row[0] = 1


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_no_table_is_refused(message: str) -> None:
    inner = REFUSED[message]

    def program(o: fe.Tensor, n: fe.Int32):
        o[0] = inner(n)

    with pytest.raises(fe.CompileError) as caught:
        lower(program, vector(), 3)
    assert str(caught.value).startswith(message), str(caught.value)


def test_constant_memory_of_a_gpu_has_64_kib() -> None:
    @fe.kernel
    def reads(o):
        o[0] = LARGE[fe.arch.thread_idx()[0]]

    @fe.jit
    def launches(o):
        reads(o).launch(grid=1, block=1)

    fe.compile(launches, vector(), options=CPU)
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(launches, vector(), options="--target cuda --gpu-arch sm_80")
    assert "LARGE has 80000 bytes" in str(caught.value)
    assert "constant memory has 65536" in str(caught.value)
    assert "hint: pass it as an argument" in str(caught.value)


def test_the_kernel_ir_shows_it_and_only_loads_use_it() -> None:
    def program(o: fe.Tensor, n: fe.Int32):
        o[0] = PRIMES[n] + LARGE[n]

    shown = text(program, vector(), 3)
    assert "%PRIMES = table 02000000030000000500000007000000 : tensor<[4]:[1], int32" in shown
    assert f"%LARGE = table {'00' * 32}... sha256(" in shown
    type_ = TensorType(Int32, (2,), (1,), 16)
    table, number = ops.Value(type_, "t"), ops.Value(Int32, "n")
    made = ops.Table(table, bytes(8))
    constant = ops.Constant(number, 0)
    for body, rule in (
        ((ops.Table(table, bytes(7)),), "a Table has the bytes of a compact row-major tensor"),
        ((made, constant, ops.Store(table, (number,), number)), "only a Load uses a Table"),
        ((made, ops.View(ops.Value(type_, "v"), table)), "only a Load uses a Table"),
    ):
        host = ops.Function("f", "host", (), ops.Region(body, ()))
        with pytest.raises(VerifierError, match=rule):
            verify(ops.Program("f", (), host, {}))

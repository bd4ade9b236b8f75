"""The reference interpreter: what it says of each op, and that compiled code says the same."""

from __future__ import annotations

from functools import partial
from typing import Any

import interpreter
import numpy as np
import pytest
from agreement import Outcome, interpreted, lowered, outcome, require_same, run_all_ways
from cpu_machine import EMPTY, compile_program, host, threads, vector
from interpreter import Endless, Memory, OutOfBounds, Stopped, Undefined, scalars
from random_programs.promotion import DTYPES, promoted, weak

import ferrule as fe
from ferrule import specs
from ferrule.compiler.artefacts import Fault, Relation
from ferrule.language import promotion
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import DType, Float32, Int32, Int64, sym_int

# ---- numbers, by definition ----


@pytest.mark.parametrize(
    ("op", "dtype", "x", "y", "wanted"),
    [
        ("add", "int8", 127, 1, -128),
        ("mul", "uint16", 65535, 65535, 1),
        ("floordiv", "int8", -128, -1, -128),
        ("floordiv", "int32", -7, 2, -4),
        ("floordiv", "uint8", 7, 0, 0),
        ("mod", "int32", -7, 2, 1),
        ("mod", "int32", 7, -2, -1),
        ("mod", "int32", 7, 0, 0),
        ("shl", "int8", 1, 7, -128),
        ("shl", "int8", 1, 8, 0),
        ("shl", "int8", 1, -1, 0),
        ("shr", "int8", -128, 100, -1),
        ("shr", "int8", -128, -1, -1),
        ("shr", "uint8", 128, 8, 0),
        ("add", "bfloat16", 1.0, 2.0**-8, 1.0),
        ("add", "bfloat16", 1.0078125, 2.0**-8, 1.015625),
        ("mul", "float16", 300.0, 300.0, np.inf),
        ("add", "float32", 2.0**24, 1.0, 2.0**24),
        ("div", "float64", 1.0, 0.0, np.inf),
    ],
)
def test_binary_operators(op: str, dtype: str, x: Any, y: Any, wanted: Any) -> None:
    kind = specs.dtypes.as_dtype(dtype)
    lhs, rhs = scalars.number(kind, x), scalars.number(kind, y)
    with np.errstate(all="ignore"):
        assert scalars.binary(op, kind, lhs, rhs) == wanted


def test_extrema_know_nan_and_the_sign_of_zero() -> None:
    zero, minus = np.float32(0.0), np.float32(-0.0)
    for x, y in ((zero, minus), (minus, zero)):
        assert not np.signbit(scalars.binary("max", Float32, x, y))
        assert np.signbit(scalars.binary("min", Float32, x, y))
    for op in ("max", "min"):
        assert np.isnan(scalars.binary(op, Float32, np.float32("nan"), zero))
        assert np.isnan(scalars.binary(op, Float32, zero, np.float32("nan")))


@pytest.mark.parametrize(
    ("source", "target", "value", "wanted"),
    [
        ("float64", "uint64", 2.0**64, 2**64 - 1),
        ("float16", "int32", np.inf, 2**31 - 1),
        ("float32", "int64", -np.inf, -(2**63)),
        ("float32", "int8", np.nan, 0),
        ("float32", "int8", -1.9, -1),
        ("float64", "uint8", -0.5, 0),
        ("float32", "bool", np.nan, True),
        ("float32", "bool", -0.0, False),
        ("int32", "uint8", -1, 255),
        ("uint64", "int8", 2**64 - 128, -128),
        ("int64", "float32", 2**24 + 1, 2.0**24),
        ("uint64", "float32", 2**63 + 2**39 + 1, 2.0**63 + 2.0**40),
        ("uint64", "float16", 2**63, np.inf),
        ("float64", "bfloat16", 1 + 2.0**-8 + 2.0**-40, 1.0078125),
        ("float64", "float16", 2.0**-24 * 1.5, 2.0**-23),
    ],
)
def test_casts(source: str, target: str, value: Any, wanted: Any) -> None:
    kinds = specs.dtypes.as_dtype(source), specs.dtypes.as_dtype(target)
    with np.errstate(all="ignore"):
        assert scalars.cast(*kinds, scalars.number(kinds[0], value)) == wanted


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "bool"], ids=lambda d: d.name)
def test_bits_come_back(dtype: DType) -> None:
    for word in (0, 1, 0x3F, 0x80, 0x3C00, 0x8000, 0x7F80, 0x80000001, 1 << 62):
        word %= 1 << dtype.bits
        assert scalars.bits(dtype, scalars.from_bits(dtype, word)) == word


@pytest.mark.parametrize("left", DTYPES, ids=lambda d: d.name)
def test_the_models_promotion_is_that_of_the_language(left: DType) -> None:
    for right in DTYPES:
        try:
            wanted: DType | None = promotion.promote(left, right)
        except promotion.NoCommonType:
            wanted = None
        assert promoted(left, right) is wanted
    for number in (True, 1, 1.0):
        assert weak(number, left) is promotion.weak(number, left)
        assert weak(number, None) is promotion.weak(number, None)


# ---- what the interpreter refuses, and what it leaves open ----


def stores(index: int, size: int) -> tuple[ops.Program, ops.Value]:
    b, out = Builder(), ops.Value(vector(Int32, size), "out")
    with b.region() as body:
        b.store(out, (b.constant(Int32, index),), b.constant(Int32, 7))
    return host("stores", [out], body.freeze()), out


def test_a_program_stays_within_its_tensors() -> None:
    array = np.zeros(4, np.int32)
    for index, size in ((4, 4), (-1, 4), (2, 2)):
        with pytest.raises(OutOfBounds):
            interpreter.run(stores(index, size)[0], [Memory.of(array)], {})
    with pytest.raises(OutOfBounds, match="memory with 16 bytes"):
        interpreter.run(stores(4, 8)[0], [Memory.of(array)], {})
    interpreter.run(stores(3, 4)[0], [Memory.of(array)], {})
    assert array.tolist() == [0, 0, 0, 7]


def test_memory_of_any_strides() -> None:
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    view = array[::-2, 1::2]
    memory = Memory.of(view)
    for i, j in np.ndindex(view.shape):
        assert memory.read(Int32, 4 * (i * -12 + j * 2)) == view[i, j]
    memory.write(Int32, 0, -1)
    assert array[3, 1] == -1
    assert memory.at(8).read(specs.Uint8, 0) == view[0, 1]
    with pytest.raises(OutOfBounds):
        memory.read(Int32, 20)
    with pytest.raises(OutOfBounds):
        Memory.of(array[:0]).read(Int32, 0)


def test_a_bool_in_memory_is_any_byte() -> None:
    array = np.array([0, 1, 2, 255], np.uint8)
    memory = Memory.of(array)
    assert [memory.read(specs.Boolean, i) for i in range(4)] == [False, True, True, True]
    memory.write(specs.Boolean, 3, True)
    assert array[3] == 1


def test_checks_and_sizes_stop_a_call() -> None:
    n = sym_int(64, symbol="n")
    b, out, x = Builder(), ops.Value(vector(Int64, 1), "out"), ops.Value(Int32, "x")
    with b.region() as body:
        zero = b.constant(Int32, 0)
        b.check(b.compare("ne", x, zero), Fault("ValueError", "no {} and {}"), x, x)
        size = b.size(Int64, n * n, Fault("LaunchError", "{} squared"))
        b.store(out, (zero,), size)
    program = host("checks", [out, x], body.freeze(), n)
    array = np.zeros(1, np.int64)

    def run(x: int, size: int) -> None:
        interpreter.run(program, [Memory.of(array), x], {n: size})

    run(1, 5)
    assert array[0] == 25
    with pytest.raises(Stopped) as stopped:
        run(0, 5)
    assert (stopped.value.kind, stopped.value.message) == ("ValueError", "no 0 and 0")
    with pytest.raises(Stopped) as stopped:
        run(1, 1 << 32)
    assert stopped.value.message == "4294967296 squared"


def test_a_size_without_a_fault_must_have_a_value() -> None:
    n = sym_int(64, symbol="n")
    b, out = Builder(), ops.Value(vector(Int32, 1), "out")
    with b.region() as body:
        b.store(out, (b.constant(Int32, 0),), b.size(Int32, n))
    program = host("sizes", [out], body.freeze(), n)
    with pytest.raises(Undefined):
        interpreter.run(program, [Memory.of(np.zeros(1, np.int32))], {n: 1 << 31})


def test_relations_come_first() -> None:
    n, m = sym_int(symbol="n"), sym_int(symbol="m")
    relation = Relation(n, m, "a.shape[0]", "b.shape[0]")
    function = ops.Function("f", "host", (), EMPTY)
    program = ops.Program("f", (), function, {n: "n", m: "m"}, (relation,))
    interpreter.run(program, [], {n: 3, m: 3})
    with pytest.raises(Stopped, match="Mismatched a"):
        interpreter.run(program, [], {n: 3, m: 4})


def loop(step: int) -> ops.Program:
    b, out = Builder(), ops.Value(vector(Int32, 8), "out")
    index = ops.Value(Int32, "i")
    with b.region() as body:
        start, stop, by = (b.constant(Int32, x) for x in (6, -1, step))
        with b.region() as inner:
            b.store(out, (index,), b.constant(Int32, 1))
        b.append(ops.For((), index, start, stop, by, (), (), inner.freeze()))
    return host("loop", [out], body.freeze())


def test_loops_are_pythons_ranges() -> None:
    array = np.zeros(8, np.int32)
    interpreter.run(loop(-2), [Memory.of(array)], {})
    assert np.flatnonzero(array).tolist() == [0, 2, 4, 6]
    array[:] = 0
    interpreter.run(loop(0), [Memory.of(array)], {})
    assert not array.any()


def test_an_endless_loop_ends() -> None:
    b = Builder()
    with b.region() as test:
        goes = b.constant(specs.Boolean, True)
    endless = ops.While((), (), (), test.freeze(goes), EMPTY)
    with pytest.raises(Endless):
        interpreter.run(host("endless", [], ops.Region((endless,))), [], {}, fuel=1000)


def last_thread() -> ops.Program:
    """Every thread writes its number to the same place."""
    b, out = Builder(), ops.Value(vector(Int32, 1), "out")
    with b.region() as body:
        scaled = b.binary("mul", b.special("block_idx", 0), b.special("block_dim", 0))
        thread = b.binary("add", scaled, b.special("thread_idx", 0))
        b.store(out, (b.constant(Int32, 0),), thread)
    kernel = ops.Function("last", "kernel", (out,), body.freeze())
    return threads(kernel, [ops.Value(Int64, name) for name in "abcxyz"])


def test_the_order_of_threads_is_the_callers() -> None:
    program, array = last_thread(), np.zeros(1, np.int32)
    verify(program)
    for order, last in ((interpreter.upwards, 5), (interpreter.downwards, 0)):
        interpreter.run(program, [Memory.of(array), 2, 1, 1, 3, 1, 1], {}, order)
        assert array[0] == last
    interpreter.run(program, [Memory.of(array), 0, 1, 1, 3, 1, 1], {})
    assert array[0] == 0


def test_tensors_can_share_memory() -> None:
    b = Builder()
    kind = TensorType(Int32, (3,), (1,), 4)
    a, out = ops.Value(kind, "a"), ops.Value(kind, "out")
    with b.region() as body:
        for i in range(2):
            loaded = b.load(a, (b.constant(Int32, i),))
            b.store(out, (b.constant(Int32, i + 1),), loaded)
    program = host("shift", [a, out], body.freeze())
    array = np.array([5, 1, 2], np.int32)
    interpreter.run(program, [Memory.of(array), Memory.of(array)], {})
    assert array.tolist() == [5, 5, 5]


def test_views_begin_elsewhere_and_read_bits() -> None:
    b, a = Builder(), ops.Value(vector(Float32, 8), "a")
    out = ops.Value(vector(Int32, 3), "out")
    rest = ops.Value(TensorType(Float32, (7,), (1,), 4), "rest")
    words = ops.Value(TensorType(Int32, (3,), (2,), 4), "words")
    with b.region() as body:
        b.append(ops.View(rest, a, (b.constant(Int32, 1),)))
        b.append(ops.View(words, rest))
        for i in range(3):
            index = b.constant(Int32, i)
            b.store(out, (index,), b.load(words, (index,)))
    program = host("views", [a, out], body.freeze())
    floats, found, wanted = np.arange(8, dtype="f4"), np.zeros(3, "i4"), np.zeros(3, "i4")
    assert compile_program(program)(floats, found) == 0
    interpreter.run(program, [Memory.of(floats), Memory.of(wanted)], {})
    assert found.tolist() == wanted.tolist() == floats[1::2].view("i4")[:3].tolist()


def test_what_is_printed_comes_back() -> None:
    b = Builder()
    with b.region() as body:
        numbers = (b.constant(Int64, -3), b.constant(specs.Float64, 2.0))
        b.append(ops.Print("%lld is %5.2f: %s%%\n", (*numbers, b.constant(specs.Boolean, True))))
    program = host("prints", [], body.freeze())
    verify(program)
    assert interpreter.run(program, [], {}) == "-3 is  2.00: True%\n"


# ---- the comparison of all ways ----


def test_outcomes_are_compared_bit_by_bit() -> None:
    def floats(*values: float) -> Outcome:
        return Outcome((np.array(values, np.float32),))

    require_same(floats(1.0, np.nan), floats(1.0, np.nan), "")
    for other in (floats(1.0, 2.0), floats(np.nan, np.nan)):
        with pytest.raises(AssertionError):
            require_same(floats(1.0, np.nan), other, "")
    with pytest.raises(AssertionError):
        require_same(floats(0.0), floats(-0.0), "")
    require_same(floats(1.0), floats(1.0 + 1e-6), "", tolerance=1e-5)
    failed = Outcome((), ("ValueError", "no 3 here"))
    require_same(failed, Outcome((), ("ValueError", "no 3")), "")
    for error in (("TypeError", "no 3"), ("ValueError", "no 4"), None):
        with pytest.raises(AssertionError):
            require_same(failed, Outcome((), error), "")


def divides(out, x: fe.Int32, y: fe.Int32):
    out[0] = 1
    out[1] = x // y


def test_all_ways_fail_alike() -> None:
    arguments = (np.zeros(2, np.int32), 7, 0)
    found = run_all_ways(divides, arguments)
    assert found.error is not None and found.error[0] == "ZeroDivisionError"
    assert found.arguments[0].tolist() == [1, 0]
    assert arguments[0].tolist() == [0, 0]


def counts_down(out, n: fe.Int32):
    for i in range(n):
        out[0] = out[0] * 2 + i


def test_a_way_that_differs_is_found() -> None:
    form = lowered(counts_down, *(fe.make_fake_compact_tensor(Int32, (1,)), 1))
    arguments = (np.zeros(1, np.int32), 3)
    found = outcome(partial(interpreted, form, interpreter.upwards), arguments)
    assert found.arguments[0].tolist() == [4]
    with pytest.raises(AssertionError, match="of another"):
        less = outcome(partial(interpreted, form, interpreter.upwards), (arguments[0], 2))
        require_same(found, less, "of another")

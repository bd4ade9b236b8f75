"""Every operator of every dtype against NumPy and Python, on edge values, on both CPUs."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program, elementwise, elementwise_each

from ferrule import specs
from ferrule.language.codegen import CodegenError, lower_cpu
from ferrule.language.ir import ops
from ferrule.specs import DType

CPUS = pytest.mark.parametrize("cpu", [None, BASELINE])
INTEGERS = [
    specs.Int8,
    specs.Int16,
    specs.Int32,
    specs.Int64,
    specs.Uint8,
    specs.Uint16,
    specs.Uint32,
    specs.Uint64,
]
FLOATS = [specs.Float16, specs.Float32, specs.Float64]


def integers(dtype: DType) -> list[int]:
    low, high = dtype.range
    edges = [low, low + 1, low // 2, -7, -3, -2, -1, 0, 1, 2, 3, 7, high // 2, high - 1, high]
    return sorted({value for value in edges if low <= value <= high})


def floats(dtype: DType) -> list[float]:
    info = np.finfo(dtype.name)
    edges = [0.0, 0.5, 1.0, 1.5, 3.0, 7.25, float(info.tiny), float(info.smallest_subnormal)]
    edges += [float(info.max), float("inf")]
    return [*edges, *(-value for value in edges), float("nan")]


def wrap(dtype: DType, value: int) -> int:
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


Make = Callable[..., ops.Value]
"""The op of a program: it takes a builder and the operands."""


def run_each(
    made: Sequence[tuple[Make, DType]], sources: Sequence[DType], *arrays: Any, cpu: str | None
) -> list[Any]:
    """What each of several ops makes of arrays, compiled in one program."""
    outs = [np.zeros(len(arrays[0]), target.name) for _, target in made]
    program = compile_program(elementwise_each(made, sources), cpu)
    assert program(*arrays, *outs, len(arrays[0])) == 0
    return outs


def run_pairs(
    makes: Iterable[Make], dtype: DType, target: DType, edges: list[Any], cpu: str | None
) -> tuple[Any, Any, list[Any]]:
    """All pairs of these values, and what each of several ops makes of them."""
    left, right = zip(*itertools.product(edges, edges), strict=True)
    a, b = np.array(left, dtype.name), np.array(right, dtype.name)
    return a, b, run_each([(make, target) for make in makes], [dtype, dtype], a, b, cpu=cpu)


def binary(op: ops.BinaryOp) -> Make:
    return lambda b, x, y: b.binary(op, x, y)


def unary(op: ops.UnaryOp) -> Make:
    return lambda b, x: b.unary(op, x)


def compare(op: ops.CompareOp) -> Make:
    return lambda b, x, y: b.compare(op, x, y)


def saturating_shift(left: bool) -> Callable[[int, int, DType], int]:
    def shift(x: int, y: int, dtype: DType) -> int:
        count = y if 0 <= y < dtype.bits else dtype.bits
        return x << count if left else x >> count

    return shift


INTEGER_OPS: dict[ops.BinaryOp, Callable[[int, int, DType], int]] = {
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "floordiv": lambda x, y, _: x // y if y else 0,
    "mod": lambda x, y, _: x % y if y else 0,
    "max": lambda x, y, _: max(x, y),
    "min": lambda x, y, _: min(x, y),
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
    "shl": saturating_shift(left=True),
    "shr": saturating_shift(left=False),
}


@CPUS
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators(dtype: DType, cpu: str | None) -> None:
    a, b, outs = run_pairs(map(binary, INTEGER_OPS), dtype, dtype, integers(dtype), cpu)
    for (op, meaning), out in zip(INTEGER_OPS.items(), outs, strict=True):
        for x, y, got in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
            assert got == wrap(dtype, meaning(x, y, dtype)), (op, x, y)


COMPARE: dict[ops.CompareOp, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_comparisons(dtype: DType) -> None:
    edges: list[Any] = integers(dtype) if dtype.is_integer else floats(dtype)
    a, b, outs = run_pairs(map(compare, COMPARE), dtype, specs.Boolean, edges, None)
    for (op, meaning), out in zip(COMPARE.items(), outs, strict=True):
        np.testing.assert_array_equal(out, meaning(a, b), err_msg=op)


FLOAT_OPS: dict[ops.BinaryOp, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "max": np.maximum,
    "min": np.minimum,
}


@CPUS
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_operators(dtype: DType, cpu: str | None) -> None:
    a, b, outs = run_pairs(map(binary, FLOAT_OPS), dtype, dtype, floats(dtype), cpu)
    for (op, meaning), out in zip(FLOAT_OPS.items(), outs, strict=True):
        wanted = meaning(a, b)
        np.testing.assert_array_equal(out, wanted, err_msg=op)
        if op in ("max", "min"):  # -0.0 is less than 0.0, which NumPy leaves open
            zeros = (a == 0) & (b == 0)
            both = np.signbit(a) & np.signbit(b) if op == "max" else np.signbit(a) | np.signbit(b)
            np.testing.assert_array_equal(np.signbit(out[zeros]), both[zeros])
        else:
            known = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(wanted[known]))


@CPUS
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_unary(dtype: DType, cpu: str | None) -> None:
    a = np.array(floats(dtype), dtype.name)
    negated, root = run_each([(unary("neg"), dtype), (unary("sqrt"), dtype)], [dtype], a, cpu=cpu)
    np.testing.assert_array_equal(negated, -a)
    np.testing.assert_array_equal(root, np.sqrt(a))
    np.testing.assert_array_equal(np.signbit(root[a == 0]), np.signbit(a[a == 0]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_unary(dtype: DType) -> None:
    a = np.array(integers(dtype), dtype.name)
    outs = run_each([(unary("neg"), dtype), (unary("not"), dtype)], [dtype], a, cpu=None)
    for meaning, out in zip((operator.neg, operator.invert), outs, strict=True):
        assert out.tolist() == [wrap(dtype, meaning(x)) for x in a.tolist()]


def test_bool() -> None:
    bytes_ = np.array([0, 1, 2, 255], np.uint8)
    left, right = np.repeat(bytes_, 4), np.tile(bytes_, 4)
    for op, meaning in (
        ("and", operator.and_),
        ("or", operator.or_),
        ("xor", operator.xor),
    ):
        out = np.full(16, 9, np.uint8)
        program = elementwise(
            lambda b, x, y, op=op: b.binary(op, x, y), [specs.Boolean] * 2, specs.Boolean
        )
        compile_program(program)(left, right, out, 16)
        np.testing.assert_array_equal(out, meaning(left != 0, right != 0).astype(np.uint8))
    out = np.full(16, 9, np.uint8)
    program = elementwise(lambda b, x: b.unary("not", x), [specs.Boolean], specs.Boolean)
    compile_program(program)(left, out, 16)
    np.testing.assert_array_equal(out, (left == 0).astype(np.uint8))


def test_select() -> None:
    program = elementwise(
        lambda b, c, x, y: b.select(c, x, y),
        [specs.Boolean, specs.Float32, specs.Float32],
        specs.Float32,
    )
    condition = np.array([0, 1, 7], np.uint8)
    x, y, out = np.arange(3, dtype="f4"), np.arange(10, 13, dtype="f4"), np.zeros(3, "f4")
    compile_program(program)(condition, x, y, out, 3)
    assert out.tolist() == [10.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", [specs.Complex64, specs.Int4])
def test_storage_dtypes_have_no_code(dtype: DType) -> None:
    with pytest.raises(CodegenError, match=dtype.name):
        lower_cpu(elementwise(lambda b, x: x, [dtype], dtype))

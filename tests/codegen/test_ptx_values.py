"""What the PTX of operators and conversions of integers computes, on an emulated GPU: the values,
not the text.

LLVM may fold a guard into an instruction that does something else; every operator whose operands
are guarded is tried on the edges of all integer types.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pytest
from device_kernels import kernel, lowered_for, program, text_of
from mlir_functions import needs_mlir
from ptx_programs import launch

import ferrule as fe
from ferrule import specs
from ferrule.compiler.cuda.selection import with_masked_counts, with_selected_bfloats
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import BINARY, UNARY
from ferrule.language.mathlib import expand_maths

ARCHS: Final = ("sm_50", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120")
INTEGERS: Final = (
    *(specs.Int8, specs.Int16, specs.Int32, specs.Int64),
    *(specs.Uint8, specs.Uint16, specs.Uint32, specs.Uint64),
)


def edges(dtype: specs.DType) -> list[int]:
    """Small and extreme numbers."""
    low, high = dtype.range
    wanted = [low, low + 1, -7, -2, -1, 0, 1, 2, 7, high // 3, high - 1, high]
    return sorted({each for each in wanted if low <= each <= high})


def right_edges(dtype: specs.DType) -> list[int]:
    """These, the widths, and numbers that are other ones when they are cut to 32 bits."""
    low, high = dtype.range
    wanted = [8, 15, 16, 31, 32, 63, 64, 2**32, 2**32 + 1, 2**33 + 31, -(2**32) + 3]
    return sorted({*edges(dtype), *(each for each in wanted if low <= each <= high)})


def wrapped(dtype: specs.DType, value: int) -> int:
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


def shift(x: int, count: int, bits: int, way: Callable[[int, int], int]) -> int:
    return way(x, count if 0 <= count < bits else bits)


EXPECTED: Final[dict[ops.BinaryOp, Callable[[int, int, int], int]]] = {
    "shl": lambda x, y, bits: shift(x, y, bits, operator.lshift),
    "shr": lambda x, y, bits: shift(x, y, bits, operator.rshift),
    "floordiv": lambda x, y, _: x // y if y else 0,
    "mod": lambda x, y, _: x % y if y else 0,
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "min": lambda x, y, _: min(x, y),
    "max": lambda x, y, _: max(x, y),
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
}


def ran(ptx: str, name: str, inputs: Sequence[Any], out: Any) -> Any:
    """The output of a kernel over these arrays."""
    return launch(ptx, [*inputs, out], block=(len(out), 1, 1), name=name)[-1]


def once(made: ops.Program) -> list[str]:
    """PTX of a program for every architecture, but none whose kernels are those of another."""
    texts = (text_of(lowered_for(made, arch)) for arch in ARCHS)
    return list({text[text.index("{") :]: text for text in texts}.values())


def test_every_operator_of_integers_is_tried() -> None:
    for tried, rows in ((EXPECTED, BINARY), (COUNTS, UNARY)):
        assert set(tried) == {name for name, row in rows.items() if "int" in row.kinds}


def test_operators_of_integers_are_right_on_their_edges() -> None:
    for name, dtype in itertools.product(EXPECTED, INTEGERS):
        pairs = list(itertools.product(edges(dtype), right_edges(dtype)))
        left, right = (np.array(side, dtype.name) for side in zip(*pairs, strict=True))
        expected = [wrapped(dtype, EXPECTED[name](x, y, dtype.bits)) for x, y in pairs]
        for ptx in once(program(kernel("k", dtype, dtype, _binary(name)))):
            found = ran(ptx, "k", (left, right), np.zeros(len(pairs), dtype.name)).tolist()
            each = zip(pairs, found, expected, strict=True)
            wrong = [(pair, got, right) for pair, got, right in each if got != right]
            assert not wrong, (name, dtype.name, wrong[:3])


def _binary(name: ops.BinaryOp) -> Callable[..., ops.Value]:
    return lambda b, x, y: b.binary(name, x, y)


COUNTS: Final[dict[ops.UnaryOp, Callable[[int, int], int]]] = {
    "popc": lambda raw, _: raw.bit_count(),
    "clz": lambda raw, bits: bits - raw.bit_length(),
    "not": lambda raw, _: ~raw,
    "neg": lambda raw, _: -raw,
}


@pytest.mark.parametrize("arch", ("sm_50", "sm_90a"))
def test_counts_of_bits_are_right_on_their_edges(arch: str) -> None:
    makes = [
        (name, dtype, kernel(f"{name}_{dtype.name}", dtype, dtype, _unary(name)))
        for name, dtype in itertools.product(COUNTS, INTEGERS)
    ]
    ptx = text_of(lowered_for(expand_maths(program(*(made for *_, made in makes))), arch))
    for name, dtype, made in makes:
        given = np.array(edges(dtype), dtype.name)
        found = ran(ptx, made.name, (given, given), np.zeros_like(given))
        mask = (1 << dtype.bits) - 1
        expected = [wrapped(dtype, COUNTS[name](int(x) & mask, dtype.bits)) for x in given]
        assert found.tolist() == expected, (name, dtype.name)


def _unary(name: ops.UnaryOp) -> Callable[..., ops.Value]:
    return lambda b, x, _: b.unary(name, x)


NUMBERS: Final = (
    *(0.0, 0.5, 1.0, 1.5, 127.5, 128.0, 255.9, 256.0, 32767.5, 65535.5, 65536.0),
    *(2.0**31 - 1, 2.0**31, 2.0**32, 2.0**32 + 512, 2.0**62, 2.0**63, 2.0**64, 1e30),
    *(float("inf"), float("nan")),
)


@pytest.mark.parametrize("arch", ("sm_50", "sm_90a"))
def test_floats_become_integers_within_their_range(arch: str) -> None:
    pairs = list(itertools.product((specs.Float32, specs.Float64), INTEGERS))
    makes = [
        (source, to, kernel(f"{source.name}_{to.name}", source, to, _cast(to)))
        for source, to in pairs
    ]
    ptx = text_of(lowered_for(program(*(made for *_, made in makes)), arch))
    for source, to, made in makes:
        given = np.array([*NUMBERS, *(-each for each in NUMBERS)], source.name)
        found = ran(ptx, made.name, (given, given), np.zeros(len(given), to.name))
        low, high = to.range
        expected = [
            0 if x != x else high if x >= high else low if x <= low else int(x)
            for x in given.tolist()
        ]
        assert found.tolist() == expected, (source.name, to.name)


def _cast(to: specs.DType) -> Callable[..., ops.Value]:
    return lambda b, x, _: b.cast(to, x)


@fe.kernel
def asked_kernel(a: fe.Tensor, n: fe.Tensor, out: fe.Tensor):
    """Shifts behind comparisons of the program's own, of which LLVM makes selects."""
    i = fe.arch.thread_idx()[0]
    x, count = a[i], n[i]
    narrow = fe.Int32(x)
    short = fe.Int16(x)
    out[i, 0] = x << count if 0 <= count < 64 else 0
    result = fe.Uint64(0)
    if fe.Uint64(count) < 64:
        result = fe.Uint64(x) >> fe.Uint64(count)
    out[i, 1] = fe.Int64(result)
    out[i, 2] = narrow << fe.Int32(count) if 0 <= count < 32 else 0
    small = fe.Uint32(0)
    if fe.Uint64(count) < 32:
        small = fe.Uint32(narrow) >> fe.Uint32(count)
    out[i, 3] = fe.Int32(small)
    out[i, 4] = short << fe.Int16(count) if 0 <= count < 16 else 0
    if 0 <= count < 64:
        out[i, 5] = x + 1
        result = fe.Uint64(x) << fe.Uint64(count)
    else:
        result = fe.Uint64(0)
    out[i, 6] = fe.Int64(result)


@fe.jit
def asked(a: fe.Tensor, n: fe.Tensor, out: fe.Tensor):
    asked_kernel(a, n, out).launch(grid=1, block=a.shape[0])


def asked_results(x: int, count: int) -> list[int]:
    """The row of `asked_kernel`; the sixth is 0 where it is not written."""
    inside = {bits: count if 0 <= count < bits else bits for bits in (16, 32, 64)}
    return [
        wrapped(specs.Int64, x << inside[64]),
        wrapped(specs.Int64, (x & 2**64 - 1) >> inside[64]),
        wrapped(specs.Int32, x << inside[32]),
        wrapped(specs.Int32, (x & 2**32 - 1) >> inside[32]),
        wrapped(specs.Int16, x << inside[16]),
        wrapped(specs.Int64, x + 1) if 0 <= count < 64 else 0,
        wrapped(specs.Int64, x << inside[64]),
    ]


def asked_arrays() -> tuple[Any, Any, Any]:
    values = [1, 7, -1, -(2**63), 2**63 - 1, 0x0123456789ABCDEF]
    counts = [0, 1, 15, 16, 31, 32, 63, 64, -1, 2**16 + 1, 2**32, 2**32 + 1, 2**32 + 31, -(2**32)]
    pairs = list(itertools.product(values, counts))
    a, n = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    return a, n, np.zeros((len(pairs), 8), np.int64)


ASKED: Final = (
    *[fe.make_fake_compact_tensor(fe.Int64, (84,))] * 2,
    fe.make_fake_compact_tensor(fe.Int64, (84, 8), stride_order=(1, 0)),
)


@pytest.mark.parametrize("level", (0, 1, 2, 3))
@pytest.mark.parametrize("arch", ARCHS)
def test_a_shift_behind_a_comparison_of_its_own_is_right(arch: str, level: int) -> None:
    options = f"--target cuda --gpu-arch {arch} --opt-level {level}"
    ptx = fe.compile(asked, *ASKED, options=options).inspect_ptx()
    a, n, out = asked_arrays()
    found = ran(ptx, "asked_kernel", (a, n), out)
    for x, count, row in zip(a.tolist(), n.tolist(), found.tolist(), strict=True):
        assert row[:7] == asked_results(x, count), (x, count)


@pytest.mark.parametrize(
    "options",
    ("--target cpu", pytest.param("--target cpu --pipeline mlir", marks=needs_mlir)),
)
def test_the_cpu_shifts_alike(options: str) -> None:
    a, n, out = asked_arrays()
    fe.compile(asked, *ASKED, options=options)(a, n, out)
    for x, count, row in zip(a.tolist(), n.tolist(), out.tolist(), strict=True):
        assert row[:7] == asked_results(x, count), (x, count)


@fe.kernel
def truths_kernel(a: fe.Tensor, out: fe.Tensor):
    """A truth value as -1, in every float, and on several ways; of one comparison alone LLVM makes
    a select."""
    i = fe.arch.thread_idx()[0]
    truth = 0 < a[i] < a[i + 1]
    for column, dtype in enumerate(FLOATS):
        out[i, column] = fe.Float64(dtype(-fe.Boolean(truth)))
        out[i, column + 4] = fe.Float64(dtype(fe.Int64(-1 if truth else 0)))
        out[i, column + 8] = fe.Float64(dtype(fe.Float32(-fe.Int8(truth))))
        out[i, column + 12] = fe.Float64(dtype(fe.Int32(truth)))


FLOATS: Final = (specs.BFloat16, specs.Float16, specs.Float32, specs.Float64)


@fe.jit
def truths(a: fe.Tensor, out: fe.Tensor):
    truths_kernel(a, out).launch(grid=1, block=out.shape[0])


@pytest.mark.parametrize("level", (0, 3))
@pytest.mark.parametrize("arch", ARCHS)
def test_a_negated_truth_value_is_minus_one_in_every_float(arch: str, level: int) -> None:
    a = fe.make_fake_compact_tensor(fe.Int32, (4,))
    out = fe.make_fake_compact_tensor(fe.Float64, (3, 16), stride_order=(1, 0))
    options = f"--target cuda --gpu-arch {arch} --opt-level {level}"
    ptx = fe.compile(truths, a, out, options=options).inspect_ptx()
    found = ran(ptx, "truths_kernel", (np.array([1, 2, 2, 5], np.int32),), np.zeros((3, 16)))
    expected = np.array([[-1.0] * 12 + [1.0] * 4, [0.0] * 16, [-1.0] * 12 + [1.0] * 4])
    assert found.tolist() == expected.tolist()


TRUTHS: Final = """define void @f(i1 %c) {
  %1 = sitofp i1 %c to bfloat, !dbg !7
  %2 = sitofp <2 x i1> %"a b" to <2 x bfloat>
  %3 = uitofp i1 %c to bfloat
  %4 = sitofp i1 %c to half
  %5 = sitofp i16 %n to bfloat
"""


def test_only_signed_truth_values_as_bfloat16_are_selected() -> None:
    given, found = TRUTHS.splitlines(), with_selected_bfloats(TRUTHS).splitlines()
    assert found[1:3] == [
        "  %1 = select i1 %c, bfloat 0xRBF80, bfloat zeroinitializer, !dbg !7",
        '  %2 = select <2 x i1> %"a b", <2 x bfloat> splat (bfloat 0xRBF80), '
        "<2 x bfloat> zeroinitializer",
    ]
    assert (found[0], found[3:]) == (given[0], given[3:])


MASKED: Final = """define void @f(i64 %x, i64 %n) {
  %"a b" = trunc i64 %n to i32
  %1 = shl nuw i64 %x, %n
  %2 = lshr <2 x i64> <i64 1, i64 2>, %v, !dbg !7
  %3 = shl i32 1, %"a b"
  %4 = lshr i33 %y, %n
"""


def test_only_counts_that_may_be_cut_are_masked() -> None:
    text = "  %a = shl i64 %x, 3\n  %b = shl i32 %x, %y\n  %c = ashr i64 %x, %y\n"
    assert with_masked_counts(text) == text
    assert with_masked_counts(MASKED).splitlines()[2:] == [
        "  %ferrule.count.0 = and i64 %n, 63",
        "  %1 = shl nuw i64 %x, %ferrule.count.0",
        "  %ferrule.count.1 = and <2 x i64> %v, splat (i64 63)",
        "  %2 = lshr <2 x i64> <i64 1, i64 2>, %ferrule.count.1, !dbg !7",
        '  %ferrule.count.2 = and i32 %"a b", 31',
        "  %3 = shl i32 1, %ferrule.count.2",
        "  %ferrule.count.3 = and i33 %n, 63",
        "  %4 = lshr i33 %y, %ferrule.count.3",
    ]

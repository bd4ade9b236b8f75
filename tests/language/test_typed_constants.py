"""A typed constant is a value of its type: what is made of it has the bits of the call."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
import typed_constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered import vector

import ferrule as fe

CPU = "--target cpu"


@given(st.integers(0, 1 << 32))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_a_program_of_constants_computes_what_the_call_would(seed: int) -> None:
    assert typed_constants.disagreement(seed) is None


def test_a_program_is_a_function_of_its_seed() -> None:
    assert typed_constants.program(7) == typed_constants.program(7)
    assert typed_constants.program(7) != typed_constants.program(8)


def test_most_programs_compile() -> None:
    cases = [typed_constants.program(seed) for seed in range(12)]
    outcomes = []
    for case in cases:
        names = typed_constants.load(case.text, "<most programs>")
        outcomes.append(typed_constants.outcome(case, names[typed_constants.KNOWN], CPU))
    assert sum(each.results is not None for each in outcomes) >= 6


def values(function: Any, *arguments: Any) -> list[float]:
    """What a function writes to its first parameter."""
    out = np.zeros(8, np.float64)
    fe.compile(function, vector(fe.Float64), *arguments, options=CPU)(out, *arguments)
    return out.tolist()


def conversions(o: fe.Tensor):
    o[0] = fe.Float64(fe.Float32(0.1))
    o[1] = fe.Int64(fe.Float32(16777217))
    o[2] = fe.Float32(0.1) == fe.Float64(0.1)
    o[3] = fe.Int8(fe.Int32(300))
    o[4] = fe.Int32(300).to(fe.Int8)
    o[5] = fe.Uint8(fe.Float32(-7.0))
    o[6] = fe.Float32(0.1) == 0.1
    o[7] = fe.Int32(fe.Float64(float("nan")))


def test_conversions_of_typed_constants() -> None:
    narrow = float(np.float32(0.1))
    assert values(fe.jit(conversions)) == [narrow, 16777216, 0, 44, 44, 0, 1, 0]


@fe.jit
def folded_expressions(o: fe.Tensor, n: fe.Constexpr):
    for i in fe.range_constexpr(2):
        o[i] = (i * n).to(fe.Float64)
    o[2] = (n + 0.1).to(fe.Float32).to(fe.Float64)
    o[3] = fe.Int8(100) ** 2
    o[4] = sum((fe.Int8(100), fe.Int8(100)))
    o[5] = fe.Int64(2**62) * 4 == 0


def test_methods_of_expressions_that_fold() -> None:
    out = np.zeros(6, np.float64)
    fe.compile(folded_expressions, vector(fe.Float64), 7, options=CPU)(out)
    assert out.tolist() == [0, 7, float(np.float32(7.1)), 16, -56, 1]


@fe.jit
def refused(o: fe.Tensor, way: fe.Constexpr):
    if way == 0:
        o[0] = fe.Int8(300)
    elif way == 1:
        o[0] = (300).to(fe.Int8)
    elif way == 2:
        o[0] = fe.Int8(5) + 300
    elif way == 3:
        o[0] = fe.Uint64(1) + fe.Int8(1)
    else:
        x: fe.Int32 = fe.Float32(1.5)
        o[0] = x


@pytest.mark.parametrize(
    ("way", "words"),
    [
        *((0, "does not fit int8"), (1, "does not fit int8"), (2, "does not fit int8")),
        *((3, "no type holds both"), (4, "is annotated as Int32")),
    ],
)
def test_what_is_refused_at_run_time_and_of_bare_numbers(way: int, words: str) -> None:
    with pytest.raises(fe.CompileError, match=words):
        fe.compile(refused, vector(fe.Float64), way, options=CPU)


@fe.jit
def divided(o: fe.Tensor, n: fe.Int32):
    if n > 0:
        o[0] = fe.Int32(1) // fe.Int32(0)


def test_a_division_by_a_constant_zero_raises_where_it_runs() -> None:
    compiled, out = fe.compile(divided, vector(fe.Int32), 1, options=CPU), np.zeros(1, np.int32)
    compiled(out, 0)
    with pytest.raises(ZeroDivisionError):
        compiled(out, 1)


def test_typed_constants_outside_of_functions() -> None:
    assert fe.Int32(300).to(fe.Int8).value == 44
    assert fe.Int8(fe.Int32(300)) == 44
    assert fe.Uint32(fe.Int8(-1)).value == 2**32 - 1
    assert float(fe.Float32(0.1)) == float(np.float32(0.1))
    assert fe.Int16(fe.Float64(1e9)).value == 32767
    assert fe.Boolean(fe.Float32(0.5)).value is True
    assert [repr(dtype(0.1)) for dtype in typed_constants.FLOATS] == [
        *("Float16(0.1)", "BFloat16(0.1)", "Float32(0.1)", "Float64(0.1)")
    ]
    with pytest.raises(OverflowError):
        fe.Int8(300)
    with pytest.raises(TypeError, match="to takes a dtype"):
        fe.Int8(3).to("int8")  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [2**24 + 1, 2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 10**40])
def test_an_integer_is_rounded_once(number: int) -> None:
    exact = fe.Float32(number).value
    neighbours = (float(np.nextafter(np.float32(exact), np.float32(s))) for s in (-np.inf, np.inf))
    if exact != float("inf"):
        assert all(abs(int(exact) - number) <= abs(int(n) - number) for n in neighbours)


@dataclasses.dataclass(frozen=True)
class Point:
    x: fe.Float32
    n: fe.Int8 = 100

    def twice(self):
        return self.x + self.x

    @property
    def more(self):
        return self.n + 100

    def __mul__(self, other):
        return Point(self.x * other.x)


class Pair(NamedTuple):
    x: fe.Float32


def widened(x: fe.Float32 = 0.1):
    return fe.Float64(x)


CONSTANT = fe.Float32(0.1)


def fields(o: fe.Tensor, x: fe.Float64):
    o[0] = fe.Float64(Point(x).x)
    o[1] = fe.Float64(Point(x).twice())
    o[2] = fe.Int32(Point(x).more)
    o[3] = fe.Float64((Point(x) * Point(x)).x)
    o[4] = fe.Float64(Pair(x).x)
    o[5] = widened(x) + widened()
    o[6] = fe.Float64(dataclasses.replace(Point(x), x=x + x).x)
    y: fe.Float32 = x
    o[7] = fe.Float64(y) + fe.Float64(CONSTANT)


@fe.jit
def fields_known(o: fe.Tensor):
    fields(o, 0.1)


def test_fields_and_parameters_have_their_dtype_when_they_are_known() -> None:
    assert values(fields_known) == values(fe.jit(fields), 0.1)


@fe.jit
def rounded_up(o: fe.Tensor, a: fe.Int64):
    o[0] = fe.ceil_div(fe.Uint8(7), fe.Uint8(2))
    o[1] = fe.ceil_div(fe.Uint8(a + 7), fe.Uint8(2))
    o[2] = fe.ceil_div(fe.Int8(-128), fe.Int8(3))
    o[3] = fe.ceil_div(fe.Int8(a - 128), fe.Int8(3))
    o[4] = fe.ceil_div(fe.Int8(127), 2)
    o[5] = fe.ceil_div(fe.Int8(a + 127), 2)


def test_a_quotient_rounded_up_does_not_wrap() -> None:
    assert values(rounded_up, 0) == [4, 4, -42, -42, 64, 64, 0, 0]


@fe.jit
def counted(o: fe.Tensor, n: fe.Int64):
    wide, narrow = 0, 0
    for i in range(n):
        wide = fe.Int64(i << 40)
    for i in range(fe.Int64(3)):
        narrow = fe.Int64(i << 40)
    o[0], o[1] = wide, narrow


def test_a_loop_counts_in_the_dtype_of_a_typed_bound() -> None:
    assert values(counted, 3)[:2] == [2.0 * 2**40] * 2


@fe.jit
def numpy_scalars(o: fe.Tensor, x: fe.Float32):
    o[0] = fe.Float64(x + np.float64(0.2))
    o[1] = fe.Int32(fe.Int8(100) + np.int32(100))
    o[2] = fe.Float64(fe.Float32(0.1) + np.float64(0.2))


def test_a_numpy_scalar_is_a_python_number() -> None:
    total = float(np.float32(0.1) + np.float32(0.2))
    assert values(numpy_scalars, 0.1)[:3] == [total, -56, total]


@fe.kernel
def bits_kernel(words: fe.Tensor, wide: fe.Tensor):
    words[0] = fe.math.exp(fe.Float32(1.5))
    words[1] = fe.Float32(fe.Float16(0.1)) * fe.Float32(3)
    words[2] = fe.math.fma(fe.Float32(0.1), 0.1, -0.01)
    wide[0] = fe.math.sin(fe.Float64(1e22))


@fe.jit
def bits(words: fe.Tensor, wide: fe.Tensor):
    bits_kernel(words, wide).launch(grid=1, block=1)


def test_kernels_for_a_gpu_have_the_folded_bits() -> None:
    examples = vector(fe.Float32), vector(fe.Float64)
    words, wide = np.zeros(3, np.float32), np.zeros(3, np.float64)
    fe.compile(bits, *examples, options=CPU)(words, wide)
    ptx = fe.compile(bits, *examples, options="--target cuda --gpu-arch sm_90a").inspect_ptx()
    shown = [f"{word:08X}" for word in words.view(np.uint32)]
    shown += [f"{word:016X}" for word in wide[:1].view(np.uint64)]
    decimal = [str(word) for word in (*words.view(np.int32), *wide[:1].view(np.int64))]
    for in_hex, in_decimal in zip(shown, decimal, strict=True):
        assert in_hex in ptx.upper() or in_decimal in ptx


def test_powers_of_typed_constants_have_their_type() -> None:
    @fe.jit
    def powers(n: fe.Uint8):
        return fe.Uint8(7) ** fe.Uint8(3), n ** fe.Uint8(3), fe.Int8(100) ** fe.Int8(2)

    assert powers(7) == (87, 87, 16)


def test_programs_that_are_compiled_as_one_agree() -> None:
    assert typed_constants.agree(range(4), CPU)


def test_programs_that_are_compiled_as_one_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_constants.Value, "literal", "fe.Int16(77)")
    assert not typed_constants.agree(range(4), CPU)


@fe.jit
def negated_truths(o: fe.Tensor, n: fe.Int32):
    no, two = fe.Boolean(False), fe.Float32(2.0)
    o[0] = (not (no or two)).dtype == fe.Boolean
    o[1] = (not (no or (not (two and no)))).dtype == fe.Boolean
    o[2] = (not (n > 0 or two)).dtype == fe.Boolean
    o[3] = not (no or two)
    o[4] = not (no and two)
    o[5] = not (n > 0 and two)
    o[6] = (not (no or n > 0)).dtype == fe.Boolean


def test_not_of_and_and_or_is_a_boolean_of_typed_constants() -> None:
    out = np.zeros(7, np.float64)
    fe.compile(negated_truths, vector(fe.Float64), fe.Int32, options=CPU)(out, 1)
    assert out.tolist() == [1, 1, 1, 0, 1, 0, 1]

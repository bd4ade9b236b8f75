"""Whole-tensor expressions as kernels: they write what the loops write, with the right threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cpu_machine import Compiled, compile_program, host, vector
from lowered import lower

import ferrule as fe
from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.passes.cleanup import remove_unused
from ferrule.language.ir.passes.collapse import collapse
from ferrule.language.ir.passes.outline import outline
from ferrule.language.ir.printer import print_program
from ferrule.language.ir.rules.verifier import verify
from ferrule.language.ir.types import TensorType
from ferrule.specs import Boolean, Float32, Int32, Int64, Sym, Uint8, sym_int

SHAPE = (3, 2, 4, 5)


@dataclass(frozen=True)
class Runnable:
    """A compiled program; it is called with arrays of any strides, which tell the symbols."""

    program: ops.Program
    compiled: Compiled

    def __call__(self, *arguments: Any) -> int:
        found: dict[Sym, int] = {}
        for param, array in zip(self.program.host.params, arguments, strict=True):
            if isinstance(param.type, TensorType):
                strides = [stride // array.itemsize for stride in array.strides]
                dims, sizes = (*param.type.shape, *param.type.strides), (*array.shape, *strides)
                for dim, size in zip(dims, sizes, strict=True):
                    if isinstance(dim, Sym):
                        found.setdefault(dim, size)
        raw = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        return self.compiled(*raw, *(found[symbol] for symbol in self.program.symbols))


def forms(function: Callable[..., Any], *examples: Any) -> list[Runnable]:
    """A function as loops, as kernels, as kernels over collapsed axes, and those of neighbours."""
    program = lower(function, *examples)
    whole = collapse(program)
    variants = (program, outline(program), outline(whole), outline(whole, wide=True))
    return [Runnable(variant, compile_program(variant)) for variant in variants]


def agree(functions: Sequence[Runnable], make: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Calls each with new arguments, which must be the same then; gives them."""
    results = []
    for function in functions:
        results.append(make())
        assert function(*results[-1]) == 0
    for other in results[1:]:
        for ours, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    return results[0]


def launches(program: ops.Program) -> list[ops.Launch]:
    return list(program.host.facts.each(ops.Launch))


def combine(c, a, b):
    c[:] = a[:] * 2 + b[:] - c[:]


def data(rank: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 40, SHAPE[:rank]).astype("f4")


def rows(rank: int, dtype: Any = fe.Float32) -> Any:
    """A fake tensor of symbolic sizes, in rows."""
    sizes = tuple(sym_int() for _ in range(rank))
    return fe.make_fake_compact_tensor(dtype, sizes, stride_order=tuple(reversed(range(rank))))


def columns(rank: int) -> Any:
    sizes = tuple(sym_int() for _ in range(rank))
    return fe.make_fake_compact_tensor(fe.Float32, sizes, stride_order=tuple(range(rank)))


def strided(rank: int) -> Any:
    sizes, strides = (tuple(sym_int(64) for _ in range(rank)) for _ in range(2))
    return fe.make_fake_tensor(fe.Float32, sizes, strides)


@pytest.mark.parametrize("rank", range(5))
def test_compact_tensors_of_every_rank(rank: int) -> None:
    def make() -> list[Any]:
        return [data(rank, seed) for seed in range(3)]

    c, *_ = agree(forms(combine, *[rows(rank) for _ in range(3)]), make)
    old, a, b = make()
    np.testing.assert_array_equal(c, a * 2 + b - old)


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_every_tensor_may_have_a_layout_of_its_own(rank: int) -> None:
    backwards = (slice(None, None, -1),) * rank

    def make() -> list[Any]:
        return [np.array(data(rank, 0), order="F"), data(rank, 1), data(rank, 2)[backwards]]

    c, *_ = agree(forms(combine, columns(rank), rows(rank), strided(rank)), make)
    old, a, b = make()
    np.testing.assert_array_equal(c, a * 2 + b - old)


def test_strides_of_zero_repeat() -> None:
    m, n = sym_int(), sym_int()
    example = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    repeated = fe.make_fake_tensor(fe.Float32, (m, n), (0, 1))
    row = np.arange(2, dtype="f4")

    def make() -> list[Any]:
        many = np.lib.stride_tricks.as_strided(row, (3, 2), (0, 4))
        return [data(2, 0), data(2, 1), many]

    c, a, _ = agree(forms(combine, example, example, repeated), make)
    np.testing.assert_array_equal(c, a * 2 + row - data(2, 0))


def fill(c, a):
    c[:] = a[:] * 0 + 7


def test_empty_tensors_run_no_thread() -> None:
    functions, around = forms(fill, rows(2), rows(2)), np.zeros(64, "f4")
    for m, n in ((0, 3), (3, 0), (0, 0)):
        agree(functions, lambda m=m, n=n: [around[: m * n].reshape(m, n)] * 2)
        assert not around.any()
    agree(functions, lambda: [around[:1].reshape(1, 1)] * 2)
    assert around.nonzero()[0].tolist() == [0]


def test_blocks_need_not_be_full() -> None:
    functions = forms(fill, rows(1), rows(1))
    for size in (1, 255, 256, 257, 1000):

        def make(size: int = size) -> list[Any]:
            return [np.zeros(1024, "f4")[:size], np.zeros(size, "f4")]

        c, _ = agree(functions, make)
        assert c.base.nonzero()[0].tolist() == list(range(size))


def test_scalars_and_sizes_come_along() -> None:
    def scaled(c, a, alpha: fe.Float32, shift: fe.Int64, negate: fe.Boolean):
        twice = alpha * 2
        sign = -1 if negate else 1
        c[:] = (a[:] * twice + shift) * sign + a.shape[0] * 3

    def make() -> list[Any]:
        return [np.zeros((3, 2), "f4"), data(2, 1), 1.5, 1 << 40, 1]

    c, a, *_ = agree(forms(scaled, rows(2), rows(2), 1.0, 1, True), make)
    np.testing.assert_array_equal(c, -(a * 3 + np.float32(1 << 40)) + 9)


def test_what_is_used_twice_is_one_parameter_and_sizes_are_none() -> None:
    def twice(c, a, alpha: fe.Float32):
        c[:] = a[:] * alpha + a[:] * alpha + a.shape[1] + 4.0

    program = outline(lower(twice, rows(2), rows(2), 1.0))
    (kernel,) = program.kernels
    of_blocks = ["width", "height", "shift"]
    assert [param.hint for param in kernel.params] == [*of_blocks, "a", "alpha", "c"]
    (launch,) = launches(program)
    assert [argument.hint for argument in launch.arguments[3:]] == ["a", "alpha", "c"]


def test_several_in_one_function_and_inside_control_flow() -> None:
    def steps(c, a, times: fe.Int32):
        c[:] = a[:]
        for k in range(times):
            if k % 2 == 0:
                c[:] = c[:] * 2
            else:
                c[:] = c[:] + a[:] + k
        while times > 0:
            c[:] = c[:] + times
            times -= 2

    def make() -> list[Any]:
        return [np.zeros((3, 2), "f4"), data(2, 1), 5]

    c, a, _ = agree(forms(steps, rows(2), rows(2), 1), make)
    wanted = a.copy()
    for k in range(5):
        wanted = wanted * 2 if k % 2 == 0 else wanted + a + k
    np.testing.assert_array_equal(c, wanted + 5 + 3 + 1)
    names = [kernel.name for kernel in outline(lower(steps, rows(2), rows(2), 1)).kernels]
    assert names == ["steps_c", "steps_c_1", "steps_c_2", "steps_c_3"]


@fe.kernel
def fill_c(c: fe.Tensor):
    c[0] = 1.0


def test_a_users_kernel_keeps_its_name() -> None:
    def fill(c):
        fill_c(c).launch(grid=(1,), block=(1,))
        c[:] = c[:] + 1

    program = outline(lower(fill, rows(1)))
    assert [kernel.name for kernel in program.kernels] == ["fill_c", "fill_c_1"]
    verify(program)


def test_a_program_without_whole_tensors_stays_as_it_is() -> None:
    def one(c):
        fill_c(c).launch(grid=(1,), block=(1,))

    program = lower(one, rows(1))
    assert print_program(outline(program)) == print_program(program)


def test_one_thread_for_a_tensor_without_dims() -> None:
    program = outline(lower(combine, *[rows(0)] * 3))
    (launch,) = launches(program)
    constants = {op.result: op.value for op in program.host.body.ops if hasattr(op, "value")}
    assert [constants[size] for size in (*launch.grid, *launch.block)] == [1] * 6


def test_the_launch_knows_the_line_of_the_assignment() -> None:
    program = outline(lower(combine, *[rows(1)] * 3))
    (launch,) = launches(program)
    assert launch.location is not None
    assert launch.location.line == combine.__code__.co_firstlineno + 1


# ---- sizes that no launch has ----


def everywhere(*sizes: Sym) -> ops.Program:
    """`out[…] = 1` over sizes of which all elements are one in memory."""
    b = Builder()
    out = ops.Value(TensorType(Float32, sizes, (0,) * len(sizes), 4), "out")
    indices = tuple(ops.Value(Int64, f"i{axis}") for axis in range(len(sizes)))
    with b.region() as body:
        extents = tuple(b.size(Int64, size) for size in sizes)
        with b.region() as inner:
            b.store(out, indices, b.constant(Float32, 1.0))
        b.append(ops.Parallel(indices, extents, inner.freeze()))
    return outline(host("everywhere", [out], body.freeze(), *sizes))


def fault_of(compiled: Compiled, *arguments: Any) -> tuple[str, str]:
    """Class and message of the error that a call ends with."""
    fault = compiled.body.faults[compiled(*arguments) - 1]
    return fault.kind, fault.message.format(*compiled.values)


def test_more_blocks_than_a_grid_has_are_refused() -> None:
    out = np.zeros(1, "f4")
    compiled = compile_program(everywhere(sym_int(64, symbol="n")))
    message = "Invalid launch of everywhere_out: expected grid x to be in [0, 2147483647], but got "
    wanted = "LaunchError", f"{message}2147483648"
    assert fault_of(compiled, out, (2**31 - 1) * 256 + 1) == wanted
    assert fault_of(compiled, out, -257) == ("LaunchError", f"{message}-1")
    assert out[0] == 0
    assert compiled(out, 10) == 0
    assert out[0] == 1


def test_more_rows_of_blocks_than_two_axes_of_a_grid_have_are_refused() -> None:
    out = np.zeros(1, "f4")
    compiled = compile_program(everywhere(sym_int(64, symbol="m"), sym_int(64, symbol="n")))
    most = (2**16 - 1) ** 2
    message = f"expected grid y times grid z to be in [0, {most}], but got {most + 1}"
    wanted = "LaunchError", f"Invalid launch of everywhere_out: {message}"
    assert fault_of(compiled, out, most * 256 + 1, 1) == wanted
    assert compiled(out, 0, 0) == 0
    assert out[0] == 0


@pytest.mark.parametrize("more", [-1, 0, 1, 257, 65535 * 256 + 3])
def test_rows_beyond_the_limit_of_one_axis(more: int) -> None:
    b, (m, n) = Builder(), (sym_int(64, symbol="m"), sym_int(64, symbol="n"))
    out = ops.Value(TensorType(Uint8, (m, n), (n, 1), 1), "out")
    indices = (ops.Value(Int64, "i"), ops.Value(Int64, "j"))
    with b.region() as body:
        extents = (b.size(Int64, m), b.size(Int64, n))
        with b.region() as inner:
            one = b.constant(Uint8, 1)
            b.store(out, indices, b.binary("add", b.load(out, indices), one))
        b.append(ops.Parallel(indices, extents, inner.freeze()))
    compiled = compile_program(outline(host("rows", [out], body.freeze(), m, n)))
    count = 65535 * 256 + more
    array = np.zeros((count, 1), np.uint8)
    assert compiled(array, count, 1) == 0
    assert (array == 1).all()


def test_more_elements_than_64_bits_count_are_refused() -> None:
    compiled = compile_program(everywhere(*(sym_int(symbol=name) for name in "mnk")))
    largest = [2**31 - 1] * 3
    message = "Invalid launch of everywhere_out: grid x overflows 64 bits or divides by zero"
    assert fault_of(compiled, np.zeros(1, "f4"), *largest) == ("LaunchError", message)


def test_an_extent_that_is_no_size_is_refused() -> None:
    b, out, many = Builder(), ops.Value(vector(Float32, 8), "out"), ops.Value(Int64, "many")
    index = ops.Value(Int64, "i")
    with b.region() as inner:
        b.store(out, (index,), b.constant(Float32, 1.0))
    body = ops.Region((ops.Parallel((index,), (many,), inner.freeze()),))
    with pytest.raises(TypeError, match="an extent of a Parallel is no size: %many"):
        outline(host("f", [out, many], body))


# ---- coordinates ----


def transpose(c, a):
    c[:] = a[:]


def test_compact_tensors_need_no_division() -> None:
    (kernel,) = outline(collapse(lower(combine, *[rows(3)] * 3))).kernels
    assert not any(getattr(op, "op", "") == "floordiv" for op in kernel.facts.ops)
    assert sum(isinstance(op, ops.If) for op in kernel.facts.ops) == 1


def test_text_of_a_kernel(golden) -> None:
    """Neighbouring threads write to neighbours: the rows of `c` are its faster dim."""
    m, n = sym_int(symbol="m"), sym_int(symbol="n")
    c = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(0, 1))
    a = fe.make_fake_compact_tensor(fe.Float32, (m, n), stride_order=(1, 0))
    golden("transpose.ir", print_program(outline(lower(transpose, c, a))))


# ---- bodies that the language does not make ----


def test_bodies_with_control_flow() -> None:
    """Captured values are found wherever they stand: operands, yields, bounds of loops."""
    b, n = Builder(), sym_int(symbol="n")
    out = ops.Value(vector(Int32, n), "out")
    flag, start, other = ops.Value(Boolean, "flag"), ops.Value(Int32, "x"), ops.Value(Int32, "y")
    index, k, total = ops.Value(Int64, "i"), ops.Value(Int32, "k"), ops.Value(Int32, "total")
    with b.region() as body:
        extent, three, step = b.size(Int64, n), b.constant(Int32, 3), b.constant(Int32, 1)
        zero = b.constant(Int32, 0)
        with b.region() as inner:
            then, otherwise = ops.Region((), (start,)), ops.Region((), (other,))
            (chosen,) = b.if_(flag, then, otherwise, ("chosen",))
            with b.region() as loop:
                following = b.binary("add", total, k)
            result = ops.Value(Int32, "sum")
            bounds = (zero, three, step)
            loop_body = loop.freeze(following)
            b.append(ops.For((result,), k, *bounds, (chosen,), (total,), loop_body))
            b.store(out, (index,), b.binary("add", result, b.cast(Int32, index)))
        b.append(ops.Parallel((index,), (extent,), inner.freeze()))
    program = host("chosen", [out, flag, start, other], body.freeze(), n)
    outlined = outline(program)
    verify(outlined)
    assert [param.hint for param in outlined.kernels[0].params] == ["flag", "x", "y", "out"]
    for choice, first in ((1, 10), (0, 20)):
        found = np.zeros(4, "i4")
        assert compile_program(outlined)(found, choice, 10, 20, 4) == 0
        assert found.tolist() == [first + 3 + i for i in range(4)]


def test_a_size_that_can_fail_stays_without_a_use() -> None:
    n, b = sym_int(symbol="n"), Builder()
    with b.region() as body:
        b.size(Int64, n * n, Fault("ValueError", "too large"))
        b.size(Int64, n * n)
    program = remove_unused(host("sizes", [], body.freeze(), n))
    assert program.host.body.ops == body.freeze().ops[:1]


def test_nesting_has_no_limit() -> None:
    b, out, flag = Builder(), ops.Value(vector(Float32, 8), "out"), ops.Value(Boolean, "flag")
    index = ops.Value(Int64, "i")
    with b.region() as opened:
        b.constant(Int32, 1, "unused")
        extent = b.constant(Int64, 8)
        with b.region() as inner:
            b.store(out, (index,), b.constant(Float32, 1.0))
        b.append(ops.Parallel((index,), (extent,), inner.freeze()))
    body = opened.freeze()
    for _ in range(3000):
        body = ops.Region((ops.If((), flag, body, ops.Region()),))
    program = outline(host("deep", [out, flag], body))
    verify(program)
    found = program.host.facts.ops
    assert isinstance(found[-1], ops.Launch)
    assert not any(isinstance(op, ops.Parallel) for op in found)
    assert "unused" not in {op.result.hint for op in found if isinstance(op, ops.Constant)}
    assert len(remove_unused(program).host.facts.ops) == len(found)

"""The lowering of sizes against `specs.evaluate`: on all awkward numbers, and at random."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.compiler import targets
from ferrule.compiler.sizes import Sizes
from ferrule.runtime.linking.lljit import linking_machine
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.runtime.llvm.writer import FALSE, Value, Writer, i32
from ferrule.specs import Dim, Sym, ceil_div, evaluate, maximum, minimum, sym_int
from ferrule.specs.expr import make

N, M = sym_int(64, symbol="n"), sym_int(64, symbol="m")
LOW, HIGH = -(1 << 63), (1 << 63) - 1
AWKWARD = [LOW, LOW + 1, -(1 << 31), -7, -2, -1, 0, 1, 2, 3, 7, 1 << 31, 1 << 32, HIGH - 1, HIGH]


Ranges = dict[Sym, tuple[int, int]]


def emitted(dim: Dim, ranges: Ranges) -> tuple[str, bool]:
    """A function that stores a size and returns its flag, and whether it has one."""
    emitter = Emitter("size")
    with emitter.define("size", I32, (I64, I64, PTR)) as function:
        symbols = {N: function.args[0], M: function.args[1]}
        size = Sizes(emitter, symbols, ranges).lower(dim)
        emitter.store(size.value, function.args[2])
        undefined = emitter.const_i32(0)
        if size.undefined is not None:
            undefined = emitter.builder.zext(size.undefined, I32)
        emitter.ret(undefined)
    return emitter.text(), size.undefined is not None


def written(dim: Dim, ranges: Ranges) -> tuple[str, bool]:
    """The same by the writer."""
    writer = Writer()
    n, m, out = Value("i64", "%n"), Value("i64", "%m"), Value("ptr", "%out")
    with writer.define("size", "i32", (n, m, out)):
        size = Sizes(writer, {N: n, M: m}, ranges).lower(dim)
        writer.store(size.value, out)
        undefined = FALSE if size.undefined is None else size.undefined
        writer.ret(writer.cast("zext", undefined, "i32"))
    return writer.text(), size.undefined is not None


def refusing(dim: Dim, ranges: Ranges) -> tuple[str, bool]:
    """The same where a flag is acted on as soon as it is there."""
    writer = Writer()
    n, m, out = Value("i64", "%n"), Value("i64", "%m"), Value("ptr", "%out")
    with writer.define("size", "i32", (n, m, out)):
        refused, flags = writer.block("refused"), []

        def refuse(flag: Value) -> None:
            behind = writer.block("behind")
            writer.cond_branch(flag, refused, behind)
            writer.at(behind)
            flags.append(flag)

        size = Sizes(writer, {N: n, M: m}, ranges, refuse).lower(dim)
        assert size.undefined is None
        writer.store(size.value, out)
        writer.ret(i32(0))
        writer.at(refused)
        writer.ret(i32(1))
    return writer.text(), bool(flags)


WAYS = (emitted, written, refusing)


class Compiled:
    """`dim` as machine code: the value, None where it has none."""

    def __init__(
        self,
        dim: Dim,
        ranges: Ranges | None = None,
        way: Callable[[Dim, Ranges], tuple[str, bool]] = written,
    ) -> None:
        text, self.checked = way(dim, dict(ranges or {}))
        targets.machine(targets.host())
        self._jit = llvm.create_lljit_compiler(linking_machine(), use_jit_link=True)
        module = llvm.parse_assembly(text)
        library = llvm.JITLibraryBuilder().add_ir(module).export_symbol("size")
        self._library = library.link(self._jit, "size")
        self._function = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )(self._library["size"])

    def __call__(self, n: int, m: int) -> int | None:
        value = ctypes.c_int64()
        undefined = self._function(n, m, ctypes.addressof(value))
        return None if undefined else value.value


def reference(dim: Dim, n: int, m: int) -> int | None:
    try:
        return evaluate(dim, {N: n, M: m})
    except (OverflowError, ZeroDivisionError):
        return None


BINARY = [
    N + M, N - M, N * M, N // M, N % M, ceil_div(N, M), minimum(N, M), maximum(N, M),
]  # fmt: skip
UNARY = [
    N + 5, 5 - N, N * 3, N // 2, N // -1, N // -3, N % 8, N % -8, N % -1, ceil_div(N, 4),
    ceil_div(N, -4), 100 // N, 7 % N, ceil_div(LOW, N), N // 0, N % 0,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dim", [*BINARY, *UNARY], ids=str)
def test_operations_on_awkward_numbers(dim: Dim, way: Any) -> None:
    compiled = Compiled(dim, way=way)
    for n in AWKWARD:
        for m in AWKWARD:
            assert compiled(n, m) == reference(dim, n, m), (n, m)


def test_symbols_in_range_need_no_checks() -> None:
    ranges = {N: (0, (1 << 31) - 1), M: (0, (1 << 31) - 1)}
    assert not Compiled(N * M + 1, ranges).checked
    assert not Compiled((N + 127) // 128, ranges).checked
    assert Compiled(N * M * N, ranges).checked
    assert Compiled(N // M, ranges).checked
    compiled = Compiled(N * M * N, ranges)
    for n in (0, 1, 1 << 20, (1 << 31) - 1):
        assert compiled(n, n) == reference(N * M * N, n, n)


def test_a_constant_that_no_64_bits_hold_has_no_value() -> None:
    assert Compiled(make("add", N, 1 << 63))(5, 0) is None


LEAVES = st.one_of(st.sampled_from([N, M]), st.integers(-9, 9), st.sampled_from([LOW + 1, HIGH]))
OPERATIONS = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a // b,
    lambda a, b: a % b,
    ceil_div,
    minimum,
    maximum,
]


@st.composite
def dims(draw: st.DrawFn, depth: int = 3) -> Dim:
    if depth == 0:
        return draw(LEAVES)
    left, right = draw(dims(depth - 1)), draw(dims(draw(st.integers(0, depth - 1))))
    symbolic = left if isinstance(left, Sym) else N
    return draw(st.sampled_from(OPERATIONS))(symbolic if isinstance(left, int) else left, right)


@settings(max_examples=60, deadline=None)
@given(dims(), st.data())
def test_random_expressions(dim: Dim, data: st.DataObject) -> None:
    compiled = Compiled(dim)
    numbers = st.one_of(st.sampled_from(AWKWARD), st.integers(-100, 100), st.integers(LOW, HIGH))
    for _ in range(10):
        n, m = data.draw(numbers), data.draw(numbers)
        assert compiled(n, m) == reference(dim, n, m)

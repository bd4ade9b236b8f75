"""Phases that are the same but for some integers are calls of one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.language.codegen.cpu import alike

arch = fe.arch
BLOCK = 240
VECTOR = fe.row_major((fe.sym_int(),), fe.Int32)
Stage = Callable[[Any, Any, Any], None]
"""What a thread does in a phase: with shared memory, its number, and an integer."""


def kernel_of(stage: Any, numbers: Sequence[Any]) -> Any:
    """A kernel with a phase for each integer."""

    @fe.kernel
    def kernel(a, b):
        t = arch.thread_idx()[0]
        held = arch.alloc_smem(fe.Int32, BLOCK)
        held[t] = a[t]
        arch.sync_threads()
        for number in numbers:
            stage(held, t, number)
            arch.sync_threads()
        b[t] = held[t]

    return kernel


def compiled(kernel: Any, *examples: Any, block: Any = BLOCK) -> fe.Function:
    @fe.jit
    def host(a, b, n: fe.Int32):
        kernel(a, b).launch(grid=1, block=n if block is None else block)

    given = examples or (VECTOR, VECTOR)
    return fe.compile(host, *given, fe.Int32, options="--target cpu --no-cache")


def functions(function: fe.Function) -> int:
    """The number of functions of phases."""
    return function.inspect_llvm().count('define internal void @"stage_')


def called(function: fe.Function) -> np.ndarray:
    a = np.random.default_rng(5).integers(-1000, 1000, BLOCK).astype(np.int32)
    b = np.zeros_like(a)
    function(a, b, BLOCK)
    return b


def apart(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> fe.Function:
    """The kernel with each phase where it stands."""
    with monkeypatch.context() as patched:
        patched.setattr(alike, "FEWEST", 1 << 30)
        function = compiled(kernel)
    assert functions(function) == 0
    return function


# ---- a network of stages ----

ROW = 256


@fe.kernel
def sorting(x, out):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    held = arch.alloc_smem(fe.Float32, ROW)
    held[thread], held[thread + ROW // 2] = x[row, thread], x[row, thread + ROW // 2]
    arch.sync_threads()
    for size in fe.range_constexpr(1, 9):
        for step in fe.range_constexpr(size - 1, -1, -1):
            low = ((thread >> step) << (step + 1)) + (thread & ((1 << step) - 1))
            high = low + (1 << step)
            a, b = held[low], held[high]
            up = (low >> size) & 1 == 0
            held[low] = min(a, b) if up else max(a, b)
            held[high] = max(a, b) if up else min(a, b)
            arch.sync_threads()
    out[row, thread], out[row, thread + ROW // 2] = held[thread], held[thread + ROW // 2]


def test_a_sort_has_a_function_for_each_distance() -> None:
    @fe.jit
    def host(x, out):
        sorting(x, out).launch(grid=x.shape[0], block=ROW // 2)

    matrix = fe.row_major((fe.sym_int(), fe.sym_int()), fe.Float32)
    function = fe.compile(host, matrix, matrix, options="--target cpu --no-cache")
    assert functions(function) == 6  # of 8: two of the distances have fewer than three stages
    text = function.inspect_asm()
    assert "gather" not in text and "scatter" not in text
    x = np.random.default_rng(1).normal(size=(5, ROW)).astype(np.float32)
    out = np.zeros_like(x)
    function(x, out)
    np.testing.assert_array_equal(out, np.sort(x, 1))


# ---- results ----


def _stages() -> dict[str, tuple[Any, Any]]:
    """Stages with the same in NumPy, of the numbers of all threads: the new values."""

    def shifted(held, t, c):
        held[t] = held[t] * 3 + ((t + 1 >> c) & 1)

    def masked(held, t, c):
        held[t] = held[t] + 7 if (t & c) == 0 else held[t] ^ c

    def compared(held, t, c):
        held[t] = min(held[t], c) if t * 5 < c else max(held[t], c)

    def negative(held, t, c):
        held[t] = held[t] ^ ((t - c) >> 3)

    def counted(held, t, c):
        held[t] = (held[t] << c) + (held[t] >> (c + 29))

    return {
        "shift": (shifted, lambda h, t, c: h * 3 + ((t + 1 >> min(c, 31)) & 1)),
        "mask": (masked, lambda h, t, c: np.where((t & c) == 0, h + 7, h ^ c)),
        "compare": (
            compared,
            lambda h, t, c: np.where(t * 5 < c, np.minimum(h, c), np.maximum(h, c)),
        ),
        "difference": (negative, lambda h, t, c: h ^ ((t - c) >> 3)),
        "count": (counted, lambda h, t, c: (h << c) + (h >> min(c + 29, 31))),
    }


@pytest.mark.parametrize("name", _stages())
def test_integers_beside_addresses_are_parameters(name: str) -> None:
    stage, meaning = _stages()[name]
    numbers = (0, 1, 2, 5, 8, 16, 31) if name != "count" else (0, 1, 2, 3)
    function = compiled(kernel_of(stage, numbers))
    assert functions(function) == 1
    held = np.random.default_rng(5).integers(-1000, 1000, BLOCK).astype(np.int32)
    threads = np.arange(BLOCK, dtype=np.int32)
    for number in numbers:
        held = meaning(held, threads, np.int32(number)).astype(np.int32)
    np.testing.assert_array_equal(called(function), held)


def in_rows(length: int, scale: int, more: int, *, mask: bool) -> Any:
    """A stage along rows of this length, in which a sum of row and place decides."""

    def stage(held, t, c):
        row, place = t // length, t % length
        at = (BLOCK // length - 1 - row) * length + place
        number = row * scale + place + more
        bit = (number & (1 << c)) == 0 if mask else (number >> c) & 1 == 0
        held[at] = held[at] * 3 + 1 if bit else held[at] ^ c

    return stage


@pytest.mark.parametrize("mask", [False, True], ids=["shift", "mask"])
@pytest.mark.parametrize(
    ("length", "scale", "more"),
    [(2, 2, 0), (3, 4, 0), (4, 8, 0), (8, 16, 0), (8, 8, 8), (8, 8, 3), (16, 20, 0), (5, 5, 0)],
)
@pytest.mark.parametrize("numbers", [range(10), (3, 5, 9), (4, 6, 30), (0, 1, 2)])
def test_bits_of_a_row_are_those_of_each_thread(
    length: int,
    scale: int,
    more: int,
    mask: bool,
    numbers: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel = kernel_of(in_rows(length, scale, more, mask=mask), tuple(numbers))
    together = compiled(kernel)
    assert functions(together) == 1
    assert length < 4 or "thread.x.row" in together.inspect_llvm()
    found = called(together)
    held = np.random.default_rng(5).integers(-1000, 1000, BLOCK).astype(np.int32)
    row, place = np.divmod(np.arange(BLOCK, dtype=np.int32), length)
    at = (BLOCK // length - 1 - row) * length + place
    for c in numbers:
        bit = ((row * scale + place + more) >> c) & 1 == 0
        held[at] = np.where(bit, held[at] * 3 + 1, held[at] ^ c).astype(np.int32)
    np.testing.assert_array_equal(found, held)


def test_a_row_decides_once_where_no_place_can() -> None:
    """Rows of 8 of numbers by 16: a shift by 4 or more drops the place, one by 3 does not."""
    once = compiled(kernel_of(in_rows(8, 16, 0, mask=False), (4, 5, 6)))
    each = compiled(kernel_of(in_rows(8, 16, 0, mask=False), (2, 5, 6)))
    shifts = [_shifts_before_the_inner_loop(f.inspect_llvm()) for f in (once, each)]
    assert shifts == [1, 0]


def _shifts_before_the_inner_loop(text: str) -> int:
    function = text[text.index('define internal void @"stage_') :].partition("\n}")[0]
    return function.partition("thread.x.row.body:")[2].partition("thread.x.head")[0].count("ashr")


# ---- what is called, and what is not ----


def test_equal_phases_need_no_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(held, t, c):
        held[BLOCK - 1 - t] = held[BLOCK - 1 - t] * 5 + t

    kernel = kernel_of(stage, (0, 0, 0, 0))
    together = compiled(kernel)
    assert functions(together) == 1
    np.testing.assert_array_equal(called(together), called(apart(kernel, monkeypatch)))


def test_values_of_the_kernel_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of the block and of the argument, and an address of global memory."""

    @fe.kernel
    def kernel(a, b):
        t, block = arch.thread_idx()[0], arch.block_idx()[0]
        first, blocks = a[3], arch.grid_dim()[0]
        for number in (1, 2, 3):
            b[t] = b[t] * 2 + (t + 1 >> number) + first + block + blocks
            arch.sync_threads()

    fixed = fe.row_major((BLOCK,), fe.Int32)
    together = compiled(kernel, fixed, fixed)
    assert functions(together) == 1
    a, b = np.arange(BLOCK, dtype=np.int32), np.arange(BLOCK, dtype=np.int32)
    together(a, b, 0)
    wanted = np.arange(BLOCK, dtype=np.int32)
    for number in (1, 2, 3):
        wanted = wanted * 2 + (a + 1 >> number) + 3 + 0 + 1
    np.testing.assert_array_equal(b, wanted)


def _others() -> dict[str, Any]:
    def place(held, t, c):
        held[(t + c) % BLOCK] = t

    def product(held, t, c):
        held[t] = held[t] * c

    def quotient(held, t, c):
        held[t] = held[t] // c

    def rounded(held, t, c):
        held[t] = fe.Int32(fe.Float32(held[t]) * (c + 0.5))

    def looped(held, t, c):
        for i in range(fe.Int32(held[t]) & 3):
            held[t] = held[t] + c + i

    def atomic(held, t, c):
        arch.atomic_add(held + t, c)

    return {f.__name__: f for f in (place, product, quotient, rounded, looped, atomic)}


@pytest.mark.parametrize("name", _others())
def test_other_phases_stay_where_they_are(name: str) -> None:
    assert functions(compiled(kernel_of(_others()[name], (1, 2, 3, 5)))) == 0


def test_too_few_phases_and_unknown_sizes() -> None:
    stage, _ = _stages()["shift"]
    kernel = kernel_of(stage, (1, 2, 3))
    assert functions(compiled(kernel)) == 1
    assert functions(compiled(kernel_of(stage, (1, 2)))) == 0
    assert functions(compiled(kernel, block=None)) == 0

    @fe.kernel
    def direct(a, b):
        t = arch.thread_idx()[0]
        for number in (1, 2, 3):
            b[t, 0] = b[t, 0] * 2 + (t + 1 >> number)
            arch.sync_threads()

    matrix = fe.row_major((fe.sym_int(), fe.sym_int()), fe.Int32)
    assert functions(compiled(direct, matrix, matrix)) == 0

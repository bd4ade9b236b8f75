"""`Function.remarks`: what became of each loop and launch, by lines of the source."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.remarks.reasons import change_of, lanes_of, reason_of
from ferrule.runtime import StageError, load_module
from ferrule.runtime.artefacts import Remark, Remarks

arch = fe.arch
N, M, K = fe.sym_int(), fe.sym_int(), fe.sym_int()
VECTOR = fe.make_fake_compact_tensor(fe.Float32, (N,))
OTHER = fe.make_fake_compact_tensor(fe.Float32, (M,))
PLACES = fe.make_fake_compact_tensor(fe.Int32, (N,))
MATRIX = fe.row_major((N, M), fe.Float32)


def remarks_of(fn: Any, *examples: Any, options: str = "") -> Remarks:
    return fe.compile(fn, *examples, options=f"--target cpu {options}").remarks


def at(found: Remarks, fn: Any, text: str) -> Remark:
    """The one remark about the line with this text."""
    source, first = inspect.getsourcelines(getattr(fn, "function", fn))
    line = first + next(number for number, each in enumerate(source) if text in each)
    (remark,) = (each for each in found if each.line == line)
    assert Path(remark.file).name == Path(__file__).name
    return remark


@fe.jit
def dot(a: fe.Tensor, b: fe.Tensor) -> fe.Float32:
    total = fe.Float32(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@fe.jit
def any_order(a: fe.Tensor, b: fe.Tensor) -> fe.Float32:
    total = fe.Float32(0)
    for i in fe.range(a.shape[0], reassociate=True):
        total += a[i] * b[i]
    return total


def test_a_sum_in_order_says_what_would_help():
    remark = at(remarks_of(dot, VECTOR, VECTOR), dot, "for i")
    assert (remark.what, remark.lanes, remark.function) == ("loop", 1, "dot")
    assert "not vectorised: it adds floats in order" in remark.text
    assert "index Int32" in remark.text
    assert "reassociate=True" in remark.hint
    remark = at(remarks_of(any_order, VECTOR, VECTOR), any_order, "for i")
    assert remark.lanes is not None and remark.lanes > 1
    assert f"vectorised, {remark.lanes} lanes" in remark.text and not remark.hint


def test_the_option_is_in_the_remarks():
    remark = at(remarks_of(dot, VECTOR, VECTOR, options="--fast-math"), dot, "for i")
    assert remark.lanes is not None and remark.lanes > 1


@fe.jit
def log_sum(a: fe.Tensor) -> fe.Float32:
    total = fe.Float32(0)
    for i in range(a.shape[0]):
        total += fe.math.log(a[i])
    return total


def test_functions_before_a_sum_are_of_its_loop():
    remark = at(remarks_of(log_sum, VECTOR), log_sum, "for i")
    assert remark.what == "loop" and remark.lanes is not None and remark.lanes > 1


@fe.jit
def many(a: fe.Tensor, b: fe.Tensor, places: fe.Tensor, m: fe.Tensor, out: fe.Tensor):
    for i in range(1, a.shape[0]):  # a chain
        b[i] = b[i - 1] + a[i]
    for i in range(a.shape[0]):  # a scatter
        if a[i] > 0:
            b[places[i]] = a[i]
    n = 0
    while n < a.shape[0] and a[n] != 0:  # a search
        n += 1
    out[0] = n
    for i in range(m.shape[0]):  # rows
        for j in range(m.shape[1]):  # columns
            m[i, j] = m[i, j] * 2
    for j in range(m.shape[1]):  # over columns
        for i in range(m.shape[0]):  # down a column
            m[i, j] = m[i, j] + 1
    for i in range(3):  # few
        out[i] = i
    b[:] = a[:] * 2  # elements


def pairs(a, b):
    for i in range(b.shape[0]):  # pairs
        b[i] = a[2 * i] + a[(i << 1) + 1] + a[i * i]


def test_steps_of_several_elements_are_said():
    loop = at(remarks_of(pairs, VECTOR, VECTOR), pairs, "# pairs")
    assert "it reads a in steps of 2 elements; it reads a at places that are" in loop.text
    assert "b " not in loop.text


def test_each_loop_has_its_reason():
    out = fe.make_fake_compact_tensor(fe.Float32, (8,))
    found = remarks_of(many, VECTOR, VECTOR, PLACES, MATRIX, out)
    chain = at(found, many, "a chain")
    assert "an iteration reads what an earlier one has written" in chain.text
    scatter = at(found, many, "a scatter")
    assert scatter.lanes == 1
    assert "it writes b at places that are not side by side" in scatter.text
    search = at(found, many, "a search")
    assert search.what == "loop" and search.lanes == 1
    assert "not vectorised: it ends in several ways" in search.text
    rows, columns = at(found, many, "# rows"), at(found, many, "# columns")
    assert f"around what is in line {columns.line}" in rows.text
    assert columns.lanes is not None and columns.lanes > 1 and "steps" not in columns.text
    down = at(found, many, "down a column")
    assert "it reads m in steps of n1 elements; it writes m in steps of n1 elements" in down.text
    few = at(found, many, "# few")
    assert few.lanes is None or "vectorised" in few.text
    elements = at(found, many, "# elements")
    assert elements.what == "expression" and elements.lanes is not None and elements.lanes > 1
    assert "the threads of the machine share it" in elements.text
    assert list(found) == sorted(found, key=lambda each: each.line)
    assert str(found).count("\n") == len(found) - 1
    assert str(found).startswith(f"{found[0].file}:{found[0].line}: the loop: ")


@fe.kernel
def row_sums_kernel(a: fe.Tensor, out: fe.Tensor):
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    total = fe.Float32(0)
    for j in range(thread, a.shape[1], 128):
        total += a[row, j]
    total = arch.block_reduction(total, lambda x, y: x + y)
    if thread == 0:
        out[row] = total


@fe.jit
def row_sums(a: fe.Tensor, out: fe.Tensor):
    row_sums_kernel(a, out).launch(grid=a.shape[0], block=128)


@fe.kernel
def column_sums_kernel(a: fe.Tensor, out: fe.Tensor):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < a.shape[1]:
        total = fe.Float32(0)
        for j in range(a.shape[0]):
            total += a[j, i]
        out[i] = total


@fe.jit
def column_sums(a: fe.Tensor, out: fe.Tensor):
    column_sums_kernel(a, out).launch(grid=(a.shape[1] + 63) // 64, block=64)


@fe.kernel
def apart_kernel(a: fe.Tensor, out: fe.Tensor):
    thread = arch.thread_idx()[0]
    if a[thread] > 0:
        arch.sync_threads()
    out[thread] = a[thread]


@fe.jit
def apart(a: fe.Tensor, out: fe.Tensor):
    apart_kernel(a, out).launch(grid=1, block=(8, 4))


def test_launches_say_how_threads_run():
    found = remarks_of(row_sums, MATRIX, VECTOR)
    loop = at(found, row_sums_kernel, "for j")
    assert "the loop, made by all threads of a block together: vectorised" in loop.text
    launch = at(found, row_sums, ".launch")
    assert (launch.what, launch.lanes) == ("launch", None)
    assert "blocks of 128 threads; its threads run in" in launch.text
    assert "phases, cut where they wait: each is a loop over the threads" in launch.text

    found = remarks_of(column_sums, MATRIX, OTHER)
    assert "its lanes are threads, in strips of 256" in at(found, column_sums_kernel, "for j").text
    assert "its blocks along x are one loop" in at(found, column_sums, ".launch").text

    launch = at(remarks_of(apart, VECTOR, VECTOR), apart, ".launch")
    assert "blocks of 8 by 4 threads; its threads are coroutines" in launch.text
    assert "they may wait at different places (line " in launch.text
    assert "one thread of the machine runs it: it is one piece" in launch.text


def test_a_column_major_matrix_is_read_in_steps():
    columns = fe.make_fake_compact_tensor(fe.Float32, (N, M))
    loop = at(remarks_of(row_sums, columns, VECTOR), row_sums_kernel, "for j")
    assert loop.lanes == 1 and "it reads a in steps of n0 elements" in loop.text


def scaled(a, k):
    for i in range(a.shape[0]):  # in a function that is called
        a[i] = a[i] * k


@fe.jit
def calls(a: fe.Tensor, k: fe.Float32):
    scaled(a, k)


def test_loops_of_called_functions_are_in_their_lines():
    remark = at(remarks_of(calls, VECTOR, fe.Float32), scaled, "in a function that is called")
    assert remark.function == "scaled" and remark.lanes is not None and remark.lanes > 1


def test_functions_that_are_cached_or_overloaded_have_them(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path))
    first, again = (fe.compile(dot, VECTOR, VECTOR, options="--target cpu") for _ in range(2))
    assert again.remarks == first.remarks and again.remarks is again.remarks
    both = fe.overload([fe.compile(log_sum, VECTOR, options="--target cpu"), first], name="sums")
    assert [each.function for each in both.remarks] == ["log_sum", "dot"]


def test_what_has_no_remarks_says_why(tmp_path):
    compiled = fe.compile(dot, VECTOR, VECTOR, options="--target cpu")
    compiled.export_to_c(tmp_path / "dot.o")
    loaded = load_module(str(tmp_path / "dot.o"))["dot"]
    with pytest.raises(StageError, match="it was loaded as machine code"):
        loaded.remarks  # noqa: B018
    ones = fe.make_fake_compact_tensor(fe.Float32, (32,))
    on_gpu = fe.compile(apart, ones, ones, options="--target cuda --gpu-arch sm_90a")
    with pytest.raises(StageError, match="compiled from one Python function for the CPU"):
        on_gpu.remarks  # noqa: B018


def test_without_optimisation_nothing_is_vectorised():
    found = remarks_of(dot, VECTOR, VECTOR, options="--opt-level 0")
    loop = at(found, dot, "for i")
    assert loop.lanes == 1 and "not vectorised: --opt-level 0 vectorises nothing" in loop.text


def test_a_process_that_cannot_run_is_an_error(monkeypatch):
    compiled = fe.compile(dot, VECTOR, VECTOR, options="--target cpu --no-cache")
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with pytest.raises(fe.CompileError, match="which cannot be started: '/nonexistent/python'"):
        compiled.remarks  # noqa: B018
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(fe.CompileError, match="which ended with status 1"):
        compiled.remarks  # noqa: B018


@fe.jit
def tile(a: fe.Tensor, b: fe.Tensor, out: fe.Tensor):
    for row in range(a.shape[0]):
        found = fe.make_fragment(16, fe.Float32)
        for j in fe.range_constexpr(16):
            found[j] = fe.Float32(0)
        for k in range(b.shape[0]):
            for j in fe.range_constexpr(16):
                found[j] += a[row, k] * b[k, j]
        for j in fe.range_constexpr(16):
            out[row, j] = found[j]


def test_iterations_with_vectors_of_their_own_say_where():
    rows, tall = fe.row_major((N, 16), fe.Float32), fe.row_major((M, 16), fe.Float32)
    remark = at(remarks_of(tile, MATRIX, tall, rows), tile, "for k")
    stored = inspect.getsourcelines(tile.function)
    line = stored[1] + next(i for i, each in enumerate(stored[0]) if "out[row, j] =" in each)
    assert f"line {line} is vectorised as straight code" in remark.text
    other = at(remarks_of(dot, VECTOR, VECTOR), dot, "for i")
    assert "straight code" not in other.text


def test_words_of_llvm():
    said = "loop not vectorized: "
    unknown = reason_of(said + "a new reason")
    assert unknown is not None and unknown.text == "LLVM says: a new reason"
    assert reason_of("loop not vectorized") is None
    assert reason_of("the cost-model indicates that interleaving is not beneficial") is None
    cost = reason_of("the cost-model indicates that vectorization is not beneficial")
    assert cost is not None and "would not be faster" in cost.text
    assert lanes_of("vectorized loop (vectorization width: 8, interleaved count: 4)") == 8
    assert lanes_of("interleaved loop (interleaved count: 4)") == 0
    assert (
        change_of("completely unrolled loop with 3 iterations") == "its 3 iterations are unrolled"
    )


def test_remarks_do_not_change_the_code():
    compiled = fe.compile(dot, VECTOR, VECTOR, options="--target cpu --no-cache")
    before = compiled.inspect_asm()
    assert compiled.remarks
    assert compiled.inspect_asm() == before
    assert compiled(np.ones(5, np.float32), np.ones(5, np.float32)) == 5


@fe.kernel
def halvings_kernel(a: fe.Tensor, out: fe.Tensor):
    for i in range(arch.thread_idx()[0], a.shape[0], 64):
        value, steps = a[i], 0
        while value > 1.0:
            value *= 0.5
            steps += 1
        out[i] = steps


@fe.jit
def halvings(a: fe.Tensor, out: fe.Tensor):
    halvings_kernel(a, out).launch(grid=1, block=64)


def test_loops_that_threads_end_at_different_times_are_masked():
    remark = at(remarks_of(halvings, VECTOR, PLACES), halvings_kernel, "while value")
    assert remark.lanes is not None and remark.lanes > 1
    assert f"vectorised by masks, {remark.lanes} lanes" in remark.text
    assert "32 threads run it until the last of them has ended it" in remark.text

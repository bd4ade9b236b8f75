"""Faults of kernels and host functions that `--enable-checks` finds: where, in which thread."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe

arch = fe.arch
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def built(
    kernel: Any, *arguments: Any, block: Any, grid: Any = 1, smem: Any = None, known: Any = ()
) -> Any:
    """The launch of a kernel, compiled with checks; `known` are arguments at compile time."""
    given = {} if smem is None else {"smem": smem}

    def host(*args):
        kernel(*args, *known).launch(grid=grid, block=block, **given)

    return fe.compile(host, *arguments, options="--target cpu --enable-checks")


def message(kind: type[Exception], function: Any, *arguments: Any) -> str:
    """What a call is refused with."""
    with pytest.raises(kind) as caught:
        function(*arguments)
    return str(caught.value)


def place(function: Any, text: str) -> str:
    """The file and the line of a kernel's line."""
    code = inspect.unwrap(function.function)
    lines, first = inspect.getsourcelines(code)
    at = next(first + i for i, line in enumerate(lines) if text in line)
    return f"{Path(__file__).name}:{at}"


def i32(*shape: int) -> Any:
    return np.zeros(shape, np.int32)


def vector(dtype: Any = fe.Int32) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))


# ---- indices ----


def test_an_index_that_wraps_around_names_the_wider_type() -> None:
    @fe.kernel
    def narrow(a, blocks):
        i = (arch.block_idx()[0] + blocks) * 256 + arch.thread_idx()[0]
        if i < a.shape[0]:
            a[i] = 1

    @fe.kernel
    def wide(a, blocks):
        i = (fe.Int64(arch.block_idx()[0]) + blocks) * 256 + arch.thread_idx()[0]
        if i < a.shape[0]:
            a[i] = 1

    function = built(narrow, vector(), 1, block=1, grid=2)
    text = message(IndexError, function, i32(8), 2**23 - 1)
    assert f"index {-(2**31)} is out of range for dim 0 of a, which has 8; if it wrapped" in text
    assert "fe.Int64(block index)" in text
    a = i32(8)
    built(wide, vector(), 1, block=1, grid=2)(a, 2**23 - 1)
    assert not a.any()
    function(a, 0)
    assert a.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_an_index_that_is_too_large_says_nothing_of_its_type() -> None:
    function = built(unguarded, vector(), vector(), block=32, grid=2)
    assert "Int64" not in message(IndexError, function, i32(60), i32(64))


@fe.kernel
def unguarded(a, b):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    c = a[i] + 1
    b[i] = c


def test_an_index_past_the_end_is_found_in_its_thread_and_line() -> None:
    n = fe.sym_int()
    a = fe.make_fake_compact_tensor(fe.Int32, (n,))
    function = built(unguarded, a, a, block=32, grid=4)
    text = message(IndexError, function, i32(100), i32(100))
    assert text.startswith(
        "unguarded: index 100 is out of range for dim 0 of a, which has 100, at "
    )
    assert text.endswith(f"{place(unguarded, 'a[i]')} in block (3, 0, 0), thread (4, 0, 0)")


def test_each_tensor_is_checked_with_its_own_size() -> None:
    function = built(unguarded, vector(), vector(), block=32, grid=4)
    function(i32(128), out := i32(128))
    assert (out == 1).all()
    text = message(IndexError, function, i32(128), i32(127))
    assert "index 127 is out of range for dim 0 of b, which has 127" in text
    assert place(unguarded, "b[i]") in text


@fe.kernel
def before(a, b):
    t = arch.thread_idx()[0]
    b[t] = a[t - 1]


def test_an_index_before_the_start() -> None:
    text = message(IndexError, built(before, i32(32), i32(32), block=32), i32(32), i32(32))
    assert "index -1 is out of range for dim 0 of a, which has 32" in text
    assert text.endswith("thread (0, 0, 0)")


@fe.kernel
def swapped(a, b):
    x, y, _ = arch.thread_idx()
    b[x, y] = a[x, y]


def test_dims_are_checked_one_by_one() -> None:
    function = built(swapped, i32(4, 8), i32(4, 8), block=(8, 4))
    text = message(IndexError, function, i32(4, 8), i32(4, 8))
    assert "index 4 is out of range for dim 0 of a, which has 4" in text
    assert text.endswith("thread (4, 0, 0)")


@fe.kernel
def in_tiles(a):
    t = arch.thread_idx()[0]
    tile = fe.zipped_divide(a, (4,))[None, t]
    for k in range(4):
        tile[k] = t


def test_an_index_within_a_tile_that_is_past_the_tensor() -> None:
    function = built(in_tiles, vector(), block=3)
    function(i32(12))
    text = message(IndexError, function, i32(10))
    assert "element 10 is out of range for a, which has 10 elements of int32" in text
    assert text.endswith("thread (2, 0, 0)")


@fe.kernel
def through_a_view(tile):
    tile[arch.thread_idx()[0], 1] = 1


def test_a_view_that_the_host_makes_is_checked_against_its_tensor() -> None:
    @fe.jit
    def host(a: fe.Tensor):
        tiles = fe.zipped_divide(a, (4,))
        through_a_view(tiles).launch(grid=1, block=4)

    function = fe.compile(host, vector(), options="--target cpu --enable-checks")
    function(i32(8))
    text = message(IndexError, function, i32(6))
    assert "element 6 is out of range for" in text
    assert text.endswith("thread (2, 0, 0)")


@fe.kernel
def by_pointer(a, out):
    out[0] = (a.iterator + arch.thread_idx()[0])[1]


def test_a_pointer_reaches_only_its_tensor() -> None:
    function = built(by_pointer, i32(32), i32(1), block=32)
    text = message(IndexError, function, i32(32), i32(1))
    assert "element 32 is out of range for a, which has 32 elements" in text


def test_a_dim_of_a_divided_tensor_is_one_of_the_view() -> None:
    def host(a: fe.Tensor, i: fe.Int32):
        fe.zipped_divide(a, (2, 2))[((0, 0), (i, 0))] = 1.0

    compiled = fe.compile(
        host, np.zeros((3, 4), np.float32), 1, options="--target cpu --enable-checks"
    )
    said = message(IndexError, compiled, np.zeros((3, 4), np.float32), 7)
    assert "index 7 is out of range for dim 2 of a view of a, which has 2" in said


def test_host_code_is_checked() -> None:
    @fe.jit
    def host(a: fe.Tensor, i: fe.Int32):
        a[i] = 7

    function = fe.compile(host, vector(), fe.Int32, options="--target cpu --enable-checks")
    a = i32(3)
    function(a, 2)
    assert a[2] == 7
    text = message(IndexError, function, a, 3)
    assert text.startswith("host: index 3 is out of range for dim 0 of a, which has 3, at ")
    assert "thread" not in text


def test_whole_tensors_need_no_checks() -> None:
    @fe.jit
    def host(a: fe.Tensor, b: fe.Tensor):
        b[:] = a[:] + 1

    function = fe.compile(host, vector(), vector(), options="--target cpu --enable-checks")
    assert "inserted check" not in function.inspect_ir()
    function(i32(5), out := i32(5))
    assert (out == 1).all()


@fe.kernel
def guarded(a, b):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    if i < a.shape[0]:
        b[i] = a[i]


def test_what_a_guard_proves_is_not_checked() -> None:
    @fe.jit
    def host(a: fe.Tensor, b: fe.Tensor):
        guarded(a, b).launch(grid=(a.shape[0] + 31) // 32, block=32)

    n = fe.sym_int()
    a = fe.make_fake_compact_tensor(fe.Int32, (n,))
    function = fe.compile(host, a, a, options="--target cpu --enable-checks")
    assert "inserted check" not in function.inspect_ir()


# ---- division and alignment ----


@fe.kernel
def divided(a, b):
    t = arch.thread_idx()[0]
    b[t] = 100 // a[t]


def test_an_integer_division_by_zero() -> None:
    function = built(divided, i32(32), i32(32), block=32)
    a = np.ones(32, np.int32)
    function(a, i32(32))
    a[[9, 20]] = 0
    text = message(ZeroDivisionError, function, a, i32(32))
    assert text.startswith("divided: an integer is divided by zero, at ")
    assert text.endswith(f"{place(divided, '//')} in block (0, 0, 0), thread (9, 0, 0)")


@fe.kernel
def recast(a, out):
    t = arch.thread_idx()[0]
    pair = fe.recast_ptr(a.iterator + t, dtype=fe.Int64)
    out[t] = pair[0]


def test_a_misaligned_recast() -> None:
    a, out = np.zeros(8, np.int32), np.zeros(4, np.int64)
    function = built(recast, a, out, block=2)
    text = message(ValueError, function, a, out)
    assert "4 bytes past a multiple of 8" in text
    assert text.endswith("thread (1, 0, 0)")


# ---- shared memory ----


@fe.kernel
def past_static(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 48)
    other = arch.alloc_smem(fe.Int32, 48)
    row[t] = a[t]
    other[t] = row[t]


def test_an_access_past_static_shared_memory() -> None:
    text = message(IndexError, built(past_static, i32(64), block=64), i32(64))
    assert "element 48 is out of range for shared memory, which has 48 elements of int32" in text
    assert text.endswith("thread (48, 0, 0)")


@fe.kernel
def past_dynamic(a):
    t = arch.thread_idx()[0]
    row = arch.get_dyn_smem(fe.Int32)
    row[t] = a[t]
    arch.sync_threads()
    a[t] = row[63 - t]


def test_an_overflow_of_dynamic_shared_memory() -> None:
    a = np.arange(64, dtype=np.int32)
    built(past_dynamic, a, block=64, smem=256)(a)
    assert (a == np.arange(64)[::-1]).all()
    text = message(IndexError, built(past_dynamic, a, block=64, smem=128), a)
    assert "element 32 is out of range for dynamic shared memory, which has 32 elements" in text


# ---- races ----


@fe.kernel
def without_a_barrier(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    row[t] = a[t]
    a[t] = row[63 - t]


def test_a_missing_barrier_is_a_race() -> None:
    text = message(fe.RaceError, built(without_a_barrier, i32(64), block=64), i32(64))
    line = place(without_a_barrier, "a[t] = row").rpartition(":")[2]
    assert text.startswith(
        "without_a_barrier: element 32 of shared memory is written, and thread number 31 has "
        f"read it in line {line} since the last barrier, at "
    )
    assert text.endswith(
        f"{place(without_a_barrier, 'row[t] = a')} in block (0, 0, 0), thread (32, 0, 0)"
    )


@fe.kernel
def in_a_loop(a, second: fe.Constexpr):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    total = 0
    for k in range(4):
        row[t] = a[t] + k
        arch.sync_threads()
        total += row[63 - t]
        if fe.const_expr(second):
            arch.sync_threads()
    a[t] = total


def test_a_missing_barrier_at_the_end_of_an_iteration() -> None:
    built(in_a_loop, i32(64), block=64, known=(True,))(i32(64))
    text = message(fe.RaceError, built(in_a_loop, i32(64), block=64, known=(False,)), i32(64))
    assert "is written" in text and "has read it" in text
    assert place(in_a_loop, "row[t] =") in text


@fe.kernel
def both_write(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 32)
    row[t // 2] = t
    arch.sync_threads()
    a[t] = row[t // 2]


def test_two_threads_that_write_one_element() -> None:
    text = message(fe.RaceError, built(both_write, i32(64), block=64), i32(64))
    assert "element 0 of shared memory is written, and thread number 0 has written it" in text
    assert text.endswith("thread (1, 0, 0)")


@fe.kernel
def counts(a, plain: fe.Constexpr):
    t = arch.thread_idx()[0]
    count = arch.alloc_smem(fe.Int32, 1)
    if t == 0:
        count[0] = 0
    arch.sync_threads()
    arch.atomic_add(count, 1)
    if fe.const_expr(not plain):
        arch.sync_threads()
    a[t] = count[0]


def test_atomics_do_not_race_with_each_other_but_with_a_read() -> None:
    a = i32(64)
    built(counts, a, block=64, known=(False,))(a)
    assert (a == 64).all()
    text = message(fe.RaceError, built(counts, a, block=64, known=(True,)), a)
    assert "is changed by an atomic, and thread number 0 has read it" in text


@fe.kernel
def bytes_of_a_word(a):
    t = arch.thread_idx()[0]
    words = arch.alloc_smem(fe.Int32, 4)
    if t == 0:
        words[0] = 1
    parts = fe.recast_ptr(words, dtype=fe.Int8)
    if t == 1:
        parts[3] = 1
    arch.sync_threads()
    a[t] = words[0]


def test_a_race_of_elements_of_two_sizes() -> None:
    text = message(fe.RaceError, built(bytes_of_a_word, i32(32), block=32), i32(32))
    assert "element 3 of shared memory is written, and thread number 0 has written it" in text


@fe.kernel
def within_a_warp(a, synced: fe.Constexpr):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    row[t] = a[t]
    if fe.const_expr(synced):
        arch.sync_warp()
    a[t] = row[t ^ 1]


def test_sync_warp_separates_the_lanes_of_a_warp() -> None:
    a = np.arange(64, dtype=np.int32)
    built(within_a_warp, a, block=64, known=(True,))(a)
    assert (a == np.arange(64) ^ 1).all()
    text = message(fe.RaceError, built(within_a_warp, a, block=64, known=(False,)), a)
    assert text.endswith("thread (1, 0, 0)")


@fe.kernel
def across_warps(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    row[t] = a[t]
    arch.sync_warp()
    a[t] = row[t ^ 32]


def test_sync_warp_does_not_separate_two_warps() -> None:
    text = message(fe.RaceError, built(across_warps, i32(64), block=64), i32(64))
    assert "element 32 of shared memory is read, and thread number 32 has written it" in text
    assert text.endswith("thread (0, 0, 0)")


@fe.kernel
def by_halves(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 128)
    row[t] = a[t]
    if t < 64:
        arch.barrier(1, 64)
        a[t] = row[63 - t]
    else:
        arch.barrier(2, 64)
        a[t] = row[191 - t]


def test_barriers_of_some_threads_are_no_races() -> None:
    a = np.arange(128, dtype=np.int32)
    built(by_halves, a, block=128)(a)
    assert (a == np.concatenate([np.arange(64)[::-1], np.arange(127, 63, -1)])).all()


@fe.kernel
def where_threads_part(a):
    t = arch.thread_idx()[0]
    row = arch.alloc_smem(fe.Int32, 64)
    if t < 32:
        row[t] = a[t]
        arch.sync_threads()
    else:
        row[t] = a[t] + 1
        arch.sync_threads()
    row[63 - t] = 5
    a[t] = row[t]


def test_races_of_coroutines() -> None:
    text = message(fe.RaceError, built(where_threads_part, i32(64), block=64), i32(64))
    assert place(where_threads_part, "row[63 - t]") in text


def test_blocks_do_not_race_with_each_other() -> None:
    a = np.arange(64, dtype=np.int32)
    function = built(in_a_loop, a, block=64, known=(True,), grid=1000)
    function(a)


# ---- order, and targets ----


def test_the_first_fault_does_not_depend_on_the_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = set()
    for threads in ("1", "4"):
        monkeypatch.setenv("FERRULE_NUM_THREADS", threads)
        function = built(unguarded, vector(), vector(), block=32, grid=1 << 17)
        found.add(message(IndexError, function, i32((1 << 22) - 5000), i32(1 << 22)))
    (text,) = found
    assert f"index {(1 << 22) - 5000} is out of range" in text


def test_a_gpu_has_no_checks() -> None:
    with pytest.raises(fe.CompileError, match="--enable-checks is for the CPU"):
        built_for_cuda = "--target cuda --gpu-arch sm_90a --enable-checks"
        fe.compile(launch_unguarded, vector(), vector(), options=built_for_cuda)


@fe.jit
def launch_unguarded(a: fe.Tensor, b: fe.Tensor):
    unguarded(a, b).launch(grid=1, block=32)


@pytest.mark.parametrize("option", ["--enable-checks", "--enable-assertions"])
def test_the_names_of_the_option(option: str) -> None:
    function = fe.compile(launch_unguarded, vector(), vector(), options=f"--target cpu {option}")
    message(IndexError, function, i32(31), i32(32))


# ---- examples ----


@pytest.mark.parametrize("name", ["block_softmax", "histogram", "tiled_matmul", "transpose"])
def test_examples_run_clean(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them do; these have barriers, shuffles, atomics and tiles."""
    plain = fe.compile

    def checking(*args: Any, options: str = "", **kwargs: Any) -> Any:
        return plain(*args, options=f"{options} --enable-checks", **kwargs)

    monkeypatch.setattr(fe, "compile", checking)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert "equals NumPy's result" in capsys.readouterr().out


def test_no_check_is_left_in_the_inner_loop_of_a_tiled_product() -> None:
    example = runpy.run_path(str(EXAMPLES / "tiled_matmul.py"))
    text = example["compiled"]("--target cpu --enable-checks").inspect_ir()
    inner = text[text.index("%k = ") :]
    assert "inserted check" not in inner[: inner.index("barrier")]
    assert "RaceError" not in text

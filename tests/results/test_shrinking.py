"""`fe.shrink`: results whose size the function finds out, without a copy."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import interpreter
import numpy as np
import pytest
from cuda_device import FakeCuda
from cuda_device import fake_cuda as fake_cuda
from gpu_functions import floats
from host_memory import all_freed
from hypothesis import given
from hypothesis import strategies as st
from lowered import lower, matrix, vector
from mlir_functions import needs_mlir

import ferrule as fe
from ferrule.language.ir.effects import unwritten_tensors

CPU = "--target cpu"


@fe.jit
def nonzero(a: fe.Tensor):
    """Where the elements are that are not zero."""
    found, k = fe.empty((a.shape[0],), fe.Int64), fe.Int64(0)
    for i in range(a.shape[0]):
        if a[i] != 0:
            found[k] = i
            k += 1
    return fe.shrink(found, k)


@fe.jit
def unique(a: fe.Tensor):
    """The different elements of a sorted array, and how often each is there."""
    values, counts = fe.empty_like(a), fe.empty_like(a)
    k = fe.Int64(0)
    for i in range(a.shape[0]):
        if i == 0 or a[i] != a[i - 1]:
            values[k] = a[i]
            counts[k] = 0
            k += 1
        counts[k - 1] += 1
    return fe.shrink(values, k), fe.shrink(counts, size=k)


@fe.jit
def rows_above(a: fe.Tensor, limit: fe.Float32):
    """The rows that begin with more than a limit, twice as large."""
    kept, k = fe.empty(a.shape, fe.Float32), fe.Int32(0)
    for i in range(a.shape[0]):
        if a[i, 0] > limit:
            for j in range(a.shape[1]):
                kept[k, j] = a[i, j]
            k += 1
    rows = fe.shrink(kept, k)
    rows[:] = rows[:] * 2.0
    return rows, k


@fe.jit
def padded_sort(a: fe.Tensor):
    """The elements in order: sorted in a power of two of them, as a network does."""
    width = fe.Int32(1)
    while width < a.shape[0]:
        width *= 2
    s = fe.full((width,), 2**31 - 1, fe.Int32)
    s_size = width
    for i in range(a.shape[0]):
        s[i] = a[i]
    for _ in range(s_size):
        for j in range(s_size - 1):
            low, high = min(s[j], s[j + 1]), max(s[j], s[j + 1])
            s[j] = low
            s[j + 1] = high
    return fe.shrink(s, a.shape[0])


FUNCTIONS = {
    each.__name__: fe.compile(each, *examples, options=CPU)
    for each, *examples in (
        (nonzero, vector()),
        (unique, vector(fe.Int32)),
        (rows_above, matrix(), fe.Float32),
        (padded_sort, vector(fe.Int32)),
    )
}


def arrays(given_back: Any) -> list[np.ndarray[Any, Any]]:
    many = given_back if isinstance(given_back, tuple) else (given_back,)
    return [np.from_dlpack(each) for each in many if hasattr(each, "__dlpack__")]


@given(st.lists(st.integers(-2, 2), max_size=12))
def test_what_comes_back_is_what_numpy_gives(numbers: list[int]) -> None:
    a = np.array(numbers, np.int32)
    (found,) = arrays(FUNCTIONS["nonzero"](a.astype(np.float32)))
    np.testing.assert_array_equal(found, np.flatnonzero(a), strict=True)
    values, counts = arrays(FUNCTIONS["unique"](np.sort(a)))
    wanted = np.unique(a, return_counts=True)
    np.testing.assert_array_equal(values, wanted[0], strict=True)
    np.testing.assert_array_equal(counts, wanted[1])
    rows = np.stack([a, a + 1, a + 2], 1).astype(np.float32)
    kept, count = FUNCTIONS["rows_above"](rows, 0.5)
    np.testing.assert_array_equal(np.from_dlpack(kept), rows[rows[:, 0] > 0.5] * 2, strict=True)
    assert count == kept.shape[0]
    (ordered,) = arrays(FUNCTIONS["padded_sort"](a))
    np.testing.assert_array_equal(ordered, np.sort(a), strict=True)


def shown(a: fe.Tensor):
    """Prints a part of a tensor, and where the other part begins."""
    found, k = fe.empty((a.shape[0], 2), fe.Int64), fe.Int64(0)
    for i in range(a.shape[0]):
        found[i, 0] = -1
        if a[i] != 0:
            found[k, 0] = i
            k += 1
    part = fe.shrink(found, k)
    part[0, 1] = part.shape[0]
    fe.printf("{} {} {}", part.shape[0], part[k - 1, 0], found[0, 1])


def test_the_interpreter_says_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    program, a = lower(shown, vector()), np.float32([0, 1, 0, 4])
    symbols = dict.fromkeys(program.given, 4)
    said = interpreter.run(program, [interpreter.Memory.of(a)], symbols)
    fe.compile(shown, vector(), options=CPU)(a)
    assert said == capfd.readouterr().out == "2 3 2\n"
    with pytest.raises(interpreter.OutOfBounds):  # nothing is in a part without rows
        interpreter.run(program, [interpreter.Memory.of(a * 0)], symbols)


def test_signature_text_and_ir() -> None:
    shown = [str(each.signature).split(" -> ")[1] for each in FUNCTIONS.values()]
    assert shown == [
        "Tensor([n0], int64)",
        "Tuple[Tensor([n0], int32), Tensor([n0], int32)]",
        "Tuple[Tensor([n0, n], float32), int32]",
        "Tensor([n], int32)",
    ]
    assert (
        "%empty_1 = shrink %empty, %k_1 : tensor<[k]:[1], int64"
        in FUNCTIONS["nonzero"].inspect_ir()
    )


# ---- sizes that are none ----


@fe.jit
def first(a: fe.Tensor, k: fe.Int64):
    rows = fe.zeros((a.shape[0], 2), fe.Int16)
    part = fe.shrink(rows, k)
    part[:] = 3
    return part, rows


@pytest.mark.parametrize("k", [-1, 5, 2**63 - 1, -(2**63), 2**32])
def test_a_size_beyond_the_tensor_ends_the_call(k: int) -> None:
    function = fe.compile(first, vector(), fe.Int64, options=CPU)
    with all_freed(), pytest.raises(ValueError) as caught:
        function(np.ones(4, np.float32), k)
    assert (
        str(caught.value)
        == f"Invalid size in `fe.shrink(rows, k)`, expected from 0 to 4, but got {k}"
    )


def test_it_is_the_same_memory_and_both_can_be_returned() -> None:
    function = fe.compile(first, vector(), fe.Int64, options=CPU)
    for k in (0, 2, 4):
        with all_freed():
            part, rows = arrays(function(np.ones(4, np.float32), k))
            assert (part.shape, rows.shape) == ((k, 2), (4, 2))
            assert rows.sum() == 6 * k
            assert part.ctypes.data == rows.ctypes.data
            del rows
            assert part.tolist() == [[3, 3]] * k
            del part


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(function, *examples, options=CPU)
    return str(caught.value)


def test_what_cannot_be_shrunk_is_refused() -> None:
    def part(a: fe.Tensor):
        t = fe.empty_like(a)
        return fe.shrink(fe.domain_offset((1,), t), 1)

    def number(a: fe.Tensor):
        return fe.shrink(3, 1)

    def without_dims(a: fe.Tensor):
        return fe.shrink(fe.full((), 1, fe.Int32), 0)

    def not_whole(a: fe.Tensor):
        return fe.shrink(fe.empty_like(a), 0.5)

    def constant(a: fe.Tensor):
        return fe.shrink(fe.empty((2,), fe.Int8), 3)

    def negative(a: fe.Tensor):
        t = fe.empty_like(a)
        return fe.shrink(t, -1)

    def nothing(a: fe.Tensor):
        return fe.shrink(fe.empty_like(a))

    @fe.kernel
    def kernel(a: fe.Tensor):
        fe.shrink(a, 1)

    def inside(a: fe.Tensor):
        kernel(a).launch(grid=1, block=1)

    for function, message in (
        (part, "which has no object of its own"),
        (number, "shrink got 3"),
        (without_dims, "a tensor with at least one dim"),
        (not_whole, "the size of the new tensor is 0.5"),
        (constant, "expected from 0 to 2, but got 3"),
        (negative, "expected from 0 to its first size, but got -1"),
        (nothing, "expected the arguments tensor, size"),
        (inside, "fe.shrink in a kernel: tensors are made in host functions"),
    ):
        assert message in wrong(function, vector()), function.__name__


# ---- lifetimes ----


@fe.jit
def longest(a: fe.Tensor, times: fe.Int32):
    """Carried through a loop: each iteration makes a tensor and shrinks the one before."""
    kept = fe.full((8,), 1, fe.Int32)
    part = fe.shrink(kept, 1)
    total = fe.Int32(0)
    for i in range(times):
        new = fe.full((8,), i, fe.Int32)
        half = fe.shrink(new, i % 8)
        for j in range(half.shape[0]):
            total += half[j]
        if i == 5:
            assert a[0] != 0, "stopped"
    return part, total


def test_nothing_is_lost_in_loops_and_in_calls_that_fail() -> None:
    function = fe.compile(longest, vector(), fe.Int32, options=CPU)
    wanted = sum(i * (i % 8) for i in range(20))
    with all_freed():
        part, total = function(np.ones(1, np.float32), 20)
        assert (np.from_dlpack(part).tolist(), total) == ([1], wanted)
        del part
    with all_freed(), pytest.raises(AssertionError, match="stopped"):
        function(np.zeros(1, np.float32), 20)


def test_a_part_is_the_argument_of_kernels_and_of_functions() -> None:
    @fe.kernel
    def double(a: fe.Tensor, b: fe.Tensor):
        i = fe.arch.block_idx()[0]
        b[i] = a[i] * 2

    @fe.jit
    def doubled(a: fe.Tensor, k: fe.Int32):
        whole = fe.full(a.shape, 1, fe.Float32)
        part = fe.shrink(whole, k)
        double(part, whole).launch(grid=part.shape[0], block=1)
        fe.call("their.shrunk", part)
        return fe.shrink(part, part.shape[0] // 2), whole

    seen = []
    fe.register_global_func("their.shrunk", lambda x: seen.append(tuple(x.shape)), override=True)
    function = fe.compile(doubled, vector(), fe.Int32, options=CPU)
    half, whole = arrays(function(np.ones(5, np.float32), 3))
    assert (half.tolist(), whole.tolist(), seen) == ([2], [2, 2, 2, 1, 1], [(3,)])


def test_threads_and_files(tmp_path: Path) -> None:
    FUNCTIONS["unique"].export_to_c(tmp_path / "unique.o")
    loaded = fe.runtime.load_module(tmp_path / "unique.o")["unique"]
    assert str(loaded.signature) == str(FUNCTIONS["unique"].signature)
    wrongs = []

    def work(seed: int) -> None:
        for _ in range(200):
            values, counts = arrays(loaded(np.repeat(np.int32([seed, seed + 1]), seed)))
            if values.tolist() != [seed, seed + 1] or counts.tolist() != [seed, seed]:
                wrongs.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrongs


# ---- other systems ----


@fe.kernel
def put_kernel(a: fe.Tensor, b: fe.Tensor):
    i = fe.arch.block_idx()[0]
    b[i] = a[i]


@pytest.mark.parametrize("is_shared", [True, False])
def test_passes_know_that_memory_is_shared(is_shared: bool) -> None:
    def host(k: fe.Int32):
        whole, other = fe.full((8,), 1, fe.Float32), fe.full((8,), 1, fe.Float32)
        put_kernel(fe.shrink(whole, k), whole if is_shared else other).launch(grid=k, block=1)

    program = lower(host, fe.Int32)
    kernel = next(each for each in program.kernels if each.name == "put_kernel")
    assert unwritten_tensors(program, kernel) == (set() if is_shared else {kernel.params[0]})


@fe.jit
def head(a: fe.Tensor, k: fe.Int32):
    b = fe.empty_like(a)
    part = fe.shrink(b, k)
    put_kernel(a, part).launch(grid=k, block=1)
    return part


def test_results_on_a_gpu_have_sizes_that_the_host_knows(fake_cuda: FakeCuda) -> None:
    function = fe.compile(head, vector(), fe.Int32, options="--target cuda --gpu-arch sm_80")
    with all_freed():
        found = function(floats(10), 4)
        assert (found.shape, str(found.device)) == ((4,), "cuda:0")
        del found
    with all_freed(), pytest.raises(ValueError, match="expected from 0 to 10, but got 11"):
        function(floats(10), 11)


@pytest.mark.needs_torch
def test_torch_gets_its_own_tensors_and_operators() -> None:
    import torch

    found = FUNCTIONS["nonzero"](torch.tensor([0.0, 1, 2]))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [1, 2]
    operator = fe.torch_op(FUNCTIONS["unique"], "shrinking::unique")
    torch.library.opcheck(operator, (torch.tensor([1, 1, 3], dtype=torch.int32),))


def test_jax_wants_the_size_before_the_call() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    sizes = [jax.ShapeDtypeStruct((2,), "int32")] * 2
    call = fe.jax_call(FUNCTIONS["unique"], out=sizes)
    assert [each.tolist() for each in call(jax.numpy.int32([1, 1, 5]))] == [[1, 5], [2, 1]]
    with pytest.raises(Exception, match="returned a tensor of another shape"):
        call(jax.numpy.int32([1, 1, 1]))


@needs_mlir
def test_mlir_has_it() -> None:
    from ferrule.compiler.mlir import jobs

    through = fe.compile(rows_above, matrix(), fe.Float32, options=f"{CPU} --pipeline mlir")
    a = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert arrays(through(a, 1.0))[0].tolist() == [[4, 6], [8, 10]]
    shown = jobs.verified(FUNCTIONS["rows_above"].inspect_mlir())
    assert "memref.reinterpret_cast" in shown
    again = fe.frontends.mlir.compile(FUNCTIONS["nonzero"].inspect_mlir())
    assert arrays(again(np.float32([0, 4, 0, 5])))[0].tolist() == [1, 3]


@fe.jit
def chosen(a: fe.Tensor, k: fe.Int64):
    """Rows of one tensor: on two ways, of a part again, in an expression, and all of them."""
    made = fe.empty_like(a)
    made[:] = a[:]
    if k > 3:
        part = fe.shrink(made, k)
    elif k > 1:
        part = fe.shrink(fe.shrink(made, 3), 2)
    else:
        part = made
    again = fe.shrink(part, 1) if k == 5 else part
    again[0] = part[0] + 10
    return part, again


@fe.jit
def early(a: fe.Tensor, k: fe.Int64):
    """Tensors of several sizes, from a loop, from branches and from the end."""
    made = fe.empty_like(a)
    made[:] = a[:]
    for i in range(a.shape[0]):
        if a[i] == 7 and k < 3:
            return fe.shrink(made, i), k
    if k > 3:
        return fe.shrink(made, k), k
    if k == 3:
        other = fe.empty((2,), fe.Float32)
        other[:] = 1.0
        return other, k
    return made, k


def test_the_rows_can_be_chosen_by_branches() -> None:
    a = np.arange(1, 9, dtype=np.float32)
    function = fe.compile(chosen, vector(), fe.Int64(0), options=CPU)
    text = str(function.signature)
    assert text.endswith("-> Tuple[Tensor([n0], float32), Tensor([n1], float32)]")
    for k, rows in ((0, 8), (1, 8), (2, 2), (3, 2), (4, 4), (5, 5), (8, 8)):
        part, again = arrays(function(a, k))
        wanted = [11, *a[1:rows]]
        assert part.tolist() == wanted and again.tolist() == (wanted[:1] if k == 5 else wanted)
    with pytest.raises(ValueError, match="expected from 0 to 8, but got 9"):
        function(a, 9)


def test_tensors_of_several_sizes_are_returned() -> None:
    a = np.arange(1, 9, dtype=np.float32)
    function = fe.compile(early, vector(), fe.Int64(0), options=CPU)
    assert str(function.signature).endswith("-> Tuple[Tensor([n0], float32), int64]")
    with all_freed():
        for k, wanted in ((0, a[:6]), (3, [1, 1]), (4, a[:4]), (8, a)):
            found, given_back = function(a, k)
            assert np.from_dlpack(found).tolist() == list(wanted) and given_back == k
            del found
    assert np.from_dlpack(function(a[:5], 1)[0]).tolist() == [1, 2, 3, 4, 5]


def test_a_loop_that_shrinks_says_what_to_write() -> None:
    @fe.jit
    def smaller(a: fe.Tensor, k: fe.Int64):
        made = fe.zeros((a.shape[0],), fe.Float32)
        for _ in range(k):
            made = fe.shrink(made, made.shape[0] - 1)
        return made

    message = wrong(smaller, vector(), fe.Int64)
    assert "write fe.shrink once behind it, of the whole tensor" in message


@fe.jit
def pairs(a: fe.Tensor, b: fe.Tensor, first: fe.Boolean, second: fe.Boolean, k: fe.Int64):
    """Sizes that are the same on some ways alone."""
    if first:
        if second:
            return fe.shrink(a, k), fe.shrink(b, k)
        return a, fe.shrink(b, k)
    else:
        if second:
            return fe.shrink(a, k), b
        return a, b


def test_sizes_that_differ_on_one_way_have_their_own_symbols() -> None:
    function = fe.compile(pairs, vector(), vector(), *[fe.Boolean] * 2, fe.Int64, options=CPU)
    text = str(function.signature)
    assert text.endswith("-> Tuple[Tensor([n0], float32), Tensor([n1], float32)]")
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    for first in (True, False):
        for second in (True, False):
            x, y = arrays(function(a, b, first, second, 2))
            assert x.tolist() == a[: 2 if second else 4].tolist()
            assert y.tolist() == b[: 2 if first else 4].tolist()
            assert np.shares_memory(x, a) and np.shares_memory(y, b)


@fe.jit
def both(a: fe.Tensor, k: fe.Int64):
    """Two results of one size on each way; the rows of a parameter, or a new tensor."""
    if k < a.shape[0]:
        size = k + 1
        new = fe.zeros((size,), fe.Float32)
        return new, fe.zeros((size,), fe.Int8), new
    part = fe.shrink(a, k) if k > 2 else a
    return part, fe.zeros((part.shape[0],), fe.Int8), a


def test_rows_of_parameters_and_new_tensors_are_one_result() -> None:
    function = fe.compile(both, vector(), fe.Int64, options=CPU)
    text = function.signature.text().split(" -> ")[1]
    assert text.startswith(
        "Tuple[Tensor([n0], float32, device=cpu), Tensor([n0], int8, device=cpu, align=64), "
        "Tensor([n1], float32, device=cpu)]"
    )
    with all_freed():
        a = np.arange(4, dtype=np.float32)
        for k in (1, 4):
            found = function(a, k)
            sizes = [each.shape[0] for each in arrays(found)]
            assert sizes == ([2, 2, 2] if k == 1 else [4, 4, 4])
            assert np.shares_memory(np.from_dlpack(found[0]), a) == (k == 4)
            del found


def test_a_choice_of_rows_in_the_interpreter(capfd: pytest.CaptureFixture[str]) -> None:
    def chosen_rows(a: fe.Tensor, k: fe.Int64):
        made = fe.zeros((a.shape[0], 2), fe.Float32)
        part = fe.shrink(made, k) if k < 3 else made
        part[k - 1, 1] = 5
        fe.printf("{} {} {}", part.shape[0], made[k - 1, 1], part[0, 0])

    program, a = lower(chosen_rows, vector(), fe.Int64), np.ones(4, np.float32)
    symbols = dict.fromkeys(program.given, 4)
    function = fe.compile(chosen_rows, vector(), fe.Int64, options=CPU)
    for k, size in ((2, 2), (3, 4)):
        said = interpreter.run(program, [interpreter.Memory.of(a), k], symbols)
        function(a, k)
        assert said == capfd.readouterr().out == f"{size} 5 0\n"


def test_parts_of_other_tensors_are_no_choice_of_rows() -> None:
    def two(a: fe.Tensor, k: fe.Int64):
        made, other = fe.empty_like(a), fe.empty_like(a)
        part = fe.shrink(made, k) if k > 2 else other
        part[0] = 1

    assert "this value is" in wrong(two, vector(), fe.Int64)

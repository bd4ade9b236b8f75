"""New tensors in host functions: sizes, contents, lifetimes, and what is refused."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from lowered import matrix, text, vector

import ferrule as fe

CPU = "--target cpu"


def compiled(function: Any, *examples: Any) -> fe.Function:
    return fe.compile(function, *examples, options=CPU)


def wrong(function: Any, *examples: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        compiled(function, *examples)
    return str(caught.value)


@fe.jit
def add_one(a: fe.Tensor):
    b = fe.empty_like(a)
    b[:] = a[:] + 1.0
    return b


def test_a_caller_without_a_framework_gets_a_tensor_of_tvm_ffi() -> None:
    found = compiled(add_one, vector())(np.arange(5, dtype=np.float32))
    assert isinstance(found, tvm_ffi.Tensor)
    np.testing.assert_array_equal(np.from_dlpack(found), np.arange(1, 6))


def test_a_caller_with_torch_tensors_gets_a_torch_tensor() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    function = compiled(add_one, vector())
    found = function(torch.arange(5, dtype=torch.float32))
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [1, 2, 3, 4, 5]


def test_torch_tensors_in_a_tuple_are_torch_tensors_too() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    @fe.jit
    def two(a: fe.Tensor):
        b = fe.empty_like(a)
        b[:] = a[:] * 2.0
        return fe.zeros((2, 2), fe.Int32), b

    first, second = compiled(two, vector())(torch.ones(3))
    assert isinstance(first, torch.Tensor)
    assert (first.tolist(), second.tolist()) == ([[0, 0], [0, 0]], [2, 2, 2])


def test_a_scratch_tensor_is_an_argument_of_kernels() -> None:
    @fe.kernel
    def square_kernel(a: fe.Tensor, b: fe.Tensor):
        i = fe.arch.block_idx()[0] * 32 + fe.arch.thread_idx()[0]
        if i < a.shape[0]:
            b[i] = a[i] * a[i]

    @fe.jit
    def fourth_power(a: fe.Tensor):
        t, u = fe.empty_like(a), fe.empty(a.shape, fe.Float32)
        grid = fe.ceil_div(a.shape[0], 32)
        square_kernel(a, t).launch(grid=grid, block=32)
        square_kernel(t, u).launch(grid=grid, block=32)
        return u

    found = compiled(fourth_power, vector())(np.arange(50, dtype=np.float32))
    np.testing.assert_array_equal(np.from_dlpack(found), np.arange(50) ** 4)


def test_sizes_are_expressions_and_numbers_of_the_call() -> None:
    @fe.jit
    def sizes(a: fe.Tensor, k: fe.Int32):
        m, n = a.shape
        t = fe.zeros((m * 2, k + 1, 3), fe.Int16)
        u = fe.full((n, k), 7, fe.Int64)
        return t, u

    function = compiled(sizes, matrix(), fe.Int32)
    t, u = map(np.from_dlpack, function(np.zeros((2, 5), np.float32), 3))
    assert (t.shape, t.dtype, t.strides) == ((4, 4, 3), np.int16, (24, 6, 2))
    assert (u.shape, u.dtype) == ((5, 3), np.int64)
    assert not t.any() and (u == 7).all()


def test_run_time_sizes_are_compared_where_the_body_runs() -> None:
    @fe.jit
    def filled(a: fe.Tensor, k: fe.Int32):
        t = fe.empty((k,), fe.Float32)
        t[:] = a[:] * 3.0
        return t

    function = compiled(filled, vector(), fe.Int32)
    found = np.from_dlpack(function(np.ones(4, np.float32), 4))
    assert found.tolist() == [3.0] * 4
    with pytest.raises(ValueError, match=r"expected to match a.shape\[0\] = 4, but got 5"):
        function(np.ones(4, np.float32), 5)


def test_every_dtype_of_whole_bytes_can_be_made() -> None:
    @fe.jit
    def made(n: fe.Int32, dtype: fe.Constexpr):
        return fe.zeros((n, 2), dtype)

    dtypes = [
        fe.Boolean, fe.Int8, fe.Uint16, fe.Int64, fe.Uint64, fe.Float16, fe.BFloat16, fe.Float32,
        fe.Float64, fe.Float8E4M3FN, fe.Float8E5M2,
    ]  # fmt: skip
    for dtype in dtypes:
        found = fe.compile(made, fe.Int32, dtype, options=CPU)(3)
        assert (str(found.dtype), found.shape) == (dtype.name, (3, 2))
    found = fe.compile(made, fe.Int32, fe.Complex128, options=CPU)(3)
    np.testing.assert_array_equal(np.from_dlpack(found), np.zeros((3, 2), complex), strict=True)
    assert "its elements have no bytes" in wrong(made, fe.Int32, fe.Int4)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0, 2**40)])
def test_tensors_without_elements(shape: tuple[int, ...]) -> None:
    @fe.jit
    def made(a: fe.Int64, b: fe.Int64, c: fe.Int64, rank: fe.Constexpr):
        return fe.zeros((a, b, c)[:rank], fe.Float64)

    function = compiled(made, fe.Int64, fe.Int64, fe.Int64, len(shape))
    assert function(*(*shape, 1, 1, 1)[:3]).shape == shape


def test_a_tensor_without_dims() -> None:
    @fe.jit
    def made(x: fe.Float32):
        return fe.full((), x, fe.Float32)

    assert np.from_dlpack(compiled(made, fe.Float32)(2.5)) == 2.5


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((-1, 1), r"Invalid shape\[0\] of a new tensor, expected at least 0, but got -1"),
        ((1, -5), r"Invalid shape\[1\] of a new tensor, expected at least 0, but got -5"),
        ((2**32, 2**32), r"expected fewer than 2\*\*62 bytes"),
        ((2**62, 1), r"expected fewer than 2\*\*62 bytes"),
        ((0, 2**62), r"expected fewer than 2\*\*62 bytes"),
        ((2**61 - 1, 3), r"expected fewer than 2\*\*62 bytes"),
    ],
)
def test_impossible_sizes_are_errors(sizes: tuple[int, int], message: str) -> None:
    @fe.jit
    def made(a: fe.Int64, b: fe.Int64):
        return fe.empty((a, b), fe.Float64)

    with pytest.raises(ValueError, match=message):
        compiled(made, fe.Int64, fe.Int64)(*sizes)


def test_a_size_that_overflows_is_an_error() -> None:
    @fe.jit
    def made(a: fe.Tensor):
        n = a.shape[0]
        return fe.empty((n * n * n,), fe.Float64)

    shape = (fe.sym_int64(symbol="n"), 0)
    function = compiled(made, fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0)))
    array = np.zeros((2**40, 0), np.float32)
    with pytest.raises(ValueError, match="overflows 64 bits"):
        function(array)


def test_memory_that_nobody_has() -> None:
    @fe.jit
    def made(a: fe.Int64):
        return fe.empty((a,), fe.Int8)

    with pytest.raises(MemoryError, match=f"no memory for a new tensor of {2**61} bytes"):
        compiled(made, fe.Int64)(2**61)


def test_a_tensor_of_a_loop_is_that_of_the_iteration() -> None:
    @fe.jit
    def sums(out: fe.Tensor, n: fe.Int32):
        for i in range(n):
            t = fe.full((i + 1,), i, fe.Int32)
            total = fe.Int32(0)
            for j in range(i + 1):
                total += t[j]
            out[i] = total

    out = np.zeros(6, np.int32)
    compiled(sums, vector(fe.Int32), fe.Int32)(out, 6)
    assert out.tolist() == [i * (i + 1) for i in range(6)]


def test_a_tensor_of_a_branch_is_returned() -> None:
    @fe.jit
    def either(n: fe.Int32):
        if n > 2:
            t = fe.full((2,), n, fe.Int32)
            return t
        return fe.zeros((2,), fe.Int32)

    function = compiled(either, fe.Int32)
    assert np.from_dlpack(function(3)).tolist() == [3, 3]
    assert np.from_dlpack(function(1)).tolist() == [0, 0]


def test_one_tensor_can_be_returned_twice() -> None:
    @fe.jit
    def twice(a: fe.Tensor):
        t = fe.empty_like(a)
        t[:] = a[:]
        return t, (t, 1)

    first, (second, one) = compiled(twice, vector())(np.ones(3, np.float32))
    del first
    assert np.from_dlpack(second).tolist() == [1, 1, 1]
    assert one == 1


def test_a_returned_tensor_outlives_the_function() -> None:
    function = compiled(add_one, vector())
    found = function(np.arange(1000, dtype=np.float32))
    del function
    others = [compiled(add_one, vector(symbol=None)) for _ in range(2)]
    assert np.from_dlpack(found)[999] == 1000
    assert len(others) == 2


def test_addresses_are_aligned() -> None:
    @fe.jit
    def made(n: fe.Int32):
        return fe.empty((n,), fe.Int8)

    function = compiled(made, fe.Int32)
    found = [np.from_dlpack(function(n)) for n in range(1, 200)]
    assert all(each.ctypes.data % 64 == 0 for each in found)


def test_the_ir_says_what_is_made() -> None:
    @fe.jit
    def made(a: fe.Tensor, k: fe.Int32):
        t = fe.empty((a.shape[0], k), fe.Float32)
        return t

    shown = text(made.function, vector(), fe.Int32)
    assert "= alloc (%size_1, %k_1) : tensor<[n, k]:[k, 1], float32, align 64>" in shown
    assert "return %address" in shown


def test_the_interpreter_of_the_ir_agrees() -> None:
    from agreement import interpreted, lowered
    from interpreter import Unwritten, upwards

    @fe.jit
    def squares(out: fe.Tensor, k: fe.Int32):
        for i in range(k):
            t = fe.full((i + 1, k), i, fe.Float32)
            out[i] = t[i, 0] * t[0, k - 1]

    @fe.jit
    def unwritten(out: fe.Tensor):
        t = fe.empty_like(out)
        out[0] = t[0]

    first, second = np.zeros(4, np.float32), np.zeros(4, np.float32)
    compiled(squares, vector(), fe.Int32)(first, 4)
    interpreted(lowered(squares, vector(), fe.Int32), upwards, second, 4)
    np.testing.assert_array_equal(first, second)
    assert first.tolist() == [0, 1, 4, 9]
    with pytest.raises(Unwritten):
        interpreted(lowered(unwritten, vector()), upwards, first)


def test_unused_tensors_are_not_made() -> None:
    @fe.jit
    def unused(a: fe.Tensor):
        fe.empty_like(a)

    assert "alloc" not in text(unused.function, vector())


NEW = "fe.empty((n,), fe.Float32)"
ROWS = "fe.shrink(fe.empty((n + 5,), fe.Float32), n + 2)"
PROTOTYPES = {
    "size": ("fe.empty((n, 4), fe.Float32)", "fe.size(t)", 12),
    "shape": ("fe.empty((n, 4), fe.Float32)", "t.shape[0]", 3),
    "rows": ("fe.shrink(fe.zeros((9, 2), fe.Float32), n)", "t.shape[0]", 3),
    "rows of rows": (f"fe.shrink({ROWS}, n)", "fe.size(t)", 3),
    "rows of a parameter": ("fe.shrink(fe.empty_like(o), n)", "t.shape[0]", 3),
    "another like it": (f"fe.zeros_like({NEW})", "t.shape[0] * 2", 6),
    "a size of it": (f"fe.zeros(({NEW}.shape[0] * 2,), fe.Float32)", "t.shape[0]", 6),
    "a stride": ("fe.empty((2, n), fe.Float32)", "t.stride[0]", 3),
}
"""A tensor, a number of its layout, and the number that it is for an n of 3."""


@pytest.mark.parametrize("made", PROTOTYPES)
def test_a_tensor_whose_sizes_alone_are_used_has_them(made: str) -> None:
    """In a value, in a loop's end, in the grid of a launch, and in a tensor's shape."""
    tensor, size, expected = PROTOTYPES[made]
    source = f"""
import ferrule as fe

@fe.kernel
def mark(o):
    o[fe.arch.block_idx()[0]] = 1.0

@fe.jit
def used(o: fe.Tensor, p: fe.Tensor, n: fe.Int32):
    t = {tensor}
    for i in range({size}):
        o[i] = 1.0
    mark(p).launch(grid={size}, block=1)
    r = fe.zeros(({size},), fe.Float32)
    for i in range({size}):
        r[i] = 2.0
    return {size}, r
"""
    names: dict[str, Any] = {}
    filename = f"<{made}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    o, p = np.zeros((2, 16), np.float32)
    for function in (names["used"], compiled(names["used"], vector(), vector(), fe.Int32)):
        o[:] = p[:] = 0
        found, r = function(o, p, 3)
        assert found == expected
        assert o.sum() == p.sum() == expected
        assert np.from_dlpack(r).tolist() == [2.0] * expected


def test_what_cannot_be_made_says_why() -> None:
    @fe.kernel
    def inside(a: fe.Tensor):
        t = fe.empty((3,), fe.Float32)
        a[0] = t[0]

    @fe.jit
    def in_a_kernel(a: fe.Tensor):
        inside(a).launch(grid=1, block=1)

    @fe.jit
    def half(a: fe.Tensor):
        return fe.empty((a.shape[0] / 2,), fe.Float32)

    @fe.jit
    def negative(a: fe.Tensor):
        return fe.empty((-3,), a.element_type)

    @fe.jit
    def elsewhere(a: fe.Tensor):
        return fe.empty((3,), fe.Float32, device="cuda")

    @fe.jit
    def without_dtype(a: fe.Tensor):
        return fe.empty((3,))

    assert "make it in the @fe.jit function" in wrong(in_a_kernel, vector())
    assert "divide with // instead of /" in wrong(half, vector())
    assert "expected at least 0, but got -3" in wrong(negative, vector())
    assert "on cuda, but the target is cpu" in wrong(elsewhere, vector())
    assert "missing a required argument: 'dtype'" in wrong(without_dtype, vector())


def test_outside_a_compiled_function_they_have_no_meaning() -> None:
    for face in (fe.empty, fe.zeros):
        with pytest.raises(RuntimeError, match="only in a function that is compiled"):
            face((3,), fe.Float32)

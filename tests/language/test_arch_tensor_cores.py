"""Matrices that a warp multiplies: compiled, interpreted, and NumPy's result."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import vector

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)


def launched(kernel: Any, *arguments: Any, block: Any = 32) -> Any:
    """The last argument after a launch of a kernel."""

    def host(*args):
        kernel(*args).launch(grid=1, block=block)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


def fragment(of: Any, places: Any, dtype: Any) -> Any:
    """In a kernel: the elements of a matrix at these places, as a vector of the dtype."""
    own = fe.make_fragment(len(places), dtype)
    for position in fe.range_constexpr(len(places)):
        row, column = places[position]
        own[position] = dtype(of[row, column])
    return own.load()


def places_of_a(count: int, w: int, g: Any, t: Any) -> Any:
    """Where the elements of A's fragment are, as the PTX ISA has them."""
    parts = [divmod(i, w) for i in range(count)]
    return [(g + 8 * (r % 2), 4 * w * (r // 2) + t * w + j) for r, j in parts]


def places_of_b(count: int, w: int, g: Any, t: Any) -> Any:
    parts = [divmod(i, w) for i in range(count)]
    return [(4 * w * r + t * w + j, g) for r, j in parts]


def places_of_c(g: Any, t: Any) -> Any:
    return [(g + 8 * (i // 2), 2 * t + i % 2) for i in range(4)]


def multiplied(one: Any, two: Any, total: Any, depth: int) -> Any:
    """A kernel that multiplies two matrices of these dtypes in one `mma`, and adds a third."""
    w = 4 // one.itemsize

    @fe.kernel
    def kernel(a, b, c, d):
        lane = arch.lane_idx()
        g, t = lane // 4, lane % 4
        left = fragment(a, places_of_a(16 * depth // 32, w, g, t), one)
        right = fragment(b, places_of_b(8 * depth // 32, w, g, t), two)
        places = places_of_c(g, t)
        result = fe.make_fragment(4, total)
        result.store(arch.mma(left, right, fragment(c, places, total)))
        for i in fe.range_constexpr(4):
            row, column = places[i]
            d[row, column] = result[i]

    return kernel


FLOATS = [
    (fe.Float16, fe.Float32, 8),
    (fe.Float16, fe.Float32, 16),
    (fe.Float16, fe.Float16, 8),
    (fe.Float16, fe.Float16, 16),
    (fe.BFloat16, fe.Float32, 8),
    (fe.BFloat16, fe.Float32, 16),
    (fe.TFloat32, fe.Float32, 4),
    (fe.TFloat32, fe.Float32, 8),
]
BYTES = [
    (fe.Int8, fe.Int8, 16),
    (fe.Uint8, fe.Int8, 32),
    (fe.Int8, fe.Uint8, 32),
    (fe.Uint8, fe.Uint8, 16),
]
NUMPY = {fe.Float16: np.float16, fe.BFloat16: np.float32, fe.TFloat32: np.float32}
NUMPY |= {fe.Float32: np.float32, fe.Int8: np.int8, fe.Uint8: np.uint8}


@pytest.mark.parametrize("one, total, depth", FLOATS)
def test_an_mma_of_floats(one: Any, total: Any, depth: int) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (16, depth)).astype(NUMPY[one])
    b = rng.integers(-8, 9, (depth, 8)).astype(NUMPY[one])
    c = rng.integers(-99, 99, (16, 8)).astype(NUMPY[total])
    d = np.zeros((16, 8), NUMPY[total])
    found = launched(multiplied(one, one, total, depth), a, b, c, d)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)


def test_a_sum_of_floats_is_rounded_to_float32_and_in_the_end_to_float16() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((16, 16)).astype(np.float16)
    b = rng.standard_normal((16, 8)).astype(np.float16)
    c = rng.standard_normal((16, 8)).astype(np.float16)
    found = launched(multiplied(fe.Float16, fe.Float16, fe.Float16, 16), a, b, c, np.zeros_like(c))
    wanted = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2**-10, atol=2**-20)


@pytest.mark.parametrize("one, two, depth", BYTES)
def test_an_mma_of_bytes_wraps(one: Any, two: Any, depth: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape, dtype=kind)
        for kind, shape in ((NUMPY[one], (16, depth)), (NUMPY[two], (depth, 8)))
    )
    c = np.full((16, 8), np.iinfo(np.int32).max, np.int32)
    found = launched(multiplied(one, two, fe.Int32, depth), a, b, c, np.zeros_like(c))
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    np.testing.assert_array_equal(found, exact.astype(np.int32))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.float32])
def test_ldmatrix_loads_matrices_of_eight_rows(count: int, dtype: Any) -> None:
    columns = 16 // np.dtype(dtype).itemsize
    w = columns // 4

    @fe.kernel
    def kernel(a, out):
        lane = arch.lane_idx()
        memory = arch.alloc_smem(a.element_type, 32 * columns)
        for j in fe.range_constexpr(columns):
            memory[lane * columns + j] = a[lane, j]
        arch.sync_threads()
        own = fe.make_fragment(count * w, a.element_type)
        own.store(arch.ldmatrix(memory + lane * columns, count))
        for i in fe.range_constexpr(count * w):
            out[lane, i] = own[i]

    a = (np.arange(32 * columns) % 113).reshape(32, columns).astype(dtype)
    found = launched(kernel, a, np.zeros((32, count * w), dtype))
    for lane in range(32):
        g, t = divmod(lane, 4)
        wanted = [a[8 * m + g, t * w : t * w + w] for m in range(count)]
        np.testing.assert_array_equal(found[lane], np.concatenate(wanted))


def test_ldmatrix_transposes() -> None:
    @fe.kernel
    def kernel(a, out):
        lane = arch.lane_idx()
        memory = arch.alloc_smem(fe.Float16, 256)
        for j in fe.range_constexpr(8):
            memory[lane * 8 + j] = a[lane, j]
        arch.sync_threads()
        own = fe.make_fragment(4, fe.Float16)
        own.store(arch.ldmatrix(memory + (lane % 16) * 8, num_matrices=2, transpose=True))
        for i in fe.range_constexpr(4):
            out[lane, i] = own[i]

    a = np.arange(256).reshape(32, 8).astype(np.float16)
    found = launched(kernel, a, np.zeros((32, 4), np.float16))
    for lane in range(32):
        g, t = divmod(lane, 4)
        wanted = [a[8 * m + 2 * t + j, g] for m in range(2) for j in range(2)]
        np.testing.assert_array_equal(found[lane], wanted)


@pytest.mark.parametrize("waits_apart", [False, True])
def test_a_product_in_a_loop_and_in_warps_of_their_own(waits_apart: bool) -> None:
    """In phases, where a barrier is alike for all threads, and as coroutines, where it is not."""

    @fe.kernel
    def kernel(a, b, d):
        lane, warp = arch.lane_idx(), arch.warp_idx()
        g, t = lane // 4, lane % 4
        total = fe.make_fragment(4, fe.Float32)
        total.fill(0.0)
        if fe.const_expr(waits_apart):
            if warp == 1:
                arch.barrier(barrier_id=1, number_of_threads=32)
        for step in range(a.shape[1] // 16):
            left = fragment(
                fe.local_tile(a, (16, 16), (warp, step)), places_of_a(8, 2, g, t), fe.Float16
            )
            right = fragment(
                fe.local_tile(b, (16, 8), (step, 0)), places_of_b(4, 2, g, t), fe.Float16
            )
            total.store(arch.mma(left, right, total.load()))
        for i in fe.range_constexpr(4):
            row, column = places_of_c(g, t)[i]
            d[warp * 16 + row, column] = total[i]

    rng = np.random.default_rng(2)
    a = rng.integers(-4, 5, (32, 32)).astype(np.float16)
    b = rng.integers(-4, 5, (32, 8)).astype(np.float16)
    found = launched(kernel, a, b, np.zeros((32, 8), np.float32), block=64)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32))


def test_one_warp_of_a_block_multiplies_alone() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        ones = fe.full(8, 1.0, fe.Float16)
        if t < 32:
            own = fe.make_fragment(4, fe.Float32)
            own.store(arch.mma(ones, fe.full(4, 2.0, fe.Float16), fe.full(4, 0.5, fe.Float32)))
            out[t] = own[0] + a[t]

    found = launched(kernel, np.zeros(64, np.float32), np.zeros(64, np.float32), block=64)
    np.testing.assert_array_equal(found, [32.5] * 32 + [0] * 32)


# ---- what is refused ----


def product(a: Any, b: Any, c: Any) -> Any:
    @fe.kernel
    def kernel(out):
        one, two, three = (fe.full(n, 1, kind) for n, kind in (a, b, c))
        arch.mma(one, two, three)

    return kernel


@pytest.mark.parametrize(
    "a, b, c, message",
    [
        ((8, fe.Float32), (4, fe.Float32), (4, fe.Float32), "mma of a matrix of float32"),
        ((8, fe.Float16), (4, fe.BFloat16), (4, fe.Float32), "mma of float16 and bfloat16"),
        ((8, fe.BFloat16), (4, fe.BFloat16), (4, fe.BFloat16), "bfloat16 adds to c of bfloat16"),
        ((8, fe.Int8), (4, fe.Int8), (4, fe.Float32), "int8 adds to c of float32"),
        ((8, fe.Float16), (2, fe.Float16), (4, fe.Float32), "have 8, 2 and 4 elements"),
        ((6, fe.Float16), (3, fe.Float16), (4, fe.Float32), "have 6, 3 and 4 elements"),
        ((8, fe.Float16), (4, fe.Float16), (8, fe.Float32), "have 8, 4 and 8 elements"),
    ],
)
def test_a_product_that_there_is_not(a: Any, b: Any, c: Any, message: str) -> None:
    with pytest.raises(fe.CompileError, match=message):
        compiled(product(a, b, c), "--target cpu")


def compiled(kernel: Any, options: str) -> Any:
    def host(out):
        kernel(out).launch(grid=1, block=32)

    return fe.compile(host, vector(), options=options)


def test_ldmatrix_needs_a_pointer_into_shared_memory() -> None:
    @fe.kernel
    def kernel(out):
        arch.ldmatrix(out.iterator)

    with pytest.raises(fe.CompileError, match="expected: a pointer into shared memory"):
        compiled(kernel, "--target cpu")


@pytest.mark.parametrize("count", [3, True, 0])
def test_ldmatrix_loads_one_two_or_four(count: Any) -> None:
    @fe.kernel
    def kernel(out):
        arch.ldmatrix(arch.alloc_smem(fe.Float16, 256), count)

    with pytest.raises(fe.CompileError, match="expected: 1, 2 or 4"):
        compiled(kernel, "--target cpu")


def test_only_elements_of_two_bytes_are_transposed() -> None:
    @fe.kernel
    def kernel(out):
        arch.ldmatrix(arch.alloc_smem(fe.Int8, 512), 4, transpose=True)

    with pytest.raises(fe.CompileError, match="ldmatrix of int8, transposed"):
        compiled(kernel, "--target cpu")


def test_a_block_has_whole_warps() -> None:
    kernel = product((8, fe.Float16), (4, fe.Float16), (4, fe.Float32))

    def host(out):
        kernel(out).launch(grid=1, block=40)

    result = run(host, (np.zeros(4, np.float32),))
    assert result.error is not None
    kind, message = result.error
    assert kind == "DivergenceError"
    assert message.endswith("need whole warps, but a block has 40 threads")


@pytest.mark.parametrize("gpu", ["sm_50", "sm_70", "sm_75"])
def test_older_gpus_have_no_tensor_cores_for_it(gpu: str) -> None:
    kernel = product((8, fe.Float16), (4, fe.Float16), (4, fe.Float32))
    with pytest.raises(fe.CompileError, match=r"arch\.mma is known to GPUs from sm_80 on.*" + gpu):
        compiled(kernel, f"--target cuda --gpu-arch {gpu}")


# ---- PTX ----


def ptx(kernel: Any, gpu: str, *given: Any) -> str:
    def host(*args):
        kernel(*args).launch(grid=1, block=32)

    return fe.compile(host, *given, options=f"--target cuda --gpu-arch {gpu}").inspect_ptx()


def matrix(dtype: Any) -> Any:
    return fe.make_fake_compact_tensor(dtype, (fe.sym_int(), fe.sym_int()), stride_order=(1, 0))


def test_the_oldest_gpu_that_loads_matrices() -> None:
    """PTX 6.3, the oldest that knows sm_75, has no ldmatrix: LLVM ended the process."""

    @fe.kernel
    def kernel(a, out):
        memory = arch.alloc_smem(fe.Float16, 256)
        memory[arch.lane_idx()] = a[0, 0]
        arch.sync_threads()
        out[arch.lane_idx(), 0] = arch.ldmatrix(memory + arch.lane_idx() * 8, 1)[0]

    text = ptx(kernel, "sm_75", matrix(fe.Float16), matrix(fe.Float16))
    assert "ldmatrix.sync.aligned.m8n8.x1.shared.b16" in text and ".version 6.5" in text


def test_an_mma_stays_where_all_lanes_run_it() -> None:
    """LLVM does not know that lanes run it together; its result is used in a branch alone."""

    @fe.kernel
    def kernel(out):
        t = arch.thread_idx()[0]
        own = fe.make_fragment(4, fe.Float32)
        left, right = (fe.full(n, fe.Float16(t), fe.Float16) for n in (8, 4))
        own.store(arch.mma(left, right, fe.full(4, 0.0, fe.Float32)))
        if t < 5:
            out[t] = own[0]

    text = ptx(kernel, "sm_80", vector())
    assert text.index("mma.sync") < text.index("@%p")


@pytest.mark.parametrize(
    "one, total, depth, types",
    [
        (fe.Float16, fe.Float16, 8, "f16.f16.f16.f16"),
        (fe.BFloat16, fe.Float32, 16, "f32.bf16.bf16.f32"),
        (fe.TFloat32, fe.Float32, 4, "f32.tf32.tf32.f32"),
        (fe.Uint8, fe.Int32, 32, "s32.u8.u8.s32"),
    ],
)
def test_a_product_is_one_instruction(one: Any, total: Any, depth: int, types: str) -> None:
    given = (matrix(one), matrix(one), matrix(total), matrix(total))
    text = ptx(multiplied(one, one, total, depth), "sm_80", *given)
    assert f"mma.sync.aligned.m16n8k{depth}.row.col.{types}\n" in text

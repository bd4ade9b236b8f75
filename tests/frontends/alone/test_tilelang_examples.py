"""TileLang's own kinds of kernels: each is a function, with right results on an emulated GPU.

The table counts what `docs/frontends_tilelang.md` says of it.
"""

# Annotations are values here: TileLang reads those of inner functions.
import math
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.frontends import tilelang as frontend

pytest.importorskip("tilelang", reason="TileLang is not installed")
T = pytest.importorskip("tilelang.language")

pytestmark = pytest.mark.usefixtures("nvcc")

RNG = np.random.default_rng(11)


def halves(*shape: int) -> Any:
    return (RNG.random(shape) - 0.5).astype(np.float16)


def floats(*shape: int) -> Any:
    return RNG.random(shape, np.float32) - 0.5


def elementwise() -> Any:
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def add(
        A: T.Tensor((m, n), "float32"),
        B: T.Tensor((m, n), "float32"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 8), threads=64) as (bx, by):
            shared = T.alloc_shared((8, 32), "float32")
            local = T.alloc_fragment((8, 32), "float32")
            T.copy(A[by * 8, bx * 32], shared)
            T.copy(B[by * 8, bx * 32], local)
            for i, j in T.Parallel(8, 32):
                local[i, j] += shared[i, j]
            T.copy(local, C[by * 8, bx * 32])

    a, b = floats(20, 64), floats(20, 64)
    return add, "sm_80", (a, b, np.zeros_like(a)), a + b


def matmul(arch: str, stages: int) -> Any:
    m = n = k = 64

    @T.prim_func
    def gemm(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(n // 64, m // 64, threads=128) as (bx, by):
            left = T.alloc_shared((64, 32), "float16")
            right = T.alloc_shared((32, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for ko in T.Pipelined(k // 32, num_stages=stages):
                T.copy(A[by * 64, ko * 32], left)
                T.copy(B[ko * 32, bx * 64], right)
                T.gemm(left, right, sums)
            T.copy(sums, C[by * 64, bx * 64])

    a, b = halves(m, k), halves(k, n)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    return gemm, arch, (a, b, np.zeros((m, n), np.float32)), wanted


def softmax() -> Any:
    m, n = T.dynamic("m"), 128

    @T.prim_func
    def rows(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 4), threads=128) as block:
            x = T.alloc_fragment((4, n), "float32")
            most = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(A[block * 4, 0], x)
            T.reduce_max(x, most, dim=1, clear=True)
            for i, j in T.Parallel(4, n):
                x[i, j] = T.exp(x[i, j] - most[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, n):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[block * 4, 0])

    a = floats(8, n)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return rows, "sm_90a", (a, np.zeros_like(a)), e / e.sum(axis=1, keepdims=True)


def rms_norm() -> Any:
    m, n = T.dynamic("m"), 256

    @T.prim_func
    def normed(
        A: T.Tensor((m, n), "float16"), W: T.Tensor((n,), "float16"), B: T.Tensor((m, n), "float16")
    ):
        with T.Kernel(m, threads=128) as row:
            x = T.alloc_fragment((1, n), "float32")
            squares = T.alloc_fragment((1, n), "float32")
            total = T.alloc_fragment((1,), "float32")
            for j in T.Parallel(n):
                x[0, j] = T.cast(A[row, j], "float32")
                squares[0, j] = x[0, j] * x[0, j]
            T.reduce_sum(squares, total, dim=1)
            for j in T.Parallel(n):
                B[row, j] = T.cast(
                    x[0, j] * T.rsqrt(total[0] / n + 1e-6) * T.cast(W[j], "float32"), "float16"
                )

    a, w = halves(5, n), halves(n)
    wide = a.astype(np.float32)
    wanted = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-6) * w
    return normed, "sm_90a", (a, w, np.zeros_like(a)), wanted


def transposed() -> Any:
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def turned(A: T.Tensor((m, n), "int32"), B: T.Tensor((n, m), "int32")):
        with T.Kernel(T.ceildiv(n, 16), T.ceildiv(m, 16), threads=64) as (bx, by):
            tile = T.alloc_shared((16, 16), "int32")
            T.copy(A[by * 16, bx * 16], tile)
            for i, j in T.Parallel(16, 16):
                B[bx * 16 + i, by * 16 + j] = tile[j, i]

    a = RNG.integers(0, 99, (20, 40)).astype(np.int32)
    return turned, "sm_90a", (a, np.zeros((40, 20), np.int32)), a.T


def vector_product() -> Any:
    m, k = T.dynamic("m"), 256

    @T.prim_func
    def gemv(
        A: T.Tensor((m, k), "float32"), X: T.Tensor((k,), "float32"), Y: T.Tensor((m,), "float32")
    ):
        with T.Kernel(m, threads=64) as row:
            part = T.alloc_local((1,), "float32")
            total = T.alloc_local((1,), "float32")
            tid = T.get_thread_binding(0)
            part[0] = 0.0
            for step in T.serial(k // 64):
                part[0] += A[row, step * 64 + tid] * X[step * 64 + tid]
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1), part[0], True, total[0], tid, dtype="handle"
                    )
                )
            if tid == 0:
                Y[row] = total[0]

    a, x = floats(6, k), floats(k)
    return gemv, "sm_90a", (a, x, np.zeros(6, np.float32)), a @ x


def attention(arch: str) -> Any:
    n, d, block = 128, 64, 64
    scale = (1.0 / d) ** 0.5 * math.log2(math.e)

    @T.prim_func
    def flash(
        Q: T.Tensor((n, d), "float16"),
        K: T.Tensor((n, d), "float16"),
        V: T.Tensor((n, d), "float16"),
        Y: T.Tensor((n, d), "float16"),
    ):
        with T.Kernel(n // block, threads=128) as bx:
            q = T.alloc_shared((block, d), "float16")
            k = T.alloc_shared((block, d), "float16")
            v = T.alloc_shared((block, d), "float16")
            scores = T.alloc_fragment((block, block), "float32")
            weights = T.alloc_fragment((block, block), "float16")
            out = T.alloc_fragment((block, d), "float32")
            most = T.alloc_fragment((block,), "float32")
            before = T.alloc_fragment((block,), "float32")
            shrink = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            sums = T.alloc_fragment((block,), "float32")
            T.copy(Q[bx * block, 0], q)
            T.fill(out, 0)
            T.fill(sums, 0)
            T.fill(most, -T.infinity("float32"))
            for step in T.Pipelined(n // block, num_stages=1):
                T.copy(K[step * block, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i in T.Parallel(block):
                    shrink[i] = T.exp2((before[i] - most[i]) * scale)
                for i, j in T.Parallel(block, block):
                    scores[i, j] = T.exp2((scores[i, j] - most[i]) * scale)
                T.reduce_sum(scores, total, dim=1)
                for i in T.Parallel(block):
                    sums[i] = sums[i] * shrink[i] + total[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block, d):
                    out[i, j] *= shrink[i]
                T.copy(V[step * block, 0], v)
                T.gemm(weights, v, out, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block, d):
                out[i, j] /= sums[i]
            T.copy(out, Y[bx * block, 0])

    q, k, v = (halves(n, d) for _ in range(3))
    scores = q.astype(np.float32) @ k.astype(np.float32).T / math.sqrt(d)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = e / e.sum(axis=1, keepdims=True) @ v.astype(np.float32)
    return flash, arch, (q, k, v, np.zeros_like(q)), wanted


def split_sums() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def sums(A: T.Tensor((n,), "float32"), out: T.Tensor((1,), "float32")):
        with T.Kernel(T.ceildiv(n, 256), threads=128) as block:
            x = T.alloc_fragment((256,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(256):
                x[i] = T.if_then_else(block * 256 + i < n, A[block * 256 + i], 0.0)
            T.reduce_sum(x, total, dim=0)
            if T.get_thread_binding(0) == 0:
                T.atomic_add(out[0], total[0])

    a = floats(600)
    return sums, "sm_90a", (a, np.zeros(1, np.float32)), [a.sum()]


def dequantised() -> Any:
    n, k = 64, 64

    @T.prim_func
    def unpacked(
        packed: T.Tensor((n, k // 2), "uint8"),
        scale: T.Tensor((n,), "float16"),
        out: T.Tensor((n, k), "float16"),
    ):
        with T.Kernel(n, threads=32) as row:
            for j in T.Parallel(k):
                nibble = (packed[row, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15)
                out[row, j] = (T.cast(nibble, "float16") - T.float16(8)) * scale[row]

    packed = RNG.integers(0, 256, (n, k // 2)).astype(np.uint8)
    scale = halves(n)
    wide = np.stack([packed & 15, packed >> 4], axis=2).reshape(n, k)
    wanted = (wide.astype(np.float16) - 8) * scale[:, None]
    return unpacked, "sm_90a", (packed, scale, np.zeros((n, k), np.float16)), wanted


def convolution() -> Any:
    n, channels, width = 16, 32, 3

    @T.prim_func
    def causal(
        X: T.Tensor((n, channels), "float32"),
        W: T.Tensor((width, channels), "float32"),
        Y: T.Tensor((n, channels), "float32"),
    ):
        with T.Kernel(n, threads=channels) as row:
            for c in T.Parallel(channels):
                sum = T.alloc_var("float32")
                sum = 0.0
                for t in T.unroll(width):
                    if row - t >= 0:
                        sum += X[row - t, c] * W[t, c]
                Y[row, c] = sum

    x, w = floats(n, channels), floats(width, channels)
    wanted = sum(np.pad(x, ((t, 0), (0, 0)))[:n] * w[t] for t in range(width))
    return causal, "sm_90a", (x, w, np.zeros_like(x)), wanted


def running_sums() -> Any:
    n = 128

    @T.prim_func
    def scanned(A: T.Tensor((4, n), "float32"), B: T.Tensor((4, n), "float32")):
        with T.Kernel(4, threads=128) as row:
            x = T.alloc_shared((1, n), "float32")
            T.copy(A[row, 0], x)
            T.cumsum(src=x, dim=1)
            T.copy(x, B[row, 0])

    a = floats(4, n)
    return scanned, "sm_90a", (a, np.zeros_like(a)), np.cumsum(a, axis=1)


def two_kernels() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def staged(
        A: T.Tensor((n,), "float32"), W: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")
    ):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                W[block * 128 + i] = A[block * 128 + i] * 2.0
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                B[block * 128 + i] = W[block * 128 + i] + 1.0

    a = floats(300)
    return staged, "sm_90a", (a, np.zeros_like(a), np.zeros_like(a)), a * 2 + 1


def matmul_of_bytes() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def gemm(
        A: T.Tensor((n, 64), "int8"), B: T.Tensor((64, 64), "int8"), C: T.Tensor((n, 64), "int32")
    ):
        with T.Kernel(T.ceildiv(n, 64), threads=128) as bx:
            left = T.alloc_shared((64, 64), "int8")
            right = T.alloc_shared((64, 64), "int8")
            sums = T.alloc_fragment((64, 64), "int32")
            T.clear(sums)
            T.copy(A[bx * 64, 0], left)
            T.copy(B, right)
            T.gemm(left, right, sums, transpose_B=True)
            T.copy(sums, C[bx * 64, 0])

    a, b = (RNG.integers(-9, 9, (size, 64)).astype(np.int8) for size in (100, 64))
    return gemm, "sm_80", (a, b, np.zeros((100, 64), np.int32)), a.astype(int) @ b.astype(int).T


def persistent() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def looped(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(4, threads=128, cluster_dims=(2, 1, 1)) as block:
            for wave in T.serial(T.ceildiv(n, 512)):
                for i in T.Parallel(128):
                    if (wave * 4 + block) * 128 + i < n:
                        B[(wave * 4 + block) * 128 + i] = A[(wave * 4 + block) * 128 + i] * 3.0

    a = floats(1000)
    return looped, "sm_90a", (a, np.zeros_like(a)), a * 3


def largest() -> Any:
    @T.prim_func
    def top(A: T.Tensor((8, 64), "float32"), V: T.Tensor((8, 2), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((8, 64), "float32")
            most = T.alloc_fragment((8,), "float32")
            T.copy(A, x)
            for k in T.serial(2):
                T.reduce_max(x, most, dim=1, clear=True)
                for i, j in T.Parallel(8, 64):
                    x[i, j] = T.if_then_else(most[i] == x[i, j], -10000.0, x[i, j])
                for i in T.Parallel(8):
                    V[i, k] = most[i]

    a = floats(8, 64)
    return top, "sm_90a", (a, np.zeros((8, 2), np.float32)), -np.sort(-a, axis=1)[:, :2]


def eight_bit_matmul() -> Any:
    @T.prim_func
    def gemm(
        A: T.Tensor((64, 64), "float8_e4m3fn"),
        B: T.Tensor((64, 64), "float8_e5m2"),
        C: T.Tensor((64, 64), "bfloat16"),
    ):
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(64, 64):
                C[i, j] = T.cast(A[i, j], "bfloat16") * T.cast(B[j, i], "bfloat16")

    return gemm


def between_kernels() -> Any:
    @T.prim_func
    def staged(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        W = T.alloc_global((128,), "float32")
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                W[i] = A[i] * 2.0
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = W[i]

    return staged


def chosen_kernel() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def chosen(A: T.Tensor((n,), "float32")):
        if n > 100:
            with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
                for i in T.Parallel(128):
                    A[block * 128 + i] = 1.0
        else:
            with T.Kernel(1, threads=128):
                for i in T.Parallel(128):
                    A[i] = 2.0

    return chosen


def patches() -> Any:
    @T.prim_func
    def convolved(X: T.Tensor((1, 8, 8, 32), "float16"), Y: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 32), "float16")
            for k in T.Pipelined(9, num_stages=2):
                T.c2d_im2col(X, tile, 0, k, 3, 1, 1, 1)
            T.copy(tile, Y)

    return convolved


TABLE = {
    "elementwise": elementwise,
    "matmul_sm_80": lambda: matmul("sm_80", 2),
    "matmul_sm_90a": lambda: matmul("sm_90a", 2),
    "softmax": softmax,
    "rms_norm": rms_norm,
    "transposed": transposed,
    "vector_product": vector_product,
    "attention_sm_80": lambda: attention("sm_80"),
    "attention_sm_90a": lambda: attention("sm_90a"),
    "split_sums": split_sums,
    "dequantised": dequantised,
    "convolution": convolution,
    "running_sums": running_sums,
    "two_kernels": two_kernels,
    "matmul_of_bytes": matmul_of_bytes,
    "persistent": persistent,
    "largest": largest,
}
REFUSED = {
    between_kernels: "a kernel takes W, which is no parameter of the function",
    chosen_kernel: "chosen launches its kernels in a loop or under a condition",
    patches: 'a tensor map of "__tvm_tensormap_create_im2col", which is not known',
}


@pytest.mark.parametrize("name", TABLE)
def test_a_kernel_of_an_example_is_a_function(name: str) -> None:
    function, arch, given, wanted = TABLE[name]()
    with fe.emulated_gpu(arch):
        fn = frontend.compile(function, target=arch)
        arrays = [fe.cuda.array(each) for each in given]
        fn(*arrays)
        got = fe.cuda.to_numpy(arrays[-1])
        del fn, arrays
    tolerance = 2e-3 if given[-1].dtype == np.float16 or "matmul" in name else 1e-5
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.__name__)
def test_what_is_refused_says_why(row: Any) -> None:
    with pytest.raises(CompileError, match=REFUSED[row]):
        frontend.compile(row(), target="sm_90a")


def test_floats_of_a_byte_are_those_of_the_signature() -> None:
    fn = frontend.compile(eight_bit_matmul(), target="sm_90a")
    assert str(fn.signature) == (
        "gemm(A: Tensor([64, 64], float8_e4m3fn), B: Tensor([64, 64], float8_e5m2), "
        "C: Tensor([64, 64], bfloat16))"
    )


def test_the_count_of_the_page() -> None:
    assert (len(TABLE), len(TABLE) + len(REFUSED)) == (17, 20)

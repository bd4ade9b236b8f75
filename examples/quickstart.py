"""Three kernels that people really write, compiled for the CPU and compared with NumPy.

    python examples/quickstart.py

Needs ferrule's core dependencies alone: llvmlite, apache-tvm-ffi, numpy.
"""

from __future__ import annotations

import time

import numpy as np

import ferrule as fe

THREADS = 128


@fe.kernel
def device_add_one(a: fe.Tensor, b: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    i = bid * THREADS + tid
    if i < a.shape[0]:
        b[i] = a[i] + 1.0


@fe.jit
def add_one(a: fe.Tensor, b: fe.Tensor):
    """b = a + 1."""
    n = a.shape[0]
    device_add_one(a, b).launch(grid=((n + THREADS - 1) // THREADS, 1, 1), block=(THREADS, 1, 1))


@fe.kernel
def device_softmax(x: fe.Tensor, y: fe.Tensor):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    row = bid * THREADS + tid
    if row < x.shape[0]:
        largest = x[row, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[row, j])
        for j in range(x.shape[1]):
            y[row, j] = fe.math.exp(x[row, j] - largest)
        total = 0.0
        for j in range(x.shape[1]):
            total += y[row, j]
        for j in range(x.shape[1]):
            y[row, j] = y[row, j] / total


@fe.jit
def softmax(x: fe.Tensor, y: fe.Tensor):
    """y = softmax(x) along the last dim, one thread a row."""
    device_softmax(x, y).launch(grid=((x.shape[0] + THREADS - 1) // THREADS,), block=(THREADS,))


@fe.kernel
def device_rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor, eps: fe.Float32):
    bid, _, _ = fe.arch.block_idx()
    tid, _, _ = fe.arch.thread_idx()
    row = bid * THREADS + tid
    if row < x.shape[0]:
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[row, j] * x[row, j]
        scale = fe.math.rsqrt(squares / x.shape[1] + eps)
        for j in range(x.shape[1]):
            y[row, j] = x[row, j] * scale * weight[j]


@fe.jit
def rms_norm(x: fe.Tensor, weight: fe.Tensor, y: fe.Tensor, eps: fe.Float32 = 1e-6):
    """y = x / sqrt(mean(x * x) + eps) * weight along the last dim, one thread a row."""
    device_rms_norm(x, weight, y, eps).launch(
        grid=((x.shape[0] + THREADS - 1) // THREADS,), block=(THREADS,)
    )


def compile_all() -> tuple[fe.Function, fe.Function, fe.Function]:
    """The three functions, for any sizes."""
    options = "--enable-tvm-ffi --target cpu"
    n, m, k = fe.sym_int(), fe.sym_int(), fe.sym_int()
    vector = fe.runtime.make_fake_compact_tensor(fe.Float32, (n,))
    rows = fe.runtime.make_fake_compact_tensor(fe.Float32, (m, k), stride_order=(1, 0))
    weight = fe.runtime.make_fake_compact_tensor(fe.Float32, (k,))
    return (
        fe.compile(add_one, vector, vector, options=options),
        fe.compile(softmax, rows, rows, options=options),
        fe.compile(rms_norm, rows, weight, rows, options=options),
    )


def reference_softmax(x: np.ndarray) -> np.ndarray:
    """Row softmax in NumPy."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def report(name: str, result: np.ndarray, expected: np.ndarray) -> None:
    """Prints the largest relative difference; raises where it is too large."""
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    print(f"{name:9s} equals NumPy's result (max difference {abs(result - expected).max():.1e})")


def main() -> None:
    """Compiles, runs, compares, and shows a refused call and the time of a call."""
    start = time.perf_counter()
    add, soft, norm = compile_all()
    print(f"compiled three functions in {1e3 * (time.perf_counter() - start):.0f} ms")
    for function in (add, soft, norm):
        print(f"  {function.signature}")

    rng = np.random.default_rng(0)
    a = rng.standard_normal(1000, dtype=np.float32)
    x = rng.standard_normal((300, 257), dtype=np.float32)
    w = rng.standard_normal(257, dtype=np.float32)
    b, y, z = np.empty_like(a), np.empty_like(x), np.empty_like(x)
    add(a, b)
    soft(x, y)
    norm(x, w, z, eps=1e-5)
    report("add_one", b, a + 1)
    report("softmax", y, reference_softmax(x))
    report("rms_norm", z, x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * w)

    try:
        add(a, b[:126])
    except ValueError as error:
        print(f"a refused call: ValueError: {error}")

    small, out = a[:128], b[:128]
    add.prepare()  # the sixteenth call would, and take a part of the time
    calls = 20_000
    start = time.perf_counter()
    for _ in range(calls):
        add(small, out)
    print(f"a call on 128 floats takes {1e9 * (time.perf_counter() - start) / calls:.0f} ns")


if __name__ == "__main__":
    main()

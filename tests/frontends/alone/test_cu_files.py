"""Ordinary `.cu` files, with the program around their kernels: functions with right results.

The table counts what `docs/frontends_cuda.md` says of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import specs
from ferrule.compiler.conventions import Struct, cast
from ferrule.compiler.errors import CompileError
from ferrule.frontends import cuda
from ferrule.frontends.cuda.hostparts import without_host
from ferrule.frontends.cuda.requests import Request
from ferrule.frontends.sources import Source
from ferrule.specs import Scalar, Signature, Tensor, ceil_div

FOLDER = Path(__file__).parent / "cu"
N, M = specs.sym_int32(symbol="n"), specs.sym_int32(symbol="m")
WEIGHTS = np.array([1, -2, 3, 4, 3, -2, 1], np.float32)
RNG = np.random.default_rng(5)


def built(name: str, params: list[Any], given: Callable[[Signature], Any], **more: Any) -> Any:
    sig = Signature(name, params)
    return cuda.compile(
        FOLDER / f"{name}.cu", sig, params=given(sig), target="sm_90a", form="ptx", **more
    )


def vectors(dtype: str, *names: str, size: Any = N) -> list[Any]:
    return [Tensor(name, (size,), dtype) for name in names]


def data(sig: Signature, *more: Any) -> list[Any]:
    return [each.data if isinstance(each, Tensor) else each for each in sig.params] + list(more)


def vector_add() -> Any:
    fn = built("vector_add", vectors("float32", *"abc"), lambda sig: data(sig, N),
               grid=ceil_div(N, 256), block=256)  # fmt: skip
    a, b = RNG.random((2, 600), np.float32)
    return fn, (a, b, np.zeros_like(a)), a + b


def block_sums() -> Any:
    blocks = ceil_div(N, 256)
    params = [Tensor("x", (N,), "float64"), Tensor("out", (blocks,), "float64")]
    fn = built("block_sums", params, lambda sig: data(sig, cast(N, "uint32")),
               kernel="block_sums<double, 128>", grid=blocks, block=128, smem=128 * 8)  # fmt: skip
    x = RNG.random(700)
    return fn, (x, np.zeros(3)), [x[:256].sum(), x[256:512].sum(), x[512:].sum()]


def convolution() -> Any:
    params = [Tensor(name, (M, N), "float32") for name in ("out", "x")]
    sig = Signature("convolve_rows", params)
    fn = cuda.compile(FOLDER / "convolution.cu", sig, params=data(sig, N, M), target="sm_90a",
                      form="ptx", grid=(ceil_div(N, 64), M), block=64,
                      constants={"c_weights": WEIGHTS})  # fmt: skip
    x = RNG.random((3, 80), np.float32)
    wanted = [np.convolve(row, WEIGHTS[::-1], "same") for row in x]
    return fn, (np.zeros_like(x), x), wanted


def matmul_tiled() -> Any:
    params = [Tensor(name, (N, N), "float64") for name in "abc"]
    fn = built("matmul_tiled", params, lambda sig: data(sig, N), kernel="gpu::matmul_tiled",
               defines={"TILE": 4}, grid=(ceil_div(N, 4),) * 2, block=(4, 4))  # fmt: skip
    a, b = RNG.random((2, 10, 10))
    return fn, (a, b, np.zeros_like(a)), a @ b


def histogram() -> Any:
    params = [*vectors("uint8", "x"), *vectors("uint32", "bins", size=32)]
    fn = built("histogram", params, lambda sig: data(sig, cast(N, "uint64")),
               grid=ceil_div(N, 256), block=64)  # fmt: skip
    x = RNG.integers(0, 256, 900).astype(np.uint8)
    return fn, (x, np.zeros(32, np.uint32)), np.bincount(x // 8, minlength=32)


def softmax() -> Any:
    params = [Tensor(name, (M, N), "float32") for name in ("out", "x")]
    fn = built("softmax", params, lambda sig: data(sig, M, N), kernel="softmax_kernel",
               grid=ceil_div(M * 32, 64), block=64)  # fmt: skip
    x = RNG.random((3, 70), np.float32)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return fn, (np.zeros_like(x), x), e / e.sum(axis=1, keepdims=True)


def mandelbrot() -> Any:
    params = [Tensor("out", (M, N), "int32"), Scalar("limit", "int32")]
    fn = built("mandelbrot", params, lambda sig: [sig["out"].data, N, M, sig["limit"]],
               grid=(ceil_div(N, 32), M), block=32)  # fmt: skip
    x, y = np.arange(20, dtype=np.float32), np.arange(6, dtype=np.float32)
    c = (-2 + 3 * x / 20) + 1j * (-1 + 2 * y[:, None] / 6)
    z, steps = np.zeros_like(c), np.full(c.shape, 30)
    for i in range(30):
        z = np.where(steps == 30, z * z + c, z)
        steps[(steps == 30) & (abs(z) > 2)] = i
    return fn, (np.zeros((6, 20), np.int32), 30), steps


def stencil() -> Any:
    params = [*vectors("float32", "x", "out"), Scalar("diffusion", "float32")]
    sig = Signature("heat_step", params)
    given = [sig["x"].data, sig["out"].data, Struct([sig["diffusion"], N], align=8)]
    fn = cuda.compile(FOLDER / "stencil.cu", sig, params=given, target="sm_90a", form="ptx",
                      grid=ceil_div(N, 64), block=64)  # fmt: skip
    x = RNG.random(100, np.float32)
    wide = np.pad(x, 1, "edge")
    return fn, (x, np.zeros_like(x), 0.25), x + 0.25 * (wide[:-2] + wide[2:] - 2 * x)


def scan() -> Any:
    size = specs.sym_int32(symbol="n", max=64)
    fn = built("scan", vectors("int32", "x", "out", size=size), lambda sig: data(sig, size),
               grid=fe.frontends.fixed(1), block=64)  # fmt: skip
    x = RNG.integers(0, 9, 50).astype(np.int32)
    return fn, (x, np.zeros_like(x)), np.cumsum(x)


TABLE = (vector_add, block_sums, convolution, matmul_tiled, histogram, softmax, mandelbrot,
         stencil, scan)  # fmt: skip
REFUSED = {
    "random_walk": 'cannot open source file "curand_kernel.h"',
    "clamped": r'(?s)clamped.cu\(6\): error: identifier "limit" is undefined.*'
    "note: left out are the functions of the host: limit, main",
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.__name__)
def test_a_kernel_of_an_ordinary_file_is_a_function(nvrtc: Any, row: Any) -> None:
    with fe.emulated_gpu("sm_90a"):
        fn, given, wanted = row()
        arrays = [fe.cuda.array(each) if isinstance(each, np.ndarray) else each for each in given]
        fn(*arrays)
        results = [fe.cuda.to_numpy(each) for each in arrays if not isinstance(each, int | float)]
        changed = [
            got
            for got, before in zip(results, given, strict=False)
            if not np.array_equal(got, before)
        ]
        np.testing.assert_allclose(changed[0], wanted, rtol=1e-5, atol=1e-6)
        del arrays, fn


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(nvrtc: Any, name: str) -> None:
    sig = Signature(name, vectors("float32", "x"))
    with pytest.raises(CompileError, match=REFUSED[name]):
        cuda.compile(FOLDER / f"{name}.cu", sig, grid=N, block=32, target="sm_90a")


PROGRAM = r"""
struct S { int a; int f() const { return a; } };
typedef struct __align__(8) { float f; } P;
static_assert(sizeof(S) == 4, "x");
typedef void (*callback)(int);
using other = void (*)(int);
float table[] = {1, 2};
auto lambda = [](int x) { return x; };
template <class T> __device__ T square(T x) { return x * x; }
__host__ __device__ float both(float x);
constexpr int two() { return 2; }
INSTANTIATE(float);
UNKNOWN(k)(float* x) { x[0] = 1; }
#define ON_GPU __global__
#define KERNEL(name) ON_GPU void name
KERNEL(named)(float* x) { }
const char *text = "void f() {", c = '{';  // void g() {
"""
GONE = r"""
void proto(int a, float b = 3);
template <> void special<int>(int) {}
template <class T, int N = 3> inline T generic(T x) { if (x) { return x; } return x; }
struct S make(int a) { return S{a}; }
bool operator==(const S& a, const S& b) { return a.a == b.a; }
S::S(int a) : a(a) {}
auto arrow(int a) -> float { return a; }
[[nodiscard]] static __attribute__((always_inline)) int attributed() noexcept { return '}'; }
"""


def without(text: str) -> tuple[str, tuple[str, ...]]:
    left = without_host(Request(Source(text, "x.cu"), (), "ptx"))
    assert left.request.source.text.count("\n") == text.count("\n")
    return left.request.source.text, left.names


def test_functions_of_the_host_are_left_out_and_nothing_else() -> None:
    assert without(PROGRAM) == (PROGRAM, ())
    text, names = without(GONE + PROGRAM)
    assert text.lstrip("\n") == PROGRAM.lstrip("\n")
    assert names == (
        "proto", "special<int>", "generic", "make", "operator==", "S::S", "arrow", "attributed"
    )  # fmt: skip
    inner = "namespace n { namespace { void b(); } __device__ int d; }"
    text, names = without(f'extern "C" {{ void a() {{}} __global__ void k(int* x) {{}} }} {inner}')
    assert (names, "k(int* x) {}" in text, "__device__ int d;" in text) == (("a", "b"), True, True)
    assert without("void a() { {\n")[1] == ()


def test_headers_of_a_folder_are_taken_in_front_of_stand_ins(nvrtc: Any, tmp_path: Path) -> None:
    (tmp_path / "helper_cuda.h").write_text("#define VALUE 3.0f\n", encoding="ascii")
    source = "#include <helper_cuda.h>\n__global__ void set(float* x) { x[threadIdx.x] = VALUE; }"
    assert cuda.module(source, target="sm_90", include_paths=[tmp_path]).code.kernels
    with pytest.raises(CompileError, match='identifier "VALUE" is undefined'):
        cuda.module(source, target="sm_90")


STANDARD = """
#include <cstdint>
#include <climits>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cassert>
#include <cstdlib>
extern "C" __global__ void all(double* out) {
  int64_t wide = INT64_MIN; uint8_t byte = UINT8_MAX; uintptr_t address = UINTPTR_MAX;
  assert(wide < 0);
  double values[] = {(double)wide, (double)byte, (double)INT_MIN, (double)UINT_MAX, FLT_MAX,
                     DBL_EPSILON, M_PI, INFINITY, std::sqrt(2.0), (double)offsetof(S, b)};
  for (int i = 0; i < 10; ++i) out[i] = values[i] + 0 * address;
}
"""


def test_what_device_code_needs_of_the_headers_is_there(nvrtc: Any) -> None:
    sig = Signature("all", [Tensor("out", (10,), "float64")])
    with fe.emulated_gpu("sm_90a"):
        fn = cuda.compile(f"struct S {{ char a; int b; }};{STANDARD}", sig, grid=1, block=1)
        out = fe.cuda.empty((10,), "float64")
        fn(out)
        got = fe.cuda.to_numpy(out).tolist()
        del out, fn
    limits = [-(2.0**63), 255.0, -(2.0**31), 2.0**32 - 1, float(np.finfo("f4").max)]
    assert got == [*limits, np.finfo("f8").eps, np.pi, np.inf, np.sqrt(2), 4.0]


def test_the_count_of_the_page() -> None:
    assert (len(TABLE), len(TABLE) + len(REFUSED)) == (9, 11)

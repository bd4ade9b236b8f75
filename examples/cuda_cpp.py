"""Kernels in CUDA C++ as functions that check their arguments: a reduction, a tiled matmul.

    python examples/cuda_cpp.py                # compile them, for sm_80 and sm_90
    python examples/cuda_cpp.py --run          # and run them: needs a GPU and PyTorch

NVRTC compiles (`pip install 'ferrule[cuda]'`), or nvcc of a CUDA toolkit; neither needs a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.frontends import cuda

ARCHS = ("sm_80", "sm_90")
BLOCK = 256
SPAN = 4096
"""Elements that a block of the first kernel adds up."""
TILE = 16

REDUCTION = r"""
template <int BLOCK>
__device__ void store_sum(float value, float* out) {
  __shared__ float partial[BLOCK];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *out = partial[0];
}

// Adds up `span` elements a block: out[blockIdx.x].
template <int BLOCK>
__global__ void sums(const float* x, float* out, long long n, long long span) {
  const long long first = blockIdx.x * span;
  const long long end = min(first + span, n);
  float value = 0;
  for (long long i = first + threadIdx.x; i < end; i += BLOCK) value += x[i];
  store_sum<BLOCK>(value, out + blockIdx.x);
}
"""

MATMUL = r"""
// c = a @ b for row-major matrices of m by k and k by n.
template <int TILE>
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[TILE][TILE], right[TILE][TILE];
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; at += TILE) {
    const int x = at + threadIdx.x, y = at + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < m && x < k ? a[(long long)row * k + x] : 0;
    right[threadIdx.y][threadIdx.x] = y < k && column < n ? b[(long long)y * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[(long long)row * n + column] = sum;
}
"""


def reduction(archs: str | Sequence[str] = ARCHS, compiler_name: str | None = None) -> fe.Function:
    """`total = reduction(x)`: two launches, with the sums of the blocks between them."""
    n = specs.sym_int64(symbol="n")
    blocks = specs.ceil_div(n, SPAN)
    signature = specs.Signature("reduction", [specs.Tensor("x", (n,), "float32")])
    partial = specs.Tensor("partial", (blocks,), "float32")
    total = specs.Tensor("total", (1,), "float32")
    kernel = f"sums<{BLOCK}>"
    source = cuda.module(REDUCTION, [kernel], target=archs, compiler=compiler_name)
    x = signature["x"].data
    steps = [
        source.launch(kernel, [x, partial.data, n, conventions.cast(SPAN, "int64")], blocks, BLOCK),
        source.launch(kernel, [partial.data, total.data, blocks, blocks], 1, BLOCK),
    ]
    sequence = conventions.Sequence(steps, temporaries=[partial])
    return compiler.build(signature, sequence, results=[total])


def matmul(archs: str | Sequence[str] = ARCHS, compiler_name: str | None = None) -> fe.Function:
    """`c = matmul(a, b)`: tiles in shared memory, one thread for each element."""
    m, n, k = (specs.sym_int32(symbol=name) for name in "mnk")
    a, b = specs.Tensor("a", (m, k), "float32"), specs.Tensor("b", (k, n), "float32")
    c = specs.Tensor("c", (m, n), "float32")
    return cuda.compile(
        MATMUL,
        specs.Signature("matmul", [a, b]),
        kernel=f"matmul<{TILE}>",
        params=[a.data, b.data, c.data, m, n, k],
        grid=(specs.ceil_div(n, TILE), specs.ceil_div(m, TILE)),
        block=(TILE, TILE),
        target=archs,
        compiler=compiler_name,
        results=[c],
    )


def run() -> None:
    """Compare with PyTorch, on its first GPU."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    archs = f"sm_{major}{minor}"
    x = torch.rand(1_000_003, device="cuda")
    torch.testing.assert_close(torch.from_dlpack(reduction(archs)(x)), x.sum()[None])
    a, b = torch.rand(300, 517, device="cuda"), torch.rand(517, 130, device="cuda")
    product = torch.from_dlpack(matmul(archs)(a, b))
    torch.testing.assert_close(product, a @ b, rtol=1e-3, atol=1e-3)
    print("both agree with PyTorch")


if __name__ == "__main__":
    print(reduction(), matmul(), sep="\n")
    if "--run" in sys.argv:
        run()

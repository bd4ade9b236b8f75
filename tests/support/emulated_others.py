"""Other systems' kernels on an emulated GPU: NVRTC's, NVIDIA's bindings, Numba; prints each.

What is not installed is `absent`.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import ferrule as fe

N = 1000
VALUES = np.arange(N, dtype=np.float32)
SOURCE = """
extern "C" __global__ void scaled(float* x, float by, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] * by : 0.0f;
  __syncthreads();
  if (i < n) x[i] = tile[threadIdx.x] + __shfl_xor_sync(~0u, 0.0f, 1);
}
"""
DEEP = """
__device__ __noinline__ void sort(int* a, int low, int high) {
  int i = low, j = high, middle = a[(low + high) / 2];
  while (i <= j) {
    while (a[i] < middle) i++;
    while (a[j] > middle) j--;
    if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; }
  }
  if (low < j) sort(a, low, j);
  if (i < high) sort(a, i, high);
}
extern "C" __global__ void sorted(int* x, int n) {
  int own[20];
  int first = 20 * threadIdx.x;
  if (first >= n) return;
  for (int i = 0; i < 20; i++) own[i] = x[first + i];
  sort(own, 0, 19);
  for (int i = 0; i < 20; i++) x[first + i] = own[i];
}
"""
GRID_BARRIERS = """
#include <cooperative_groups.h>
extern "C" __global__ void turned(int* turned, const int* x) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* own = turned + 256;
  own[i] = x[i];
  for (int turn = 0; turn < 4; turn++) {
    grid.sync();
    int other = own[255 - i];
    grid.sync();
    own[255 - i] = other + 1;
  }
  grid.sync();
  turned[i] = own[255 - i];
}
"""
FRAGMENTS = """
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void product(const half* a, const half* b, float* c, int n, int k) {
  __shared__ alignas(32) half part[16 * 24];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  const half* rows = a + blockIdx.y * 16 * k;
  for (int i = 0; i < k; i += 16) {
    for (int t = threadIdx.x; t < 256; t += 32) {
      part[t / 16 * 24 + t % 16] = rows[t / 16 * k + i + t % 16];
    }
    __syncwarp();
    wmma::load_matrix_sync(left, part, 24);
    wmma::load_matrix_sync(right, b + blockIdx.x * 16 * k + i, k);
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 0.5f;
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}
"""
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry scaled(.param .u64 x, .param .f32 by, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    ld.param.u32 %r4, [n];
    setp.ge.u32 %p, %r1, %r4;
    @%p ret;
    ld.param.u64 %rd1, [x];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.f32 %f1, [%rd3];
    ld.param.f32 %f2, [by];
    mul.f32 %f1, %f1, %f2;
    st.f32 [%rd3], %f1;
    ret;
}
"""


def has_compiler() -> bool:
    from ferrule.frontends.cuda.nvcc import find_nvcc
    from ferrule.frontends.cuda.nvrtc import find_nvrtc

    return find_nvrtc() is not None or find_nvcc() is not None


def recursion() -> bool | None:
    """A function of C++ that calls itself, on memory of each thread."""
    if not has_compiler():
        return None
    n = fe.sym_int32()
    x = fe.specs.Tensor("x", (n,), "int32")
    function = fe.frontends.cuda.compile(
        DEEP,
        fe.specs.Signature("sorted", [x]),
        params=[x.data, n],
        grid=fe.ceil_div(n, 1280),
        block=64,
        target="sm_90a",
    )
    values = np.random.default_rng(1).integers(-50, 50, (50, 20), np.int32)
    held = fe.cuda.array(values.reshape(-1))
    function(held)
    return bool((fe.cuda.to_numpy(held).reshape(50, 20) == np.sort(values)).all())


def nvrtc() -> bool | None:
    """By the frontend: PTX with the lines of the source, as the process emulates a GPU."""
    if not has_compiler():
        return None
    n = fe.sym_int32()
    x = fe.specs.Tensor("x", (n,), "float32")
    by = fe.specs.Scalar("by", "float32")
    signature = fe.specs.Signature("scaled", [x, by])
    function = fe.frontends.cuda.compile(
        SOURCE,
        signature,
        params=[x.data, by, n],
        grid=fe.ceil_div(n, 256),
        block=256,
        target="sm_90a",
    )
    held = fe.cuda.array(VALUES)
    function(held, 2.5)
    lines = ".loc" in function.inspect_ptx()
    return lines and bool((fe.cuda.to_numpy(held) == 2.5 * VALUES).all())


def grid_barriers() -> bool | None:
    """`grid.sync()` of cooperative groups: each block reads what another one wrote before."""
    from ferrule.frontends.cuda.nvrtc import _candidates

    homes = [each for each in _candidates() if (each / "cooperative_groups.h").is_file()]
    inside = [each for home in homes for each in (home, home / "cccl")]
    found = [each for each in inside if (each / "cuda" / "std" / "type_traits").is_file()]
    if not has_compiler() or not found:
        return None
    sizes = {"turned": 512, "x": 256}
    tensors = [fe.specs.Tensor(name, (size,), "int32") for name, size in sizes.items()]
    function = fe.frontends.cuda.compile(
        GRID_BARRIERS,
        fe.specs.Signature("turned", tensors),
        grid=fe.frontends.fixed(4),
        block=64,
        target="sm_90a",
        cooperative=True,
        include_paths=found[:1],
    )
    values = np.arange(256, dtype=np.int32)
    held, given = fe.cuda.empty((512,), "int32"), fe.cuda.array(values)
    for _ in range(2):
        function(held, given)
    return bool((fe.cuda.to_numpy(held)[:256] == values[::-1] + 4).all())


def fragments() -> bool | None:
    """nvcuda::wmma: a product of tiles through shared memory."""
    from ferrule.frontends.cuda.nvrtc import _candidates

    headers = [each for each in _candidates() if (each / "crt" / "mma.h").is_file()]
    if not has_compiler() or not headers:
        return None
    m, n, k = (fe.sym_int32() for _ in range(3))
    a, b = fe.specs.Tensor("a", (m, k), "float16"), fe.specs.Tensor("b", (n, k), "float16")
    c = fe.specs.Tensor("c", (m, n), "float32")
    function = fe.frontends.cuda.compile(
        FRAGMENTS,
        fe.specs.Signature("product", [a, b, c]),
        params=[a.data, b.data, c.data, n, k],
        grid=(fe.ceil_div(n, 16), fe.ceil_div(m, 16)),
        block=32,
        target="sm_90a",
        include_paths=headers[:1],
    )
    rng = np.random.default_rng(2)
    left, right = (rng.integers(-4, 5, size).astype(np.float16) for size in ((32, 48), (64, 48)))
    given = fe.cuda.array(left), fe.cuda.array(right)
    held = fe.cuda.array(np.zeros((32, 64), np.float32))
    function(*given, held)
    wanted = left.astype(np.float32) @ right.astype(np.float32).T / 2
    return bool((fe.cuda.to_numpy(held) == wanted).all())


def bindings() -> bool | None:
    """NVIDIA's own bindings of the driver."""
    if importlib.util.find_spec("cuda") is None or not importlib.util.find_spec("cuda.bindings"):
        return None
    from cuda.bindings import driver

    def done(name: str, *arguments: Any) -> Any:
        result, *found = getattr(driver, name)(*arguments)
        assert int(result) == 0, (name, result)
        return found[0] if len(found) == 1 else found

    done("cuInit", 0)
    device = done("cuDeviceGet", 0)
    done("cuCtxSetCurrent", done("cuDevicePrimaryCtxRetain", device))
    kernel = done("cuModuleGetFunction", done("cuModuleLoadData", PTX.encode()), b"scaled")
    place, found = done("cuMemAlloc", VALUES.nbytes), np.empty_like(VALUES)
    done("cuMemcpyHtoD", place, VALUES.ctypes.data, VALUES.nbytes)
    given = (place, 2.5, N), (None, ctypes.c_float, ctypes.c_int)
    done("cuLaunchKernel", kernel, 4, 1, 1, 256, 1, 1, 0, 0, given, 0)
    done("cuMemcpyDtoH", found.ctypes.data, place, found.nbytes)
    done("cuMemFree", place)
    return bool((found == 2.5 * VALUES).all())


def numba() -> bool | None:
    """Numba's own launch; the CUDA part of Numba itself, not of numba-cuda, which needs cubins."""
    if not importlib.util.find_spec("numba") or importlib.util.find_spec("numba_cuda"):
        return None
    from numba import cuda
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except nvvm.NvvmSupportError:
        return None

    def scaled(x, by):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] = x[i] * by

    held = cuda.to_device(VALUES)
    cuda.jit(scaled)[4, 256](held, np.float32(2.5))
    return bool((held.copy_to_host() == 2.5 * VALUES).all())


CHECKS: dict[str, Callable[[], bool | None]] = {
    "NVRTC": nvrtc,
    "recursion": recursion,
    "barriers of the grid": grid_barriers,
    "wmma": fragments,
    "bindings": bindings,
    "Numba": numba,
}
SAID = {True: "right", False: "wrong", None: "absent"}


def main() -> None:
    with fe.emulated_gpu("sm_90a"):
        for name, check in CHECKS.items():
            print(f"{name}: {SAID[check()]}")


if __name__ == "__main__":
    main()

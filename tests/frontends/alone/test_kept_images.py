"""What was compiled without an emulated GPU is not what the cache gives with one, nor the reverse.

A GPU gets the cubin where there is one, an emulated GPU the PTX: both are made of the same kernel.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_cubins import ForgedKernel, forge_cubin

import ferrule as fe
from ferrule import specs
from ferrule.compiler import targets
from ferrule.compiler.cache import settings
from ferrule.compiler.cache.through import MEMORY
from ferrule.compiler.conventions import CudaLaunch
from ferrule.frontends.cuda.nvcc import find_nvcc
from ferrule.frontends.cuda.nvrtc import find_nvrtc
from ferrule.runtime.calls.plan import origin_of

ARCH = "sm_90a"
SIZE = 300
CUBIN = b"\x7fELF\2\1\1"
"""The beginning of a cubin, which is an ELF file of 64 bits."""

SOURCE = """
extern "C" __global__ void twice(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
"""
PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .f32 %f;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.s32 %p, %r4, %r0;
  @%p ret;
  mul.wide.s32 %d2, %r4, 4;
  add.s64 %d3, %d0, %d2;
  ld.global.f32 %f, [%d3];
  add.f32 %f, %f, %f;
  add.s64 %d3, %d1, %d2;
  st.global.f32 [%d3], %f;
  ret;
}
"""


@fe.kernel
def twice_kernel(x: fe.Tensor, y: fe.Tensor) -> None:
    i = fe.arch.block_idx()[0] * fe.arch.block_dim()[0] + fe.arch.thread_idx()[0]
    if i < x.shape[0]:
        y[i] = x[i] * 2


@fe.jit
def twice(x: fe.Tensor, y: fe.Tensor) -> None:
    twice_kernel(x, y).launch(grid=fe.ceil_div(x.shape[0], 128), block=128)


def signature() -> specs.Signature:
    n = specs.sym_int32()
    return specs.Signature(
        "twice", [specs.Tensor(name, (n,), "float32", device="cuda") for name in ("x", "y")]
    )


def of_build() -> fe.Function:
    """Images that a caller has."""
    cubin = forge_cubin(ARCH, [ForgedKernel("twice", [8, 8, 4])])
    code, given = fe.DeviceCode.from_images([cubin, PTX], ["twice"]), signature()
    n = given["x"].shape[0]
    arguments = [given["x"].data, given["y"].data, n]
    launch = CudaLaunch(code, "twice", arguments, grid=fe.ceil_div(n, 128), block=128)
    return fe.compiler.build(given, launch)


def of_overload() -> fe.Function:
    return fe.overload([of_build()])


def of_cuda() -> fe.Function:
    if find_nvrtc() is None and find_nvcc() is None:
        pytest.skip("there is neither NVRTC nor nvcc")
    from ferrule.frontends import cuda

    given = signature()
    n = given["x"].shape[0]
    arguments = [given["x"].data, given["y"].data, n]
    return cuda.compile(
        SOURCE, given, params=arguments, grid=fe.ceil_div(n, 128), block=128, target=ARCH
    )


def of_language() -> fe.Function:
    if shutil.which("ptxas") is None:
        pytest.skip("there is no ptxas")
    x = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
    return fe.compile(twice, x, x, options=f"--target cuda --gpu-arch {ARCH} --cubin")


def of_free_dtypes() -> fe.Function:
    if shutil.which("ptxas") is None:
        pytest.skip("there is no ptxas")
    T = fe.sym_dtype(fe.Float32, fe.Float64)
    x = fe.make_fake_compact_tensor(T, (fe.sym_int(),))
    return fe.compile(twice, x, x, options=f"--target cuda --gpu-arch {ARCH} --cubin")


def of_triton(**how: Any) -> fe.Function:
    pytest.importorskip("triton")
    import triton_kernels

    from ferrule.frontends import triton

    return triton.compile(
        triton_kernels.scale,
        signature={"x": "*fp32[n]", "y": "*fp32[n]", "n": "n", "factor": 2.0},
        constexprs={"BLOCK": 128},
        grid=lambda meta: (triton.ceil_div(meta["n"], meta["BLOCK"]),),
        target=ARCH,
        **how,
    )


def of_variants() -> fe.Function:
    return of_triton(specialize="dispatch")


QUICK = [of_build, of_overload, of_language, of_free_dtypes, of_triton, of_variants]
ON_DISK = pytest.param(MEMORY.clear, id="on disk")
IN_MEMORY = pytest.param(int, id="in memory")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", "1")
    monkeypatch.setenv("FERRULE_CACHE_DIR", str(tmp_path / "cache"))
    MEMORY.clear()
    settings.set_folder(None)


def check(function: fe.Function) -> None:
    """A call on the emulated GPU is right."""
    x = np.arange(SIZE, dtype=np.float32)
    there, out = fe.cuda.array(x), fe.cuda.array(np.zeros_like(x))
    function(there, out)
    np.testing.assert_array_equal(fe.cuda.to_numpy(out), 2 * x)


def has_cubin(function: fe.Function) -> bool:
    origin, host = origin_of(function), targets.host()
    assert origin is not None
    return CUBIN in origin.emit(function.name, host.cpu, host.triple).data[1:]


@pytest.mark.parametrize("forget", [ON_DISK, IN_MEMORY])
@pytest.mark.parametrize("made", QUICK)
def test_each_gets_its_own(made: Callable[[], fe.Function], forget: Callable[[], object]) -> None:
    outside = made()
    assert has_cubin(outside)
    forget()
    with fe.emulated_gpu(ARCH):
        inside = made()
        assert inside.origin == "compiled"
        check(inside)
        forget()
        again = made()
        assert again.origin == "from the cache" and not has_cubin(again)
        check(again)
    forget()
    outside = made()
    assert outside.origin == "from the cache" and has_cubin(outside)


def test_also_of_a_source_in_cuda_cpp() -> None:
    test_each_gets_its_own(of_cuda, MEMORY.clear)


@pytest.mark.parametrize("forget", [ON_DISK, IN_MEMORY])
@pytest.mark.parametrize("made", [of_build, of_free_dtypes, of_variants])
def test_and_the_reverse(made: Callable[[], fe.Function], forget: Callable[[], object]) -> None:
    with fe.emulated_gpu(ARCH):
        check(made())
    forget()
    outside = made()
    assert outside.origin == "compiled" and has_cubin(outside)


def test_direct_calls_on_one_architecture_after_another() -> None:
    x = np.arange(SIZE, dtype=np.float32)
    for arch in ("sm_80", ARCH, "sm_80"):
        with fe.emulated_gpu(arch):
            there, out = fe.cuda.array(x), fe.cuda.array(np.zeros_like(x))
            twice(there, out)
            np.testing.assert_array_equal(fe.cuda.to_numpy(out), 2 * x)


def test_code_without_kernels_is_the_same() -> None:
    def made() -> fe.Function:
        x = fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(),))
        return fe.compile(twice, x, x, options="--target cpu")

    made()
    MEMORY.clear()
    with fe.emulated_gpu(ARCH):
        again = made()
        assert again.origin == "from the cache"
        assert "twice" in again.inspect_ir()

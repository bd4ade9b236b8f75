"""Functions of TileLang on the stand-in of the driver."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_python import called_bare
from cuda_device import FakeCuda, forged
from pages import run_page
from tensor_maps import decoded

from ferrule.compiler.errors import CompileError
from ferrule.frontends import tilelang as frontend

# Annotations are values here: TileLang reads those of inner functions.
pytest.importorskip("tilelang", reason="TileLang is not installed")
T = pytest.importorskip("tilelang.language")

pytestmark = pytest.mark.usefixtures("nvcc")


def scaled(dtype: str = "float32") -> Any:
    n = T.dynamic("n", "int32")

    @T.prim_func
    def axpy(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), alpha: T.float32):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as block:
            for i in T.Parallel(256):
                B[block * 256 + i] = A[block * 256 + i] * alpha + B[block * 256 + i]

    return axpy


def twice() -> Any:
    n, step = T.dynamic("n", "int32"), T.dynamic("step", "int64")

    @T.prim_func
    def two(
        A: T.StridedTensor((n, 4), (step, 1), "float32"),
        B: T.Tensor((n, 4), "float32"),
        C: T.Tensor((n, 4), "float16"),
        flag: T.bool,
        half: T.float16,
        small: T.int8,
    ):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as block:
            for i in T.Parallel(256):
                B[block * 256 + i, 0] = A[block * 256 + i, 0] * T.cast(half, "float32")
        with T.Kernel(T.ceildiv(n, 128), 2, threads=128) as (block, column):
            for i in T.Parallel(128):
                if flag:
                    C[block * 128 + i, column] = T.cast(B[block * 128 + i, 0], "float16") + T.cast(
                        small, "float16"
                    )

    return two


def multiplied(m: int, n: int, k: int, tile: int = 128, step: int = 32) -> Any:
    @T.prim_func
    def matmul(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, tile), T.ceildiv(m, tile), threads=128) as (column, row):
            left = T.alloc_shared((tile, step), "float16")
            right = T.alloc_shared((step, tile), "float16")
            sums = T.alloc_fragment((tile, tile), "float32")
            T.clear(sums)
            for part in T.Pipelined(T.ceildiv(k, step), num_stages=3):
                T.copy(A[row * tile, part * step], left)
                T.copy(B[part * step, column * tile], right)
                T.gemm(left, right, sums)
            T.copy(sums, C[row * tile, column * tile])

    return matmul


def aligned(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype).reshape(shape)


def test_dynamic_sizes_are_symbols_and_parameters(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(scaled(), target="sm_90a")
    assert str(fn.signature) == (
        "axpy(A: Tensor([n], float32), B: Tensor([n], float32), alpha: float32)"
    )
    a, b = aligned(1000), aligned(1000)
    fn(forged(a), forged(b), 2.5)
    (launch,) = fake_cuda.launches()
    assert (launch.kernel, launch.grid, launch.block) == ("axpy_kernel", (4, 1, 1), (256, 1, 1))
    wanted = struct.pack("<QQfi", a.ctypes.data, b.ctypes.data, 2.5, 1000)
    assert b"".join(launch.parameters) == wanted


def test_kernels_are_launched_in_order_with_what_each_takes(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(twice(), target="sm_90a")
    a, b, c = aligned(300, 8)[:, :4], aligned(300, 4), aligned(300, 4, dtype="float16")
    fn(forged(a), forged(b), forged(c), True, 0.5, -3)
    first, second = fake_cuda.launches()
    assert (first.grid, second.grid) == ((2, 1, 1), (3, 2, 1))
    half = struct.pack("<e", 0.5)
    assert first.parameters[2:] == (half, struct.pack("<i", 300), struct.pack("<q", 8))
    assert sorted(second.parameters[2:]) == sorted((b"\1", b"\xfd", struct.pack("<i", 300)))


def test_tensor_maps_are_those_that_tilelang_describes(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(multiplied(1024, 512, 256), target="sm_90a")
    a, b, c = (aligned(*shape, dtype="float16") for shape in ((1024, 256), (256, 512), (1024, 512)))
    fn(*map(forged, (a, b, c)))
    (launch,) = fake_cuda.launches()
    assert (launch.grid, launch.block, launch.smem) == ((4, 8, 1), (256, 1, 1), 49152)
    left, right = map(decoded, launch.parameters[:2])
    assert (left.sizes, left.strides, left.box, left.swizzle) == ((256, 1024), (512,), (32, 128), 2)
    assert (right.sizes, right.strides, right.box) == ((512, 256), (1024,), (64, 32))
    assert (left.address, right.address) == (a.ctypes.data, b.ctypes.data)


def test_results_are_allocated_by_the_caller() -> None:
    fn = frontend.compile(multiplied(128, 128, 64), target="sm_80", results=["C"])
    assert str(fn.signature) == (
        "matmul(A: Tensor([128, 64], float16), B: Tensor([64, 128], float16)) "
        "-> Tensor([128, 128], float16)"
    )


def test_what_the_kernel_takes_for_granted_is_checked(fake_cuda: FakeCuda) -> None:
    fn = frontend.compile(scaled(), target="sm_90a")
    a, b = aligned(1000), aligned(1000)
    with pytest.raises(ValueError, match="A and B overlap in memory"):
        fn(forged(a), forged(a), 1.0)
    with pytest.raises(ValueError, match="Misaligned Tensor data .*data alignment=64 bytes"):
        fn(forged(a[1:]), forged(b[1:]), 1.0)
    with pytest.raises(ValueError, match=r"Mismatched B.shape\[0\]"):
        fn(forged(a), forged(b[:999]), 1.0)
    assert fake_cuda.launches() == []


def test_a_size_is_told_by_an_expression_of_it(fake_cuda: FakeCuda) -> None:
    n = T.dynamic("n", "int32")

    @T.prim_func
    def evens(A: T.Tensor((n * 2,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as block:
            for i in T.Parallel(128):
                A[2 * (block * 128 + i)] = 1.0

    fn = frontend.compile(evens, target="sm_80", pass_configs={"tl.disable_warp_specialized": True})
    assert str(fn.signature) == "evens(A: Tensor([n * 2], float32))"
    fake_cuda.set_capability(0, 80)
    fn(forged(aligned(1000)))
    (launch,) = fake_cuda.launches()
    assert launch.grid == (4, 1, 1)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeError, match="a function that makes one must be called"):
        frontend.compile(scaled, target="sm_90a")
    with pytest.raises(TypeError, match="pass_configs must be a dict"):
        frontend.compile(scaled(), target="sm_90a", pass_configs=[])  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="cannot compile axpy for sm_90a: Invalid config"):
        frontend.compile(scaled(), target="sm_90a", pass_configs={"tl.no_such": True})
    with pytest.raises(CompileError, match="(?s)cannot be compiled for sm_90 .*target='sm_90a'"):
        frontend.compile(multiplied(128, 128, 64), target="sm_90")
    with pytest.raises(TypeError, match="expected a T.prim_func"):
        frontend.compile(len, target="sm_90a")
    with pytest.raises(TypeError, match="target must be an architecture"):
        frontend.compile(scaled(), target=["sm_90a"])  # type: ignore[arg-type]
    with pytest.raises(CompileError, match="target names 2 architectures"):
        frontend.compile(scaled(), target="sm_80,sm_90a")
    with pytest.raises(CompileError, match="results names 'D'\n  expected: an array: A, B"):
        frontend.compile(scaled(), target="sm_90a", results=["D"])
    with pytest.raises(CompileError, match="target 'no_arch' is no architecture"):
        frontend.compile(scaled(), target="no_arch")


@pytest.mark.needs_cc
def test_what_is_exported_needs_neither_ferrule_nor_tilelang(tmp_path: Path) -> None:
    frontend.compile(scaled(), target="sm_90a").export_to_c(tmp_path / "axpy.o")
    code = "print(module.get_function('axpy') is not None)"
    assert called_bare([tmp_path / "axpy.o"], "tilelang,tvm", code) == "True\n"


def test_the_page_runs(tmp_path: Path) -> None:
    run_page("frontends_tilelang.md", tmp_path)

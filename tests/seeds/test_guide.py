"""Programs as the guide of CuTe DSL to TVM-FFI shows them, run by ferrule.

They differ from what a user of CuTe would have written in the import, in `device="cpu"`, and in
streams that are not torch's, which needs a GPU for its own.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any, Tuple  # noqa: UP035

import pytest

import ferrule as cute

pytestmark = pytest.mark.needs_torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@cute.kernel
def device_add_one(a: cute.Tensor, b: cute.Tensor):
    threads_per_block = 128
    cta_x_, _, _ = cute.arch.block_idx()
    tid_x, _, _ = cute.arch.thread_idx()
    tid = cta_x_ * threads_per_block + tid_x
    if tid < a.shape[0]:
        b[tid] = a[tid] + 1.0


@cute.jit
def add_one(a: cute.Tensor, b: cute.Tensor):
    n = a.shape[0]
    threads_per_block = 128
    blocks = (n + threads_per_block - 1) // threads_per_block
    device_add_one(a, b).launch(
        grid=(blocks, 1, 1),
        block=(threads_per_block, 1, 1),
    )


def wanted() -> Any:
    return torch.arange(1, 11, dtype=torch.float32)


# ---- enabling TVM-FFI ----


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor):
    b[:] = a[:] + b[:]


def test_compile_with_tensors() -> None:
    a_torch = torch.randn(10, 20, 30).to(torch.float16)
    b_torch = torch.randn(10, 20, 30).to(torch.float16)
    a_cute = cute.runtime.from_dlpack(a_torch, enable_tvm_ffi=True).mark_layout_dynamic()
    b_cute = cute.runtime.from_dlpack(b_torch, enable_tvm_ffi=True).mark_layout_dynamic()
    for examples in ((a_torch, b_torch), (a_cute, b_cute)):
        compiled_add = cute.compile(add, *examples, options="--enable-tvm-ffi")
        expected = a_torch + b_torch
        compiled_add(a_torch, b_torch)
        assert torch.equal(b_torch, expected)


def test_the_environment_can_enable_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_ENABLE_TVM_FFI", "1")
    a_torch = torch.arange(10, dtype=torch.float32)
    b_torch = torch.empty(10, dtype=torch.float32)
    cute.compile(add_one, a_torch, b_torch)(a_torch, b_torch)
    assert torch.equal(b_torch, wanted())


# ---- fake tensors ----


def test_fake_tensors() -> None:
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    # compile the kernel with "--enable-tvm-ffi" option and example input tensors
    compiled_add_one = cute.compile(add_one, a_cute, b_cute, options="--enable-tvm-ffi")
    # now compiled_add_one is a TVM-FFI function that can be called with torch.Tensor as input
    a_torch = torch.arange(10, dtype=torch.float32, device="cpu")
    b_torch = torch.empty(10, dtype=torch.float32, device="cpu")
    compiled_add_one(a_torch, b_torch)
    assert torch.equal(b_torch, wanted())


def test_fake_tensors_hold_no_data() -> None:
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (4,))
    with pytest.raises(TypeError, match="a fake tensor has no data"):
        a_cute[0]
    with pytest.raises(TypeError, match="a fake tensor has no data"):
        a_cute[0] = 1.0


def test_stride_order() -> None:
    shape = (2, 3, 4)
    fake = cute.runtime.make_fake_compact_tensor
    assert fake(cute.Float32, shape, stride_order=(0, 1, 2)).stride == (1, 2, 6)
    row_major = tuple(reversed(range(len(shape))))
    assert fake(cute.Float32, shape, stride_order=row_major).stride == (12, 4, 1)
    assert cute.runtime.make_fake_tensor(cute.Float32, shape, (1, 2, 6)).stride == (1, 2, 6)


# ---- from_dlpack ----


def test_from_dlpack_in_a_call_and_as_an_example() -> None:
    n = cute.sym_int()
    fake = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    compiled_add_one = cute.compile(add_one, fake, fake, options="--enable-tvm-ffi")
    a_torch = torch.arange(10, dtype=torch.float32)
    b_torch = torch.empty(10, dtype=torch.float32)
    a_cute = cute.runtime.from_dlpack(a_torch, enable_tvm_ffi=True).mark_layout_dynamic()
    b_cute = cute.runtime.from_dlpack(b_torch, enable_tvm_ffi=True).mark_layout_dynamic()

    compiled_add_one(a_cute, b_cute)
    assert torch.equal(b_torch, wanted())

    compiled_add_one = cute.compile(add_one, a_cute, b_cute, options="--enable-tvm-ffi")
    b_torch.zero_()
    compiled_add_one(a_torch, b_torch)
    assert torch.equal(b_torch, wanted())
    longer = torch.zeros(1000), torch.empty(1000)
    compiled_add_one(*longer)
    assert torch.equal(longer[1], torch.ones(1000))


# ---- streams ----


class CUstream:
    """Stands for cuda-python's class of this name."""

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@cute.jit
def add_one_with_stream(a: cute.Tensor, b: cute.Tensor, stream: CUstream):
    n = a.shape[0]
    threads_per_block = 128
    blocks = (n + threads_per_block - 1) // threads_per_block
    device_add_one(a, b).launch(
        grid=(blocks, 1, 1),
        block=(threads_per_block, 1, 1),
        stream=stream,
    )


@pytest.mark.parametrize(
    "stream",
    [None, 0, 1 << 40, ctypes.c_void_p(8), CUstream(), CUstream(1 << 40)],
    ids=["none", "zero", "int", "c_void_p", "default CUstream", "CUstream"],
)
def test_a_stream_is_passed(stream: object) -> None:
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    # Fake stream is a placeholder for stream argument
    fake_stream = cute.runtime.make_fake_stream()
    compiled_add_one = cute.compile(
        add_one_with_stream, a_cute, b_cute, fake_stream, options="--enable-tvm-ffi"
    )
    a_torch = torch.arange(10, dtype=torch.float32, device="cpu")
    b_torch = torch.empty(10, dtype=torch.float32, device="cpu")
    compiled_add_one(a_torch, b_torch, stream)
    assert torch.equal(b_torch, wanted())


def test_the_annotation_makes_it_a_stream() -> None:
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    compiled_add_one = cute.compile(
        add_one_with_stream, a_cute, a_cute, CUstream(), options="--enable-tvm-ffi"
    )
    assert str(compiled_add_one.signature).endswith("stream: Stream)")


def test_the_environment_stream_is_no_argument() -> None:
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    # Fake stream is a placeholder for stream argument
    # we will use TVM FFI environment stream
    stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)
    compiled_add_one = cute.compile(
        add_one_with_stream, a_cute, b_cute, stream, options="--enable-tvm-ffi"
    )
    a_torch = torch.arange(10, dtype=torch.float32, device="cpu")
    b_torch = torch.empty(10, dtype=torch.float32, device="cpu")
    # no need to pass in the stream explicitly
    compiled_add_one(a_torch, b_torch)
    assert torch.equal(b_torch, wanted())


# ---- tuples ----


@cute.kernel
def device_add(a: cute.Tensor, b: cute.Tensor, c: cute.Float32):
    threads_per_block = 128
    cta_x_, _, _ = cute.arch.block_idx()
    tid_x, _, _ = cute.arch.thread_idx()
    tid = cta_x_ * threads_per_block + tid_x
    if tid < a.shape[0]:
        b[tid] = a[tid] + c


@cute.jit
def add_one_with_tuple(a: Tuple[cute.Tensor, cute.Tensor, cute.Float32]):  # noqa: UP006
    n = a[0].shape[0]
    threads_per_block = 128
    blocks = (n + threads_per_block - 1) // threads_per_block
    device_add(a[0], a[1], a[2]).launch(grid=(blocks, 1, 1), block=(threads_per_block, 1, 1))


def test_tuples() -> None:
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    compiled_add_one = cute.compile(
        add_one_with_tuple, (a_cute, b_cute, cute.Float32(4)), options="--enable-tvm-ffi"
    )
    a_torch = torch.arange(10, dtype=torch.float32, device="cpu")
    b_torch = torch.empty(10, dtype=torch.float32, device="cpu")
    compiled_add_one((a_torch, b_torch, 5))
    assert torch.equal(b_torch, wanted() + 4)


# ---- errors ----


def refused(kind: type[Exception], call: Any) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    return str(caught.value)


def test_constraints_are_checked() -> None:
    n = cute.sym_int(divisibility=16)
    # assume align to 16 bytes (4 int32), both should share same shape variable n
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,), assumed_align=16)
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,), assumed_align=16)
    compiled_add_one = cute.compile(add_one, a_cute, b_cute, options="--enable-tvm-ffi")
    a = torch.zeros(128, dtype=torch.float32, device="cpu")
    b = torch.zeros(128, dtype=torch.float32, device="cpu")
    signature = "`add_one(a: Tensor([n0], float32), b: Tensor([n0], float32))`"

    assert refused(TypeError, lambda: compiled_add_one(a, 1)) == (
        f"Mismatched type on argument #1 when calling: {signature}, expected Tensor, but got int"
    )
    assert refused(ValueError, lambda: compiled_add_one(a, b[:126])) == (
        f"Mismatched b.shape[0] on argument #1 when calling: {signature}, "
        f"expected to match a.shape[0] = 128, but got 126"
    )
    assert refused(ValueError, lambda: compiled_add_one(a[:126], b[:126])) == (
        f"Invalid a.shape[0] on argument #0 when calling: {signature}, "
        f"expected to be divisible by 16, but got 126"
    )
    a = torch.zeros(129, dtype=torch.float32, device="cpu")
    b = torch.zeros(129, dtype=torch.float32, device="cpu")
    assert refused(ValueError, lambda: compiled_add_one(a[1:], b[1:])) == (
        f"Misaligned Tensor data on argument #0 when calling: {signature}, "
        f"expected data alignment=16 bytes, but got address {a[1:].data_ptr():#x}"
    )


@cute.jit
def add_one_invalid_launch(a: cute.Tensor, b: cute.Tensor):
    # Intentionally exceed the maximum block dimension (1024 threads)
    device_add_one(a, b).launch(grid=(1, 1, 1), block=(4096, 1, 1))


def test_an_invalid_launch_is_a_runtime_error() -> None:
    a_torch = torch.zeros((10,), dtype=torch.float32, device="cpu")
    b_torch = torch.zeros((10,), dtype=torch.float32, device="cpu")
    a_cute = cute.runtime.from_dlpack(a_torch, enable_tvm_ffi=True)
    b_cute = cute.runtime.from_dlpack(b_torch, enable_tvm_ffi=True)
    compiled_add_one_invalid_launch = cute.compile(
        add_one_invalid_launch, a_cute, b_cute, options="--enable-tvm-ffi"
    )
    message = refused(cute.LaunchError, lambda: compiled_add_one_invalid_launch(a_torch, b_torch))
    assert "expected block x to be in [1, 1024], but got 4096" in message
    assert issubclass(cute.LaunchError, RuntimeError)


# ---- export ----


@pytest.mark.needs_cc
def test_export_and_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    n = cute.sym_int()
    a_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    b_cute = cute.runtime.make_fake_compact_tensor(cute.Float32, (n,))
    # compile the kernel with "--enable-tvm-ffi" option and example input tensors
    compiled_add_one = cute.compile(add_one, a_cute, b_cute, options="--enable-tvm-ffi")
    # export the compiled module to object file
    compiled_add_one.export_to_c("./add_one.o", function_name="add_one")
    # obtain necessary runtime libs for loading the shared library
    runtime_libs = cute.runtime.find_runtime_libraries(enable_tvm_ffi=True)
    # compile the object file to a shared library
    cmd = ["gcc", "-shared", "-o", "./add_one.so", "./add_one.o", *runtime_libs]
    subprocess.run(cmd, check=True)

    mod = cute.runtime.load_module("./add_one.so")
    a_torch = torch.arange(10, dtype=torch.float32, device="cpu")
    b_torch = torch.empty(10, dtype=torch.float32, device="cpu")
    mod.add_one(a_torch, b_torch)
    assert torch.equal(b_torch, wanted())

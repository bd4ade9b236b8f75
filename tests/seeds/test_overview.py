"""Programs as a page on CuTe DSL's integration of TVM-FFI shows them, run by ferrule.

They differ from what a user of CuTe would have written in the imports and in `device="cpu"`.  The
page compiles `c[:] = a[:] + b[:]` for three sizes that have nothing to do with each other; ferrule
compares them in the call.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import ferrule as cute
import ferrule as cutlass
from ferrule.runtime import from_dlpack

pytestmark = pytest.mark.needs_torch
torch = pytest.importorskip("torch", reason="PyTorch is not installed")


# Define kernel
@cute.jit
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    c[:] = a[:] + b[:]


def test_torch_tensors() -> None:
    # Compile with TVM-FFI
    a_fake = cute.make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),))
    b_fake = cute.make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),))
    c_fake = cute.make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),))

    compiled_fn = cute.compile(add_kernel, a_fake, b_fake, c_fake, options="--enable-tvm-ffi")

    # Use with PyTorch tensors (no wrapping needed!)
    a_torch = torch.randn(1024, device="cpu")
    b_torch = torch.randn(1024, device="cpu")
    c_torch = torch.zeros(1024, device="cpu")

    compiled_fn(a_torch, b_torch, c_torch)
    assert torch.equal(c_torch, a_torch + b_torch)

    with pytest.raises(ValueError, match=r"c.shape\[0\].* = 1024, but got 1023"):
        compiled_fn(a_torch, b_torch, c_torch[:1023])


def test_wrapped_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    a_torch, b_torch, c_torch = torch.randn(8), torch.randn(8), torch.zeros(8)
    wrapped = [from_dlpack(t, enable_tvm_ffi=True) for t in (a_torch, b_torch, c_torch)]
    compiled_fn = cute.compile(add_kernel, *wrapped, options="--enable-tvm-ffi")
    compiled_fn(*wrapped)
    assert torch.equal(c_torch, a_torch + b_torch)

    monkeypatch.setenv("FERRULE_ENABLE_TVM_FFI", "1")
    c_torch.zero_()
    compiled_fn(from_dlpack(a_torch), from_dlpack(b_torch), from_dlpack(c_torch))
    assert torch.equal(c_torch, a_torch + b_torch)


@cute.jit
def double(a: cute.Tensor):
    a[:] = a[:] + a[:]


def test_dynamic_shapes() -> None:
    # row-major, as torch makes matrices: the default is column-major, and refuses them
    a_fake = cute.make_fake_compact_tensor(
        cutlass.Float32, (cute.sym_int(), 256), stride_order=(1, 0)
    )
    compiled_fn = cute.compile(double, a_fake, options="--enable-tvm-ffi")

    # Now call with any batch size
    for batch in (128, 256):
        tensor = torch.ones(batch, 256)
        compiled_fn(tensor)
        assert torch.equal(tensor, torch.full((batch, 256), 2.0))

    a_fake = cute.make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(), 256))
    compiled_fn = cute.compile(double, a_fake, options="--enable-tvm-ffi")
    with pytest.raises(ValueError, match=r"column-major.*stride_order=\(1, 0\)"):
        compiled_fn(torch.ones(128, 256))


def test_shared_sizes() -> None:
    n0 = cute.sym_int()
    fake = cute.make_fake_compact_tensor(cutlass.Float32, (n0, 256), stride_order=(1, 0))
    compiled_fn = cute.compile(add_kernel, fake, fake, fake, options="--enable-tvm-ffi")
    a = torch.randn(128, 256)
    b = torch.randn(256, 256)
    with pytest.raises(ValueError, match=r"b.shape\[0\].*match a.shape\[0\] = 128, but got 256"):
        compiled_fn(a, b, a)
    compiled_fn(a, torch.randn(128, 256), torch.empty(128, 256))


def test_export_to_c(tmp_path: Path) -> None:
    fake = cute.make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),))
    compiled_fn = cute.compile(double, fake, options="--enable-tvm-ffi")
    compiled_fn.export_to_c(tmp_path / "my_kernel.o", function_name="my_kernel")
    assert b"__tvm_ffi_my_kernel" in (tmp_path / "my_kernel.o").read_bytes()

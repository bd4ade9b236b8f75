"""Tensors that a built function makes: results that it returns, temporaries that it frees."""

from __future__ import annotations

import struct

import pytest
from cuda_device import FakeCuda, data_ptr
from gpu_functions import floats
from host_memory import all_freed

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import CudaLaunch, FirstOf, Sequence, TensorStructs
from ferrule.specs import Signature, Tensor, ceil_div

N = specs.sym_int(symbol="n")
BLOCKS = ceil_div(N, 256)
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry partial(.param .b64 x, .param .b64 sums, .param .b32 n) { ret; }
.visible .entry total(.param .b64 sums, .param .b64 out, .param .b64 count) { ret; }
.visible .entry structs(.param .align 8 .b8 x[16], .param .align 8 .b8 out[8]) { ret; }
"""


def code() -> fe.DeviceCode:
    return fe.DeviceCode.from_ptx(PTX)


def reduction(first_fails: bool = False) -> fe.Function:
    """Sums of blocks in a temporary, then their sum in the result."""
    sig = Signature("total", [Tensor("x", (N,), "float32")])
    sums = Tensor("sums", (BLOCKS,), "float32")
    out = Tensor("out", (), "float32")
    kernels, block = code(), 2048 // (N + 1) if first_fails else 256
    steps = [
        CudaLaunch(kernels, "partial", [sig["x"].data, sums.data, N], BLOCKS, block),
        CudaLaunch(kernels, "total", [sums.data, out.data, BLOCKS], 1, 256),
    ]
    return compiler.build(sig, Sequence(steps, temporaries=[sums]), results=[out])


def test_a_temporary_lives_as_long_as_the_launches_that_use_it(fake_cuda: FakeCuda) -> None:
    function = reduction()
    with all_freed():
        out = function(floats(1000))
        partial, total = fake_cuda.launches()
        assert partial.parameters[1] == total.parameters[0]
        assert total.parameters[1] == struct.pack("<Q", data_ptr(out))
        assert total.parameters[2] == struct.pack("<q", 4)
        assert (out.shape, str(out.device)) == ((), "cuda:0")
        del out


def test_everything_is_freed_where_a_launch_fails(fake_cuda: FakeCuda) -> None:
    function = reduction()
    with all_freed():
        function(floats(8))
        fake_cuda.fail("cuLaunchKernelEx", 700, after=1)
        with pytest.raises(fe.CudaError, match="in the launch of total"):
            function(floats(8))
    refused = reduction(first_fails=True)
    with all_freed(), pytest.raises(fe.LaunchError, match="expected block x to be in"):
        refused(floats(4096))
    assert fake_cuda.depth == 0


def test_several_results_come_back_as_a_tuple(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [Tensor("x", (N,), "float32")])
    first, second = Tensor("first", (4,), "float32"), Tensor("second", (N, 2), "int8")
    launch = CudaLaunch(code(), "structs", [*TensorStructs(sig["x"], first)], 1, 1)
    function = compiler.build(sig, launch, results=[first, second])
    with all_freed():
        a, b = function(floats(3))
        (seen,) = fake_cuda.launches()
        assert seen.parameters[1] == struct.pack("<Q", data_ptr(a))
        assert (a.shape, b.shape, str(b.dtype)) == ((4,), (3, 2), "int8")
        del a, b


def test_a_negative_size_of_a_result_is_refused(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [Tensor("x", (N,), "float32")])
    out = Tensor("out", (N - 8,), "float32")
    launch = CudaLaunch(code(), "total", [sig["x"].data, out.data, N * 2], 1, 1)
    function = compiler.build(sig, launch, results=[out])
    with pytest.raises(
        ValueError, match=r"Invalid shape\[0\] of out, expected at least 0, but got"
    ):
        function(floats(7))


def test_a_result_needs_sizes_that_a_call_tells() -> None:
    sig = Signature("f", [Tensor("x", (N,), "float32")])
    out = Tensor("out", (specs.sym_int(symbol="other"),), "float32")
    launch = CudaLaunch(code(), "total", [sig["x"].data, out.data, 1], 1, 1)
    with pytest.raises(ValueError, match="the size other of the result 'out' is in no parameter"):
        compiler.build(sig, launch, results=[out])


def test_choices_may_be_of_different_code(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [Tensor("x", (N,), "float32")])
    out = Tensor("out", (), "float32")
    choices = [
        CudaLaunch(code(), "total", [sig["x"].data, out.data, 1], 1, 1, when=N > 4),
        CudaLaunch(code(), "partial", [sig["x"].data, out.data, N], 1, 1),
    ]
    function = compiler.build(sig, FirstOf(choices), results=[out])
    with all_freed():
        for size, kernel in ((5, "total"), (4, "partial"), (9, "total")):
            fake_cuda.clear()
            function(floats(size))
            assert [each.kernel for each in fake_cuda.launches()] == [kernel]
    assert fake_cuda.depth == 0


def test_what_no_argument_places_is_made_on_the_current_device(fake_cuda: FakeCuda) -> None:
    sig = Signature("f", [specs.Scalar("n", "int32")])
    out = Tensor("out", (4,), "float32")
    launch = CudaLaunch(code(), "total", [out.data, out.data, sig["n"].value], 1, 1)
    function = compiler.build(sig, launch, results=[out])
    fake_cuda.set_current(1, primary=True)
    with all_freed():
        assert str(function(3).device) == "cuda:1"


def test_a_tensor_of_a_branch_is_known_in_it_alone() -> None:
    sig = Signature("f", [Tensor("x", (N,), "float32")])
    scratch = Tensor("scratch", (N,), "float32")
    use = CudaLaunch(code(), "total", [sig["x"].data, scratch.data, N * 2], 1, 1)
    maybe = Sequence([use], temporaries=[scratch], when=N > 4)
    with pytest.raises(ValueError, match="Tensor 'scratch' is in no parameter of f.*temporaries="):
        compiler.build(sig, Sequence([maybe, use]))

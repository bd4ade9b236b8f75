"""Launches for somebody who brings PTX: what goes together, what is refused, what is cleaned up."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import pytest
from cuda_device import FakeCuda, data_ptr
from gpu_functions import floats
from host_memory import Memory

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.compiler.conventions import CudaLaunch, FirstOf, Sequence
from ferrule.runtime.errors import StageError
from ferrule.specs import Scalar, Signature, Tensor, ceil_div

PTX = """\
.version 7.8
.target sm_80
.address_size 64
.visible .entry partial(.param .u64 from, .param .u64 to, .param .u32 n) { ret; }
.visible .entry total(.param .u64 from, .param .u64 to, .param .u32 n) { ret; }
.visible .entry wide(.param .u64 from, .param .u64 n) { ret; }
"""
N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")
OUT = Tensor("out", (1,), "float32")


def code() -> fe.DeviceCode:
    return fe.DeviceCode.from_ptx(PTX)


def wide(size: specs.Dim, **more: Any) -> CudaLaunch:
    """A launch of `wide` with this size."""
    given = [X.data, conventions.cast(size, "int64")]
    return CudaLaunch(code(), "wide", given, **{"grid": 1, "block": 32, **more})


def reduction() -> fe.Function:
    """Partial sums into a temporary, and their sum, which is left out for a single block."""
    kernels = code()
    blocks = ceil_div(N, 256)
    partial = Tensor("partial", (blocks,), "float32")
    steps = [
        CudaLaunch(kernels, "partial", [X.data, partial.data, N], blocks, 256),
        CudaLaunch(kernels, "total", [partial.data, OUT.data, N], 1, 256, when=blocks > 1),
    ]
    signature = Signature("sum", [X])
    return compiler.build(signature, Sequence(steps, temporaries=[partial]), results=[OUT])


# ---- several kernels, temporaries, results ----


def test_a_temporary_is_handed_from_one_kernel_to_the_next(
    fake_cuda: FakeCuda, memory: Memory
) -> None:
    result = reduction()(floats(1000, device=1))
    first, second = fake_cuda.launches()
    assert (first.kernel, second.kernel) == ("partial", "total")
    assert first.parameters[1] == second.parameters[0]
    assert second.parameters[1] == struct.pack("<Q", data_ptr(result))
    assert (memory.sizes, str(result.device)) == ([4, 16], "cuda:1")
    assert list(memory.live) == [data_ptr(result)]


def test_nothing_stays_where_a_later_launch_fails(fake_cuda: FakeCuda, memory: Memory) -> None:
    function = reduction()
    fake_cuda.fail("cuLaunchKernelEx", 1, after=1)
    with pytest.raises(fe.CudaError, match="in the launch of total"):
        function(floats(1000))
    assert (memory.sizes, memory.live, fake_cuda.depth) == ([4, 16], {}, 0)


def test_an_empty_tensor_launches_nothing_and_has_a_result(
    fake_cuda: FakeCuda, memory: Memory
) -> None:
    result = reduction()(floats(0))
    assert (fake_cuda.launches(), result.shape, memory.sizes) == ([], (1,), [4])


def test_a_tensor_that_is_made_has_no_gaps() -> None:
    gaps = Tensor("gaps", (N, 4), "float32", strides=(8, 1))
    with pytest.raises(ValueError, match="gaps: a tensor that a call makes is compact"):
        compiler.build(Signature("f", [X]), wide(N), results=[gaps])


def test_a_size_that_is_negative_makes_no_result(fake_cuda: FakeCuda, memory: Memory) -> None:
    rest = Tensor("rest", (N - 10,), "float32")
    function = compiler.build(Signature("f", [X]), wide(N), results=[rest])
    assert function(floats(15)).shape == (5,)
    with pytest.raises(ValueError, match=r"Invalid shape\[0\] of rest, .* got -5"):
        function(floats(5))


def test_temporaries_have_names_of_their_own() -> None:
    one, other = (Tensor("t", (N,), "float32") for _ in range(2))
    with pytest.raises(ValueError, match="Sequence: there are two temporaries 't'"):
        Sequence([wide(N)], temporaries=[one, other])
    like = Tensor("x", (N,), "float32")
    with pytest.raises(ValueError, match="the temporary 'x' is a parameter, too"):
        compiler.build(Signature("f", [X]), Sequence([wide(N)], temporaries=[like]))


# ---- what a call decides ----


def test_a_size_without_a_value_is_an_error_of_the_call(fake_cuda: FakeCuda) -> None:
    k = Scalar("k", "int64")
    signature = Signature("f", [X, k])
    product = compiler.build(signature, wide(k.value * k.value))
    quotient = compiler.build(signature, wide(ceil_div(N, k.value)))
    grid = compiler.build(signature, wide(N, grid=N * k.value))
    with pytest.raises(ValueError, match="parameter #1 of wide overflows 64 bits"):
        product(floats(4), 1 << 40)
    with pytest.raises(ValueError, match="parameter #1 of wide .*divides by zero"):
        quotient(floats(4), 0)
    with pytest.raises(fe.LaunchError, match="launch of wide: expected grid x .* but got -4"):
        grid(floats(4), -1)
    assert (fake_cuda.launches(), fake_cuda.depth) == ([], 0)


def test_a_tensor_that_is_not_given_is_a_null_pointer(fake_cuda: FakeCuda) -> None:
    bias = specs.Optional("bias", Tensor("bias", (N,), "float32"))
    given = [X.data, bias.item.data]
    launch = CudaLaunch(code(), "wide", given, 1, 32)
    function = compiler.build(Signature("f", [X, bias]), launch)
    values = floats(4)
    function(floats(4), values)
    function(floats(4), None)
    addresses = [launch.parameters[1] for launch in fake_cuda.launches()]
    assert addresses == [struct.pack("<Q", data_ptr(values)), bytes(8)]


def test_a_choice_may_be_a_sequence(fake_cuda: FakeCuda, memory: Memory) -> None:
    scratch = Tensor("scratch", (N,), "float32")
    twice = Sequence([wide(N), wide(N + 1)], temporaries=[scratch], when=N > 100)
    function = compiler.build(Signature("f", [X]), FirstOf([twice, wide(0)]))
    for count, sizes in ((200, [200, 201]), (50, [0])):
        fake_cuda.clear()
        function(floats(count))
        found = [int.from_bytes(each.parameters[1], "little") for each in fake_cuda.launches()]
        assert found == sizes
    assert (memory.sizes, memory.live) == ([800], {})


# ---- what does not fit together ----


def test_a_list_that_is_too_short_or_too_long_says_what_the_kernel_takes() -> None:
    signature, kernels = Signature("f", [X]), code()
    for given, note in (
        ([X.data, N], "#1, 8 bytes, is missing"),
        ([X.data, X.data, N, conventions.NULL], "NULL, 8 bytes, is too much"),
        ([X.data, N, X.data], "#1 is n of 4 bytes, wanted 8"),
    ):
        with pytest.raises(fe.CompileError) as caught:
            compiler.build(signature, CudaLaunch(kernels, "total", given, 1, 32))
        text = str(caught.value)
        assert text.startswith("kernel total of sm_80 takes 3 parameters of 8, 8, 4 bytes")
        assert note in text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CudaLaunch(PTX, "wide", [], 1, 1), "must be a DeviceCode, .* but got str"),
        (
            lambda: CudaLaunch(code(), "wide", 5, 1, 1),
            "params of wide must be in a list, but got 5",
        ),
        (lambda: Sequence(wide(N)), "Sequence: expected a list of calls, but got CudaLaunch"),
        (lambda: Sequence([code()]), "#0 must be a calling convention, .* but got DeviceCode"),
        (lambda: FirstOf([wide(N, when=(N == 3))]), r"such as .* equal\(n, 0\), but got False"),
        (lambda: wide(N, when=1 < N < 3), "it has no truth value here; join conditions with &"),
        (lambda: compiler.build("f", wide(N)), "a specs.Signature first, but got str"),
        (lambda: compiler.build(Signature("f", [X]), code()), "must be a calling convention"),
        (
            lambda: compiler.build(Signature("f", [X]), wide(N), results=OUT),
            "in a list, but got Tensor 'out'",
        ),
        (lambda: compiler.build(Signature("f", "x"), wide(N)), "must be in a list, but got a str"),
        (lambda: Signature("f", ["x"]), r"parameter #0 must be a spec, such as .* but got 'x'"),
        (lambda: compiler.build(Signature("f", [X]), CudaLaunch), "the class CudaLaunch: call it"),
        (lambda: compiler.build(Signature("f", [X]), wide(N), doc=5), "doc must be a str, but got"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_a_tensor_that_nobody_makes_is_refused() -> None:
    launch = CudaLaunch(code(), "total", [X.data, OUT.data, N], 1, 32)
    with pytest.raises(ValueError, match=r"Tensor 'out' is in no parameter of f"):
        compiler.build(Signature("f", [X]), launch)


# ---- the function afterwards ----


def test_it_shows_its_kernels_and_says_what_it_lacks() -> None:
    function = compiler.build(Signature("f", [X]), wide(N), doc="One kernel.")
    assert function.inspect_ptx() == PTX
    assert "One kernel." in str(function.__doc__)
    with pytest.raises(StageError, match="no 'mlir' text"):
        function.inspect_mlir()


def test_it_can_be_pickled(fake_cuda: FakeCuda) -> None:
    function = pickle.loads(pickle.dumps(compiler.build(Signature("f", [X]), wide(N))))
    function(floats(7))
    (launch,) = fake_cuda.launches()
    assert launch.parameters[1] == struct.pack("<q", 7)

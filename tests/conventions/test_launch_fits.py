"""Launches that no GPU of an image could make are refused by the build; names of kernels in C++."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, data_ptr
from forged_cubins import ForgedKernel, forge_cubin
from gpu_functions import floats

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import NULL, CudaLaunch, Struct, TensorMap, TensorStructs
from ferrule.compiler.cuda.binaries.fit import LaunchSizes, check_launch
from ferrule.compiler.cuda.binaries.parameters import KernelParameters
from ferrule.compiler.cuda.limits import shared_limit
from ferrule.specs import Scalar, Signature, Tensor

N = specs.sym_int(symbol="n")
X = Tensor("x", (N,), "float32")
SIG = Signature("f", [X, Scalar("k", "int32")])
CPLUSPLUS = (
    "_ZN2ns4deep3addEPfi", "_Z4overPf", "_Z4overPd",
    "_Z5scaleIfLi4EEvPT_S0_", "_Z5scaleIdLi2EEvPT_S0_", "plain",
)  # fmt: skip


def code(arch: str, *names: str, static: int = 0, directives: str = "") -> fe.DeviceCode:
    """Kernels without parameters."""
    shared = f".shared .align 4 .b8 own[{static}];" if static else ""
    kernels = (f".visible .entry {name}() {directives} {{ {shared} ret; }}" for name in names)
    head = f".version 8.0\n.target {arch}\n.address_size 64\n"
    return fe.DeviceCode.from_ptx(head + "\n".join(kernels))


def cubin(arch: str, static: int = 0) -> fe.DeviceCode:
    """A kernel without parameters."""
    return fe.DeviceCode.from_cubin(forge_cubin(arch, [ForgedKernel("f", shared=static)]))


def build(device: fe.DeviceCode, kernel: str = "f", params: Any = (), **more: Any) -> fe.Function:
    launch = CudaLaunch(device, kernel, list(params), **{"grid": 1, "block": 32, **more})
    return compiler.build(SIG, launch)


def refused(device: fe.DeviceCode, **more: Any) -> str:
    with pytest.raises(fe.CompileError) as caught:
        build(device, **more)
    return str(caught.value)


# ---- sizes that are numbers ----


def test_shared_memory_is_compared_with_what_the_architecture_has() -> None:
    said = refused(cubin("sm_80", static=4000), smem=163_000)
    assert said == (
        "kernel f of sm_80 is to be launched with 163000 bytes of shared memory and 4000 of its "
        "own for a block, but sm_80 has 166912\n"
        "  hint: ask for at most 162912, or leave this image away"
    )
    assert build(cubin("sm_80", static=4000), smem=162_912)
    assert build(cubin("sm_80"), smem=N * 4), "what only the call knows is checked there"
    assert build(cubin("sm_90"), smem=200_000)


def test_every_image_must_have_the_shared_memory() -> None:
    data = [forge_cubin(arch, [ForgedKernel("f")]) for arch in ("sm_90", "sm_86")]
    assert "kernel f of sm_86 is to be" in refused(fe.DeviceCode.from_cubin(data), smem=120_000)


def test_ptx_is_for_newer_gpus_and_may_ask_for_what_one_of_them_has() -> None:
    assert build(code("sm_80", "f"), smem=220_000)
    assert build(code("sm_80", "f"), cluster=2, grid=2)
    said = refused(code("sm_120", "f"), smem=120_000)
    assert "but no GPU since sm_120 has more than 101376\n" in said
    assert "but sm_100 has 232448\n" in refused(cubin("sm_100"), smem=232_449)
    assert build(cubin("sm_107"), smem=327 << 10)
    with pytest.raises(ValueError, match=r"smem must be in \[0, 334848\], but got 334849"):
        build(code("sm_100", "f"), smem=334_849)


@pytest.mark.parametrize(
    ("capability", "kib"),
    [
        (52, 48),
        (70, 96),
        (75, 64),
        (80, 163),
        (89, 99),
        (90, 227),
        (100, 227),
        (107, 327),
        (120, 99),
    ],
)
def test_the_shared_memory_of_a_block(capability: int, kib: int) -> None:
    assert shared_limit(capability) == kib << 10


def test_an_architecture_that_nobody_knows_has_no_limit() -> None:
    check_launch(KernelParameters("f", "sm_999", ()), LaunchSizes(smem=10**6))


def test_clusters_came_with_sm_90() -> None:
    said = refused(cubin("sm_89"), cluster=(2, 1, 1), grid=2)
    assert said.startswith(
        "kernel f of sm_89 is to be launched in clusters of (2, 1, 1) blocks, but GPUs have "
        "clusters since sm_90"
    )
    assert build(cubin("sm_89"), cluster=1)


@pytest.mark.parametrize("asked", [{"cluster": (1, 3)}, {"directives": ".reqnctapercluster 1, 3"}])
def test_a_grid_of_numbers_is_whole_clusters(asked: dict[str, Any]) -> None:
    device = code("sm_90", "f", directives=asked.pop("directives", ""))
    said = refused(device, grid=(4, 4), **asked)
    assert "in clusters of (1, 3, 1) blocks, but the grid (4, 4, 1) is not made of whole" in said
    assert said.endswith("hint: make grid y a multiple of 3")
    assert build(device, grid=(4, N), **asked)


def test_the_registers_of_a_cubin_limit_the_block() -> None:
    kernel = KernelParameters("f", "sm_90", (), registers=128)
    check_launch(kernel, LaunchSizes((512, 1, 1)))
    with pytest.raises(fe.CompileError, match="128 registers .* 1024 threads, and an SM has 65536"):
        check_launch(kernel, LaunchSizes((32, 32, N)))


def test_a_block_that_only_the_call_knows_is_one_that_the_kernel_was_compiled_for(
    fake_cuda: FakeCuda,
) -> None:
    k = SIG["k"].value
    bounded = build(code("sm_90", "f", directives=".maxntid 128"), block=(k, 2))
    bounded(floats(4), 64)
    with pytest.raises(fe.LaunchError, match=r"at most 128 threads a block, but got 130 \(bl"):
        bounded(floats(4), 65)
    several = [code(f"sm_{n}", "f", directives=f".maxntid {n}").images[0].ptx for n in (80, 90)]
    build(fe.DeviceCode.from_ptx(several), block=k)(floats(4), 90)
    fixed = build(code("sm_90", "f", directives=".reqntid 64, 2"), block=(64, k))
    fixed(floats(4), 2)
    with pytest.raises(fe.LaunchError, match="f: expected block y to be 2, which it was compiled "):
        fixed(floats(4), 1)
    assert len(fake_cuda.launches()) == 3


# ---- names ----


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("plain", "plain"),
        ("add", CPLUSPLUS[0]),
        ("ns::deep::add", CPLUSPLUS[0]),
        ("scale<float, 4>", CPLUSPLUS[3]),
        ("scale<double,2>", CPLUSPLUS[4]),
        ("_Z4overPd", "_Z4overPd"),
    ],
)
def test_a_kernel_is_found_by_its_name_in_the_source(
    fake_cuda: FakeCuda, name: str, symbol: str
) -> None:
    build(code("sm_90", *CPLUSPLUS), name)(floats(4), 1)
    assert [launch.kernel for launch in fake_cuda.launches()] == [symbol]


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("plian", "there is no kernel 'plian'", "did you mean plain?"),
        ("ad", "there is no kernel 'ad'", "did you mean _ZN2ns4deep3addEPfi (ns::deep::add)?"),
        ("over", "the device code has 2 kernels 'over'", "is meant: '_Z4overPf', '_Z4overPd'"),
        ("scale", "has 2 kernels 'scale'", "is meant: 'scale<float, 4>', 'scale<double, 2>'"),
        ("scale<int, 1>", "there is no kernel 'scale<int, 1>'", "'scale<float, 4>', 'scale<dou"),
    ],
)
def test_a_name_that_does_not_say_which_kernel(name: str, message: str, hint: str) -> None:
    said = refused(code("sm_90", *CPLUSPLUS), kernel=name)
    assert message in said.splitlines()[0]
    assert "_Z4overPf (over)" in said.splitlines()[1]
    assert hint in said.splitlines()[2]


def test_only_the_first_of_many_names_are_listed() -> None:
    said = refused(code("sm_90", *(f"k{i}" for i in range(60))), kernel="other")
    assert said.endswith("k49, and 10 more")


@pytest.mark.parametrize("kernel", [3, None, b"f"])
def test_a_kernel_is_named_by_a_text(kernel: Any) -> None:
    with pytest.raises(TypeError, match="CudaLaunch: kernel must be the name of a kernel, a str"):
        build(code("sm_90", "f"), kernel)


# ---- what is handed over ----


def test_lists_inside_of_the_list_want_a_star() -> None:
    tensors: Any = TensorStructs(X)
    with pytest.raises(TypeError, match=r"write a star before it, \*TensorStructs\(…\)"):
        build(code("sm_90", "f"), params=[tensors, N])
    with pytest.raises(TypeError, match="but got a list: where its items are meant, write a star"):
        build(code("sm_90", "f"), params=[[X.data, N]])


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (None, "got None: a null pointer is NULL"),
        (True, 'got True: write cast(1, "bool"), or another dtype'),
        (np.int32(4), 'got np.int32(4): write cast(4, "int32"), or another dtype'),
    ],
)
def test_what_is_nearly_an_argument_says_what_to_write(argument: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        build(code("sm_90", "f"), params=[argument])
    assert said in str(caught.value)


def test_a_cubin_may_take_more_than_4_kb(fake_cuda: FakeCuda) -> None:
    numbers = range(600)
    device = fe.DeviceCode.from_cubin(
        forge_cubin("sm_90", [ForgedKernel("f", (8, 4800, 4), long=True)])
    )
    x = floats(4)
    build(device, params=[X.data, Struct(list(numbers)), SIG["k"]])(x, 7)
    (launch,) = fake_cuda.launches()
    packed = struct.pack("<Q", data_ptr(x)), struct.pack("<600q", *numbers), struct.pack("<i", 7)
    assert launch.parameters == packed


@pytest.mark.parametrize("device", ["cpu", "rocm"])
def test_a_tensor_that_no_kernel_can_read_is_refused(device: str) -> None:
    there = Tensor("there", (N, 16), "float32", device=device)
    sig = Signature("f", [there])
    for given in (there.data, there, Struct([NULL, there.data]), TensorMap(there, (8, 4))):
        launch = CudaLaunch(code("sm_90", "f"), "f", [given], 1, 32)
        with pytest.raises(fe.CompileError, match=f"of 'there', whose device is '{device}': no "):
            compiler.build(sig, launch)


@pytest.mark.parametrize("device", ["cuda", "cuda_host", "cuda_managed", None])
def test_memory_that_gpus_can_read_is_taken(device: str | None) -> None:
    there = Tensor("there", (N,), "float32", device=device)
    text = ".version 8.0\n.target sm_90\n.visible .entry f(.param .u64 x) { ret; }"
    launch = CudaLaunch(fe.DeviceCode.from_ptx(f"{text}\n"), "f", [there.data], 1, 32)
    assert compiler.build(Signature("f", [there]), launch)

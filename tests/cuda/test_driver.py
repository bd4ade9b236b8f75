"""The driver as generated code and the stand-in know it: held against `cuda.h`, and tried."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cuda_device import FakeCuda, build, stand_in

from ferrule.compiler.cuda import tilings
from ferrule.compiler.cuda.launcher.driver import (
    ATTRIBUTE,
    CALLS,
    CLUSTER,
    EVENT,
    Attribute,
    Capture,
    ClusterScheduling,
    JitOption,
    LaunchAttribute,
    Result,
)
from ferrule.compiler.cuda.launcher.tensor_maps import FUNCTION, FUNCTION_TYPE
from ferrule.runtime.llvm.launches import LAUNCH_CONFIG
from ferrule.runtime.llvm.layouts import I32, PTR

HANDLES = ("CUcontext", "CUfunction", "CUkernel", "CUlibrary", "CUstream")
NUMBERS = (
    "int",
    "unsigned",
    "CUdevice",
    "CUdevice_attribute",
    "CUfunction_attribute",
    "CUresult",
    "cuuint32_t",
)


@pytest.fixture(scope="module")
def header() -> Path:
    """`cuda.h` of the machine."""
    homes = [os.environ.get("CUDA_HOME", ""), *map(str, Path("/usr/local").glob("cuda*"))]
    found = [path for home in homes if home for path in [Path(home) / "include/cuda.h"]]
    known = [path for path in found if path.exists()]
    if not known:
        pytest.skip("no cuda.h in CUDA_HOME or /usr/local/cuda*")
    return known[0]


def kind_of(parameter: str) -> object:
    """The LLVM type of a parameter in C."""
    first = parameter.removeprefix("const ").split()[0].rstrip("*")
    if first.startswith("CUtensorMap") and "*" not in parameter:
        return I32  # an enumeration
    if "*" in parameter or first in HANDLES:
        return PTR
    assert first in NUMBERS, parameter
    return I32


def test_the_stand_in_is_compiled_once_a_process(fake_cuda: FakeCuda) -> None:
    """It takes half a second, and hundreds of tests have it."""
    assert stand_in() is fake_cuda


@pytest.mark.parametrize("name", [*CALLS, FUNCTION])
def test_functions_are_those_of_the_header(header: Path, name: str) -> None:
    kind = FUNCTION_TYPE if name == FUNCTION else CALLS[name]
    text = header.read_text(encoding="utf-8")
    plain = name.removesuffix("_v2")
    found = re.search(rf"CUresult CUDAAPI {plain}\(([^)]*)\);", text)
    assert found is not None
    assert [kind_of(p.strip()) for p in found[1].split(",")] == list(kind.args)
    # A name that the header maps to another symbol is used as that symbol.
    mapped = re.search(rf"#define {plain}\s+({plain}_v\d+)\s", text)
    assert name == (mapped[1] if mapped else plain)


def test_numbers_are_those_of_the_header(header: Path) -> None:
    text = header.read_text(encoding="utf-8")
    prefixes = {
        Result: "CUDA_ERROR_",
        Capture: "CU_STREAM_CAPTURE_",
        LaunchAttribute: "CU_LAUNCH_ATTRIBUTE_",
        ClusterScheduling: "CU_CLUSTER_SCHEDULING_POLICY_",
        JitOption: "CU_JIT_",
    }
    for kind, prefix in prefixes.items():
        for each in kind:
            name = "CUDA_SUCCESS" if each is Result.SUCCESS else f"{prefix}{each.name}"
            assert re.search(rf"\b{name}\s*=\s*{each.value}\b", text), name
    for each in Attribute:
        kinds = rf"CU_(DEVICE|FUNC)_ATTRIBUTE_{each.name}"
        assert re.search(rf"\b{kinds}\s*=\s*{each.value}\b", text), each


def test_words_of_tensor_maps_are_those_of_the_header(header: Path) -> None:
    text = header.read_text(encoding="utf-8")
    names = {
        tilings.DataType: ("CUtensorMapDataType", "DATA_TYPE_"),
        tilings.Interleave: ("CUtensorMapInterleave", "INTERLEAVE_"),
        tilings.Swizzle: ("CUtensorMapSwizzle", "SWIZZLE_"),
        tilings.L2Promotion: ("CUtensorMapL2promotion", "L2_PROMOTION_"),
        tilings.OobFill: ("CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL_"),
    }
    for kind, (type_, prefix) in names.items():
        body = re.search(rf"typedef enum {type_}_enum \{{([^}}]*)\}}", text)
        assert body is not None, type_
        found = re.findall(rf"CU_TENSOR_MAP_{prefix}(\w+)", body[1])
        for each in kind:
            name = found[each.value].replace("16U4_ALIGN16B", "FLOAT4_PADDED")
            words = name.removeprefix("L2_").replace("NAN_REQUEST_ZERO_FMA", "NAN")
            words = "ZERO" if kind is tilings.OobFill and words == "NONE" else words
            assert re.sub(r"^(\d+)B", r"B\1", words) == each.name


@pytest.mark.needs_cc
def test_the_config_lies_as_in_the_header(header: Path, tmp_path: Path) -> None:
    checks = []
    for layout in (LAUNCH_CONFIG, ATTRIBUTE):
        checks.append(f"sizeof({layout.name}) == {layout.size}")
        for name in layout.names:
            checks.append(f"offsetof({layout.name}, {name}) == {layout.offset(name)}")
    value, last = ATTRIBUTE.offset("value"), "triggerAtBlockStart"
    for layout in (CLUSTER, EVENT):
        for name in layout.names:
            place = f"offsetof(CUlaunchAttribute, value.{layout.name}.{name})"
            checks.append(f"{place} == {value + layout.offset(name)}")
    for name in (name for name in EVENT.names if name != last):
        place = f"offsetof(CUlaunchAttribute, value.launchCompletionEvent.{name})"
        checks.append(f"{place} == {value + EVENT.offset(name)}")
    lines = ["#include <stddef.h>", "#include <cuda.h>"]
    lines += [f'_Static_assert({check}, "{check}");' for check in checks]
    source = tmp_path / "config.c"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    compiler = next(filter(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang")))
    command = [compiler, "-fsyntax-only", f"-I{header.parent}", str(source)]
    subprocess.run(command, check=True)


# ---- the stand-in ----

PTX = b"""
.version 8.0
.target sm_90a
// the forms that parameters come in
.visible .entry f(
	.param .u64 .ptr .global .align 16 f_param_0,
	.param .align 8 .b8 f_param_1[40],
	.param .b16 f_param_2,
	.param .f64 f_param_3
)
.maxntid 128, 1, 1
{ ret; }
.entry nothing()
{ ret; }
.weak .entry bare
{ ret; }
"""


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("smem", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_uint),
    ]


def load(fake: FakeCuda) -> dict[str, ctypes.c_void_p]:
    """The kernels of PTX, with device 0 current."""
    fake.set_current(0)
    library, found = ctypes.c_void_p(), {}
    nothing = (None, None, 0, None, None, 0)
    assert fake.library.cuLibraryLoadData(ctypes.byref(library), PTX, *nothing) == 0
    for name in ("f", "nothing", "bare"):
        kernel = found[name] = ctypes.c_void_p()
        place = ctypes.byref(kernel)
        assert fake.library.cuLibraryGetKernel(place, library, name.encode()) == 0
    assert fake.library.cuLibraryGetKernel(place, library, b"f_") == 500
    return found


def test_the_stand_in_reads_parameters(fake_cuda: FakeCuda) -> None:
    kernels, sizes = load(fake_cuda), (8, 40, 2, 8)
    given = [bytes([i + 1]) * size for i, size in enumerate(sizes)]
    held = [ctypes.create_string_buffer(data, len(data)) for data in given]
    parameters = (ctypes.c_void_p * 4)(*map(ctypes.addressof, held))
    config = Config((ctypes.c_uint * 3)(1, 1, 1), (ctypes.c_uint * 3)(1, 1, 1))
    launch = fake_cuda.library.cuLaunchKernelEx
    assert launch(ctypes.byref(config), kernels["f"], parameters, None) == 0
    for name in ("nothing", "bare"):
        assert launch(ctypes.byref(config), kernels[name], None, None) == 0
    found = [(launch.kernel, launch.parameters) for launch in fake_cuda.launches()]
    assert found == [("f", tuple(given)), ("nothing", ()), ("bare", ())]
    assert launch(ctypes.byref(config), kernels["f"], None, None) == 1


@pytest.mark.parametrize(
    ("grid", "block", "smem", "result"),
    [
        ((2**31 - 1, 65535, 65535), (16, 1, 64), 49152, 0),
        ((0, 1, 1), (1, 1, 1), 0, 1),
        ((1, 65536, 1), (1, 1, 1), 0, 1),
        ((2**31, 1, 1), (1, 1, 1), 0, 1),
        ((1, 1, 1), (1, 0, 1), 0, 1),
        ((1, 1, 1), (1, 1, 65), 0, 1),
        ((1, 1, 1), (32, 33, 1), 0, 1),
        ((1, 1, 1), (1, 1, 1), 49153, 1),
    ],
)
def test_the_stand_in_knows_the_limits(
    fake_cuda: FakeCuda,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    smem: int,
    result: int,
) -> None:
    config = Config((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), smem)
    kernel = load(fake_cuda)["nothing"]
    launch = fake_cuda.library.cuLaunchKernelEx
    assert launch(ctypes.byref(config), kernel, None, None) == result


def test_the_stand_in_checks_what_it_is_given(fake_cuda: FakeCuda) -> None:
    library, place = fake_cuda.library, ctypes.c_void_p()
    number = ctypes.c_int()
    assert library.cuCtxGetDevice(ctypes.byref(number)) == 3  # not initialised
    assert library.cuInit(1) == 1
    assert library.cuInit(0) == 0
    assert library.cuCtxGetDevice(ctypes.byref(number)) == 201  # nothing is current
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(place), 2) == 101
    assert library.cuDevicePrimaryCtxRelease_v2(0) == 201
    assert library.cuCtxPopCurrent_v2(ctypes.byref(place)) == 201
    assert library.cuCtxPushCurrent_v2(None) == 201
    assert library.cuLibraryUnload(ctypes.byref(number)) == 400
    config = Config((ctypes.c_uint * 3)(1, 1, 1), (ctypes.c_uint * 3)(1, 1, 1))
    kernel = load(fake_cuda)["nothing"]
    launch = library.cuLaunchKernelEx
    assert launch(None, kernel, None, None) == 1
    assert launch(ctypes.byref(config), ctypes.byref(number), None, None) == 400
    config.stream = fake_cuda.stream(1)  # of another device
    assert launch(ctypes.byref(config), kernel, None, None) == 400
    config.stream, config.num_attributes = None, 1
    assert launch(ctypes.byref(config), kernel, None, None) == 1


def test_the_stand_in_has_gpus_of_capability_9_0(fake_cuda: FakeCuda) -> None:
    library, number = fake_cuda.library, ctypes.c_int()
    place = ctypes.byref(number)
    assert library.cuInit(0) == 0
    assert (library.cuDeviceGetCount(place), number.value) == (0, 2)
    for attribute, value in ((75, 9), (76, 0)):
        assert (library.cuDeviceGetAttribute(place, attribute, 1), number.value) == (0, value)
    assert library.cuDeviceGetAttribute(place, 75, 2) == 101


def test_the_stand_in_without_a_device_is_no_driver_for_other_tests(fake_cuda: FakeCuda) -> None:
    fake_cuda.reset(devices=0)
    assert fake_cuda.library.cuInit(0) == 100


@pytest.mark.needs_cc
def test_the_fast_stand_in_has_every_function(tmp_path: Path) -> None:
    path = build(tmp_path, sources=("fast.c",), soname="libfast.so")
    library = ctypes.CDLL(str(path))
    assert all(hasattr(library, name) for name in CALLS)

"""Tensor maps: what the driver is asked for, what is refused on the build and on the call."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cuda_device import FakeCuda, build, has_libcuda
from tensor_map_body import function
from tensor_maps import Map, decoded

import ferrule as fe
from ferrule.compiler.cuda.tilings import (
    DataType,
    Interleave,
    L2Promotion,
    OobFill,
    Swizzle,
    Tiling,
    data_type,
)

SQUARE = Tiling(DataType.FLOAT16, (64, 8), swizzle=Swizzle.B128)
BY_RANK = {
    1: Tiling(DataType.UINT8, (16,)),
    2: Tiling(DataType.BFLOAT16, (64, 256), (1, 2), swizzle=Swizzle.B128),
    3: Tiling(DataType.FLOAT16, (8, 4, 2), (), Interleave.B16, Swizzle.B64),
    4: Tiling(DataType.FLOAT64, (2, 3, 4, 5), l2_promotion=L2Promotion.B256),
    5: Tiling(DataType.FLOAT32, (4, 1, 2, 3, 1), oob_fill=OobFill.NAN),
}
WHERE = "in the call of copy"
SHOWN = "box (64, 8), swizzle 128B of float16"


@pytest.mark.parametrize("rank", BY_RANK)
def test_the_driver_gets_what_was_asked_for(fake_cuda: FakeCuda, rank: int) -> None:
    tiling, sizes, strides = (
        BY_RANK[rank],
        (40, 30, 20, 10, 1 << 32),
        (320, 16, 4096, (1 << 40) - 16),
    )
    fake_cuda.set_current(1)
    function(tiling)(1 << 20, *sizes[:rank], *strides[: rank - 1])
    (launch,) = fake_cuda.launches()
    wanted = Map(
        tiling.dtype, 1 << 20, sizes[:rank], strides[: rank - 1], tiling.box, tiling.steps,
        tiling.interleave, tiling.swizzle, tiling.l2_promotion, tiling.oob_fill,
    )  # fmt: skip
    assert decoded(launch.parameters[0]) == wanted


def test_an_encode_is_one_call_of_the_driver(fake_cuda: FakeCuda) -> None:
    call = function(SQUARE)
    fake_cuda.set_current(0)
    call(256, 64, 8, 128)
    fake_cuda.clear()
    call(256, 64, 8, 128)
    assert fake_cuda.names() == ["cuCtxGetDevice", "cuTensorMapEncodeTiled", "cuLaunchKernelEx"]


def test_a_tensor_without_elements_has_a_map_of_zeros(fake_cuda: FakeCuda) -> None:
    call = function(SQUARE)
    for sizes in ((0, 8), (64, 0)):
        call(0, *sizes, 128)
    assert [launch.parameters for launch in fake_cuda.launches()] == [(bytes(128),)] * 2


@pytest.mark.parametrize(
    ("sizes", "strides", "wanted"),
    [
        ((64, 1, 8), (2, 128), (16, 128)),
        ((64, 8, 1), (128, 2), (128, 128)),
        ((64, 1, 1), (-2, 1 << 40), (16, 16)),
        ((64, 1, 8), (4096, 128), (4096, 128)),  # a map can have it
    ],
)
def test_a_stride_of_a_dim_of_size_1_has_no_meaning(
    fake_cuda: FakeCuda,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    wanted: tuple[int, ...],
) -> None:
    call = function(Tiling(DataType.FLOAT16, (8, 4, 2)))
    call(256, *sizes, *strides)
    (launch,) = fake_cuda.launches()
    encoded = decoded(launch.parameters[0])
    assert (encoded.sizes, encoded.strides) == (sizes, wanted)


REFUSED = {
    "address": (
        (264, 64, 8, 128),
        f"a is at the address 264 {{}}, but its tensor map, {SHOWN}, needs a multiple of 16",
    ),
    "stride": (
        (256, 64, 8, 130),
        "a has a stride of 130 bytes {}, in dim 1 from the innermost on, but its tensor map, "
        f"{SHOWN}, needs multiples of 16 less than 2**40",
    ),
    "long stride": (
        (256, 64, 8, 1 << 40),
        "a has a stride of 1099511627776 bytes {}, in dim 1 from the innermost on, but its tensor "
        f"map, {SHOWN}, needs multiples of 16 less than 2**40",
    ),
    "negative stride": (
        (256, 64, 8, -16),
        "a has a stride of -16 bytes {}, in dim 1 from the innermost on, but its tensor map, "
        f"{SHOWN}, needs multiples of 16 less than 2**40",
    ),
    "size": (
        (256, 64, (1 << 32) + 1, 128),
        "a has a size of 4294967297 {}, in dim 1 from the innermost on, but its tensor map, "
        f"{SHOWN}, has at most 2**32 elements along a dim",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_map_can_have_is_refused_before_the_driver_is_asked(
    fake_cuda: FakeCuda, what: str
) -> None:
    given, message = REFUSED[what]
    call = function(SQUARE)
    with pytest.raises(ValueError, match=f"^{re.escape(message.format(WHERE))}$"):
        call(*given)
    assert "cuTensorMapEncodeTiled" not in fake_cuda.names()
    call(256, 64, 8, 128)
    assert (fake_cuda.depth, fake_cuda.libraries) == (0, 1)


def test_an_interleave_of_32_bytes_wants_multiples_of_32(fake_cuda: FakeCuda) -> None:
    tiling = Tiling(DataType.FLOAT16, (16, 2, 2), (), Interleave.B32, Swizzle.B32)
    call = function(tiling)
    with pytest.raises(ValueError, match="at the address 16 .* needs a multiple of 32$"):
        call(16, 16, 2, 2, 32, 64)
    with pytest.raises(ValueError, match="stride of 48 bytes .* in dim 2 .* multiples of 32 "):
        call(32, 16, 2, 2, 32, 48)


@pytest.mark.parametrize(("code", "hint"), [(1, ""), (719, "; an earlier kernel failed, and")])
def test_what_the_driver_refuses_is_shown_whole(fake_cuda: FakeCuda, code: int, hint: str) -> None:
    names = {
        1: "INVALID_VALUE (1: invalid argument)",
        719: "LAUNCH_FAILED (719: unspecified launch failure)",
    }
    fake_cuda.fail("cuTensorMapEncodeTiled", code)
    call = function(SQUARE)
    message = (
        f"cuTensorMapEncodeTiled failed with CUDA_ERROR_{names[code]} for the tensor map of a "
        f"{WHERE}: address 256, sizes (64, 8), strides (128) bytes, box (64, 8), swizzle 128B of "
        f"float16, dims from the innermost on{hint}"
    )
    with pytest.raises(fe.CudaError, match=f"^{re.escape(message)}"):
        call(256, 64, 8, 128)
    assert fake_cuda.depth == 0
    call(256, 64, 8, 128)
    assert len(fake_cuda.launches()) == 1


def test_five_dims_are_shown_whole(fake_cuda: FakeCuda) -> None:
    fake_cuda.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(fe.CudaError) as caught:
        function(BY_RANK[5])(256, 4, 5, 6, 7, 8, 16, 32, 48, 64)
    assert "address 256, sizes (4, 5, 6, 7, 8), strides (16, 32, 48, 64) bytes, box" in str(
        caught.value
    )


# ---- what is refused on the build ----

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no dims": ({"box": ()}, "a tensor map has from 1 to 5 dims, but got 0"),
    "six dims": ({"box": (8,) * 6}, "a tensor map has from 1 to 5 dims, but got 6"),
    "few dims": (
        {"box": (8, 8), "interleave": Interleave.B16},
        "a tensor map with an interleave has from 3 to 5 dims, but got 2",
    ),
    "large box": (
        {"box": (64, 257)},
        "each size of a box is from 1 to 256, but the box is (64, 257)",
    ),
    "empty box": ({"box": (64, 0)}, "each size of a box is from 1 to 256, but the box is (64, 0)"),
    "steps": (
        {"element_strides": (1, 9)},
        "wanted 2 element strides, each from 1 to 8, but got (1, 9)",
    ),
    "few steps": (
        {"element_strides": (1,)},
        "wanted 2 element strides, each from 1 to 8, but got (1,)",
    ),
    "inner": (
        {"box": (4, 8)},
        "the innermost dim of a box is a multiple of 16 bytes, but 4 elements of 2 are 8",
    ),
    "swizzle": (
        {"box": (72, 8)},
        "the innermost dim of a box has at most 128 bytes with this swizzle, but 72 elements of 2 "
        "are 144",
    ),
    "interleave": (
        {"box": (8, 8, 8), "interleave": Interleave.B32},
        "the interleave of 32 bytes goes with the swizzle of 32 bytes alone",
    ),
    "fill": (
        {"dtype": DataType.INT32, "box": (8, 8), "oob_fill": OobFill.NAN},
        "NaN fills only maps of floats, but this one is of int32",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_the_driver_would_refuse_is_no_tiling(what: str) -> None:
    changes, message = WRONG[what]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(SQUARE, **changes)


def test_every_dtype_of_whole_bytes_has_a_name() -> None:
    wanted = {
        fe.Int8: DataType.UINT8, fe.Boolean: DataType.UINT8, fe.Float8E4M3FN: DataType.UINT8,
        fe.Int16: DataType.UINT16, fe.Float16: DataType.FLOAT16, fe.BFloat16: DataType.BFLOAT16,
        fe.TFloat32: DataType.TFLOAT32, fe.Uint64: DataType.UINT64, fe.Float64: DataType.FLOAT64,
    }  # fmt: skip
    assert {dtype: data_type(dtype) for dtype in wanted} == wanted
    assert all(data_type(dtype).itemsize == dtype.itemsize for dtype in wanted)
    with pytest.raises(ValueError, match="1, 2, 4 or 8 bytes, but float4_e2m1fn has 4 bits$"):
        data_type(fe.Float4E2M1FN)


# ---- the driver ----


def test_a_driver_without_the_function(tmp_path: Path) -> None:
    if has_libcuda():
        pytest.skip("this machine has a real libcuda.so.1")
    path = build(tmp_path, "-DNO_TENSOR_MAPS")
    script = f"""
import ctypes, sys
sys.modules["torch"] = None
ctypes.CDLL({str(path)!r}, ctypes.RTLD_GLOBAL).fake_reset(1)
from ferrule.compiler.cuda.tilings import DataType, Tiling
from tensor_map_body import function
try:
    function(Tiling(DataType.UINT8, (16,)))(0, 16)
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""},
    )
    assert done.stdout.strip() == (
        "the CUDA driver has no cuTensorMapEncodeTiled, which the tensor map of a, box (16,) of "
        f"uint8, needs {WHERE}: wanted the driver of CUDA 12.0 or later, but this is that of CUDA "
        "12.4; update the NVIDIA driver (libcuda.so.1)"
    )

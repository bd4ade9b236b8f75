"""`conventions.TensorMap`: the map of a tensor as a kernel's parameter."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from cuda_device import FakeCuda, forged
from tensor_maps import Map, decoded

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler.conventions import (
    CudaLaunch,
    Im2colMap,
    Sequence,
    Struct,
    TensorMap,
    cast,
)
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.compiler.cuda.tilings import DataType, Swizzle

CODE = DeviceCode(
    (
        KernelImage(
            "sm_90",
            (
                """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u32 n) { ret; }
.visible .entry both(.param .align 64 .b8 maps[192]) { ret; }
""",
            ),
        ),
    ),
    ("copy", "both"),
)


def signature(*strides: Any, dtype: str = "float16") -> specs.Signature:
    """Of a tensor, compact where no strides are given."""
    m, n = specs.sym_int(), specs.sym_int()
    return specs.Signature("copy", [specs.Tensor("x", (m, n), dtype, strides=strides or None)])


def compiled(sig: specs.Signature, *params: Any, kernel: str = "copy") -> fe.Function:
    launch = CudaLaunch(CODE, kernel, params, grid=1, block=32)
    return compiler.build(sig, launch)


def aligned(rows: int, columns: int) -> np.ndarray[Any, Any]:
    """A matrix of float16 at a multiple of 64 bytes."""
    data = np.zeros(rows * columns * 2 + 64, np.uint8)
    start = -data.ctypes.data % 64
    return data[start : start + rows * columns * 2].view(np.float16).reshape(rows, columns)


def test_the_dims_are_in_the_drivers_order(fake_cuda: FakeCuda) -> None:
    sig, x = signature(), aligned(10, 64)
    call = compiled(sig, TensorMap(sig["x"], (8, 64), swizzle="128B"), cast(7, "int32"))
    call(forged(x))
    found, n = fake_cuda.launches()[0].parameters
    assert decoded(found) == Map(
        DataType.FLOAT16, x.ctypes.data, (64, 10), (128,), (64, 8), (1, 1), swizzle=Swizzle.B128
    )
    assert n == b"\7\0\0\0"


def test_a_column_major_tensor_begins_with_its_first_dim(fake_cuda: FakeCuda) -> None:
    m, n = specs.sym_int(), specs.sym_int()
    sig = specs.Signature("copy", [specs.Tensor("x", (m, n), "float16", strides=(1, m))])
    x = aligned(10, 64).T
    compiled(sig, TensorMap(sig["x"], (64, 4), (1, 2)), cast(7, "int32"))(forged(x))
    map_ = decoded(fake_cuda.launches()[0].parameters[0])
    assert (map_.sizes, map_.strides, map_.box, map_.steps) == ((64, 10), (128,), (64, 4), (1, 2))


def test_a_view_of_the_memory_has_sizes_and_strides_of_its_own(fake_cuda: FakeCuda) -> None:
    sig = signature()
    m, n = sig["x"].shape
    view = TensorMap(sig["x"], (1, 2, 8), shape=(m, n // 16, 16), strides=(n, 16, 1))
    compiled(sig, view, cast(7, "int32"))(forged(aligned(10, 64)))
    map_ = decoded(fake_cuda.launches()[0].parameters[0])
    assert (map_.sizes, map_.strides, map_.box) == ((16, 4, 10), (32, 128), (8, 2, 1))


def test_a_struct_can_hold_a_map(fake_cuda: FakeCuda) -> None:
    sig, x = signature(), aligned(10, 64)
    both = Struct([TensorMap(sig["x"], (8, 64)), sig["x"].shape[0]])
    compiled(sig, both, kernel="both")(forged(x))
    (found,) = fake_cuda.launches()[0].parameters
    assert decoded(found[:128]).address == x.ctypes.data
    assert ctypes.c_int32.from_buffer_copy(found[128:]).value == 10


def test_another_name_for_the_elements(fake_cuda: FakeCuda) -> None:
    sig = signature()
    compiled(sig, TensorMap(sig["x"], (8, 64), dtype="uint16"), cast(7, "int32"))(
        forged(aligned(10, 64))
    )
    assert decoded(fake_cuda.launches()[0].parameters[0]).dtype == DataType.UINT16


def test_what_only_the_call_tells_is_refused_there(fake_cuda: FakeCuda) -> None:
    sig = signature()
    call = compiled(sig, TensorMap(sig["x"], (8, 64)), cast(7, "int32"))
    message = (
        "x has a stride of 132 bytes in the call of copy, in dim 1 from the innermost on, but its "
        "tensor map, box (64, 8) of float16, needs multiples of 16 less than 2**40"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call(forged(aligned(10, 66)))
    assert fake_cuda.depth == 0
    fake_cuda.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(fe.CudaError, match=r"for the tensor map of x in the call of copy: address"):
        call(forged(aligned(10, 64)))
    assert (fake_cuda.depth, fake_cuda.launches()) == (0, [])


# ---- images, and elements of 4 bits ----


def images(channels: int = 64) -> specs.Signature:
    """Of images with symbolic sizes but channels."""
    n, h, w = specs.sym_int(), specs.sym_int(), specs.sym_int()
    return specs.Signature("copy", [specs.Tensor("x", (n, h, w, channels), "float16")])


def test_a_map_for_im2col(fake_cuda: FakeCuda) -> None:
    sig, x = images(), aligned(3 * 7 * 6, 64).reshape(3, 7, 6, 64)
    columns = Im2colMap(sig["x"], 64, 1024, (-1, -2), (0, 1), (1, 2, 3, 1), swizzle="128B")
    assert str(columns.tiling) == (
        "1024 pixels of 64 channels, corners (-2, -1) and (1, 0), element strides (1, 3, 2, 1), "
        "swizzle 128B of float16"
    )
    call = compiled(sig, columns, cast(7, "int32"))
    call(forged(x))
    assert decoded(fake_cuda.launches()[0].parameters[0]) == Map(
        DataType.FLOAT16, x.ctypes.data, (64, 6, 7, 3), (128, 768, 5376), (64, 1024), (1, 3, 2, 1),
        swizzle=Swizzle.B128, corners=((-2, -1), (1, 0)),
    )  # fmt: skip
    fake_cuda.fail("cuTensorMapEncodeIm2col", 1)
    message = r"cuTensorMapEncodeIm2col failed with .* sizes \(64, 6, 7, 3\), .*, 1024 pixels of 64"
    with pytest.raises(fe.CudaError, match=message):
        call(forged(x))


def test_both_kinds_of_maps_in_one_object(fake_cuda: FakeCuda) -> None:
    """Each finds its own function of the driver."""
    sig, x = images(), aligned(3 * 7 * 6, 64).reshape(3, 7, 6, 64)
    steps = [
        CudaLaunch(CODE, "copy", [each, cast(7, "int32")], grid=1, block=32)
        for each in (
            TensorMap(sig["x"], (1, 1, 1, 64)),
            Im2colMap(sig["x"], 8, 8, (0, 0), (0, 0)),
        )
    ]
    compiler.build(sig, Sequence(steps))(forged(x))
    kinds = [decoded(each.parameters[0]).corners for each in fake_cuda.launches()]
    assert kinds == [None, ((0, 0), (0, 0))]


def test_padded_elements_of_4_bits(fake_cuda: FakeCuda) -> None:
    sig = signature(dtype="uint8")
    given = compiled(sig, TensorMap(sig["x"], (8, 128), padded_fp4=True), cast(7, "int32"))
    x = aligned(10, 64).view(np.uint8)
    given(forged(x))
    found = decoded(fake_cuda.launches()[0].parameters[0])
    assert (found.dtype, found.sizes, found.strides) == (14, (256, 10), (128,))
    assert found.box == (128, 8)
    message = "x has rows of 192 elements in the call of copy, but its tensor map, box (128, 8) of "
    message += "float4_padded, needs a multiple of 128"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        given(forged(aligned(10, 48).view(np.uint8).reshape(10, 96)))
    with pytest.raises(ValueError, match="needs a multiple of 32"):
        given(forged(aligned(10, 72).view(np.uint8).reshape(-1)[16:1296].reshape(10, 128)))


IM2COL: dict[str, tuple[dict[str, Any], str]] = {
    "corners": ({"lower": (0, -129)}, "corners of 2 offsets are from -128 to 127, but got (-129, 0)"
                " and (0, 0)"),
    "rank": ({"lower": (0,), "upper": (0,)}, "wanted 3 of dims, one for each dim, but got 4"),
    "number": ({"upper": (0,)}, "corners of 1 to 3 offsets"),
    "pixels": ({"pixels": 1025}, "pixels[0] must be in [1, 1024], but got 1025"),
    "channels": ({"channels": 4}, "a multiple of 16 bytes, but 4 elements of 2 are 8"),
    "steps": ({"element_strides": (1, 1)}, "wanted 4 of element_strides, one for each dim"),
    "padded": ({"padded_fp4": True}, "tensors of bytes with two elements each"),
    "swizzle": ({"swizzle": "32B"}, "at most 32 bytes with this swizzle"),
    "view": ({"shape": (1, 1, 1, 64), "strides": (64, 64, 1, 64)}, "channels as the last dim"),
}  # fmt: skip


@pytest.mark.parametrize("what", IM2COL)
def test_what_is_wrong_with_columns(what: str) -> None:
    change, message = IM2COL[what]
    given = {"channels": 64, "pixels": 8, "lower": (0, 0), "upper": (0, 0)}
    with pytest.raises(ValueError, match=f"^Im2colMap of x: .*{re.escape(message)}"):
        Im2colMap(images()["x"], **given | change)


def test_what_is_wrong_with_padded_elements() -> None:
    x = specs.Tensor("x", (8, 96), "uint8")
    for box, more, message in (
        ((8, 64), {}, "has 128 of them in a box's row"),
        ((8, 128), {"swizzle": "64B"}, "at most 64 bytes with this swizzle"),
        ((8, 128), {}, "rows of 192 elements, but wanted a multiple of 128"),
        ((8, 128), {"oob_fill": "nan"}, "NaN fills only maps of floats"),
    ):
        with pytest.raises(ValueError, match=f"^TensorMap of x: .*{message}"):
            TensorMap(x, box, padded_fp4=True, **more)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^Im2colMap: expected a tensor"):
        Im2colMap(3, 8, 8, (0,), (0,))  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match="^Im2colMap of x: lower has offsets of pixels, but got 0.5"
    ):
        Im2colMap(images()["x"], 8, 8, (0.5, 0), (0, 0))  # type: ignore[arg-type]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rank": ({"box": (64,)}, "wanted 2 of box, one for each dim, but got 1"),
    "rule": ({"box": (8, 300)}, "box[1] must be in [1, 256], but got 300"),
    "swizzle": (
        {"box": (8, 64), "swizzle": "256B"},
        "swizzle is one of none, 32B, 64B, 128B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, "
        "128B_ATOM_64B, but got '256B'",
    ),
    "fill": ({"box": (8, 64), "oob_fill": "one"}, "oob_fill is one of zero, nan, but got 'one'"),
    "dtype": (
        {"box": (8, 64), "dtype": "float32"},
        "float32 is no name for elements of float16: sizes differ",
    ),
    "steps": (
        {"box": (8, 64), "element_strides": (1, 9)},
        "element_strides[1] must be in [1, 8], but got 9",
    ),
    "view": ({"box": (8, 64), "shape": (1, 2)}, "shape and strides go together"),
    "stride": (
        {"box": (8, 64), "shape": (1, 2), "strides": (4, 1)},
        "a stride is 8 bytes, but wanted multiples of 16 less than 2**40",
    ),
    "contiguous": (
        {"box": (8, 64), "shape": (1, 2), "strides": (4, 8)},
        "wanted a dim whose stride is known to be 1, the innermost one",
    ),
    "size": (
        {"box": (8, 64), "shape": (1 << 33, 2), "strides": (8, 1)},
        "8589934592 elements along a dim, at most 2**32",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_every_call_is_refused_at_once(what: str) -> None:
    given, message = WRONG[what]
    message = message if message.startswith("TensorMap") else f"TensorMap of x: {message}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TensorMap(signature()["x"], **given)


@pytest.mark.parametrize("box", [8, "ab", (8.0, 8), (None, 8), (True, 8), (specs.sym_int(), 8)])
def test_a_box_has_a_constant_for_each_dim(box: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^TensorMap of x: box(\[0\])? must be (in a list|a const)"
    ):
        TensorMap(signature()["x"], box)


def test_a_tensor_without_dims_has_no_map() -> None:
    with pytest.raises(ValueError, match="TensorMap of x: a tensor without dims has no map"):
        TensorMap(specs.Tensor("x", (), "float16"), ())


def test_what_is_no_tensor_has_no_map() -> None:
    message = "^TensorMap: expected a tensor of the signature, such as .* but got x.data$"
    with pytest.raises(TypeError, match=message):
        TensorMap(signature()["x"].data, (8,))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^TensorMap of x: shape must be sizes, but got 1.5$"):
        TensorMap(signature()["x"], (8, 8), shape=(1.5, 1), strides=(8, 1))  # type: ignore[arg-type]

"""Objects of a program's class as arguments, compile-time types, and masks."""

from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"


class Buffer:
    """A pointer that the run has, and an order that is known while compiling."""

    def __init__(self, ptr: Any, order: tuple[int, ...], scale: int = 1) -> None:
        self.ptr, self.order, self.scale = ptr, order, scale

    def to_tensor(self, shape: tuple[int, ...]) -> Any:
        return fe.make_tensor(self.ptr, fe.make_ordered_layout(shape, self.order))

    def __extract_mlir_values__(self) -> Any:
        return self.ptr.__extract_mlir_values__()

    def __new_from_mlir_values__(self, values: Any) -> Any:
        return Buffer(self.ptr.__new_from_mlir_values__(values), self.order, self.scale)


@fe.jit
def filled(buffer: Buffer, dtype: type[fe.Numeric]):
    tensor = buffer.to_tensor((2, 3))
    for i in range(2):
        for j in range(3):
            tensor[i, j] = dtype(10 * i + j) * buffer.scale


def buffer(array: Any, order: tuple[int, ...] = (1, 0), scale: int = 1) -> Buffer:
    return Buffer(fe.make_ptr(fe.Float32, array.ctypes.data), order, scale)


def test_an_object_of_values_is_an_argument() -> None:
    first, second = np.zeros(6, np.float32), np.zeros(6, np.float32)
    compiled = fe.compile(filled, buffer(first), fe.Int8, options=CPU)
    compiled(buffer(second))
    assert second.tolist() == [0, 1, 2, 10, 11, 12] and not first.any()
    with pytest.raises(ValueError, match=r"Mismatched constant value on buffer\[1\]\[0\]"):
        compiled(buffer(second, (0, 1)))
    with pytest.raises(ValueError, match=r"Mismatched constant value on buffer\[2\]"):
        compiled(buffer(second, scale=2))
    columns = fe.compile(filled, buffer(first, (0, 1), 2), fe.Float32, options=CPU)
    columns(buffer(first, (0, 1), 2))
    assert first.tolist() == [0, 20, 2, 22, 4, 24]


@fe.jit
def masked(x: fe.Uint32, out: fe.Tensor):
    out[0] = x & ~(1 << 31)
    out[1] = ~(1 << 4) & x
    y = x
    y &= ~0xFF
    out[2] = y


def test_a_negative_mask_of_an_unsigned_number_is_pythons() -> None:
    out = np.zeros(3, np.uint32)
    compiled = fe.compile(masked, fe.Uint32(1), out, options=CPU)
    for x in (0xDEADBEEF, 0x7FFFFFFF, 0x80000010, 5):
        compiled(x, out)
        assert out.tolist() == [x & ~(1 << 31), ~(1 << 4) & x, x & ~0xFF]


def test_other_operations_keep_the_range_of_an_unsigned_number() -> None:
    @fe.jit
    def united(x: fe.Uint32, out: fe.Tensor):
        out[0] = x | ~(1 << 31)

    with pytest.raises(fe.CompileError, match="does not fit uint32"):
        fe.compile(united, fe.Uint32(1), np.zeros(1, np.uint32), options=CPU)


def test_a_cuda_error_has_its_number() -> None:
    text = "cuLaunchKernelEx failed with CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720: too many)"
    assert fe.CudaError(text).error_code == 720
    assert fe.CudaError("no driver").error_code is None

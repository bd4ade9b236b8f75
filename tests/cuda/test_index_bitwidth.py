"""Offsets of 32 bits: which kernel a launch takes, by what its tensors' layouts reach."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cuda_device import FakeCuda, forged_at
from gpu_functions import add_one, vector
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrule as fe
from ferrule.compiler.errors import CompileError
from ferrule.runtime import make_fake_tensor

OPTIONS = "--target cuda --gpu-arch sm_90a"
MOST = 2**31 - 1


@fe.kernel
def fill_kernel(a: fe.Tensor):
    i, j = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] = 1


@fe.jit
def fill(a: fe.Tensor):
    fill_kernel(a).launch(grid=1, block=32)


@fe.kernel
def both_kernel(a: fe.Tensor, b: fe.Tensor):
    i, j = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
    if i < b.shape[0] and j < b.shape[1]:
        b[i, j] = a[j, i]


@fe.jit
def both(a: fe.Tensor, b: fe.Tensor):
    both_kernel(a, b).launch(grid=1, block=32)


@fe.kernel
def tiles_kernel(a: fe.Tensor):
    tile = fe.local_tile(a, (4, 8), (fe.arch.block_idx()[0], None))
    i, j = fe.arch.thread_idx()[0] // 8, fe.arch.thread_idx()[0] % 8
    for k in range(a.shape[1] // 8):
        tile[i, j, k] = 1


@fe.jit
def tiles(a: fe.Tensor):
    tiles_kernel(a).launch(grid=1, block=32)


@fe.jit
def whole(a: fe.Tensor):
    a[:] = a[:] + 1


def matrix(width: int = 64) -> Any:
    shape = (fe.sym_int(64), fe.sym_int(64))
    return make_fake_tensor(fe.Int8, shape, (fe.sym_int(width), fe.sym_int(width)))


def on_gpu(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A tensor whose memory nobody reads."""
    return forged_at(1 << 20, shape, strides, fe.Int8.dlpack)


def entries(function: Any) -> list[str]:
    return re.findall(r"\.entry (\w+)", function.inspect_ptx())


def launched(fake_cuda: FakeCuda, function: Any, *arguments: Any) -> str:
    fake_cuda.clear()
    function(*arguments)
    (launch,) = fake_cuda.launches()
    return launch.kernel


LAYOUTS = [
    ((1000, 1000), (1000, 1), True),
    ((1 << 15, 1 << 16), (1 << 16, 1), True),
    ((1 << 15, (1 << 16) + 1), ((1 << 16) + 1, 1), False),
    ((2, 1), (MOST, 1), True),
    ((2, 1), (MOST + 1, 1), False),
    ((2, 2), (MOST - 1, 1), True),
    ((2, 2), (MOST, 1), False),
    ((2, 2), (1, MOST), False),
    ((2, 1), (-MOST, 1), True),
    ((2, 1), (-MOST - 1, 1), False),
    ((2, 3), (-MOST + 3, -1), True),
    ((2, 3), (-MOST, -1), False),
    # One does not undo the other: an element lies between the two ends.
    ((2, 2), (MOST, -1), False),
    ((1, 1), (1 << 62, 1 << 62), True),
    ((1 << 40, 1 << 10), (0, 1), True),
    ((1 << 40, 1), (0, 1 << 50), True),
    ((3 << 30, 1), (1, 1), False),
    # No memory is so large; the sum does not fit 64 bits, or the size of the stride does not.
    ((2, 2), (2**63 - 1, 2**63 - 1), False),
    ((3, 2), (2**63 - 1, 1), False),
    ((1 << 33, 2), (1 << 33, 1), False),
    ((2, 2), (-(2**63), 1), False),
    ((1, 2), (-(2**63), 1), True),
]
"""Shape, strides, and whether 32 bits reach every element."""


def test_the_last_element_decides(fake_cuda: FakeCuda) -> None:
    function = fe.compile(fill, matrix(), options=OPTIONS)
    for shape, strides, short in LAYOUTS:
        kernel = launched(fake_cuda, function, on_gpu(shape, strides))
        assert kernel == ("fill_kernel_int32" if short else "fill_kernel"), (shape, strides)


def test_random_layouts(fake_cuda: FakeCuda) -> None:
    function = fe.compile(fill, matrix(), options=OPTIONS)

    @settings(max_examples=300)
    @given(
        st.tuples(*[st.integers(1, 1 << 20) | st.integers(1, 9)] * 2),
        st.tuples(*[st.integers(-(1 << 24), 1 << 24) | st.integers(-9, 9)] * 2),
    )
    def attempt(shape: tuple[int, int], strides: tuple[int, int]) -> None:
        furthest = sum((n - 1) * abs(stride) for n, stride in zip(shape, strides, strict=True))
        kernel = launched(fake_cuda, function, on_gpu(shape, strides))
        assert (kernel == "fill_kernel_int32") == (furthest <= MOST)

    attempt()


def test_every_tensor_is_measured(fake_cuda: FakeCuda) -> None:
    function = fe.compile(both, matrix(), matrix(), options=OPTIONS)
    small, large = on_gpu((4, 4), (4, 1)), on_gpu((4, 4), (1 << 30, 1))
    assert launched(fake_cuda, function, small, small) == "both_kernel_int32"
    for pair in ((small, large), (large, small), (large, large)):
        assert launched(fake_cuda, function, *pair) == "both_kernel"


def test_views_in_the_kernel_are_measured(fake_cuda: FakeCuda) -> None:
    function = fe.compile(tiles, matrix(), options=OPTIONS)
    assert launched(fake_cuda, function, on_gpu((4, 64), (64, 1))) == "tiles_kernel_int32"
    assert launched(fake_cuda, function, on_gpu((4, 64), (1 << 30, 1))) == "tiles_kernel"
    assert launched(fake_cuda, function, on_gpu((4, 64), (1, 1 << 26))) == "tiles_kernel"


def test_expressions_of_whole_tensors_are_kernels_too(fake_cuda: FakeCuda) -> None:
    function = fe.compile(whole, matrix(), options=OPTIONS)
    short = launched(fake_cuda, function, on_gpu((4, 64), (64, 1)))
    general = launched(fake_cuda, function, on_gpu((4, 64), (1 << 30, 1)))
    assert short == f"{general}_int32"


@pytest.mark.parametrize("function", [fill, tiles, whole])
def test_both_versions_get_the_same_parameters(fake_cuda: FakeCuda, function: Any) -> None:
    compiled = fe.compile(function, matrix(), options=OPTIONS)
    fake_cuda.clear()
    compiled(on_gpu((4, 64), (64, 1)))
    compiled(on_gpu((4, 64), (1 << 30, 1)))
    first, second = fake_cuda.launches()
    assert [len(each) for each in first.parameters] == [len(each) for each in second.parameters]
    assert first.grid == second.grid
    assert first.block == second.block


def test_a_kernel_that_gains_nothing_is_there_once() -> None:
    assert entries(fe.compile(add_one, vector(), vector(), options=OPTIONS)) == ["add_one_kernel"]
    compact = fe.make_fake_compact_tensor(fe.Int8, (fe.sym_int(), fe.sym_int()))
    assert entries(fe.compile(whole, compact, options=OPTIONS)) == ["whole_a"]
    bounded = fe.sym_int(min=1, max=1000)
    small = make_fake_tensor(fe.Int8, (bounded, bounded), (bounded, 1))
    assert entries(fe.compile(fill, small, options=OPTIONS)) == ["fill_kernel"]


def test_the_name_of_the_shorter_version_is_free() -> None:
    @fe.kernel
    def fill_kernel_int32(a: fe.Tensor):
        a[fe.arch.thread_idx()[0]] = 2

    @fe.jit
    def two(a: fe.Tensor, b: fe.Tensor):
        fill_kernel(a).launch(grid=1, block=32)
        fill_kernel_int32(b).launch(grid=1, block=32)

    found = entries(fe.compile(two, matrix(), vector(), options=OPTIONS))
    assert sorted(found) == ["fill_kernel", "fill_kernel_int32", "fill_kernel_int32_1"]


def test_64_bits_are_one_kernel_for_all(fake_cuda: FakeCuda) -> None:
    function = fe.compile(fill, matrix(), options=f"{OPTIONS} --index-bitwidth 64")
    assert entries(function) == ["fill_kernel"]
    assert ".lo.s64" in function.inspect_ptx()
    for stride in (64, 1 << 30):
        assert launched(fake_cuda, function, on_gpu((4, 64), (stride, 1))) == "fill_kernel"


def test_32_bits_refuse_what_they_do_not_reach(fake_cuda: FakeCuda) -> None:
    function = fe.compile(fill, matrix(), options=f"{OPTIONS} --index-bitwidth=32")
    assert entries(function) == ["fill_kernel"]
    assert launched(fake_cuda, function, on_gpu((2, 1), (MOST, 1))) == "fill_kernel"
    fake_cuda.clear()
    with pytest.raises(
        ValueError,
        match=r"two elements of a are 2147483648 elements apart in the launch of fill_kernel, "
        r"but --index-bitwidth 32 is for at most 2147483647: compile without",
    ):
        function(on_gpu((2, 1), (MOST + 1, 1)))
    assert fake_cuda.launches() == []


def test_a_tensor_without_elements_is_never_too_large(fake_cuda: FakeCuda) -> None:
    function = fe.compile(fill, matrix(), options=f"{OPTIONS} --index-bitwidth 32")
    for shape in ((0, 1 << 40), (1 << 40, 0), (0, 0)):
        assert launched(fake_cuda, function, on_gpu(shape, (1 << 40, 1))) == "fill_kernel"


@pytest.mark.parametrize("value", ["16", "int32", ""])
def test_unknown_widths_are_refused(value: str) -> None:
    with pytest.raises(CompileError, match="--index-bitwidth must be auto, 32 or 64, but got"):
        fe.compile(fill, matrix(), options=f"{OPTIONS} --index-bitwidth={value}")


@pytest.mark.parametrize("value", [16, "32", True, 32.0])
def test_unknown_values_of_the_field_are_refused(value: Any) -> None:
    with pytest.raises(CompileError, match="index_bitwidth must be 32, 64 or None, but got"):
        fe.Options(index_bitwidth=value)


def test_the_field_is_the_option() -> None:
    options = fe.Options(target="cuda", gpu_arch="sm_90a", index_bitwidth=64)
    assert entries(fe.compile(fill, matrix(), options=options)) == ["fill_kernel"]
    auto = f"{OPTIONS} --index-bitwidth auto"
    assert len(entries(fe.compile(fill, matrix(), options=auto))) == 2

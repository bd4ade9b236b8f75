"""What LLVM is told of coordinates, sizes and loops, as it shows in PTX."""

from __future__ import annotations

import re
from typing import Any

import ferrule as fe
from ferrule import arch

OPTIONS = "--target cuda --gpu-arch sm_90a"


def ptx(function: Any, *examples: Any) -> str:
    return str(fe.compile(function, *examples, options=OPTIONS).inspect_ptx())


def rows(*shape: Any) -> Any:
    shape = shape or (fe.sym_int(), fe.sym_int())
    return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0))


def test_each_coordinate_is_below_the_size_of_its_axis() -> None:
    @fe.kernel
    def columns(a: fe.Tensor):
        tx, ty, _ = arch.thread_idx()
        for i in range(ty, 32, 8):
            a[i, tx] = 1.0

    @fe.jit
    def function(a: fe.Tensor):
        columns(a).launch(grid=1, block=(32, 8))

    text = ptx(function, rows(32, 32))
    assert text.count("st.global") == 4 and "bra" not in text


def test_sizes_are_widened_as_coordinates_are() -> None:
    @fe.kernel
    def first(a: fe.Tensor):
        a[arch.block_idx()[1], arch.thread_idx()[0]] = 1.0

    @fe.jit
    def function(a: fe.Tensor):
        first(a).launch(grid=(1, a.shape[0]), block=32)

    text = ptx(function, rows())
    assert "mul.wide.u32" in text and "mul.lo.s64" not in text


def test_strides_keep_their_sign() -> None:
    @fe.kernel
    def first(a: fe.Tensor):
        a[arch.block_idx()[1]] = 1.0

    @fe.jit
    def function(a: fe.Tensor):
        first(a).launch(grid=(1, a.shape[0]), block=32)

    strided = fe.make_fake_tensor(fe.Float32, (fe.sym_int(),), (fe.sym_int(width=32),))
    assert re.search(r"cvt\.s64\.s32|ld\.param\.s32|mul\.wide\.s32", ptx(function, strided))


def test_a_floor_division_of_sizes_needs_no_sign() -> None:
    @fe.kernel
    def parts(a: fe.Tensor):
        a[arch.block_idx()[2] // a.shape[1], arch.block_idx()[2] % a.shape[1]] = 1.0

    @fe.jit
    def function(a: fe.Tensor):
        parts(a).launch(grid=(1, 1, a.shape[0] * a.shape[1]), block=32)

    text = ptx(function, rows())
    assert "div.u32" in text and "div.s" not in text and "rem.s" not in text


def test_short_loops_are_unrolled_once() -> None:
    @fe.kernel
    def sums(a: fe.Tensor, b: fe.Tensor):
        total = fe.Float32(0)
        for j in range(a.shape[1]):
            total += a[arch.thread_idx()[0], j]
        b[arch.thread_idx()[0], 0] = total

    @fe.jit
    def function(a: fe.Tensor, b: fe.Tensor):
        sums(a, b).launch(grid=1, block=32)

    text = ptx(function, rows(), rows())
    assert 16 < text.count("ld.global") < 40
    assert '.pragma "nounroll"' in text

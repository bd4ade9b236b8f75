"""Parts that are known to be aligned: one instruction reads or writes several elements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_machine import BASELINE, compile_program
from lowered import lower, vector
from parts import accesses, ramp, run
from ptxas import ARCHS, assemble

import ferrule as fe

ADD = fe.ReductionOp.ADD


def copy_of_parts(width: int) -> Callable[..., None]:
    """A host function whose threads copy aligned parts."""

    @fe.kernel
    def device(a, c):
        i = fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0]
        if i < a.shape[0] // width:
            part = fe.zipped_divide(a, (width,))[None, i].load()
            fe.zipped_divide(c, (width,))[None, i].store(part)

    def host(a, c):
        blocks = (a.shape[0] // width + 127) // 128
        device(a, c).launch(grid=blocks, block=128)

    return host


def aligned(dtype: Any, align: int, divisibility: int = 16) -> fe.specs.FakeTensor:
    size = fe.sym_int(divisibility=divisibility)
    return fe.make_fake_compact_tensor(dtype, (size,), assumed_align=align)


@pytest.mark.parametrize(
    ("dtype", "width", "wanted"),
    [
        (fe.Float32, 2, "v2.b32"),
        (fe.Float32, 4, "v4.b32"),
        (fe.Float64, 2, "v2.b64"),
        (fe.Int32, 4, "v4.b32"),
        (fe.Int64, 2, "v2.b64"),
        (fe.BFloat16, 8, "v4.b32"),
        (fe.Float16, 8, "v4.b32"),
        (fe.Uint8, 16, "v4.b32"),
        (fe.Boolean, 16, "v4.b32"),
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_an_aligned_part_is_one_access_on_a_gpu(dtype: Any, width: int, wanted: str) -> None:
    found = accesses(copy_of_parts(width), aligned(dtype, 16), aligned(dtype, 16))
    assert found == {f"ld.global.{wanted}": 1, f"st.global.{wanted}": 1}


def test_parts_of_more_than_16_bytes_are_as_few_accesses_as_can_be() -> None:
    found = accesses(copy_of_parts(16), aligned(fe.Float32, 64), aligned(fe.Float32, 64))
    assert found == {"ld.global.v4.b32": 4, "st.global.v4.b32": 4}


def test_without_alignment_elements_are_read_one_by_one() -> None:
    found = accesses(copy_of_parts(4), aligned(fe.Float32, 4), aligned(fe.Float32, 4))
    assert found == {"ld.global.b32": 4, "st.global.b32": 4}


def test_strides_that_are_known_to_be_divisible_keep_the_alignment_of_rows() -> None:
    @fe.kernel
    def device(a, c):
        i, j = fe.arch.block_idx()[0], fe.arch.thread_idx()[0]
        fe.local_tile(c, (1, 4), (i, j)).store(fe.local_tile(a, (1, 4), (i, j)).load())

    def host(a, c):
        device(a, c).launch(grid=a.shape[0], block=a.shape[1] // 4)

    def rows(divisibility: int) -> Any:
        shape = (fe.sym_int(), fe.sym_int(divisibility=divisibility))
        return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)

    assert accesses(host, rows(4), rows(4)) == {"ld.global.v4.b32": 1, "st.global.v4.b32": 1}
    assert "ld.global.v4.b32" not in accesses(host, rows(2), rows(2))


def test_indices_written_by_hand_are_followed_too() -> None:
    @fe.kernel
    def device(a, c):
        i = 4 * (fe.arch.block_idx()[0] * 128 + fe.arch.thread_idx()[0])
        if i < a.shape[0]:
            w, x, y, z = a[i], a[i + 1], a[i + 2], a[i + 3]
            c[i], c[i + 1], c[i + 2], c[i + 3] = z, y, x, w

    def host(a, c):
        device(a, c).launch(grid=(a.shape[0] // 4 + 127) // 128, block=128)

    found = accesses(host, aligned(fe.Float32, 16), aligned(fe.Float32, 16))
    assert found == {"ld.global.v4.b32": 1, "st.global.v4.b32": 1}


@pytest.mark.parametrize("width", [4, 16])
def test_parts_are_vectors_on_the_cpu(width: int) -> None:
    examples = aligned(fe.Float32, 16), aligned(fe.Float32, 16)
    optimised = compile_program(lower(copy_of_parts(width), *examples), BASELINE).optimised
    assert "load <4 x float>" in optimised
    assert "store <4 x float>" in optimised


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_aligned_parts_are_right(width: int) -> None:
    examples = aligned(fe.Float32, 16), aligned(fe.Float32, 16)
    compiled = fe.compile(copy_of_parts(width), *examples, options="--target cpu")
    room = np.zeros((2, 1040), np.float32)
    first = -room.ctypes.data % 64 // 4
    a, c = room[:, first : first + 1008]
    a[:] = np.arange(1, 1009)
    compiled(a, c)
    np.testing.assert_array_equal(c, a)
    assert not room[1, :first].any()
    assert not room[1, first + 1008 :].any()


# ---- kernels as people write them ----


@fe.kernel
def vectorised_add(ga, gb, gc):
    """Four elements a thread, as a CuTe user writes it."""
    tidx, _, _ = fe.arch.thread_idx()
    bidx, _, _ = fe.arch.block_idx()
    bdim, _, _ = fe.arch.block_dim()
    thread = bidx * bdim + tidx
    _, (m, n) = ga.shape
    if thread < m * n:
        ni, mi = thread % n, thread // n
        a = ga[(None, (mi, ni))].load()
        b = gb[(None, (mi, ni))].load()
        gc[(None, (mi, ni))] = a + b


@fe.jit
def vectorised(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
    ga, gb, gc = (fe.zipped_divide(t, (1, 4)) for t in (a, b, c))
    vectorised_add(ga, gb, gc).launch(
        grid=((fe.size(gc, mode=[1]) + 255) // 256, 1, 1), block=(256, 1, 1)
    )


@fe.kernel
def row_sums_kernel(a, out):
    """A row a thread; the partial sums are in a fragment."""
    i = fe.arch.block_idx()[0] * 64 + fe.arch.thread_idx()[0]
    if i < a.shape[0]:
        partial = fe.make_fragment(4, fe.Float32)
        partial.fill(0.0)
        for j in range(a.shape[1] // 4):
            partial.store(partial.load() + fe.local_tile(a, (1, 4), (i, j)).load()[0, None])
        out[i] = partial.load().reduce(ADD, 0.0, 0)


@fe.jit
def row_sums(a: fe.Tensor, out: fe.Tensor):
    row_sums_kernel(a, out).launch(grid=(a.shape[0] + 63) // 64, block=64)


def rows_of_four() -> fe.specs.FakeTensor:
    shape = (fe.sym_int(symbol="m"), fe.sym_int(symbol="n", divisibility=4))
    return fe.make_fake_compact_tensor(fe.Float32, shape, stride_order=(1, 0), assumed_align=16)


def test_a_vectorised_addition() -> None:
    a, b = ramp(5, 12), ramp(5, 12) * 2
    *_, c = run(vectorised, a, b, np.zeros((5, 12), np.float32))
    np.testing.assert_array_equal(c, a + b)
    found = accesses(vectorised, rows_of_four(), rows_of_four(), rows_of_four())
    assert found == {"ld.global.v4.b32": 2, "st.global.v4.b32": 1}


def test_row_sums_with_a_fragment() -> None:
    a = ramp(70, 8)
    _, out = run(row_sums, a, np.zeros(70, np.float32))
    np.testing.assert_array_equal(out, a.sum(1))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ARCHS)
def test_their_ptx_assembles(arch: str, tmp_path: Path) -> None:
    options = f"--target cuda --gpu-arch {arch}"
    examples = rows_of_four(), rows_of_four(), rows_of_four()
    assemble(fe.compile(vectorised, *examples, options=options).inspect_ptx(), arch, tmp_path)
    compiled = fe.compile(row_sums, rows_of_four(), vector(symbol="k"), options=options)
    assemble(compiled.inspect_ptx(), arch, tmp_path)

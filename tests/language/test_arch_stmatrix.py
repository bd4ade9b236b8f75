"""Matrices that a warp stores to shared memory: compiled, interpreted, and what was loaded."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ptxas
import pytest
from agreement import run_all_ways
from lowered import vector

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)
FORMS = [(np.float16, False, 4), (np.float16, True, 2), (np.int8, False, 1), (np.float32, False, 4)]


def launched(kernel: Any, *arguments: Any) -> Any:
    """The last argument after a launch of a kernel of one warp."""

    def host(*args):
        kernel(*args).launch(grid=1, block=32)

    result = run(host, arguments)
    assert result.error is None, result.error
    return result.arguments[-1]


@pytest.mark.parametrize("dtype, transpose, count", FORMS)
def test_what_is_stored_is_what_is_loaded(dtype: Any, transpose: bool, count: int) -> None:
    """Rows that do not follow each other: each lane says where its row is."""
    size = 16 // np.dtype(dtype).itemsize

    @fe.kernel
    def kernel(a, out):
        lane = arch.lane_idx()
        tile = arch.alloc_smem(a.element_type, 32 * size)
        back = arch.alloc_smem(a.element_type, 32 * size)
        for i in fe.range_constexpr(size):
            tile[lane * size + i] = a[lane * size + i]
            back[lane * size + i] = a.element_type(0)
        arch.sync_threads()
        found = arch.ldmatrix(tile + lane * size, num_matrices=count, transpose=transpose)
        arch.stmatrix(back + (lane ^ 5) * size, found, transpose=transpose)
        arch.sync_threads()
        for i in fe.range_constexpr(size):
            out[lane * size + i] = back[lane * size + i]

    a = np.arange(1, 32 * size + 1).astype(dtype)
    found = launched(kernel, a, np.zeros_like(a)).reshape(32, size)
    wanted = np.zeros_like(found)
    for row in range(8 * count):
        wanted[row ^ 5] = a.reshape(32, size)[row]
    np.testing.assert_array_equal(found, wanted)


def test_stmatrix_stores_the_words_that_it_is_given() -> None:
    for wrong, message in (
        (3, "stmatrix of 3 elements of float16 to float16"),
        (16, "stmatrix of 16 elements of float16 to float16"),
    ):

        @fe.kernel
        def kernel(a):
            tile = arch.alloc_smem(fe.Float16, 512)
            arch.stmatrix(tile, fe.full(wrong, 0.0, fe.Float16))  # noqa: B023

        def host(a):
            kernel(a).launch(grid=1, block=32)

        with pytest.raises(fe.CompileError, match=message):
            fe.compile(fe.jit(host), vector(fe.Float16), options="--target cpu")


@pytest.mark.needs_ptxas
def test_stmatrix_is_an_instruction(tmp_path: Path) -> None:
    @fe.kernel
    def kernel(a):
        lane = arch.lane_idx()
        tile = arch.alloc_smem(fe.Float16, 512)
        arch.stmatrix(tile + lane * 8, fe.full(8, 1.0, fe.Float16))
        arch.stmatrix(tile + lane * 8, fe.full(2, 1.0, fe.Float16), transpose=True)
        arch.sync_threads()
        a[lane] = tile[lane]

    def host(a):
        kernel(a).launch(grid=1, block=32)

    def compiled(arch_: str) -> str:
        options = f"--target cuda --gpu-arch {arch_}"
        text: str = fe.compile(fe.jit(host), vector(fe.Float16), options=options).inspect_ptx()
        return text

    ptx = compiled("sm_90")
    assert "stmatrix.sync.aligned.m8n8.x4.shared.b16" in ptx
    assert "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16" in ptx
    ptxas.assemble(ptx, "sm_90", tmp_path)
    with pytest.raises(fe.CompileError, match="arch.stmatrix is known to GPUs from sm_90 on"):
        compiled("sm_80")

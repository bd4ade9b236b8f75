"""Floats of 8 bits on tensor cores of `mma.sync`, on the CPU and on an emulated GPU of sm_89."""

from __future__ import annotations

from functools import cache
from typing import Any

import narrow_products as products
import numpy as np
import pytest

import ferrule as fe
from ferrule import arch

EACH = pytest.mark.parametrize("form", products.FORMS, ids=lambda f: "-".join(map(str, f)))
warp = fe.nvgpu.warp


def matrix(dtype: Any, *shape: int) -> Any:
    return fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0), assumed_align=16)


def emulated(compiled: Any, *given: Any) -> Any:
    """The last argument after a call on an emulated GPU."""
    with fe.emulated_gpu("sm_89"):
        arrays = [fe.cuda.array(each) for each in given]
        compiled(*arrays)
        return fe.cuda.to_numpy(arrays[-1])


def multiplied(form: Any, a: Any, b: Any, c: Any) -> Any:
    """D, by one instruction of the emulated GPU."""
    given = (a.view(np.uint8), b.view(np.uint8), c, np.zeros_like(c))
    return emulated(compiled(form), *given)


@cache
def compiled(form: Any) -> Any:
    """The product of a form, for a GPU."""
    depth, sums = form[3], matrix(form[2], 16, 8)
    examples = (matrix(fe.Uint8, 16, depth), matrix(fe.Uint8, depth, 8), sums, sums)
    options = "--target cuda --gpu-arch sm_89"
    return fe.compile(products.host(form), *examples, options=options)


@EACH
def test_one_instruction(form: Any) -> None:
    one, two, total, depth = form
    rng = np.random.default_rng(depth)
    a, b = products.small(rng, one, (16, depth)), products.small(rng, two, (depth, 8))
    c = (rng.integers(-8, 9, (16, 8)) / 4).astype(products.NUMPY[total])
    found = multiplied(form, a, b, c).astype(np.float64)
    np.testing.assert_array_equal(found, products.exact(a, b, c)[0])
    a, b = products.finite(rng, one, (16, depth)), products.finite(rng, two, (depth, 8))
    products.check_close(multiplied(form, a, b, c), a, b, c)
    if total is fe.Float32:
        a, b, c, d = products.special(one, two, depth)
        np.testing.assert_array_equal(multiplied(form, a, b, c), d)


# ---- tiles ----


@fe.kernel
def gemm_kernel(
    a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, tiled: fe.TiledMma, depth: fe.Constexpr
) -> None:
    """A tile of 64 x 32 of C, slices of `depth` at a time, through shared memory and ldmatrix."""
    t = arch.thread_idx()[0]
    bx, by, _ = arch.block_idx()
    slices_a = fe.local_tile(a, (64, depth), (bx, None))
    slices_b = fe.local_tile(b, (32, depth), (by, None))
    tile = fe.local_tile(c, (64, 32), (bx, by))
    left, right = (
        fe.make_tensor(
            arch.alloc_smem(each.element_type, rows * depth, alignment=16),
            fe.make_layout((rows, depth), stride=(depth, 1)),
        )
        for each, rows in ((a, 64), (b, 32))
    )
    own = tiled.get_slice(t)
    part = own.partition_C(tile)
    total = own.make_fragment_C(part)
    total.fill(0.0)
    of_a = own.make_fragment_A(own.partition_A(left))
    of_b = own.make_fragment_B(own.partition_B(right))
    loads = [
        fe.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), each.element_type) for each in (a, b)
    ]
    load_a = fe.make_tiled_copy_A(loads[0], tiled).get_slice(t)
    load_b = fe.make_tiled_copy_B(loads[1], tiled).get_slice(t)
    for k in range(slices_a.shape[2]):
        for source, target, rows in ((slices_a, left, 64), (slices_b, right, 32)):
            for i in range(t, rows * depth, tiled.size):
                target[i // depth, i % depth] = source[i // depth, i % depth, k]
        arch.sync_threads()
        fe.copy(loads[0], load_a.partition_S(left), load_a.retile(of_a))
        fe.copy(loads[1], load_b.partition_S(right), load_b.retile(of_b))
        fe.gemm(tiled, total, of_a, of_b, total)
        arch.sync_threads()
    fe.autovec_copy(total, part)


@fe.jit
def gemm(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, form: fe.Constexpr) -> None:
    """C = A B^T; sizes are multiples of the tile."""
    one, two, total, depth = form
    op = warp.MmaFP8Op(one, total, (16, 8, depth), two)
    tiled = fe.make_tiled_mma(op, (2, 2, 1), (32, 32, depth))
    grid = (a.shape[0] // 64, b.shape[0] // 32, 1)
    gemm_kernel(a, b, c, tiled, 32).launch(grid=grid, block=tiled.size)


BY_DAY = (products.E4M3, products.E5M2, fe.Float32), (products.E5M2, products.E5M2, fe.Float16)
"""Of these tiles are made by day: what differs is one instruction, which the test above has."""
TILED = [
    pytest.param(f, marks=() if f[:3] in BY_DAY else pytest.mark.nightly)
    for f in products.FORMS
    if f[3] == 32
]


@pytest.mark.parametrize("form", TILED, ids=lambda f: "-".join(map(str, f)))
def test_a_gemm_of_tiles(form: Any) -> None:
    one, two, total, _ = form
    rng = np.random.default_rng(5)
    a, b = products.small(rng, one, (128, 96)), products.small(rng, two, (64, 96))
    c = np.zeros((128, 64), products.NUMPY[total])
    wanted = a.astype(np.float64) @ b.astype(np.float64).T  # of small numbers, so it is exact
    examples = (matrix(one, 128, 96), matrix(two, 64, 96), matrix(total, 128, 64), form)
    found = c.copy()
    fe.compile(gemm, *examples, options="--target cpu")(a, b, found)
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    on_gpu = fe.compile(gemm, *examples, options="--target cuda --gpu-arch sm_89")
    assert "mma.sync.aligned.m16n8k32" in on_gpu.inspect_ptx()
    np.testing.assert_array_equal(emulated(on_gpu, a, b, c).astype(np.float64), wanted)

"""Reductions of a block on the CPU, through memory, beside those of GPUs, through shuffles.

Both run on the CPU here, and must have the same bits: the operation neither commutes nor
associates, so a value that is combined at another place would show.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch
from ferrule.language.faces import collectives

SIZES = (1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 96, 100, 127, 128, 255, 256, 1000, 1024)


class Pair(NamedTuple):
    first: Any
    second: Any


def mixed(x: Any, y: Any) -> Any:
    return x * 0.75 - y


def mixed_pairs(x: Pair, y: Pair) -> Pair:
    return Pair(x.first * 0.75 - y.second, x.second + y.first if x.first > y.first else y.second)


@fe.kernel
def kernel(a, out):
    x, y, z = arch.thread_idx()
    nx, ny, _ = arch.block_dim()
    t = x + nx * (y + ny * z)
    pair = Pair(a[t], a[t] * 3.0)
    out[t, 0] = arch.block_reduction(a[t], mixed)
    out[t, 1], out[t, 2] = arch.block_reduction(pair, mixed_pairs)
    out[t, 3] = collectives._through_warps(a[t], mixed)
    out[t, 4], out[t, 5] = collectives._through_warps(pair, mixed_pairs)


@fe.jit
def host(a: fe.Tensor, out: fe.Tensor, nx: fe.Int32, ny: fe.Int32, nz: fe.Int32):
    kernel(a, out).launch(grid=1, block=(nx, ny, nz))


@pytest.fixture(scope="module")
def reduced() -> Any:
    n = fe.sym_int()
    examples = (fe.row_major((n,), fe.Float32), fe.row_major((n, 6), fe.Float32), 1, 1, 1)
    return fe.compile(host, *examples, options="--target cpu")


@pytest.mark.parametrize("block", [*((size, 1, 1) for size in SIZES), (3, 7, 2), (5, 5, 40)])
def test_same_bits(reduced: Any, block: tuple[int, int, int]) -> None:
    count = int(np.prod(block))
    a = np.random.default_rng(count).standard_normal(count, dtype=np.float32)
    out = np.zeros((count, 6), np.float32)
    reduced(a, out, *block)
    np.testing.assert_array_equal(out[:, :3].view(np.int32), out[:, 3:].view(np.int32))
    np.testing.assert_array_equal(out, np.broadcast_to(out[0], out.shape))


def test_the_cpu_has_one_loop_for_the_steps_of_a_warp() -> None:
    @fe.kernel
    def one(a):
        t = arch.thread_idx()[0]
        a[t] = arch.block_reduction(a[t], mixed)

    @fe.jit
    def launch(a: fe.Tensor):
        one(a).launch(grid=1, block=128)

    vector = fe.row_major((fe.sym_int(),), fe.Float32)
    found = fe.compile(launch, vector, options="--target cpu").inspect_ir()
    assert "shuffle" not in found


def test_what_it_takes_is_not_shared_memory_of_the_kernel() -> None:
    @fe.kernel
    def full(a):
        t = arch.thread_idx()[0]
        tile = arch.alloc_smem(fe.Float32, 12 * 1024 - 64)
        tile[t] = a[t]
        arch.sync_threads()
        both = arch.block_reduction((tile[t], a[t]), lambda x, y: (x[0] + y[0], x[1] + y[1]))
        a[t] = both[0] + both[1]

    @fe.jit
    def launch(a: fe.Tensor):
        full(a).launch(grid=1, block=128)

    a = np.ones(128, np.float32)
    fe.compile(launch, a, options="--target cpu")(a)
    assert (a == 256).all()


def test_beside_all_dynamic_shared_memory() -> None:
    @fe.kernel
    def full(a):
        t = arch.thread_idx()[0]
        tile = fe.make_tensor(arch.get_dyn_smem(fe.Float32), fe.make_layout(128))
        tile[t] = a[t]
        arch.sync_threads()
        a[t] = arch.block_reduction(tile[127 - t], lambda x, y: x + y)

    @fe.jit
    def launch(a: fe.Tensor):
        full(a).launch(grid=1, block=128, smem=227 * 1024)

    a = np.ones(128, np.float32)
    fe.compile(launch, a, options="--target cpu")(a)
    assert (a == 128).all()

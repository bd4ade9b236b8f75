"""Reductions of a block on the CPU, through memory, beside those of GPUs, through shuffles.

Both run on the CPU here, and must have the same bits: the operation neither commutes nor
associates, so a value that is combined at another place would show.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

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


OPERATIONS: Final[dict[str, tuple[Callable[[Any, Any], Any], ...]]] = {
    "float32": (operator.add, max, lambda x, y: x + x, lambda x, y: y - x),
    "int32": (lambda x, y: y * x, operator.and_, lambda x, y: y ^ x),
    "uint64": (fe.math.min, operator.or_),
    "int16": (operator.add,),
}


def beside(operations: tuple[Any, ...], block: int | None) -> Any:
    """A function that reduces by each operation, in both ways; the block's size is given where it
    is None."""

    @fe.kernel
    def both(a, out):
        t = arch.thread_idx()[0]
        for at in fe.range_constexpr(len(operations)):
            out[0, at, t] = arch.block_reduction(a[t], operations[at])
            out[1, at, t] = collectives._through_warps(a[t], operations[at])

    @fe.jit
    def launch(a: fe.Tensor, out: fe.Tensor):
        both(a, out).launch(grid=1, block=a.shape[0] if block is None else block)

    return launch


@pytest.mark.parametrize("dtype", OPERATIONS)
def test_operations_on_vectors_have_the_same_bits(dtype: str) -> None:
    operations = OPERATIONS[dtype]
    out = fe.row_major((2, len(operations), fe.sym_int()), dtype)
    examples = fe.row_major((fe.sym_int(),), dtype), out
    known, any_ = (
        fe.compile(beside(operations, block), *examples, options="--target cpu")
        for block in (96, None)
    )
    for size in (96, 1, 16, 17, 64, 100, 1024):
        values = np.random.default_rng(size).standard_normal(size) * 1e3
        a = values.astype(dtype if dtype[0] == "f" else np.int64).astype(dtype)
        result = np.zeros((2, len(operations), size), dtype)
        for compiled in (known, any_) if size == 96 else (any_,):
            compiled(a, result)
            assert result[0].tobytes() == result[1].tobytes(), size


def test_a_step_of_a_warp_is_a_vector() -> None:
    examples = fe.row_major((64,), fe.Float64), fe.row_major((2, 1, 64), fe.Float64)

    def text(operation: Any) -> str:
        function = beside((operation,), 64)
        return str(fe.compile(function, *examples, options="--target cpu").inspect_llvm())

    assert "load <16 x double>" in text(operator.add)
    assert "load <16 x double>" not in text(mixed)  # of which LLVM makes what it likes


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

"""What tiled multiplications are set to where the run decides it: in branches and in loops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferrule as fe

warpgroup = fe.nvgpu.warpgroup
Major, Source = warpgroup.OperandMajorMode, warpgroup.OperandSource
ACCUMULATE = warpgroup.Field.ACCUMULATE
CPU, GPU = "--target cpu", "--target cuda --gpu-arch sm_90a"


def multiplication() -> Any:
    return fe.make_tiled_mma(warpgroup.MmaTF32Op((64, 8), Source.SMEM, Major.K, Major.K))


@fe.kernel
def counted_kernel(n: fe.Int32, out: fe.Tensor):
    mma = multiplication()
    count = 0
    for i in range(n):
        out[i] = mma.get(ACCUMULATE)
        mma.set(ACCUMULATE, True)
        count += 1
        if count == 3:
            mma.set(ACCUMULATE, False)
            count = 0
    out[n] = mma.get(ACCUMULATE)


def counted(n: int, out: list[int]) -> None:
    for i in range(n):
        out[i] = int(i % 3 != 0)
    out[n] = int(n % 3 != 0)


@fe.kernel
def fresh_kernel(n: fe.Int32, out: fe.Tensor):
    """Each iteration makes its own, which nobody has set."""
    for i in range(n):
        mma = multiplication()
        for k in range(3):
            if mma.get(ACCUMULATE):
                out[i] += 1
            if k == 1:
                mma.set(ACCUMULATE, i % 2 == 0)
    out[n] = 7


def fresh(n: int, out: list[int]) -> None:
    out[:] = [int(i % 2 == 0) for i in range(n)] + [7]


def turned(mma: Any, i: Any) -> None:
    if i % 3 == 0:
        mma.set(ACCUMULATE, True)
    elif i % 3 == 1:
        mma.set(ACCUMULATE, False)


@fe.kernel
def nested_kernel(n: fe.Int32, out: fe.Tensor):
    """A helper sets it in branches, an inner loop turns it round; it begins with a number."""
    mma = multiplication()
    mma.set(ACCUMULATE, n > 5)
    i = 0
    while i < n:
        out[i] = mma.get(ACCUMULATE)
        turned(mma, i)
        j = 0
        while j < i:
            if j == 2:
                mma.set(ACCUMULATE, not mma.get(ACCUMULATE))
            j += 1
        i += 1
    out[n] = mma.get(ACCUMULATE)


def nested(n: int, out: list[int]) -> None:
    setting = n > 5
    for i in range(n):
        out[i] = int(setting)
        setting = {0: True, 1: False}.get(i % 3, setting)
        setting ^= i > 2
    out[n] = int(setting)


@fe.kernel
def left_kernel(n: fe.Int32, out: fe.Tensor):
    mma = multiplication()
    for i in range(n):
        if i == 2:
            mma.set(ACCUMULATE, True)
            continue
        if i == 4:
            break
        out[i] = mma.get(ACCUMULATE)
    out[n] = mma.get(ACCUMULATE)


def left(n: int, out: list[int]) -> None:
    out[3:4] = [int(n > 3)] if n > 2 else out[3:4]
    out[n] = int(n > 2)


@fe.kernel
def again_kernel(n: fe.Int32, out: fe.Tensor):
    """Behind an early end, and set again in each turn of the outer loop."""
    mma = multiplication()
    if n < 0:
        return
    for _ in range(2):
        mma.set(ACCUMULATE, False)
        for i in range(n):
            out[i] = out[i] * 2 + fe.Int32(mma.get(ACCUMULATE))
            mma.set(ACCUMULATE, True)
    out[n] = mma.get(ACCUMULATE)


def again(n: int, out: list[int]) -> None:
    out[:] = [0, *[3] * (n - 1)][:n] + [int(n > 0)]


@fe.kernel
def chosen_kernel(n: fe.Int32, out: fe.Tensor):
    mma = multiplication()
    if n > 3:
        mma.set(ACCUMULATE, True)
    out[n] = mma.get(ACCUMULATE)


def chosen(n: int, out: list[int]) -> None:
    out[n] = int(n > 3)


@pytest.mark.parametrize("options", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    "kernel, wanted",
    [
        (counted_kernel, counted),
        (fresh_kernel, fresh),
        (nested_kernel, nested),
        (left_kernel, left),
        (again_kernel, again),
        (chosen_kernel, chosen),
    ],
)
def test_a_setting_that_the_run_decides(
    kernel: Any, wanted: Callable[[int, list[int]], None], options: str
) -> None:
    @fe.jit
    def host(n: fe.Int32, out: fe.Tensor):
        kernel(n, out).launch(grid=1, block=1)

    example = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    compiled = fe.compile(host, fe.Int32(0), example, options=options)
    with fe.emulated_gpu("sm_90a"):
        for n in (0, 1, 3, 4, 8):
            expected = [0] * (n + 1)
            wanted(n, expected)
            assert ran(compiled, n, options) == expected, n


def ran(compiled: Any, n: int, options: str) -> list[int]:
    out = np.zeros(n + 1, np.int32)
    if options == CPU:
        compiled(n, out)
        return out.tolist()  # type: ignore[no-any-return]
    there = fe.cuda.array(out)
    compiled(n, there)
    return fe.cuda.to_numpy(there).tolist()  # type: ignore[no-any-return]


# ---- sums of two levels ----


@fe.kernel
def promoted_kernel(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, every: fe.Int32):
    """Products of slices along k are added to `total` after `every` slices, in a loop over the
    elements of fragments whose number the loop counts."""
    op = warpgroup.MmaF16BF16Op(fe.Float16, fe.Float32, (64, 8, 16), Source.SMEM, Major.K, Major.K)
    mma = fe.make_tiled_mma(op)
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_INTER, fe.Float16)
    smem = fe.utils.SmemAllocator()
    t = fe.arch.thread_idx()[0]
    tiles = []
    for size in (64, 8):
        layout = fe.tile_to_shape(atom, (size, 16), (0, 1))
        tiles.append(smem.allocate_tensor(fe.Float16, layout.outer, 1024, layout.inner))
    own = mma.get_slice(t)
    part = own.partition_C(c)
    total, sums = fe.make_fragment_like(part), fe.make_fragment_like(part)
    total.fill(0.0)
    left = own.make_fragment_A(own.partition_A(tiles[0]))
    right = own.make_fragment_B(own.partition_B(tiles[1]))
    count = 0
    for k in range(a.shape[1] // 16):
        for i in range(t, 64 * 16, 128):
            tiles[0][i // 16, i % 16] = a[i // 16, 16 * k + i % 16]
        tiles[1][t // 16, t % 16] = b[t // 16, 16 * k + t % 16]
        fe.arch.fence_proxy("async.shared", space="cta")
        fe.arch.sync_threads()
        warpgroup.fence()
        fe.gemm(mma, sums, left, right, sums)
        mma.set(ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        count += 1
        if count == every:
            for i in range(fe.size(total)):
                total[i] = total[i] + sums[i]
            mma.set(ACCUMULATE, False)
            count = 0
        fe.arch.sync_threads()
    if count > 0:
        for i in range(fe.size(total)):
            total[i] = total[i] + sums[i]
    fe.autovec_copy(total, part)


@fe.jit
def promoted(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, every: fe.Int32):
    promoted_kernel(a, b, c, every).launch(grid=1, block=128)


def _examples() -> list[Any]:
    k = fe.sym_int(divisibility=16)
    shapes = (fe.Float16, (64, k)), (fe.Float16, (8, k)), (fe.Float32, (64, 8))
    return [fe.make_fake_compact_tensor(*each, stride_order=(1, 0)) for each in shapes]


@pytest.mark.parametrize("options", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("every", [1, 2, 7])
def test_sums_of_two_levels(every: int, options: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (m, 80)).astype(np.float16) for m in (64, 8))
    c = np.empty((64, 8), np.float32)
    compiled = fe.compile(promoted, *_examples(), fe.Int32(1), options=options)
    if options == CPU:
        compiled(a, b, c, every)
    else:
        with fe.emulated_gpu("sm_90a"):
            there = [fe.cuda.array(each) for each in (a, b, c)]
            compiled(*there, every)
            c = fe.cuda.to_numpy(there[2])
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_what_a_product_writes_is_in_registers() -> None:
    compiled = fe.compile(promoted, *_examples(), fe.Int32(1), options=GPU)
    assert ".local" not in compiled.inspect_ptx()

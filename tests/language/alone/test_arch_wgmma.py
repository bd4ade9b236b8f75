"""Products of a warpgroup: every layout, dtype and shape on the CPU and in emulated PTX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import ptxas
import pytest
from agreement import run_all_ways
from lowered import text
from warpgroup_matrices import Array, Layout, k_major, mn_major

import ferrule as fe

arch = fe.arch
SIZE = 18432
DTYPES: dict[Any, Any] = {
    fe.Float16: np.float16,
    fe.BFloat16: ml_dtypes.bfloat16,
    fe.TFloat32: np.float32,
    fe.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    fe.Float8E5M2: ml_dtypes.float8_e5m2,
    fe.Int8: np.int8,
    fe.Uint8: np.uint8,
    fe.Float32: np.float32,
    fe.Int32: np.int32,
}


@fe.kernel
def product_kernel(
    image: fe.Tensor,
    held: fe.Tensor,
    c: fe.Tensor,
    setting: fe.Constexpr,
):
    t = arch.thread_idx()[0]
    a, b, d, columns, of_a, of_b, (start_a, start_b), steps = setting
    memory = arch.alloc_smem(fe.Uint8, SIZE, alignment=1024)
    for i in range(t, SIZE, 128):
        memory[i] = image[i]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    right = fe.recast_ptr(memory + start_b, dtype=b)
    acc = fe.make_fragment(columns // 2, d)
    w, g, u = t // 32, t % 32 // 4, t % 4
    for j in fe.range_constexpr(columns // 8):
        for i in fe.range_constexpr(4):
            acc[4 * j + i] = c[16 * w + g + 8 * (i // 2), 8 * j + 2 * u + i % 2]
    mine = fe.make_fragment(held.shape[0], a)
    for i in fe.range_constexpr(held.shape[0]):
        mine[i] = held[i, t]
    arch.wgmma_fence()
    for step in range(steps):
        if fe.const_expr(of_a is None):
            arch.wgmma(acc, mine, right, of_b, accumulate=step > 0)
        else:
            left = fe.recast_ptr(memory + start_a, dtype=a)
            arch.wgmma(acc, left, right, of_b, of_a, accumulate=step > 0)
        arch.wgmma_commit_group()
        arch.wgmma_wait_group(1)
    arch.wgmma_wait_group(0)
    for j in fe.range_constexpr(columns // 8):
        for i in fe.range_constexpr(4):
            c[16 * w + g + 8 * (i // 2), 8 * j + 2 * u + i % 2] = acc[4 * j + i]


@fe.jit
def product(image: fe.Tensor, held: fe.Tensor, c: fe.Tensor, setting: fe.Constexpr):
    product_kernel(image, held, c, setting).launch(grid=1, block=128)


def small(dtype: Any, shape: tuple[int, int], seed: int) -> Array:
    low = 0 if dtype is fe.Uint8 else -4
    rng = np.random.default_rng(seed)
    return rng.integers(low, 5, shape).astype(DTYPES[dtype])


def fake(dtype: Any, *shape: int) -> Any:
    return fe.make_fake_compact_tensor(dtype, shape, stride_order=tuple(range(len(shape)))[::-1])


def held_by(a: Array) -> Array:
    """A in registers, [element, thread]."""
    each = 4 // a.itemsize
    element, thread = np.indices((a.shape[1] // 2, 128))
    word, j = element // each, element % each
    row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (word % 2)
    return np.ascontiguousarray(a[row, 4 * each * (word // 2) + thread % 4 * each + j])


def shared(layout: Layout) -> Any:
    major = "mn" if layout.trans else "k"
    return arch.SharedMatrix(major, layout.span, layout.leading, layout.stride)


def both(
    of_a: tuple[bool, int] | None,
    of_b: tuple[bool, int],
    dtypes: tuple[Any, Any, Any] = (fe.Float16, fe.Float16, fe.Float32),
    columns: int = 32,
    steps: int = 2,
) -> tuple[Array, Array, Array]:
    """Results of the CPU and of an emulated GPU, and the sum that they should be."""
    a, b, d = dtypes
    depth = 32 // np.dtype(DTYPES[a]).itemsize
    matrices = small(a, (64, depth), 1), small(b, (columns, depth), 2)
    image = np.zeros(SIZE, np.uint8)
    places = []
    for number, (form, matrix) in enumerate(zip((of_a or (False, 0), of_b), matrices, strict=True)):
        make = mn_major if form[0] else k_major
        layout = make(8192 * number, form[1], (64, columns)[number])
        layout.put(image, matrix)
        places.append(layout)
    own = None if of_a is None else shared(places[0])
    setting = (a, b, d, columns, own, shared(places[1]), (0, 8192), steps)
    initial = small(d, (64, columns), 3)
    held = held_by(matrices[0])
    given = (fake(fe.Uint8, SIZE), fake(a, *held.shape), fake(d, 64, columns), setting)
    found = []
    for options in ("--target cpu", "--target cuda --gpu-arch sm_90a"):
        c = initial.copy()
        compiled = fe.compile(product, *given, options=options)
        if "cpu" in options:
            compiled(image, held, c)
        else:
            with fe.emulated_gpu("sm_90a"):
                arrays = [fe.cuda.array(each) for each in (image, held, c)]
                compiled(*arrays)
                c = fe.cuda.to_numpy(arrays[2])
        found.append(c)
    wide = np.int64 if d is fe.Int32 else np.float64
    exact = matrices[0].astype(wide) @ matrices[1].astype(wide).T
    return found[0], found[1], (steps * exact).astype(DTYPES[d])


LAYOUTS = [(trans, span) for trans in (False, True) for span in (0, 32, 64, 128)]


@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        *zip(LAYOUTS, LAYOUTS[3:] + LAYOUTS[:3], strict=True),
        (None, (False, 128)),
        (None, (True, 64)),
    ],
)
def test_every_layout_gives_the_product(of_a: Any, of_b: Any) -> None:
    cpu, gpu, wanted = both(of_a, of_b)
    assert np.array_equal(cpu, wanted) and np.array_equal(gpu, wanted)


@pytest.mark.parametrize(
    ("a", "b", "d", "columns", "in_registers"),
    [
        (fe.BFloat16, fe.BFloat16, fe.Float32, 8, True),
        (fe.Float16, fe.Float16, fe.Float16, 24, False),
        (fe.TFloat32, fe.TFloat32, fe.Float32, 16, True),
        (fe.Float8E4M3FN, fe.Float8E5M2, fe.Float32, 40, True),
        (fe.Float8E5M2, fe.Float8E4M3FN, fe.Float16, 8, False),
        (fe.Int8, fe.Uint8, fe.Int32, 48, True),
        (fe.Uint8, fe.Uint8, fe.Int32, 24, False),
        (fe.Float16, fe.Float16, fe.Float32, 256, False),
    ],
)
def test_every_dtype(a: Any, b: Any, d: Any, columns: int, in_registers: bool) -> None:
    of_a = None if in_registers else (False, 32)
    cpu, gpu, wanted = both(of_a, (False, 0), (a, b, d), columns, steps=3)
    assert np.array_equal(cpu, wanted) and np.array_equal(gpu, wanted)


# ---- the same as by definition ----


@pytest.mark.parametrize("in_registers", [True, False])
def test_the_cpu_and_the_interpreter_agree(in_registers: bool) -> None:
    of_a = None if in_registers else arch.SharedMatrix("mn", 128, 1024, 1024)
    of_b = arch.SharedMatrix(swizzle=32, stride=256)

    @fe.kernel
    def kernel(a, b, c):
        t = arch.thread_idx()[0]
        left = arch.alloc_smem(fe.Float16, 64 * 16, alignment=1024)
        right = arch.alloc_smem(fe.Float16, 8 * 16, alignment=1024)
        mine = fe.make_fragment(8, fe.Float16)
        acc = fe.make_fragment(4, fe.Float32)
        for i in fe.range_constexpr(8):
            left[t + 128 * i] = a[t + 128 * i]
            mine[i] = a[t + 128 * i]
        right[t] = b[t]
        arch.sync_threads()
        arch.wgmma_fence()
        if fe.const_expr(of_a is None):
            arch.wgmma(acc, mine, right, of_b, accumulate=False)
        else:
            arch.wgmma(acc, left, right, of_b, of_a, accumulate=False)
        arch.wgmma(acc, left, right, of_b, of_b)
        arch.wgmma_commit_group()
        arch.wgmma_wait_group(0)
        for i in fe.range_constexpr(4):
            c[t * 4 + i] = acc[i]

    def host(a, b, c):
        kernel(a, b, c).launch(grid=1, block=128)

    rng = np.random.default_rng(1)
    arguments = (
        rng.standard_normal(1024).astype(np.float16),
        rng.standard_normal(128).astype(np.float16),
        np.zeros(512, np.float32),
    )
    result = run_all_ways(host, arguments, plain=False)
    assert result.error is None, result.error
    assert np.any(result.arguments[-1])


# ---- its text, its instruction, its errors ----


@fe.kernel
def steps_kernel(c, steps: fe.Int32):
    """Products in a loop, of which one is under way while the next begins."""
    t = arch.thread_idx()[0]
    tiles = arch.alloc_smem(fe.Float16, 4 * 64 * 64, alignment=1024)
    for i in range(t, 4 * 64 * 64, 128):
        tiles[i] = fe.Float16(1.0)
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    acc = fe.make_fragment(32, fe.Float32)
    of = arch.SharedMatrix(swizzle=128, stride=1024)
    arch.wgmma_fence()
    for step in range(steps):
        tile = tiles + step % 2 * 64 * 64
        for k in fe.range_constexpr(4):
            arch.wgmma(acc, tile + 16 * k, tile + (2 * 64 * 64 + 16 * k), of, of)
        arch.wgmma_commit_group()
        arch.wgmma_wait_group(1)
    arch.wgmma_wait_group(0)
    for i in fe.range_constexpr(32):
        c[t, i] = acc[i] * 0.5


@fe.jit
def steps(c: fe.Tensor, n: fe.Int32):
    steps_kernel(c, n).launch(grid=1, block=128)


def test_the_text(golden: Callable[[str, str], None]) -> None:
    def host(c, n: fe.Int32):
        steps_kernel(c, n).launch(grid=1, block=128)

    golden("wgmma.ir", text(host, fake(fe.Float32, 128, 32), fe.Int32(0)))


@pytest.mark.needs_ptxas
def test_ptxas_lets_products_run_in_the_background(tmp_path: Path) -> None:
    """It serialises products whose registers are used before a wait, and says so."""
    given = fake(fe.Float32, 128, 32), fe.Int32(0)
    ptx = fe.compile(steps, *given, options="--target cuda --gpu-arch sm_90a").inspect_ptx()
    assert ptx.count("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16") == 4
    said = ptxas.assemble(ptx, "sm_90a", tmp_path, "-v")
    assert "serialized" not in said and " 0 bytes spill stores" in said


def test_steps_in_the_background() -> None:
    given = fake(fe.Float32, 128, 32), fe.Int32(0)
    compiled = fe.compile(steps, *given, options="--target cuda --gpu-arch sm_90a")
    with fe.emulated_gpu("sm_90a"):
        c = fe.cuda.array(np.zeros((128, 32), np.float32))
        compiled(c, 3)
        assert (fe.cuda.to_numpy(c) == 96).all()


OF = arch.SharedMatrix(swizzle=128, stride=1024)
WRONG: dict[str, tuple[Any, ...]] = {
    "the acc of wgmma has 6 elements of float32": (6, fe.Float32, fe.Float16, OF, OF),
    "the acc of wgmma has 20 elements of int32": (20, fe.Int32, fe.Int8, OF, OF),
    "wgmma of float16 adds to int32": (4, fe.Int32, fe.Float16, OF, OF),
    "the a of wgmma has elements of float32": (4, fe.Float32, fe.Float32, OF, OF),
    "the of_b of wgmma is 3": (4, fe.Float32, fe.Float16, 3, OF),
    "the of_a of wgmma has a swizzle over 16 bytes": (
        *(4, fe.Float32, fe.Float16, OF, arch.SharedMatrix(swizzle=16)),
    ),
    "the of_b of wgmma has stride=8, not a multiple of 16 from 0 to 262128": (
        *(4, fe.Float32, fe.Float16, arch.SharedMatrix(stride=8), OF),
    ),
    'the of_a of wgmma has the major mode "mn", which is for elements of 2 bytes': (
        *(4, fe.Int32, fe.Int8, OF, arch.SharedMatrix("mn", 128, 0, 1024)),
    ),
    "the a of wgmma is the pointer smem": (4, fe.Float32, fe.Float16, OF, None),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_refused(message: str) -> None:
    count, d, dtype, of_b, of_a = WRONG[message]

    @fe.kernel
    def kernel():
        tile = arch.alloc_smem(dtype, 1024, alignment=1024)
        arch.wgmma(fe.make_fragment(count, d), tile, tile, of_b, of_a)

    @fe.jit
    def host():
        kernel().launch(grid=1, block=128)

    with pytest.raises(fe.CompileError) as found:
        fe.compile(host, options="--target cpu")
    assert message in str(found.value)


def test_it_is_known_to_one_architecture() -> None:
    given = fake(fe.Float32, 128, 32), fe.Int32(0)
    for name in ("sm_90", "sm_100a"):
        with pytest.raises(fe.CompileError, match=r"arch\.wgmma\w* is known to sm_90a alone"):
            fe.compile(steps, *given, options=f"--target cuda --gpu-arch {name}").inspect_ptx()

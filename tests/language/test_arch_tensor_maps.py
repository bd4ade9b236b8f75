"""Copies of boxes: compiled and interpreted, their text, PTX, and what is wrong."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ptxas
import pytest
from agreement import run_all_ways

import ferrule as fe

arch = fe.arch
run = partial(run_all_ways, plain=False)
CUDA = "--target cuda --gpu-arch sm_90a"


def outcome(kernel: Any, *arguments: Any, **modes: Any) -> Any:
    """What a launch of a kernel of 64 threads leaves behind, which gets the map of its first
    argument."""
    box, last = modes.pop("box"), modes.pop("last", ())

    def host(a, *rest):
        map_ = arch.make_tensor_map(a, box, **modes)
        kernel(map_, *rest, *last).launch(grid=1, block=64)

    return run(host, arguments)


def launched(kernel: Any, *arguments: Any, **modes: Any) -> Any:
    result = outcome(kernel, *arguments, **modes)
    assert result.error is None, result.error
    return result.arguments


@fe.kernel
def loading(a, out, at, size):
    """The box at a place, of so many elements, as it lies in shared memory."""
    t = arch.thread_idx()[0]
    arrived = arch.alloc_smem(fe.Int64, 1)
    tile = arch.alloc_smem(out.element_type, size, alignment=1024)
    if t == 0:
        arch.mbarrier_init(arrived, 1)
        arch.mbarrier_init_fence()
        arch.mbarrier_arrive_and_expect_tx(arrived, size * out.element_type.bits // 8)
        arch.cp_async_bulk_tensor(tile, a, at, arrived)
    arch.sync_threads()
    arch.mbarrier_wait(arrived, 0)
    for i in range(t, size, 64):
        out[i] = tile[i]


def loaded(a: Any, at: tuple[int, ...], size: int, **modes: Any) -> Any:
    """What `loading` finds."""
    out = np.full(size, 7, a.dtype)
    return launched(loading, a, out, last=(at, size), **modes)[1]


def boxed(
    a: Any, at: tuple[int, ...], box: tuple[int, ...], steps: Any = None, fill: Any = 0
) -> Any:
    """The same, by NumPy: C order, the last dim innermost."""
    steps = steps or (1,) * a.ndim
    counts = [-(-size // step) for size, step in zip(box, steps, strict=True)]
    found = np.full(counts, fill, a.dtype)
    for index in np.ndindex(*counts):
        place = tuple(x + i * s for x, i, s in zip(at, index, steps, strict=True))
        if all(0 <= p < n for p, n in zip(place, a.shape, strict=True)):
            found[index] = a[place]
    return found.ravel()


def swizzled(box: Any, bits: int) -> Any:
    """The bytes of a box as a swizzle with so many bits has them."""
    data = box.view(np.uint8)
    offsets = np.arange(data.size)
    found = np.empty_like(data)
    found[offsets ^ ((offsets >> 7 & (1 << bits) - 1) << 4)] = data
    return found.view(box.dtype)


PLACES = [(2, 8), (-3, 0), (0, -5), (14, 60), (40, 0)]


@pytest.mark.parametrize("at", PLACES)
def test_what_is_outside_of_the_tensor_is_zero(at: tuple[int, int]) -> None:
    a = np.random.default_rng(1).random((16, 64), np.float32)
    np.testing.assert_array_equal(loaded(a, at, 64, box=(4, 16)), boxed(a, at, (4, 16)))


@pytest.mark.parametrize(
    "dtype, inner, swizzle, bits",
    [(np.float16, 64, "128B", 3), (np.float32, 16, "64B", 2), (np.int8, 32, "32B", 1)],
)
def test_chunks_change_places_as_the_swizzle_says(
    dtype: Any, inner: int, swizzle: str, bits: int
) -> None:
    a = np.arange(40 * inner).reshape(40, inner).astype(dtype)
    found = loaded(a, (3, 0), 16 * inner, box=(16, inner), swizzle=swizzle)
    np.testing.assert_array_equal(found, swizzled(boxed(a, (3, 0), (16, inner)), bits))


def test_nan_fills_what_is_outside() -> None:
    a = np.ones((4, 8), np.float16)
    found = loaded(a, (2, 0), 32, box=(4, 8), oob_fill="nan")
    np.testing.assert_array_equal(found, boxed(a, (2, 0), (4, 8), fill=np.nan))


def test_a_box_takes_every_second_row() -> None:
    a = np.arange(12 * 8, dtype=np.int32).reshape(12, 8)
    found = loaded(a, (1, 0), 24, box=(5, 8), element_strides=(2, 1))
    np.testing.assert_array_equal(found, boxed(a, (1, 0), (5, 8), (2, 1)))


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_tensors_of_all_ranks(rank: int) -> None:
    shape, box, at = (3, 2, 4, 3, 8)[-rank:], (2, 1, 2, 3, 4)[-rank:], (1, 1, 3, 0, 2)[-rank:]
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    found = loaded(a, at, int(np.prod(box)), box=box)
    np.testing.assert_array_equal(found, boxed(a, at, box))


def test_a_box_of_a_column_major_tensor_has_its_columns_first() -> None:
    def host(a, out):
        map_ = arch.make_tensor_map(a, (4, 2))
        loading(map_, out, (4, 1), 8).launch(grid=1, block=64)

    like_a = fe.make_fake_compact_tensor(fe.Float32, (8, 6), stride_order=(0, 1))
    like_out = fe.make_fake_compact_tensor(fe.Float32, (8,))
    a = np.asfortranarray(np.arange(8 * 6, dtype=np.float32).reshape(8, 6))
    out = np.zeros(8, np.float32)
    fe.compile(fe.jit(host), like_a, like_out, options="--target cpu")(a, out)
    np.testing.assert_array_equal(out, boxed(a.T, (1, 4), (2, 4)))


@fe.kernel
def storing(out, a):
    """The first elements of a as a box of out, beyond its end too."""
    t = arch.thread_idx()[0]
    tile = arch.alloc_smem(a.element_type, 64, alignment=1024)
    tile[t] = a[t]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    if t == 0:
        arch.cp_async_bulk_tensor(out, tile, (3, 8))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)
        arch.cp_async_bulk_wait_group(0)


def test_a_box_is_stored_where_the_tensor_is() -> None:
    a = np.arange(64, dtype=np.float32)
    out, _ = launched(storing, np.zeros((6, 16), np.float32), a, box=(4, 16))
    wanted = np.zeros((6, 16), np.float32)
    wanted[3:, 8:] = a.reshape(4, 16)[:3, :8]
    np.testing.assert_array_equal(out, wanted)


def test_bytes_go_back_to_global_memory() -> None:
    @fe.kernel
    def kernel(a, out):
        t = arch.thread_idx()[0]
        row = arch.alloc_smem(fe.Int32, 64)
        row[t] = a[63 - t]
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        if t == 0:
            arch.cp_async_bulk(out.iterator, row, 256)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0)

    def host(a, out):
        kernel(a, out).launch(grid=1, block=64)

    a = np.arange(64, dtype=np.int32)
    result = run(host, (a, np.zeros_like(a)))
    np.testing.assert_array_equal(result.arguments[-1], a[::-1])


# ---- on a GPU ----


def square(dtype: Any = fe.Float16) -> Any:
    shape = (fe.sym_int(), fe.sym_int(divisibility=8))
    return fe.make_fake_compact_tensor(dtype, shape, stride_order=(1, 0), assumed_align=16)


def compiled(options: str = CUDA, multicast: bool = False) -> fe.Function:
    @fe.kernel
    def kernel(a, b, c):
        tile = arch.alloc_smem(fe.Float16, 512, alignment=1024)
        arrived = arch.alloc_smem(fe.Int64, 1)
        if arch.thread_idx()[0] == 0:
            arch.prefetch_tensor_map(a)
            arch.prefetch_tensor(a, (8, 0))
            arch.mbarrier_init(arrived, 1)
            arch.cp_async_bulk_tensor(
                tile, a, (8, 0), arrived, multicast_mask=3 if multicast else None
            )
        arch.mbarrier_wait(arrived, 0)
        if arch.thread_idx()[0] == 0:
            arch.cp_async_bulk_tensor(b, tile, (8, 0))
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(1, read=True)
        c[0, 0] = tile[5]

    @fe.jit
    def host(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        of_a = arch.make_tensor_map(a, (8, 64), swizzle="128B")
        of_b = arch.make_tensor_map(b, box=[8, 64], swizzle="128B", l2_promotion="256B")
        kernel(of_a, of_b, c).launch(grid=1, block=32)

    return fe.compile(host, square(), square(), square(), options=options)


def test_the_ptx_has_the_instructions_and_the_maps() -> None:
    ptx = compiled(f"{CUDA} --index-bitwidth 32").inspect_ptx()
    assert ptx.count(".param .align 64 .b8") == 2
    for wanted in (
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [",
        "prefetch.tensormap",
        "cp.async.bulk.wait_group.read \t1;",
    ):
        assert wanted in ptx
    assert "ld.param.b8" not in ptx, "a map is not copied to the stack"
    assert ".multicast::cluster [" in compiled(multicast=True).inspect_ptx()


@pytest.mark.needs_ptxas
def test_ptxas_takes_it(tmp_path: Path) -> None:
    for multicast in (False, True):
        ptxas.assemble(compiled(multicast=multicast).inspect_ptx(), "sm_90a", tmp_path)


def test_older_architectures_have_no_such_copies() -> None:
    with pytest.raises(
        fe.CompileError, match="cp_async_bulk_tensor is known to GPUs from sm_90 on"
    ):
        compiled("--target cuda --gpu-arch sm_80")


# ---- what is wrong ----


def refused(host: Any, *given: Any, options: str = "--target cpu") -> str:
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(fe.jit(host), *(given or (square(),)), options=options)
    return str(caught.value).split("\n")[0]


WRONG = {
    "make_tensor_map of a: each size of a box is from 1 to 256, but the box is (64, 512)": {
        "box": (512, 64)
    },
    "make_tensor_map of a: swizzle is one of none, 32B, 64B, 128B, 128B_ATOM_32B, "
    "128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B, but got '1B'": {"box": (8, 64), "swizzle": "1B"},
    "the box of make_tensor_map is (8,) (tuple)": {"box": (8,)},
    "the element_strides of make_tensor_map is 2.0 (float)": {
        "box": (8, 64), "element_strides": 2.0
    },
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_boxes_that_no_map_has(message: str) -> None:
    modes = WRONG[message]

    def host(a):
        arch.make_tensor_map(a, **modes)

    assert refused(host) == message


def test_a_map_needs_a_dim_with_stride_1() -> None:
    def host(a):
        arch.make_tensor_map(a, (8, 8))

    strides = (fe.sym_int(), fe.sym_int())
    a = fe.make_fake_tensor(fe.Float32, (fe.sym_int(), fe.sym_int()), strides)
    assert refused(host, a) == (
        "make_tensor_map of a: wanted a dim whose stride is known to be 1, the innermost one"
    )


@fe.kernel
def misusing(a, tile_dtype, coordinates, with_barrier, of_map):
    tile = arch.alloc_smem(tile_dtype, 512)
    arrived = arch.alloc_smem(fe.Int64, 1)
    arch.cp_async_bulk_tensor(
        tile, a if of_map else 3, coordinates, arrived if with_barrier else None
    )


MISUSED = {
    "cp_async_bulk_tensor between float16 and float32": (fe.Float32, (0, 0), True, True),
    "1 coordinates in the tensor map of a": (fe.Float16, (0,), True, True),
    "a coordinate is 1.5 (float)": (fe.Float16, (0, 1.5), True, True),
    "cp_async_bulk_tensor to shared memory": (fe.Float16, (0, 0), False, True),
    "the src of cp_async_bulk_tensor of 3 (int)": (fe.Float16, (0, 0), True, False),
}


@pytest.mark.parametrize("message", MISUSED)
def test_copies_that_make_no_sense(message: str) -> None:
    given = MISUSED[message]

    def host(a):
        misusing(arch.make_tensor_map(a, (8, 64)), *given).launch(grid=1, block=32)

    assert refused(host) == message


def test_maps_are_made_in_host_functions() -> None:
    @fe.kernel
    def kernel(a):
        arch.make_tensor_map(a, (8, 64))

    def host(a):
        kernel(a).launch(grid=1, block=32)

    assert refused(host) == "make_tensor_map is known only in a host function"


def test_a_cpu_has_no_interleaved_maps() -> None:
    @fe.kernel
    def kernel(a):
        tile = arch.alloc_smem(fe.Float16, 512)
        arch.cp_async_bulk_tensor(a, tile, (0, 0, 0))

    def host(a):
        kernel(arch.make_tensor_map(a, (8, 8, 8), interleave="16B")).launch(grid=1, block=32)

    a = fe.make_fake_compact_tensor(fe.Float16, (8, 8, 8), stride_order=(2, 1, 0))
    message = refused(host, a)
    assert re.search("box .* interleave 16B .* is known to GPUs alone: compile it for", message)

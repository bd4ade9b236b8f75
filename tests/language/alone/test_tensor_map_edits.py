"""Tensor maps that a kernel keeps in memory and changes, on the CPU and on an emulated GPU."""

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch, utils

cpasync = fe.nvgpu.cpasync
Mode = utils.TensorMapUpdateMode
Array = np.ndarray[Any, np.dtype[Any]]
TILE = (8, 32)
SHAPES = ((8, 32), (5, 40), (16, 24))
LOADS, STORES = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()


@fe.struct
class Storage:
    barrier: fe.struct.MemRange[fe.Int64, 1]
    map: fe.struct.Align[fe.struct.MemRange[fe.Int64, 16], 128]
    tile: fe.struct.Align[fe.struct.MemRange[fe.Float32, TILE[0] * TILE[1]], 128]


@fe.kernel
def tiles_kernel(
    atom: fe.CopyAtom,
    coordinates: fe.Tensor,
    table: fe.Tensor,
    maps: fe.Tensor,
    out: fe.Tensor,
    mode: fe.Constexpr,
):
    """Block b loads tile (0, b) of each tensor of the table by a map that it changes."""
    thread, block = arch.thread_idx()[0], arch.block_idx()[0]
    storage = utils.SmemAllocator().allocate(Storage)
    tile = storage.tile.get_tensor(fe.make_layout(TILE, stride=(TILE[1], 1)))
    barrier = storage.barrier.data_ptr()
    if thread == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    manager = utils.TensorMapManager(mode, 128)
    there = manager.get_tensormap_ptr(maps[block, None].iterator)
    here = storage.map.data_ptr()
    in_smem = mode is Mode.SMEM
    manager.init_tensormap_from_atom(atom, here if in_smem else there, 0)
    manager.fence_tensormap_initialization()
    tiled = fe.local_tile(coordinates, TILE, (None, None))
    shared, parts = cpasync.tma_partition(
        atom, 0, fe.make_layout(1), fe.group_modes(tile, 0, 2), fe.group_modes(tiled, 0, 2)
    )
    for group in range(table.shape[0]):
        address = fe.make_ptr(fe.Float32, table[group, 0], fe.AddressSpace.gmem, assumed_align=16)
        rows, columns = fe.Int32(table[group, 1]), fe.Int32(table[group, 2])
        tensor = fe.make_tensor(
            address, fe.make_layout((rows, columns), stride=(columns, fe.Int32(1)))
        )
        manager.update_tensormap((tensor,), (atom,), (there,), 0, (here,))
        manager.fence_tensormap_update(there)
        if arch.warp_idx() == 0:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(barrier, TILE[0] * TILE[1] * 4)
            fe.copy(atom, parts[None, 0, block], shared, tma_bar_ptr=barrier, tma_desc_ptr=there)
        arch.mbarrier_wait(barrier, group % 2)
        for i in fe.range_constexpr(TILE[0] * TILE[1] // 64):
            place = i * 64 + thread
            out[group, block, place] = tile[place // TILE[1], place % TILE[1]]
        arch.sync_threads()


@fe.jit
def tiles(first: fe.Tensor, table: fe.Tensor, maps: fe.Tensor, out: fe.Tensor, mode: fe.Constexpr):
    layout = fe.make_layout(TILE, stride=(TILE[1], 1))
    atom, coordinates = cpasync.make_tiled_tma_atom(LOADS, first, layout, TILE)
    tiles_kernel(atom, coordinates, table, maps, out, mode).launch(grid=2, block=64)


def wanted(arrays: list[Array]) -> Array:
    found = np.zeros((len(arrays), 2, *TILE), np.float32)
    for group, array in enumerate(arrays):
        padded = np.zeros((TILE[0], 2 * TILE[1]), np.float32)
        kept = array[: TILE[0]]
        padded[: len(kept), : kept.shape[1]] = kept
        found[group] = padded.reshape(TILE[0], 2, TILE[1]).transpose(1, 0, 2)
    return found.reshape(len(arrays), 2, -1)


def compiled(mode: Any, options: str) -> Any:
    n = fe.sym_int64(divisibility=4)
    examples = (
        fe.make_fake_compact_tensor(
            fe.Float32, (fe.sym_int64(), n), stride_order=(1, 0), assumed_align=16
        ),
        fe.make_fake_compact_tensor(fe.Int64, (fe.sym_int(), 3), stride_order=(1, 0)),
        fe.make_fake_compact_tensor(
            fe.Int64, (fe.sym_int(), 16), stride_order=(1, 0), assumed_align=128
        ),
        fe.make_fake_compact_tensor(fe.Float32, (fe.sym_int(), 2, 256), stride_order=(2, 1, 0)),
    )
    return fe.compile(tiles, *examples, mode, options=options)


def arrays() -> list[Array]:
    random = np.random.default_rng(3)
    return [random.random(shape, np.float32) for shape in SHAPES]


def aligned(words: int) -> Array:
    """Int64 at a multiple of 128 bytes."""
    room = np.zeros(words + 16, np.int64)
    return room[-(room.ctypes.data // 8) % 16 :][:words]


@pytest.mark.parametrize("mode", list(Mode))
def test_a_changed_map_loads_from_another_tensor(mode: Any) -> None:
    given = arrays()
    out = np.zeros((len(given), 2, 256), np.float32)
    table = np.array([[a.ctypes.data, *a.shape] for a in given], np.int64)
    compiled(mode, "--target cpu")(given[0], table, aligned(32).reshape(2, 16), out)
    np.testing.assert_array_equal(out, wanted(given))


@pytest.mark.parametrize("mode", list(Mode))
def test_the_same_on_an_emulated_gpu(mode: Any) -> None:
    given = arrays()
    function = compiled(mode, "--target cuda --gpu-arch sm_90a")
    with fe.emulated_gpu("sm_90a", checks="memory,sync"):
        there = [fe.cuda.array(each) for each in given]
        table = np.array(
            [[a.data_ptr(), *b.shape] for a, b in zip(there, given, strict=True)], np.int64
        )
        out = fe.cuda.array(np.zeros((len(given), 2, 256), np.float32))
        maps = fe.cuda.array(np.zeros((2, 16), np.int64))
        function(there[0], fe.cuda.array(table), maps, out)
        np.testing.assert_array_equal(fe.cuda.to_numpy(out), wanted(given))


@fe.kernel
def unwritten_kernel(atom: fe.CopyAtom, coordinates: fe.Tensor, maps: fe.Tensor):
    storage = utils.SmemAllocator().allocate(Storage)
    tile = storage.tile.get_tensor(fe.make_layout(TILE, stride=(TILE[1], 1)))
    there = utils.TensorMapManager(Mode.GMEM, 128).get_tensormap_ptr(maps[0, None].iterator)
    tiled = fe.local_tile(coordinates, TILE, (None, None))
    shared, parts = cpasync.tma_partition(
        atom, 0, fe.make_layout(1), fe.group_modes(tile, 0, 2), fe.group_modes(tiled, 0, 2)
    )
    with arch.elect_one():
        fe.copy(atom, shared, parts[None, 0, 0], tma_desc_ptr=there)


@fe.jit
def unwritten(first: fe.Tensor, maps: fe.Tensor):
    layout = fe.make_layout(TILE, stride=(TILE[1], 1))
    atom, coordinates = cpasync.make_tiled_tma_atom(STORES, first, layout, TILE)
    unwritten_kernel(atom, coordinates, maps).launch(grid=1, block=32)


def test_a_map_that_nothing_has_written_is_no_map() -> None:
    first, maps = np.zeros(TILE, np.float32), aligned(16).reshape(1, 16)
    pinned = fe.make_fake_compact_tensor(
        fe.Int64, (fe.sym_int(), 16), stride_order=(1, 0), assumed_align=128
    )
    of_first = fe.make_fake_compact_tensor(fe.Float32, TILE, stride_order=(1, 0), assumed_align=16)
    function = fe.compile(unwritten, of_first, pinned, options="--target cpu")
    with pytest.raises(RuntimeError, match="nothing has written one there"):
        function(first, maps)

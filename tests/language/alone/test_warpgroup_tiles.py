"""Tiles that warpgroups multiply and boxes that fill them: CPU, emulated GPU, errors."""

from typing import Any

import numpy as np
import pytest

import ferrule as fe
from ferrule import arch, pipeline, utils
from ferrule.language.atoms import bulk
from ferrule.language.atoms.warpgroup_ops import matrix_of

cpasync, warpgroup = fe.nvgpu.cpasync, fe.nvgpu.warpgroup
Kind, Major, Source = (
    warpgroup.SmemLayoutAtomKind,
    warpgroup.OperandMajorMode,
    warpgroup.OperandSource,
)
Array = np.ndarray[Any, np.dtype[Any]]


# ---- as the black box prints it ----


def test_atoms_print_as_those_of_cute() -> None:
    op = warpgroup.MmaF16BF16Op(
        fe.Float16, fe.Float32, (64, 128, 16), Source.RMEM, Major.K, Major.MN
    )
    text = str(fe.make_tiled_mma(op, (2, 1, 1)))
    for line in (
        "Thr Layout VMNK: (128,2,1,1):(1,128,0,0)",
        "TV Layout A:   ((4,8,4),(2,2,2)):((128,1,16),(64,8,512))",
        "TV Layout B:   (128,(128,16)):(0,(1,128))",
        "TV Layout C:   ((4,8,4),(2,2,16)):((128,1,16),(64,8,512))",
    ):
        assert line in text
    atoms = {
        (Kind.K_SW128, fe.Float16): "S<3,4,3> o 0 o (8,64):(64,1)",
        (Kind.K_INTER, fe.Float8E4M3FN): "S<0,4,3> o 0 o (8,16):(16,1)",
        (Kind.MN_SW64, fe.Float32): "S<2,4,3> o 0 o (16,8):(1,16)",
    }
    for (kind, dtype), printed in atoms.items():
        assert str(warpgroup.make_smem_layout_atom(kind, dtype)) == printed


def test_copies_of_an_atom_of_c_print_as_those_of_cute() -> None:
    op = fe.nvgpu.warp.MmaF16BF16Op(fe.Float16, fe.Float32, (16, 8, 16))
    tiled = fe.make_tiled_mma(op, (2, 2, 1), permutation_mnk=(32, 32, 16))
    store = fe.make_copy_atom(fe.nvgpu.warp.StMatrix8x8x16bOp(False, 4), fe.Float16)
    text = str(fe.make_tiled_copy_C_atom(store, tiled))
    assert "Tiler MN:        ((8,2,2):(1,16,8),(8,2,2):(2,1,16))" in text
    assert "TV Layout tiled: ((4,8,2,2),(2,2,2)):((32,1,8,128),(256,16,512))" in text
    with pytest.raises(fe.LayoutError, match="C_atom: a TiledMma; give a CopyAtom"):
        fe.make_tiled_copy_C_atom(tiled, store)  # type: ignore[arg-type]


# The layout, an index, and the coordinate there as CuTe DSL gives it, nested and flat.
PLACES = [
    ((2, 4), (4, 1), 5, (1, 1), (1, 1)),
    (((8, 2), 4), ((1, 32), 8), 33, ((1, 1), 0), (9, 0)),
    ((2, (4, 3)), (12, (1, 4)), 13, (1, (1, 0)), (1, 1)),
    ((2, 2, 1), (0, 1, 0), 3, (0, 1, 0), (0, 1, 0)),
]


@pytest.mark.parametrize(("shape", "stride", "index", "nested", "flat"), PLACES)
def test_coordinates_of_indices(
    shape: Any, stride: Any, index: int, nested: Any, flat: Any
) -> None:
    layout = fe.make_layout(shape, stride=stride)
    assert layout.get_hier_coord(index) == nested and layout.get_flat_coord(index) == flat

    @fe.jit
    def found(i: fe.Int32, out: fe.Tensor):
        place = layout.get_flat_coord(i)
        for mode in fe.range_constexpr(len(flat)):
            out[mode] = place[mode]
        again = layout(layout.get_hier_coord(i))
        out[3] = again

    out = np.zeros(4, np.int32)
    fe.compile(found, 0, fe.row_major((4,), fe.Int32), options="--target cpu")(index, out)
    assert tuple(out[: len(flat)]) == flat and out[3] == layout(nested)


def test_coordinates_of_bases_are_refused() -> None:
    with pytest.raises(fe.LayoutError, match="is not a number"):
        fe.make_identity_layout((2, 4)).get_flat_coord(3)


def test_masks_name_the_blocks_of_a_row_and_of_a_column() -> None:
    blocks = fe.make_layout((2, 4, 1))
    assert int(fe.make_layout_image_mask(blocks, (1, 2, 0), mode=0)) == 0b00110000
    assert int(fe.make_layout_image_mask(blocks, (1, 2, 0), mode=1)) == 0b10101010
    blocks = fe.make_layout((1, *blocks.shape), stride=(0, *blocks.stride))
    masks = [cpasync.create_tma_multicast_mask(blocks, (0, 1, 2, 0), mode) for mode in (1, 2)]
    assert [int(mask) for mask in masks] == [0b00110000, 0b10101010]


def test_the_modes_of_a_bulk_copy_are_one() -> None:
    rows, columns = fe.make_layout((4, 8)), fe.make_layout((4, (2, 4)))
    found = cpasync.group_bulk_copy_modes(rows, columns)
    assert [str(each) for each in found] == ["((4,8)):((1,4))", "((4,(2,4))):((1,(4,8)))"]


def test_tiles_of_a_tensor_keep_the_coordinates_behind_a_projection() -> None:
    whole = fe.make_layout((8, 6, 3), stride=(1, 8, 48))
    kept = fe.local_tile(whole, (4, 5, 2), (1, None, None, 2), proj=(1, None, 1))
    short = fe.local_tile(whole, (4, 2), (1, None, 2))
    assert kept == short


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("dtype", [fe.Float16, fe.Float8E5M2, fe.Float32])
def test_the_hardware_knows_every_arrangement(kind: Any, dtype: Any) -> None:
    major, span = kind.value
    atom = warpgroup.make_smem_layout_atom(kind, dtype)
    rows, depth = 64, 256 // dtype.bits
    whole = fe.tile_to_shape(atom, (128, 4 * depth), (0, 1) if major == "k" else (1, 0)).outer
    tile = fe.composition(whole, (rows, depth))
    found = matrix_of(tile, span, dtype.itemsize, major)
    if major == "mn" and dtype.bits != 16 and rows * dtype.itemsize % (span or 16):
        return
    assert found is not None and found.swizzle == span
    # Any other layout is none that it knows: two columns change places.
    assert matrix_of(fe.make_layout((rows, depth), stride=(depth + 3, 1)), 0, 2, "k") is None


# ---- products of tiles ----


@fe.kernel
def tiles_kernel(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor, mma: fe.Constexpr, kinds: fe.Constexpr):
    t = arch.thread_idx()[0]
    (m, k), n = a.shape, b.shape[0]
    smem = utils.SmemAllocator()
    shared = []
    for kind, rows in zip(kinds, (m, n), strict=True):
        atom = warpgroup.make_smem_layout_atom(kind, a.element_type)
        order = (0, 1) if kind.value[0] == "k" else (1, 0)
        layout = fe.tile_to_shape(atom, (rows, k), order)
        shared.append(smem.allocate_tensor(a.element_type, layout.outer, 1024, layout.inner))
    of_a, of_b = shared
    for i in range(t, m * k, 256):
        of_a[i // k, i % k] = a[i // k, i % k]
    for i in range(t, n * k, 256):
        of_b[i // k, i % k] = b[i // k, i % k]
    arch.fence_proxy("async.shared", space="cta")
    arch.sync_threads()
    own = mma.get_slice(t)
    group = mma.get_slice(t // 128 * 128)
    if fe.const_expr(mma.op.a_src is Source.SMEM):
        left = mma.make_fragment_A(group.partition_A(of_a))
    else:
        part = own.partition_A(a)
        left = mma.make_fragment_A(part)
        left.store(part.load())
    right = mma.make_fragment_B(group.partition_B(of_b))
    sums = mma.make_fragment_C(own.partition_C(c))
    warpgroup.fence()
    assert not mma.get(warpgroup.Field.ACCUMULATE)
    for step in fe.range(fe.size(right, mode=[2]), unroll_full=True):
        mma.set(warpgroup.Field.ACCUMULATE, step > 0)  # a constant: the loop is unrolled
        fe.gemm(mma, sums, left[None, None, step], right[None, None, step], sums)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    # All at once, in one more group: the sums are doubled.
    fe.gemm(mma, sums, left, right, sums)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    own.partition_C(c).store(sums.load())


def product(source: Any, kinds: tuple[Any, Any], n: int, options: str) -> tuple[Array, Array]:
    majors = (Major(kind.value[0]) for kind in kinds)
    op = warpgroup.MmaF16BF16Op(fe.Float16, fe.Float32, (64, n, 16), source, *majors)
    mma = fe.make_tiled_mma(op, (2, 1, 1))

    @fe.jit
    def tiles(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        tiles_kernel(a, b, c, mma, kinds).launch(grid=1, block=256)

    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (128, 2 * n))
    c = np.zeros((128, 2 * n), np.float32)
    shapes = [(each.shape, fe.Float16) for each in (a, b)] + [(c.shape, fe.Float32)]
    given = [fe.make_fake_compact_tensor(d, s, stride_order=(1, 0)) for s, d in shapes]
    compiled = fe.compile(tiles, *given, options=options)
    wanted = 2 * (a.astype(np.float32) @ b.T.astype(np.float32))
    if "cpu" in options:
        compiled(a, b, c)
        return c, wanted
    with fe.emulated_gpu("sm_90a"):
        there = [fe.cuda.array(each) for each in (a, b, c)]
        compiled(*there)
        return fe.cuda.to_numpy(there[2]), wanted


@pytest.mark.parametrize("options", ["--target cpu", "--target cuda --gpu-arch sm_90a"])
@pytest.mark.parametrize(
    "source, kinds, n",
    [
        (Source.SMEM, (Kind.K_SW128, Kind.MN_SW128), 64),
        (Source.SMEM, (Kind.MN_SW64, Kind.K_SW32), 32),
        (Source.RMEM, (Kind.K_INTER, Kind.K_INTER), 24),
    ],
)
def test_products_of_tiles(source: Any, kinds: Any, n: int, options: str) -> None:
    found, wanted = product(source, kinds, n, options)
    np.testing.assert_array_equal(found, wanted)


# ---- boxes ----


def test_a_tile_is_as_many_boxes_as_it_has_compact_pieces() -> None:
    load = cpasync.CopyBulkTensorTileG2SOp()
    atom = warpgroup.make_smem_layout_atom(Kind.K_SW128, fe.Float16)
    one = bulk.boxes_of(load, fe.tile_to_shape(atom, (128, 64), (0, 1)), (128, 64), 1, 2, 1)
    assert (one.box, one.places) == ((64, 128), ((0, 0, 0),))
    two = bulk.boxes_of(load, fe.tile_to_shape(atom, (128, 128), (0, 1)), (128, 128), 1, 2, 1)
    assert (two.box, two.places) == ((64, 128), ((0, 0, 0), (64, 0, 8192)))
    turned = warpgroup.make_smem_layout_atom(Kind.MN_SW128, fe.Float16)
    of_m = fe.tile_to_shape(turned, (128, 64), (1, 0))
    both = bulk.boxes_of(cpasync.CopyBulkTensorTileG2SMulticastOp(), of_m, (128, 64), 0, 2, 2)
    assert (both.box, both.rows) == ((64, 32), 32)
    assert both.places == ((0, 0, 0), (64, 0, 4096))
    plain = bulk.boxes_of(load, fe.make_layout((16, 320), stride=(320, 1)), (16, 320), 1, 4, 1)
    assert plain.box[0] * len(plain.places) * plain.box[1] == 16 * 320


@fe.kernel
def halves_kernel(atom, of_a, store, of_out, layout: fe.Constexpr, blocks: fe.Constexpr):
    """Each block of a cluster copies its part of a tile to all of them; each stores it."""
    rank = arch.block_in_cluster_idx()[0]
    smem = utils.SmemAllocator()
    barriers = smem.allocate_array(fe.Int64, 2)
    tile = smem.allocate_tensor(fe.Float16, layout.outer, 1024, layout.inner)
    stages = pipeline.PipelineTmaAsync.create(
        num_stages=1,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, blocks),
        tx_count=fe.size_in_bytes(fe.Float16, layout.outer),
        barrier_storage=barriers,
        cta_layout_vmnk=fe.make_layout((1, blocks, 1, 1)),
    )
    producer, consumer = stages.make_participants()
    tiles = fe.local_tile(of_a, (128, 64), (None, None))
    there = fe.local_tile(of_out, (128, 64), (None, None))
    alone, all_blocks = fe.make_layout(1), fe.make_layout(blocks)
    memory = fe.group_modes(tile, 0, 2)
    to, come = cpasync.tma_partition(atom, rank, all_blocks, memory, fe.group_modes(tiles, 0, 2))
    gone, goes = cpasync.tma_partition(store, 0, alone, memory, fe.group_modes(there, 0, 2))
    cpasync.prefetch_descriptor(atom)
    for row in range(fe.size(tiles, mode=[2])):
        for column in range(fe.size(tiles, mode=[3])):
            stage = producer.acquire_and_advance()
            at = None, row, column
            mask = (1 << blocks) - 1
            fe.copy(atom, come[at], to, tma_bar_ptr=stage.barrier, mcast_mask=mask)
            consumer.wait_and_advance()
            if rank == column % blocks:
                fe.copy(store, gone, goes[at])
                arch.cp_async_bulk_commit_group()
                arch.cp_async_bulk_wait_group(0, read=True)
            arch.sync_warp()
            consumer.release()
    producer.tail()
    arch.cluster_arrive()
    arch.cluster_wait()


def copied(kind: Any, blocks: int, options: str) -> tuple[Array, Array]:
    order = (0, 1) if kind.value[0] == "k" else (1, 0)
    layout = fe.tile_to_shape(warpgroup.make_smem_layout_atom(kind, fe.Float16), (128, 64), order)
    op = cpasync.CopyBulkTensorTileG2SMulticastOp() if blocks > 1 else None

    @fe.jit
    def halves(a: fe.Tensor, out: fe.Tensor):
        load = op or cpasync.CopyBulkTensorTileG2SOp()
        store = cpasync.CopyBulkTensorTileS2GOp()
        if fe.const_expr(order == (1, 0)):
            a, out = a.transpose(), out.transpose()
        atom, of_a = cpasync.make_tiled_tma_atom(load, a, layout, (128, 64), blocks)
        back, of_out = cpasync.make_tiled_tma_atom(store, out, layout, (128, 64))
        halves_kernel(atom, of_a, back, of_out, layout, blocks).launch(
            grid=blocks, block=32, cluster=blocks
        )

    m, k = fe.sym_int(divisibility=8), fe.sym_int(divisibility=8)
    given = fe.make_fake_compact_tensor(fe.Float16, (m, k), stride_order=(1, 0), assumed_align=16)
    a = np.arange(200 * 136).reshape(200, 136).astype(np.float16)
    out = np.zeros_like(a)
    compiled = fe.compile(halves, given, given, options=options)
    if "cpu" in options:
        compiled(a, out)
        return out, a
    with fe.emulated_gpu("sm_90a"):
        there = [fe.cuda.array(each) for each in (a, out)]
        compiled(*there)
        return fe.cuda.to_numpy(there[1]), a


@pytest.mark.parametrize("kind", [Kind.K_SW128, Kind.MN_SW128, Kind.K_INTER])
def test_boxes_go_there_and_back(kind: Any) -> None:
    found, wanted = copied(kind, 1, "--target cpu")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind, blocks", [(Kind.K_SW128, 2), (Kind.MN_SW128, 4), (Kind.K_SW64, 1)])
def test_blocks_of_a_cluster_share_the_work(kind: Any, blocks: int) -> None:
    found, wanted = copied(kind, blocks, "--target cuda --gpu-arch sm_90a")
    np.testing.assert_array_equal(found, wanted)


# ---- errors ----


def test_what_is_refused() -> None:
    with pytest.raises(fe.CompileError, match="num_multicast=2 on the CPU"):
        copied(Kind.K_SW128, 2, "--target cpu")
    wrong: dict[str, Any] = {
        r"the shape is \(64, 12, 16\)": ((64, 12, 16), Major.K, fe.Float32),
        r"the dtypes are Float16, Float16 and Int32": ((64, 8, 16), Major.K, fe.Int32),
        r"the major mode is mn": ((64, 8, 16), "mn", fe.Float32),
    }
    for message, (shape, major, acc) in wrong.items():
        with pytest.raises(fe.LayoutError, match=message):
            warpgroup.MmaF16BF16Op(fe.Float16, acc, shape, Source.SMEM, major, Major.K)
    with pytest.raises(fe.LayoutError, match="give OperandMajorMode.K, or MN of 2 bytes"):
        warpgroup.MmaF8Op(
            *(fe.Float8E4M3FN,) * 2, fe.Float32, (64, 8), Source.SMEM, Major.MN, Major.K
        )
    with pytest.raises(fe.LayoutError, match="are divided among 3 blocks"):
        bulk.boxes_of(None, fe.make_layout((64, 64)), (64, 64), 0, 2, 3)


@fe.kernel
def first_kernel(n: fe.Int32, out: fe.Tensor):
    mma = fe.make_tiled_mma(warpgroup.MmaTF32Op((64, 8), Source.SMEM, Major.K, Major.K))
    for i in range(n):
        mma.set(warpgroup.Field.ACCUMULATE, False)
        if i > 3:
            out[0] = mma.get(warpgroup.Field.ACCUMULATE)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        out[1] = mma.get(warpgroup.Field.ACCUMULATE)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    out[2] = mma.get(warpgroup.Field.ACCUMULATE)


def test_a_setting_that_comes_first_in_a_loop() -> None:
    @fe.jit
    def host(n: fe.Int32, out: fe.Tensor):
        first_kernel(n, out).launch(grid=1, block=128)

    out = np.full(3, 9, np.int32)
    fe.compile(host, 5, fe.row_major((3,), fe.Int32), options="--target cpu")(5, out)
    assert out.tolist() == [0, 1, 0]


@fe.kernel
def plain_kernel(n: fe.Int32):
    mma = fe.make_tiled_mma(warpgroup.MmaTF32Op((64, 8), Source.SMEM, Major.K, Major.K))
    tile = arch.alloc_smem(fe.TFloat32, 64 * 8, alignment=1024)
    part = mma.get_slice(0).partition_A(fe.make_tensor(tile, fe.make_layout((64, 8))))
    sums = mma.make_fragment_C(mma.partition_shape_C((64, 8)))
    fe.gemm(mma, sums, part, part, sums)


@pytest.mark.parametrize(
    "kernel, message",
    [
        (plain_kernel, "arranged k-major as the hardware has it"),
    ],
)
def test_kernels_that_are_refused(kernel: Any, message: str) -> None:
    @fe.jit
    def host(n: fe.Int32):
        kernel(n).launch(grid=1, block=128)

    with pytest.raises(fe.CompileError, match=message):
        fe.compile(host, fe.Int32(0), options="--target cpu")

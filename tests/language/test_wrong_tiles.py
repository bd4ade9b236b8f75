"""Wrong programs with swizzled tensors, coordinates, copies and multiplications: what they say."""

from __future__ import annotations

from typing import Any

import pytest
from lowered import lower

import ferrule as fe

arch, warp = fe.arch, fe.nvgpu.warp
ONE = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float16)
WIDE = fe.make_copy_atom(fe.nvgpu.CopyUniversalOp(), fe.Float16, num_bits_per_copy=128)
BACKGROUND = fe.make_copy_atom(fe.nvgpu.cpasync.CopyG2SOp(), fe.Float16, num_bits_per_copy=128)
MATRICES = fe.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), fe.Float16)
MMA = fe.make_tiled_mma(warp.MmaF16BF16Op(fe.Float16, fe.Float32, (16, 8, 16)))
SWIZZLE = fe.make_swizzle(1, 2, 3)


def shared(swizzle: Any = SWIZZLE, count: int = 256) -> Any:
    rows = fe.make_layout((16, 16), stride=(16, 1))
    memory = arch.alloc_smem(fe.Float16, count, alignment=16)
    return fe.make_tensor(memory, fe.make_composed_layout(swizzle, 0, rows))


def columns(a):
    fe.copy(WIDE, fe.local_tile(a, (8, 1), (0, 0)), fe.make_fragment((8, 1), fe.Float16))


def unaligned(a):
    fe.copy(WIDE, fe.local_tile(a, (1, 8), (0, 0)), fe.make_fragment((1, 8), fe.Float16))


def short_runs(a):
    fe.copy(MATRICES, fe.local_tile(shared()[0, None], (8,), (0,)), fe.make_fragment(8, fe.Float16))


def other_dtype(a):
    fe.copy(ONE, fe.make_fragment(8, fe.Float32), fe.make_fragment(8, fe.Float16))


def no_atom(a):
    fe.copy(MMA, a, a)


def no_tensor(a):
    fe.copy(ONE, 3, fe.make_fragment(8, fe.Float16))


def parts_of_atoms(a):
    fe.copy(WIDE, fe.make_fragment(12, fe.Float16), fe.make_fragment(12, fe.Float16))


def predicates(a):
    holds = fe.make_fragment(3, fe.Boolean)
    fe.copy(ONE, fe.make_fragment(8, fe.Float16), fe.make_fragment(8, fe.Float16), pred=holds)


def no_predicates(a):
    fe.copy(ONE, fe.make_fragment(8, fe.Float16), fe.make_fragment(8, fe.Float16), pred=True)


def background_to_registers(a):
    fe.copy(BACKGROUND, fe.local_tile(a, (1, 8), (0, 0)), fe.make_fragment(8, fe.Float16))


def matrices_from_registers(a):
    fe.copy(MATRICES, fe.make_fragment(8, fe.Float16), fe.make_fragment(8, fe.Float16))


def predicated_matrices(a):
    holds = fe.make_fragment(1, fe.Boolean)
    rows = shared(fe.make_swizzle(1, 3, 3))[0, None]
    part = fe.local_tile(rows, (8,), (0,))
    fe.copy(MATRICES, part, fe.make_fragment(8, fe.Float16), pred=holds)


def sizes_of_a_copy(a):
    fe.basic_copy(fe.make_fragment(8, fe.Float16), fe.make_fragment(9, fe.Float16))


def dtypes_of_a_copy(a):
    fe.basic_copy(fe.make_fragment(8, fe.Float32), fe.make_fragment(8, fe.Float16))


def fragments() -> Any:
    a = MMA.make_fragment_A(((2, 2, 2), 1, 1))
    return a, MMA.make_fragment_B(((2, 2), 2, 1)), MMA.make_fragment_C(((2, 2), 1, 2))


def gemm_of_memory(a):
    left, right, total = fragments()
    fe.gemm(MMA, total, a, right, total)


def gemm_of_another_dtype(a):
    left, right, total = fragments()
    fe.gemm(MMA, left, left, right, total)


def gemm_of_other_values(a):
    left, right, total = fragments()
    fe.gemm(MMA, total, MMA.make_fragment_A(((2, 2), 1, 1)), right, total)


def gemm_of_other_tiles(a):
    left, right, total = fragments()
    fe.gemm(MMA, total, MMA.make_fragment_A(((2, 2, 2), 2, 1)), right, total)


def gemm_of_a_copy(a):
    fe.gemm(ONE, *[fragments()[2]] * 4)


def thread_beyond(a):
    MMA.get_slice(32)


def thread_of_a_float(a):
    MMA.get_slice(fe.Float32(arch.thread_idx()[0]) * 0.5)


def partition_of_a_number(a):
    MMA.get_slice(0).partition_A(3)


def unknown_part(a):
    MMA.get_slice(0).partition_Z(a)


def two_swizzles(a):
    memory = fe.recast_ptr(arch.alloc_smem(fe.Float16, 256, alignment=512), SWIZZLE)
    fe.make_tensor(memory, fe.make_composed_layout(SWIZZLE, 0, fe.make_layout(8)))


def badly_aligned_swizzle(a):
    fe.recast_ptr(arch.alloc_smem(fe.Float16, 256, alignment=16), fe.make_swizzle(3, 4, 3))


def swizzle_of_a_number(a):
    fe.recast_ptr(arch.alloc_smem(fe.Float16, 256), 3)


def parts_of_elements(a):
    fe.recast_ptr(arch.alloc_smem(fe.Float16, 256), fe.make_swizzle(1, 0, 1))


def iterator_of_a_part(a):
    fe.make_tensor(shared()[3, None].iterator, 8)


def difference_of_pointers(a):
    pointer = fe.recast_ptr(arch.alloc_smem(fe.Float16, 256, alignment=64), SWIZZLE)
    pointer - 1


def inner_layout(a):
    rows = fe.make_composed_layout(fe.make_layout(16, stride=2), 0, fe.make_layout(16))
    fe.make_tensor(arch.alloc_smem(fe.Float16, 256), rows)[arch.thread_idx()[0]] = 0.0


def write_to_coordinates(a):
    fe.make_identity_tensor((4, 4))[0, 0] = 3


def load_of_coordinates(a):
    fe.make_identity_tensor((4, 4)).load()


def swizzle_of_a_float(a):
    SWIZZLE(fe.Float32(arch.thread_idx()[0]))


def part_of_a_composed_layout(a):
    fe.local_tile(fe.make_composed_layout(SWIZZLE, 0, fe.make_layout(16)), (4,), (0,))


def unaligned_pointer(a):
    (a.iterator + 1).align(16)


def alignment_of_a_float(a):
    a.iterator.align(1.5)


def sizes_of_vectors(a):
    fe.make_fragment((2, 3), fe.Float16).load() + fe.make_fragment((3, 2), fe.Float16).load()


def broadcast_to_less(a):
    fe.make_fragment((2, 3), fe.Float16).load().broadcast_to((2, 1))


WRONG = {
    unaligned_pointer: "the pointer a.iterator is known to be aligned to 2 bytes, not to 16",
    alignment_of_a_float: "align to 1.5 (float)",
    sizes_of_vectors: "the shapes of two vectors differ: (2,3) and (3,2)",
    broadcast_to_less: "a vector of float16, of shape (2,3) is broadcast to (2,1)",
    columns: "a copy of 128 bits takes 8 neighbours of fe.local_tile(a, (8, 1), (0, 0)), of layout "
    "(8,1):(n,0), but elements 0 to 7 are not side by side",
    unaligned: "a copy of 128 bits takes 16 bytes of fe.local_tile(a, (1, 8), (0, 0)), of layout "
    "(1,8):(0,1), from element 0 on, which is known to be aligned to 2",
    short_runs: "a row of LdMatrix8x8x16bOp takes 8 neighbours of fe.local_tile(shared()[0, None], "
    "(8,), (0,)), of layout (8):(1), but S<1,2,3> does not keep elements 0 to 7 together",
    other_dtype: "a copy atom of float16 copies fragment, whose elements are float32",
    no_atom: "the atom of copy is Tiled MMA",
    no_tensor: "the src of copy is 3 (int)",
    parts_of_atoms: "copy of 12 elements of fragment, of layout (12):(1), to 12 of fragment, of "
    "layout (12):(1)",
    predicates: "the pred of copy has the layout (3):(1), of 3 elements, for 8 atoms",
    no_predicates: "the pred of copy is True (bool)",
    background_to_registers: "CopyG2SOp from fe.local_tile(a, (1, 8), (0, 0)) to fragment",
    matrices_from_registers: "LdMatrix8x8x16bOp accesses fragment",
    predicated_matrices: "a copy by LdMatrix8x8x16bOp has a pred: all lanes of a warp run it",
    sizes_of_a_copy: "a copy of 8 elements of fragment, of layout (8):(1), to 9 of fragment, of "
    "layout (9):(1)",
    dtypes_of_a_copy: "a copy of float32 to fragment, whose elements are float16",
    gemm_of_memory: "A of gemm is the tensor a",
    gemm_of_another_dtype: "D of gemm has the dtype float16",
    gemm_of_other_values: "A of gemm has the layout ((2,2),1,1):((1,2),0,0)",
    gemm_of_other_tiles: "the shapes of D, A, B and C of gemm are ((2,2),1,2), ((2,2,2),2,1), "
    "((2,2),2,1), ((2,2),1,2)",
    gemm_of_a_copy: "the atom of gemm is Copy Atom",
    thread_beyond: "there is no thread 32 of 32",
    thread_of_a_float: "the thread is a run-time float32",
    partition_of_a_number: "partition_A takes a tensor, but got 3 (int)",
    unknown_part: "a thread's part of a TiledMma has no attribute 'partition_Z'",
    two_swizzles: "make_tensor of the swizzled pointer smem and the composed layout "
    "S<1,2,3> o 0 o 8:1: two swizzles",
    badly_aligned_swizzle: "the pointer smem is aligned to 16 bytes, but S<3,4,3> repeats every "
    "1024",
    swizzle_of_a_number: "recast_ptr of the pointer smem with the swizzle 3 (int)",
    parts_of_elements: "S<1,0,1>: it moves runs of 8 bits, which are parts of elements of 16 bits",
    iterator_of_a_part: "the swizzled tensor shared()[3, None] is a part of a tensor with a "
    "composed layout: no element of it is where its memory begins",
    difference_of_pointers: "the operator - is not supported on swizzled pointers",
    inner_layout: "smem is 16:2 of indices that are known only at the call",
    write_to_coordinates: "the identity is written: it is of coordinates, which are in no memory",
    load_of_coordinates: "the tensor of coordinates the identity has no attribute 'load'",
    swizzle_of_a_float: "S<1,2,3> of a run-time float32",
    part_of_a_composed_layout: "a part of S<1,2,3> o 0 o 16:1",
}


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_wrong_programs(program: Any) -> None:
    def host(a):
        fe.kernel(program)(a).launch(grid=1, block=32)

    n = fe.sym_int(symbol="n")
    example = fe.make_fake_compact_tensor(fe.Float16, (fe.sym_int(), n), stride_order=(1, 0))
    with pytest.raises(fe.CompileError) as raised:
        lower(host, example)
    assert str(raised.value).splitlines()[0] == WRONG[program]

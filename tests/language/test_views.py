"""Parts and views of tensors, and pointers: compiled, interpreted, and as NumPy has it."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import run_all_ways
from lowered import lower, matrix, text, vector
from ptxas import ARCHS, assemble

import ferrule as fe
from ferrule.language.ir.effects import written_params

CPU = "--target cpu"


def ramp(*shape: int, dtype: str = "float32") -> Any:
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def run(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The arrays after a call, which the interpreter agrees with."""
    return run_all_ways(function, arguments, plain=False).arrays()


# ---- parts ----


def test_rows_and_columns_are_tensors() -> None:
    def doubled_rows(a):
        for i in range(a.shape[0]):
            row = a[i, None]
            for j in range(row.shape[0]):
                row[j] = row[j] * 2.0 + a[None, 0][i]

    (a,) = run(doubled_rows, ramp(3, 4))
    wanted = ramp(3, 4)
    for i in range(3):
        for j in range(4):
            wanted[i, j] = wanted[i, j] * 2 + wanted[i, 0]
    np.testing.assert_array_equal(a, wanted)


def test_parts_of_parts_in_a_kernel() -> None:
    @fe.kernel
    def device(a, b):
        i, _, _ = fe.arch.thread_idx()
        plane = a[i, None, None]
        line = plane[None, 1]
        for j in range(line.shape[0]):
            b[j, i] = line[j]

    def transposed_plane(a, b):
        device(a, b).launch(grid=1, block=a.shape[0])

    a = ramp(2, 3, 4)
    (_, b) = run(transposed_plane, a, np.zeros((3, 2), np.float32))
    np.testing.assert_array_equal(b, a[:, :, 1].T)


def test_a_part_written_with_a_colon_is_a_whole_tensor_expression() -> None:
    def mix(a, b):
        a[:, 0] = a[:, 1] + a[:, 2] * 2
        a[0, :] += 1.0
        b[:] = a[1, :] * a[2, :]
        a[2, None] = 5.0

    a, b = run(mix, ramp(3, 4), np.zeros(4, np.float32))
    wanted = ramp(3, 4)
    wanted[:, 0] = wanted[:, 1] + wanted[:, 2] * 2
    wanted[0, :] += 1
    np.testing.assert_array_equal(b, wanted[1] * wanted[2])
    wanted[2] = 5
    np.testing.assert_array_equal(a, wanted)


def test_a_part_is_an_argument_of_a_kernel() -> None:
    @fe.kernel
    def device(row, column, c):
        i, _, _ = fe.arch.thread_idx()
        c[i] = row[i] + column[i]

    def sums(a, c):
        for k in range(a.shape[0]):
            device(a[k, None], a[None, k], c[k, None]).launch(grid=1, block=a.shape[0])

    a = ramp(4, 4)
    (_, c) = run(sums, a, np.zeros((4, 4), np.float32))
    np.testing.assert_array_equal(c, a + a.T)


def test_a_part_of_no_dims_left_is_read_with_an_empty_coordinate() -> None:
    def first(a, b):
        scalar = fe.slice_(a, (0,))
        b[()] = scalar[()] + 1.0

    (_, b) = run(first, ramp(3), np.zeros((), np.float32))
    assert b == 1


def test_writing_to_a_view_writes_to_the_parameter() -> None:
    @fe.kernel
    def device(row):
        i, _, _ = fe.arch.thread_idx()
        row.reshape(-1)[i] = 0.0

    def host(a, b, c):
        device(a[0, None]).launch(grid=1, block=a.shape[1])
        b[:, 0] = c[:, 1]

    program = lower(host, matrix(), matrix(rows="m"), matrix(rows="m"))
    assert {value.hint for value in written_params(program)} == {"a", "b"}


# ---- layouts ----


def test_a_tensor_has_a_layout() -> None:
    seen = []

    def host(a, b):
        seen.append(str(a.layout))
        seen.append(str(a[0, None].layout))
        seen.append(str(fe.zipped_divide(a, (4, 8)).layout))
        seen.append(str(fe.make_layout((a.shape[0] * 2, 4), stride=(4, 1))))
        seen.append((fe.rank(a), fe.depth(fe.zipped_divide(a, (4, 8))), b.ndim))
        assert fe.size(b, mode=[0]) == b.shape[0]
        b[0] = fe.size(a.layout)

    lower(host, matrix(), vector(fe.Int64, "k"))
    assert seen == [
        "(m,n):(n,1)",
        "(n):(1)",
        "((4,8),(ceil_div(m, 4),ceil_div(n, 8))):((n,1),(n * 4,8))",
        "(m * 2,4):(4,1)",
        (2, 2, 1),
    ]


def test_sizes_of_layouts_are_numbers_of_the_language() -> None:
    def host(a, out):
        tiled = fe.zipped_divide(a, (2, 2))
        (tile_m, tile_n), (rest_m, rest_n) = tiled.shape
        out[0] = fe.size(a)
        out[1] = rest_m * 100 + rest_n * 10 + tile_m + tile_n
        out[2] = fe.size(tiled, mode=[1])
        out[3] = fe.cosize(a.layout)
        out[4] = a.layout.shape[1]
        out[5] = fe.get(a.layout, mode=[0]).stride
        out[6] = fe.ceil_div(out[0], 4)
        out[7] = fe.ceil_div((a.shape[0], 9), (2, 2))[0]

    (_, out) = run(host, ramp(5, 6), np.zeros(8, np.int64))
    assert out.tolist() == [30, 3 * 100 + 3 * 10 + 4, 9, 30, 6, 6, 8, 3]


def test_helpers_compute_with_layouts() -> None:
    def is_large(layout):
        return fe.size(layout) > 20

    def host(a, out):
        if is_large(a.layout):
            out[0] = 1
        else:
            out[0] = 2

    for rows, wanted in ((5, 1), (3, 2)):
        (_, out) = run(host, ramp(rows, 6), np.zeros(1, np.int32))
        assert out[0] == wanted


def test_coordinates_and_indices_at_run_time() -> None:
    def host(a, out):
        layout = fe.make_layout((a.shape[0], (2, 4)), stride=(8, (4, 1)))
        for i in range(layout.shape[0] * 8):
            m, (k, n) = fe.idx2crd(i, layout.shape)
            out[i] = layout(m, (k, n))
            assert layout(i) == layout(m, k + n * 2)
            assert fe.crd2idx((m, (k, n)), layout) == layout(i)

    (_, out) = run(host, ramp(3), np.zeros(24, np.int64))
    layout = fe.make_layout((3, (2, 4)), stride=(8, (4, 1)))
    assert out.tolist() == [layout(i) for i in range(24)]


def test_an_elementwise_kernel_over_vectors_of_a_divided_tensor() -> None:
    @fe.kernel
    def device(g_a, g_b, g_c):
        tidx, _, _ = fe.arch.thread_idx()
        bidx, _, _ = fe.arch.block_idx()
        thread = bidx * 32 + tidx
        m, n = g_a.shape[1]
        if thread < m * n:
            for i in fe.range_constexpr(fe.size(g_a, mode=[0])):
                at = (None, (thread // n, thread % n))
                g_c[at][i] = g_a[at][i] + g_b[at][i]

    @fe.jit
    def add(a, b, c):
        g_a, g_b, g_c = (fe.zipped_divide(x, (1, 4)) for x in (a, b, c))
        device(g_a, g_b, g_c).launch(grid=fe.ceil_div(fe.size(g_c, mode=[1]), 32), block=32)

    example = fe.make_fake_compact_tensor(
        fe.Float32, (fe.sym_int(), fe.sym_int(divisibility=4)), stride_order=(1, 0)
    )
    compiled = fe.compile(add, example, example, example, options=CPU)
    for shape in ((5, 12), (1, 4), (64, 128), (0, 4)):
        a, b = ramp(*shape), np.random.default_rng(0).random(shape, np.float32)
        c = np.zeros_like(a)
        compiled(a, b, c)
        np.testing.assert_array_equal(c, a + b)


def test_tiles_of_blocks_with_a_guard() -> None:
    @fe.kernel
    def device(a, b):
        bx, by, _ = fe.arch.block_idx()
        x, y, _ = fe.arch.thread_idx()
        tile_a = fe.local_tile(a, (4, 8), (by, bx))
        tile_b = fe.local_tile(b, (8, 4), (bx, by))
        if fe.elem_less((by * 4 + y, bx * 8 + x), a.shape):
            tile_b[x, y] = tile_a[y, x]

    def transpose(a, b):
        m, n = a.shape
        grid = (fe.ceil_div(n, 8), fe.ceil_div(m, 4), 1)
        device(a, b).launch(grid=grid, block=(8, 4, 1))

    for shape in ((8, 16), (5, 9)):
        a = ramp(*shape)
        (_, b) = run(transpose, a, np.zeros(shape[::-1], np.float32))
        np.testing.assert_array_equal(b, a.T)


def test_tiles_that_are_kept_can_be_looped_over() -> None:
    def sums(a, out):
        tiles = fe.local_tile(a, (2, 4), (1, None))
        for k in range(tiles.shape[2]):
            total = fe.Float32(0)
            for i in fe.range_constexpr(2):
                for j in fe.range_constexpr(4):
                    total = total + tiles[i, j, k]
            out[k] = total

    a = ramp(6, 12)
    (_, out) = run(sums, a, np.zeros(3, np.float32))
    np.testing.assert_array_equal(out, a[2:4].reshape(2, 3, 4).sum((0, 2)))


def test_each_thread_takes_its_part() -> None:
    @fe.kernel
    def device(a):
        tid, _, _ = fe.arch.thread_idx()
        part = fe.local_partition(a, fe.make_layout((2, 4), stride=(4, 1)), tid)
        for i in range(part.shape[0]):
            for j in range(part.shape[1]):
                part[i, j] = tid

    def host(a):
        device(a).launch(grid=1, block=8)

    (a,) = run(host, np.zeros((4, 8), np.int32))
    np.testing.assert_array_equal(a, np.tile(np.arange(8).reshape(2, 4), (2, 2)))


def test_a_number_counts_in_a_nested_mode() -> None:
    def host(a, out):
        tiled = fe.zipped_divide(a, (2, 2))
        for i in range(fe.size(tiled, mode=[1])):
            out[i] = tiled[3, i]
            assert tiled[(1, 1), i] == tiled[3, i]

    a = ramp(4, 6)
    (_, out) = run(host, a, np.zeros(6, np.float32))
    np.testing.assert_array_equal(out, a[1::2, 1::2].T.reshape(-1))


def test_modes_are_grouped_and_selected() -> None:
    def host(a, out):
        pairs = fe.group_modes(a, 0, 2)
        flat = fe.flatten(fe.select(pairs, [1, 0]))
        for i in range(6):
            out[i] = pairs[i, 1] * 100.0 + flat[1, i % 2, i // 2]

    a = ramp(2, 3, 4)
    (_, out) = run(host, a, np.zeros(6, np.float32))
    column_major = a[:, :, 1].T.reshape(-1)
    np.testing.assert_array_equal(out, column_major * 101)


# ---- the same memory in another layout ----


def test_reshape_is_row_major_as_in_numpy() -> None:
    def host(a, b, c, d):
        b[:] = a.reshape(-1, 2)[:] + 1.0
        c[:] = a.reshape(a.shape[0] * a.shape[1])[:]
        d[:] = a[1, None].reshape(3, 2)[:, 1]
        a.reshape(2, 3, 4)[1, 2, 3] = -1.0

    a, b, c, d = ramp(4, 6), np.zeros((12, 2), "f"), np.zeros(24, "f"), np.zeros(3, "f")
    fe.compile(host, a, b, c, d, options=CPU)(a, b, c, d)
    np.testing.assert_array_equal(b, ramp(12, 2) + 1)
    np.testing.assert_array_equal(c, ramp(24))
    np.testing.assert_array_equal(d, [7, 9, 11])
    assert a[3, 5] == -1


def test_symbolic_sizes_reshape_where_they_are_products() -> None:
    seen = []

    def host(a, b):
        seen.append(str(a.reshape(-1).layout))
        seen.append(str(a.reshape(a.shape[0], -1, 4).layout))
        seen.append(str(b[None, 0, None].reshape(b.shape[0], 2, -1).layout))

    columns = fe.sym_int(symbol="n", divisibility=4)
    example = fe.make_fake_compact_tensor(
        fe.Float32, (fe.sym_int(symbol="m"), columns), stride_order=(1, 0)
    )
    planes = fe.make_fake_compact_tensor(fe.Float32, (3, 5, 8), stride_order=(2, 1, 0))
    lower(host, example, planes)
    assert seen == [
        "(m * n):(1)",
        "(m,n // 4,4):(n,4,1)",
        "(3,2,4):(40,4,1)",
    ]


def test_transpose_turns_the_modes() -> None:
    def host(a, b, c):
        b[:] = a.transpose()[:]
        c[:] = a.transpose(1, 0, 2)[:]

    a = ramp(2, 3, 4)
    _, b, c = run(host, a, np.zeros((4, 3, 2), np.float32), np.zeros((3, 2, 4), np.float32))
    np.testing.assert_array_equal(b, a.T)
    np.testing.assert_array_equal(c, a.transpose(1, 0, 2))


def test_recast_reads_the_bytes_as_another_dtype() -> None:
    def host(a, out, wide):
        bits = a.recast(fe.Int32)
        halves = fe.recast_tensor(a, fe.Uint16)
        for i in range(a.shape[0]):
            out[i, 0] = bits[i]
            out[i, 1] = halves[i * 2]
            out[i, 2] = halves[i * 2 + 1]
        wide[0] = wide.recast(fe.Float32)[2].to(fe.Int64)

    a = np.array([1.5, -2.0, 3e20], np.float32)
    _, out, wide = run(host, a, np.zeros((3, 3), np.int64), np.array([0, 0x40E00000], np.int64))
    np.testing.assert_array_equal(out[:, 0], a.view(np.int32))
    np.testing.assert_array_equal(out[:, 1:].reshape(-1), a.view(np.uint16))
    assert wide[0] == 7


def test_recast_to_larger_elements_needs_alignment_and_whole_groups() -> None:
    def host(a, b):
        b[:] = a.recast(fe.Int64)[:]

    columns = fe.sym_int(divisibility=2)
    example = fe.make_fake_compact_tensor(fe.Int32, (columns,), assumed_align=8)
    half = fe.make_fake_compact_tensor(fe.Int64, (columns // 2,))
    compiled = fe.compile(host, example, half, options=CPU)
    a, b = ramp(6, dtype="int32"), np.zeros(3, np.int64)
    compiled(a, b)
    np.testing.assert_array_equal(b, a.view(np.int64))
    with pytest.raises(fe.CompileError, match="is aligned to 4 bytes, but int64 needs 8"):
        unaligned = fe.make_fake_compact_tensor(fe.Int32, (columns,))
        fe.compile(host, unaligned, half, options=CPU)


def test_domain_offset_moves_the_beginning() -> None:
    def host(a, out):
        moved = fe.domain_offset((1, 2), a)
        out[0], out[1] = moved[0, 0], moved[1, 1]

    a = ramp(4, 6)
    (_, out) = run(host, a, np.zeros(2, np.float32))
    assert out.tolist() == [a[1, 2], a[2, 3]]


# ---- pointers ----


def pointer(dtype: Any = fe.Float32) -> Any:
    return fe.make_ptr(dtype, 0)


def test_pointers_are_read_written_and_moved() -> None:
    def host(p: fe.Pointer, n: fe.Int32):
        q = p + n
        q[-1] = p[0] + p[1]
        (1 + p)[0] = 9.0
        r = q - 2
        r[0] += 0.5
        assert isinstance(p, fe.Pointer)
        assert p.dtype is fe.Float32

    compiled = fe.compile(host, pointer(), 5, options=CPU)
    data = ramp(8)
    compiled(data.ctypes.data, 5)
    assert data.tolist() == [0, 9, 2, 3.5, 1, 5, 6, 7]


def test_a_tensor_is_made_of_a_pointer_and_a_layout() -> None:
    @fe.kernel
    def device(t, p, layout: fe.Constexpr):
        i, _, _ = fe.arch.thread_idx()
        for j in range(t.shape[1]):
            t[i, j] = p[layout((j, i))] * 2.0

    @fe.jit
    def host(p: fe.Pointer, q: fe.Pointer, shape: fe.Shape):
        m, n = shape
        t = fe.make_tensor(p, fe.make_layout((m, n), stride=(n, 1)))
        device(t, q, fe.make_layout((n, m))).launch(grid=1, block=m)

    sizes = (fe.sym_int(), fe.sym_int())
    compiled = fe.compile(host, pointer(), pointer(), sizes, options=CPU)
    data, source = np.zeros((3, 4), np.float32), ramp(3, 4)
    compiled(data.ctypes.data, source.ctypes.data, (3, 4))
    np.testing.assert_array_equal(data, source * 2)


def test_an_iterator_is_the_pointer_of_a_tensor() -> None:
    def host(a, out):
        p = a[1, None].iterator
        whole = fe.make_tensor(a.iterator, (2, 2))
        out[0], out[1] = p[0], (p + 2)[1]
        out[2] = whole[1, 1]
        out[3] = fe.recast_ptr(p, dtype=fe.Int32)[0].to(fe.Float32)

    a = ramp(2, 4)
    (_, out) = run(host, a, np.zeros(4, np.float32))
    assert out.tolist() == [4, 7, 3, float(a[1, :1].view(np.int32)[0])]


def test_offsets_have_64_bits() -> None:
    """Rows of 2**31 elements by coordinates of 32 bits; only three pages are touched."""

    @fe.kernel
    def device(a, out):
        i, _, _ = fe.arch.thread_idx()
        out[i] = a[i, None][5] + fe.local_tile(a, (1, 4), (i, 1))[0, 1]

    @fe.jit
    def host(a, p: fe.Pointer, out):
        device(a, out).launch(grid=1, block=3)
        stride = a.stride[0]
        out[0] = p[stride * 2 + 5]

    rows, columns = 3, 2**31
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        memory = mmap.mmap(-1, rows * columns, flags=flags)
    except (OSError, ValueError, OverflowError):
        pytest.skip("this machine has no 6 GiB of address space")
    a = np.frombuffer(memory, np.int8).reshape(rows, columns)
    a[1, 5], a[2, 5] = 11, 22
    shape = (fe.sym_int(), fe.sym_int64())
    example = fe.make_fake_compact_tensor(fe.Int8, shape, stride_order=(1, 0))
    compiled = fe.compile(host, example, pointer(fe.Int8), vector(fe.Int8), options=CPU)
    out = np.zeros(3, np.int8)
    compiled(a, a.ctypes.data, out)
    assert out.tolist() == [22, 22, 44]
    del a


# ---- what is known of views ----


def test_alignment_follows_the_part() -> None:
    columns = fe.sym_int(symbol="n", divisibility=4)
    example = fe.make_fake_compact_tensor(
        fe.Float32, (fe.sym_int(symbol="m"), columns), stride_order=(1, 0), assumed_align=16
    )

    def host(a, out):
        i = a.shape[0] - 1
        out[0] = a[i, None][0] + a[0, None][1] + a[None, 1][0] + a[None, 2][0]

    shown = text(host, example, vector(symbol="k"))
    views = [line.split(" = ")[1] for line in shown.splitlines() if " = view " in line]
    assert [view.rsplit("align ", 1)[1] for view in views] == ["16>", "16>", "4>", "8>"], shown
    assert "%load_1 = load %a[" not in shown


def test_golden_text(golden: Callable[[str, str], None]) -> None:
    @fe.kernel
    def device(tiled, p):
        tid, _, _ = fe.arch.thread_idx()
        p[tid] = tiled[(None, None), (tid, 1)][0, 3]

    def views(a, p: fe.Pointer):
        device(fe.zipped_divide(a, (2, 4)), p + 1).launch(grid=1, block=32)

    golden("views.ir", text(views, matrix(), pointer()))


@pytest.mark.needs_ptxas
@pytest.mark.parametrize("arch", ARCHS)
def test_views_assemble(arch: str, tmp_path: Path) -> None:
    @fe.kernel
    def device(tiled, row, p):
        tid, _, _ = fe.arch.thread_idx()
        part = tiled[(None, None), (tid, 1)]
        p[tid] = part[0, 3] + row[tid] + row.recast(fe.Int32)[tid].to(fe.Float32)

    @fe.jit
    def host(a, p: fe.Pointer):
        device(fe.zipped_divide(a, (2, 4)), a[0, None], p + 1).launch(grid=1, block=32)
        a[:, 0] = a[:, 1] * 2.0

    example = fe.make_fake_compact_tensor(
        fe.Float32, (fe.sym_int(), fe.sym_int()), stride_order=(1, 0), device="cuda"
    )
    options = f"--target cuda --gpu-arch {arch}"
    compiled = fe.compile(host, example, pointer(), options=options)
    assemble(compiled.inspect_ptx(), arch, tmp_path)


# ---- wrong programs ----


def too_many(a):
    a[0, 0, 0] = 1.0


def wrong_profile(a):
    fe.zipped_divide(a, (2, 2))[(0, 0, 0), 0] = 1.0


def tuple_for_a_number(a):
    a[(0, 1), 0] = 1.0


def known_out_of_range(a):
    fe.zipped_divide(a, (2, 2))[4, 0] = 1.0


def float_coordinate(a):
    a[None, 0.5]


def uneven(a):
    fe.logical_divide(a, 4)


def size_of_a_number(a):
    fe.make_layout((a[0, 0], 4))


def reshape_to_other_size(a):
    a.reshape(3, 5)


def reshape_of_columns(a):
    a.transpose().reshape(-1)


def transpose_twice_the_same(a):
    a.transpose(0, 0)


def not_a_pointer(a):
    fe.make_tensor(a, (2, 2))


def pointer_times_two(a):
    a.iterator * 2


def whole_pointer(a):
    a.iterator[:] = 0.0


def in_place_transpose(a):
    a[:] = a.transpose()[:]


def in_place_transpose_of_other_elements(a):
    a[:] = a.recast(fe.Int32).transpose()[:].to(fe.Float32)


def in_place_transpose_by_address(a):
    other = fe.make_layout((a.shape[1], a.shape[0]), stride=(1, a.shape[1]))
    a[:] = fe.make_tensor(a.iterator, other)[:]


def no_such_attribute(a):
    print(a.iterator.shape)


def too_many_coordinates(a):
    fe.local_tile(a, (2, 2), (0, 0, 0))


def missing_argument(a):
    fe.local_tile(a, (2, 2))


def argument_given_twice(a):
    fe.crd2idx((0, 0), a, coord=(1, 1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (too_many, "a has 2 dims, but 3 coordinates are given"),
        (wrong_profile, "coordinate 0 of a is a tuple of 3, but the mode there is (2,2)"),
        (tuple_for_a_number, "coordinate 0 of a is a tuple of 2, but the mode there is n"),
        (known_out_of_range, "coordinate 0 of a is 4, but the size there is 4"),
        (float_coordinate, "coordinate 1 of a is a run-time float32"),
        (uneven, "logical_divide: (n,n):(n,1) is not divided evenly by 4:1 of (4,"),
        (size_of_a_number, "a layout is made of a run-time float32"),
        (reshape_to_other_size, "a of shape (n,n) is reshaped to (3,5)"),
        (reshape_of_columns, "(n,n):(1,n) cannot be reshaped without a copy"),
        (transpose_twice_the_same, "transpose takes each mode of a once"),
        (not_a_pointer, "make_tensor: the iterator is the tensor a"),
        (pointer_times_two, "the operator * is not supported on pointers"),
        (whole_pointer, "it is not known where the memory of a.iterator ends"),
        (in_place_transpose, "a is written while the same memory is read in another layout"),
        (in_place_transpose_of_other_elements, "while the same memory is read in another layout"),
        (in_place_transpose_by_address, "while the same memory is read in another layout"),
        (no_such_attribute, "the pointer a.iterator has no attribute 'shape'"),
        (too_many_coordinates, "local_tile: 3 coordinates are given for the tiles"),
        (missing_argument, "expected the arguments input, tiler, coord, proj"),
        (argument_given_twice, "expected the arguments coord, layout"),
    ],
)
def test_what_is_wrong_is_named(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(fe.CompileError) as error:
        fe.compile(function, matrix(rows="n"), options=CPU)
    assert message in str(error.value)
    assert error.value.diagnostic.span is not None


def test_recast_needs_neighbours() -> None:
    strided = fe.make_fake_tensor(fe.Float32, (fe.sym_int(),), (fe.sym_int64(),))

    def host(a):
        a.recast(fe.Float16)

    with pytest.raises(fe.CompileError, match="must have one mode of stride 1"):
        fe.compile(host, strided, options=CPU)


def test_parts_may_not_begin_inside_of_a_byte() -> None:
    def host(a):
        a[1, None]

    with pytest.raises(fe.CompileError, match="may begin in the middle of a byte"):
        fe.compile(host, fe.make_fake_compact_tensor(fe.Int4, (4, 4)), options=CPU)


def test_parts_are_assigned_to_in_host_functions_alone() -> None:
    @fe.kernel
    def device(a):
        a[0, :] = 0.0

    def host(a):
        device(a).launch(grid=1, block=1)

    with pytest.raises(fe.CompileError, match="a part of a is assigned to in a kernel"):
        fe.compile(host, matrix(), options=CPU)

"""Layouts whose sizes are numbers of the call, and elements by one number for all modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferrule as fe

CPU = "--target cpu"
POINTER = fe.make_ptr(fe.Float32, 0)


@fe.kernel
def scale_rows(t: fe.Tensor):
    i = fe.arch.thread_idx()[0]
    if i < t.shape[0]:
        for j in range(t.shape[1]):
            t[i, j] = t[i, j] * 10 + i


@fe.jit
def over_a_pointer(p: fe.Pointer, m: fe.Int32, n: fe.Uint8, out: fe.Tensor):
    layout = fe.make_layout((m, n), stride=(n, 1))
    t = fe.make_tensor(p, layout)
    t[:] = 1.0
    scale_rows(t).launch(grid=1, block=32)
    flat = fe.make_tensor(p, fe.make_layout((m * n,)))
    for rows in range(1, 3):
        part = fe.make_tensor(p, fe.make_layout((rows, n)))
        out[rows - 1] = part[rows - 1, n - 1]
    tiles = fe.zipped_divide(t, (1, 1))
    out[2], out[3] = flat[m * n - 1], fe.cosize(layout)
    out[4], out[5] = tiles.shape[1][0], layout((1, 2))


@pytest.mark.parametrize("pipeline", ["llvm", "mlir"])
def test_sizes_are_numbers_of_the_call(pipeline: str) -> None:
    if pipeline == "mlir":
        pytest.importorskip("torch_mlir")
    out = fe.row_major((6,), fe.Float32)
    options = f"{CPU} --pipeline {pipeline}"
    f = fe.compile(over_a_pointer, POINTER, 1, fe.Uint8, out, options=options)
    for m, n in ((3, 4), (2, 5)):
        data, found = np.zeros(12, np.float32), np.zeros(6, np.float32)
        f(data.ctypes.data, m, n, found)
        wanted = np.repeat(np.arange(m, dtype=np.float32) + 10, n)
        assert np.array_equal(data[: m * n], wanted)
        corner = data[1 + (n - 1) * 2]
        assert found.tolist() == [data[n - 1], corner, data[m * n - 1], m * n, m, n + 2]


@fe.jit
def in_a_branch(p: fe.Pointer, n: fe.Int32, out: fe.Tensor):
    if n > 2:
        out[0] = fe.size(fe.make_layout((n, 2)))
    else:
        out[0] = fe.cosize(fe.make_layout((n, 2), stride=(3, 1)))


def test_sizes_in_branches_and_negative_ones() -> None:
    out = fe.row_major((1,), fe.Float32)
    f = fe.compile(in_a_branch, POINTER, 1, out, options=CPU)
    found = np.zeros(1, np.float32)
    for n, wanted in ((5, 10), (2, 5)):
        f(0, n, found)
        assert found[0] == wanted
    with pytest.raises(
        ValueError, match="Invalid size or stride of a layout, expected at least 0, but got"
    ):
        f(0, -1, found)


@fe.kernel
def places_kernel(n: fe.Int32, m: fe.Int32, out: fe.Tensor):
    x = fe.arch.thread_idx()[0]
    groups = fe.make_layout(((2, n // 2), m), stride=((1, 2 * m), 2))
    i, j = groups.get_flat_coord(x)
    if x >= fe.size(groups):
        rest = fe.make_layout((n % 2, m))
        i, j = rest.get_flat_coord(x - fe.size(groups))
        i = i + fe.size(groups, mode=[0])
    out[x, 0], out[x, 1] = i, j
    out[x, 2] = groups((i, j)) + fe.crd2idx(x, fe.make_layout((n, m), stride=(m, 1)))
    (first, second), third = groups.get_hier_coord(x)
    out[x, 3] = first * 100 + second * 10 + third
    out[x, 4] = fe.make_layout((n, (m, 2))).stride[1][1]


@fe.jit
def places(n: fe.Int32, m: fe.Int32, out: fe.Tensor):
    places_kernel(n, m, out).launch(grid=1, block=32)


@pytest.mark.parametrize("n, m", [(8, 4), (5, 6), (3, 10)])
def test_kernels_find_coordinates_in_layouts_of_their_numbers(n: int, m: int) -> None:
    """As a grid that is walked in groups of rows, with a tail of the rows that are left."""
    out = np.zeros((32, 5), np.int32)
    fe.compile(places, 1, 1, fe.row_major((32, 5), fe.Int32), options=CPU)(n, m, out)
    whole = n // 2 * 2 * m
    for x in range(n * m):
        inside = x < whole
        leaves = x % 2, x // (2 * m) % (n // 2), x // 2 % m
        i = leaves[0] + 2 * leaves[1] if inside else n // 2 * 2 + (x - whole) % (n % 2)
        j = leaves[2] if inside else (x - whole) // (n % 2)
        again = i % 2 + i // 2 * 2 * m + j * 2
        number = x % n * m + x // n
        nested = leaves[0] * 100 + leaves[1] * 10 + leaves[2]
        assert out[x].tolist() == [i, j, again + number, nested, n * m]


WRONG_LAYOUTS = {
    "fe.zipped_divide(layout, (2, 2))": "is in the algebra of layouts",
    "fe.cosize(layout)": "is in the algebra of layouts",
    "fe.crd2idx((1, 1, 1), layout)": "the coordinate does not fit the shape",
    "layout((1, 2), 1)": "a tuple or None where the layout has one size",
    "layout(1, None)": "a tuple or None where the layout has one size",
    "fe.make_layout((n, 4), stride=(1,))": "a layout of the shape a tuple of 2 values",
    "fe.make_layout((n, 4), stride=n)": "a layout of the shape a tuple of 2 values",
    "fe.make_layout((n, 4.0))": "a layout of the shape a tuple of 2 values",
    "fe.make_layout(n, 4)": "expected the arguments shape",
    "fe.make_layout((a[0], 4))": "a layout is made of a run-time float32",
    "fe.size(layout, mode=[2])": "shape has 2 items, but item 2 is asked for",
}


@pytest.mark.parametrize("wrong", WRONG_LAYOUTS)
def test_what_a_kernel_does_not_do_with_layouts_of_its_numbers(wrong: str) -> None:
    text = f"""
@fe.kernel
def k(a: fe.Tensor, n: fe.Int32):
    layout = fe.make_layout((n, 4))
    {wrong}

@fe.jit
def f(a: fe.Tensor, n: fe.Int32):
    k(a, n).launch(grid=1, block=1)
"""
    f = fe.from_source(text, {"fe": fe})["f"]
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(f, fe.row_major((4,), fe.Float32), 1, options=CPU)
    assert WRONG_LAYOUTS[wrong] in str(caught.value)


@fe.jit
def one_number(a: fe.Tensor, n: fe.Int32, out: fe.Tensor):
    fragment = fe.make_rmem_tensor((2, 3), fe.Float32)
    fragment.fill(0.0)
    fragment[3] = 7.0
    out[0], out[1], out[2] = a[n], fragment[1, 1], fragment[n - 1]
    a[5] = 100.0
    tiles = fe.zipped_divide(a, (2, 2))
    out[3] = tiles[n + 1]
    for i in range(fe.size(a)):
        a[i] = a[i] + 1


def test_one_number_counts_all_elements() -> None:
    """In colexicographic order: the first mode is the fastest one."""
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    out, example = np.zeros(4, np.float32), fe.row_major((4, 4), fe.Float32)
    before = a.copy()
    f = fe.compile(one_number, example, 1, fe.row_major((4,), fe.Float32), options=CPU)
    f(a, 4, out)
    assert out.tolist() == [before.T.flat[4], 7, 7, before[3, 0]]
    before.T.flat[5] = 100
    assert np.array_equal(a, before + 1)


WRONG = {
    "a[16] = 1.0": "coordinate 0 of a is 16, but the size there is 16",
    "a[1, 2, 3] = 1.0": "a has 2 dims, but 3 coordinates are given",
    "a[1.5] = 1.0": "coordinate 0 of a is a run-time float32",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_numbers(line: str) -> None:
    names: dict[str, Any] = {"fe": fe}
    f = fe.from_source(f"@fe.jit\ndef f(a: fe.Tensor):\n    {line}\n", names)["f"]
    with pytest.raises(fe.CompileError) as caught:
        fe.compile(f, fe.row_major((4, 4), fe.Float32), options=CPU)
    assert str(caught.value).startswith(WRONG[line])

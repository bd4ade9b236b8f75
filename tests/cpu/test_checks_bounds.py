"""`--enable-checks` of views with any strides: exactly what is outside of their memory is refused.

The memory of a tensor is from the lowest to the highest element that its sizes and strides reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import ferrule as fe

CHECKED = "--target cpu --enable-checks"
MARGIN = 2000
"""Elements around those that may be reached, so that what is not refused reads no other memory."""


@fe.kernel
def offset_kernel(m, out, i, j, r, s):
    out[0] = fe.domain_offset((i, j), m)[r, s]


def offset_in_a_kernel(m, out, i, j, r, s):
    offset_kernel(m, out, i, j, r, s).launch(grid=1, block=1)


@fe.kernel
def read_kernel(m, out, r, s):
    out[0] = m[r, s]


def offset_before_a_kernel(m, out, i, j, r, s):
    read_kernel(fe.domain_offset((i, j), m), out, r, s).launch(grid=1, block=1)


def offset_in_host_code(m, out, i, j, r, s):
    out[0] = fe.domain_offset((i, j), m)[r, s]


@fe.kernel
def further_kernel(m, out, j, r, s):
    out[0] = fe.domain_offset((0, j), m)[r, s]


def offset_in_both(m, out, i, j, r, s):
    further_kernel(fe.domain_offset((i, 0), m), out, j, r, s).launch(grid=1, block=1)


@fe.kernel
def written_kernel(m, out, i, j, r, s):
    v = fe.domain_offset((i, j), m)
    out[0] = v[r, s]
    v[r, s] = out[0]


def written(m, out, i, j, r, s):
    written_kernel(m, out, i, j, r, s).launch(grid=1, block=1)


WAYS = (
    offset_in_a_kernel,
    offset_before_a_kernel,
    offset_in_host_code,
    offset_in_both,
    written,
)


@cache
def compiled(way: Any, shape: Any = None, strides: Any = None) -> fe.Function:
    """One of the functions, for tensors of any shape and strides, or of these."""
    shape = (fe.sym_int(), fe.sym_int()) if shape is None else shape
    strides = (fe.sym_int64(), fe.sym_int64()) if strides is None else strides
    m = fe.make_fake_tensor(fe.Int32, shape, strides)
    out = fe.make_fake_compact_tensor(fe.Int32, (1,))
    return fe.compile(way, m, out, 0, 0, 0, 0, options=CHECKED)


@dataclass(frozen=True)
class Access:
    """An element of the view that begins at `offset` of a tensor."""

    shape: tuple[int, int]
    strides: tuple[int, int]
    offset: tuple[int, int]
    index: tuple[int, int]

    def place(self) -> int:
        steps = zip(self.offset, self.index, self.strides, strict=True)
        return sum((start + index) * stride for start, index, stride in steps)

    def is_index(self) -> bool:
        return all(0 <= i < n for i, n in zip(self.index, self.shape, strict=True))

    def is_inside(self) -> bool:
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
        return 0 not in self.shape and low <= self.place() <= high


def require_right(function: fe.Function, access: Access) -> None:
    """The call has the element, or is refused with what is wrong."""
    base = np.arange(2 * MARGIN, dtype=np.int32)
    tensor = as_strided(base[MARGIN:], access.shape, [4 * each for each in access.strides])
    out = np.full(1, -1, np.int32)
    numbers = (*access.offset, *access.index)
    if access.is_index() and access.is_inside():
        function(tensor, out, *numbers)
        assert out[0] == MARGIN + access.place()
        return
    with pytest.raises(IndexError) as caught:
        function(tensor, out, *numbers)
    assert ("element" in str(caught.value)) == access.is_index()
    assert out[0] == -1


sizes = st.tuples(st.integers(0, 4), st.integers(0, 4))
steps = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
offsets = st.tuples(st.integers(-4, 4), st.integers(-4, 4))
indices = st.tuples(st.integers(-1, 4), st.integers(-1, 4))


@pytest.mark.parametrize("way", WAYS)
@example((3, 4), (-4, 1), (1, 0), (0, 0))
@example((3, 4), (-4, 1), (1, 0), (2, 0))
@example((3, 4), (-4, 1), (-1, 0), (0, 3))
@example((3, 4), (4, -1), (0, 1), (0, 2))
@example((3, 4), (-4, -1), (0, -1), (0, 0))
@example((3, 0), (-4, -1), (0, 0), (0, 0))
@given(sizes, steps, offsets, indices)
@settings(max_examples=150, deadline=None)
def test_any_strides_at_the_call(way: Any, shape: Any, strides: Any, offset: Any, at: Any) -> None:
    # The stride of a dim of size 1 says nothing, and calls may have another one.
    assume(all(n != 1 or i + k == 0 for n, i, k in zip(shape, offset, at, strict=True)))
    require_right(compiled(way), Access(shape, strides, offset, at))


KNOWN = (
    ((3, 4), (-4, 1)),
    ((3, 4), (4, -1)),
    ((3, 4), (-4, -1)),
    ((2, 3), (0, -2)),
    ((2, 3), (-7, 2)),
)


@pytest.mark.parametrize("way", (offset_in_a_kernel, offset_before_a_kernel, offset_in_host_code))
@pytest.mark.parametrize(("shape", "strides"), KNOWN)
@given(offsets, indices)
@settings(max_examples=60, deadline=None)
def test_strides_that_are_known(way: Any, shape: Any, strides: Any, offset: Any, at: Any) -> None:
    require_right(compiled(way, shape, strides), Access(shape, strides, offset, at))


LAYOUTS = (
    ((3, 4), (-4, -1), (11, 0)),
    ((2, 2), (-1, 4), (3, 0)),
    ((4, 3), (0, -5), (10, 0)),
    ((4, 3), (1, 4), (1, 0)),
)


def layout_function(shape: Any, strides: Any, start: int, constant: Any) -> Any:
    """Reads an element of a layout laid over a tensor from an element on."""

    @fe.kernel
    def kernel(m, out, r, s):
        first = m.iterator + start
        if fe.const_expr(constant is not None):
            view = fe.make_tensor(first, fe.make_layout(shape, stride=strides))
            out[0] = view[constant[0], constant[1]]
        else:
            out[0] = fe.make_tensor(first, fe.make_layout(shape, stride=strides))[r, s]

    def function(m, out, i, j, r, s):
        kernel(m, out, r, s).launch(grid=1, block=1)

    return function


@pytest.mark.parametrize("known", (False, True))
@pytest.mark.parametrize(("shape", "strides", "start"), LAYOUTS)
def test_a_layout_over_a_tensor(shape: Any, strides: Any, start: Any, known: bool) -> None:
    """All elements of a layout, over a tensor of known size and over one of any."""
    base = np.arange(2 * MARGIN, dtype=np.int32)
    for constant in ((0, 0), (shape[0] - 1, shape[1] - 1)):
        function = layout_function(shape, strides, start[0], constant if known else None)
        m, count = fe.make_fake_compact_tensor(fe.Int32, (12 if known else fe.sym_int(),)), 12
        out = fe.make_fake_compact_tensor(fe.Int32, (1,))
        built = fe.compile(function, m, out, 0, 0, 0, 0, options=CHECKED)
        every = [constant] if known else list(np.ndindex(shape))
        for r, s in every:
            place, given_out = start[0] + r * strides[0] + s * strides[1], np.zeros(1, np.int32)
            call = (base[MARGIN : MARGIN + count], given_out, 0, 0, int(r), int(s))
            if 0 <= place < count:
                built(*call)
                assert given_out[0] == MARGIN + place
            else:
                with pytest.raises(IndexError, match=f"element {place} is out of range for m"):
                    built(*call)


def test_numpy_views_with_negative_strides_are_right_programs() -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    out = np.zeros(1, np.int32)
    for way in WAYS:
        compiled(way)(x[::-1], out, 1, 0, 0, 0)
        assert out[0] == 4
        with pytest.raises(IndexError, match=r"element -4 is out of range for [mv], which has 12"):
            compiled(way)(x[::-1], out, 1, 0, 2, 0)


def test_what_a_view_claims_is_no_memory() -> None:
    """A view that is larger than its memory, of which a kernel takes a part."""

    @fe.kernel
    def part_kernel(v, out):
        out[0] = fe.make_tensor(v.iterator, fe.make_layout((10, 10), stride=(100, 1)))[9, 9]

    def part(m, out):
        view = fe.make_tensor(m.iterator, fe.make_layout(1000, stride=1))
        part_kernel(view, out).launch(grid=1, block=1)

    out = fe.make_fake_compact_tensor(fe.Int32, (1,))
    m = fe.make_fake_compact_tensor(fe.Int32, (fe.sym_int(),))
    function = fe.compile(part, m, out, options=CHECKED)
    base, result = np.arange(MARGIN, dtype=np.int32), np.zeros(1, np.int32)
    function(base[:910], result)
    assert result[0] == 909
    with pytest.raises(IndexError, match="element 909 is out of range for v, which has 909"):
        function(base[:909], result)


def test_conditions_that_exclude_each_other_are_compiled() -> None:
    @fe.kernel
    def kernel(o):
        t = fe.arch.thread_idx()[0]
        if (t & 3) - 3 > 2:
            o[t >> 2] = 1

    @fe.jit
    def host(o: fe.Tensor):
        kernel(o).launch(grid=1, block=64)

    o = np.zeros(4, np.int32)
    fe.compile(host, o, options="--target cpu --enable-checks")(o)
    assert not o.any()

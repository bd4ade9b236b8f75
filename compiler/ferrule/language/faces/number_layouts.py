"""Layouts of numbers that a kernel computes: they give coordinates, indices and elements.

Written in the kernel language.  Sizes and strides are not checked: they are known when it runs.
"""

from __future__ import annotations

from typing import Any

from ferrule.specs.deferred import dataclass


@dataclass(frozen=True)
class NumberLayout:
    """The result of `make_layout` in a kernel, of integers that are known when it runs.

    `shape` and `stride` are nested alike.  `layout(coord)` is an index, `get_hier_coord(idx)` and
    `get_flat_coord(idx)` its inverse, as of a `Layout`.  It has no algebra, and of tensors only
    `make_tensor(pointer, layout)` has it.
    """

    shape: Any
    stride: Any

    def __call__(self, *coord: Any) -> Any:
        """The index of a coordinate with a number for each mode; modes count colexicographically.

        One number counts the whole.
        """
        if len(coord) == 1:
            return _index(coord[0], self.shape, self.stride)
        return _index(coord, self.shape, self.stride)

    def get_hier_coord(self, idx: Any) -> Any:
        """The nested coordinate at which the layout gives an index."""
        return _by_stride(idx, self.shape, self.stride)

    def get_flat_coord(self, idx: Any) -> Any:
        """The coordinate at which the layout gives an index, with one number for each mode."""
        found = _by_stride(idx, self.shape, self.stride)
        if isinstance(self.shape, tuple):
            return _numbers(found, self.shape)
        return found


@dataclass(frozen=True)
class NumberTensor:
    """The elements from a pointer on, with a `NumberLayout`: `make_tensor` in a kernel.

    `t[i, j]` reads and writes an element; nothing is checked.  Copies by tensor maps may have such
    a tensor, see `nvgpu.cpasync.update_tma_descriptor`.
    """

    iterator: Any
    layout: NumberLayout

    @property
    def shape(self) -> Any:
        """The sizes, nested as in the layout."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements, nested alike."""
        return self.layout.stride

    @property
    def element_type(self) -> Any:
        """The dtype of the elements."""
        return self.iterator.dtype

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.iterator.dtype


def of_numbers(shape: Any, *, stride: Any = None) -> NumberLayout:
    """`make_layout` of integers that a kernel computes."""
    if stride is None:
        return NumberLayout(shape, compact(shape, 1))
    return NumberLayout(shape, stride)


def size_of_numbers(value: Any, mode: Any = None) -> Any:
    """`size` of a layout or shape with integers that a kernel computes."""
    shape = value.shape if isinstance(value, NumberLayout) else value
    if mode is None:
        return product(shape)
    for place in mode if isinstance(mode, (list, tuple)) else (mode,):
        shape = shape[place]
    return product(shape)


def index_of_numbers(coord: Any, layout: NumberLayout) -> Any:
    """`crd2idx` of a layout of integers that a kernel computes."""
    return layout(coord)


def product(shape: Any) -> Any:
    """The number of elements of a shape."""
    if isinstance(shape, tuple):
        total = 1
        for mode in shape:
            total = total * product(mode)
        return total
    return shape


def compact(shape: Any, before: Any) -> Any:
    """The strides of a shape without gaps; the first mode has the stride `before`."""
    if isinstance(shape, tuple):
        found: Any = ()
        for mode in shape:
            found = (*found, compact(mode, before))
            before = before * product(mode)
        return found
    return before


def _by_stride(index: Any, shape: Any, stride: Any) -> Any:
    if isinstance(shape, tuple):
        found: Any = ()
        for mode, step in zip(shape, stride, strict=True):
            found = (*found, _by_stride(index, mode, step))
        return found
    if isinstance(stride, int) and stride == 0:
        return 0
    return index // stride % shape


def _numbers(coordinate: Any, shape: Any) -> Any:
    """Each mode of a coordinate as one number."""
    found: Any = ()
    for part, mode in zip(coordinate, shape, strict=True):
        found = (*found, _number(part, mode))
    return found


def _number(coordinate: Any, shape: Any) -> Any:
    if isinstance(shape, tuple):
        total, before = 0, 1
        for part, mode in zip(coordinate, shape, strict=True):
            total = total + _number(part, mode) * before
            before = before * product(mode)
        return total
    return coordinate


def _index(coordinate: Any, shape: Any, stride: Any) -> Any:
    if isinstance(shape, tuple):
        total = 0
        if isinstance(coordinate, tuple):
            if len(coordinate) != len(shape):
                raise TypeError("the coordinate does not fit the shape of the layout")
            for part, mode, step in zip(coordinate, shape, stride, strict=True):
                total = total + _index(part, mode, step)
            return total
        rest = coordinate
        for mode, step in zip(shape[:-1], stride[:-1], strict=True):
            count = product(mode)
            total = total + _index(rest % count, mode, step)
            rest = rest // count
        return total + _index(rest, shape[-1], stride[-1])
    if isinstance(coordinate, tuple) or coordinate is None:
        raise TypeError("the coordinate has a tuple or None where the layout has one size")
    return coordinate * stride

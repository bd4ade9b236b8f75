"""Runs: neighbours in memory that one instruction accesses, as views of one dim.

Elements of a tensor are counted with the first mode fastest.  A run is valid where the layout keeps
the elements side by side, and outside of registers only where the address is known to be aligned;
what is missing is an error with the layout.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.tensors import vectors, views
from ferrule.language.lowering.tensors.swizzles import Indices
from ferrule.language.values import Number, SwizzledView, TensorView
from ferrule.specs import Int32

Readable = TensorView | SwizzledView


class Runs:
    """The runs of a tensor, by the number of their first element."""

    def __init__(self, low: Lowering, tensor: Readable, node: ast.AST) -> None:
        self.low, self.tensor, self.node = low, tensor, node
        self.swizzled = Indices(low, tensor, node) if isinstance(tensor, SwizzledView) else None
        self.constants: dict[int, ops.Value] = {}

    def steps(self, first: int, count: int) -> list[Any]:
        """How far each of these elements is from the first, in elements; None if not known."""
        layout = self.tensor.layout
        flat = layouts.flatten((layout.stride,))
        begin = layouts.flatten((layouts.idx2crd(first, layout.shape),))
        found: list[Any] = []
        for number in range(first, first + count):
            at = layouts.flatten((layouts.idx2crd(number, layout.shape),))
            moves = [(a - b, d) for a, b, d in zip(at, begin, flat, strict=True) if a != b]
            known = all(isinstance(stride, int) for _, stride in moves)
            found.append(sum(by * stride for by, stride in moves) if known else None)
        return found

    def side_by_side(self, first: int, count: int) -> bool:
        """Whether so many elements are neighbours in the layout, in order."""
        return count == 1 or self.steps(first, count) == list(range(count))

    def alignment(self, first: int) -> int:
        """The known alignment of an element's address in bytes."""
        if self.swizzled is not None:
            address, dtype = self.swizzled.address(self._index(first)), self.tensor.type.dtype
            # The lowest set bit of both is the power of two that divides their sum. 0 is a multiple
            # of all.
            step = address.known | address.step
            return min(self.tensor.type.align, (step & -step or 1 << 20) * dtype.itemsize)
        assert isinstance(self.tensor, TensorView)
        return views.alignment_at(self.tensor.type, self._leaves(first))

    def whole(self, first: int, count: int) -> bool:
        """Whether a swizzle, if there is one, keeps these elements together."""
        if self.swizzled is None or count == 1:
            return True
        inner, address = self.swizzled.of.inner, self.swizzled.address(self._index(first))
        room = 1 << inner.num_base if isinstance(inner, layouts.Swizzle) else 1
        if isinstance(inner, layouts.Swizzle) and not inner.num_bits:
            return True
        step = address.known | address.step
        lowest = step & -step or room
        return count <= min(room, lowest)

    def width(self, first: int, count: int, most: int = 16) -> int:
        """The largest power of two up to the count of elements that one access can take."""
        size, width = self.tensor.type.dtype.itemsize, 1
        while 2 * width <= count and 2 * width * size <= most and self._fits(first, 2 * width):
            width *= 2
        return width

    def _fits(self, first: int, count: int) -> bool:
        size = count * self.tensor.type.dtype.itemsize
        aligned = self.tensor.type.is_own or self.alignment(first) % size == 0
        return aligned and self.side_by_side(first, count) and self.whole(first, count)

    def require(self, first: int, count: int, what: str) -> None:
        """Requires a run.  A CompileError that names the layout and what is missing."""
        tensor, size = self.tensor, count * self.tensor.type.dtype.itemsize
        shown = f"{tensor.name}, of layout {tensor.layout}"
        if not self.side_by_side(first, count):
            self.low.fail(
                self.node,
                f"{what} takes {count} neighbours of {shown}, but elements {first} to "
                f"{first + count - 1} are not side by side",
                expected=f"values that are contiguous: {count} of stride 1",
                hint="arrange the values of a thread along the contiguous mode, or copy fewer at "
                "once",
            )
        if not self.whole(first, count):
            assert self.swizzled is not None
            self.low.fail(
                self.node,
                f"{what} takes {count} neighbours of {shown}, but {self.swizzled.of.inner} does "
                f"not keep elements {first} to {first + count - 1} together",
                expected=f"a swizzle of runs of at least {count} elements, which begin at one",
            )
        found = self.alignment(first)
        if not tensor.type.is_own and found % size:
            self.low.fail(
                self.node,
                f"{what} takes {size} bytes of {shown}, from element {first} on, which is known to "
                f"be aligned to {found}",
                expected=f"an address that is a multiple of {size} bytes",
                hint="give the example assumed_align=16 and sizes with divisibility, or allocate "
                "with an alignment; or copy fewer bits at once",
            )

    def view(self, first: int, count: int) -> ops.Value:
        """A run as a tensor of one dim."""
        old = self.tensor.type
        if self.swizzled is None:
            return self._plain(first, count)
        memory, known = self.swizzled.memory(self.swizzled.address(self._index(first)))
        align = min(old.align, self.alignment(first))
        type_ = TensorType(old.dtype, (count,), (1,), align, old.space)
        return self._begin(memory, (self._constant(known),), type_)

    def _plain(self, first: int, count: int) -> ops.Value:
        at, old = self._leaves(first), self.tensor.type
        align = views.alignment_at(old, at)
        type_ = TensorType(old.dtype, (count,), (1,), align, old.space)
        assert isinstance(self.tensor, TensorView)
        value = self.tensor.value
        return self._begin(value, tuple(map(self._constant, at)), type_)

    def _begin(self, of: ops.Value, at: tuple[ops.Value, ...], type_: TensorType) -> ops.Value:
        view = self.low.builder.view(of, type_, at)
        self.low.state.bases[view] = self.low.state.bases.get(of, of)
        return view

    def _leaves(self, first: int) -> tuple[int, ...]:
        return tuple(layouts.flatten((layouts.idx2crd(first, self.tensor.layout.shape),)))

    def _index(self, first: int) -> int:
        index: int = layouts.crd2idx(first, self.tensor.layout)
        return index

    def _constant(self, known: int) -> ops.Value:
        if known not in self.constants:
            self.constants[known] = self.low.builder.constant(Int32, known)
        return self.constants[known]

    def load(self, run: ops.Value, position: int) -> Number:
        """An element of a run."""
        return Number(self.low.builder.load(run, (self.low.builder.constant(Int32, position),)))

    def store(self, run: ops.Value, position: int, value: ops.Value) -> None:
        """Writes an element of a run."""
        self.low.builder.store(run, (self.low.builder.constant(Int32, position),), value)


def count_of(low: Lowering, tensor: Any, what: str, node: ast.AST) -> int:
    """The number of elements of a tensor, which is known while compiling."""
    shape = tensor.layout.shape
    if not layouts.is_static(shape):
        vectors.vector_shape(low, shape, f"{what}, {tensor.name},", node)
    count = layouts.size(shape)
    assert isinstance(count, int)
    return count

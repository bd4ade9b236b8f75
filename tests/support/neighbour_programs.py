"""Random kernels whose threads have a few neighbours of each tensor, and go over them in any order.

`neighbour_kernels()` draws a kernel that takes tensors `x`, `y` and `z` of Int32, and an Int32.
Each thread reads and writes `WIDTH` elements of its own in each of them, so all ways to run it
give the same, also where two of the tensors, or all three, are one.
"""

from __future__ import annotations

from typing import Final

import draws as st
from cooperative_programs import known
from cpu_machine import threads

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Int32, Int64, sym_int

THREADS: Final = 48
GRID: Final = 3
SIZES: Final = (GRID, 1, 1, THREADS, 1, 1)
MOST_WIDE: Final = 5
"""The most elements of a thread."""
TENSORS: Final = ("x", "y", "z")


@st.composite
def neighbour_kernels(draw: st.Draw, most: int = 8) -> ops.Program:
    """A program that launches such a kernel; `most`: the statements of a thread."""
    return _Generator(draw).program(draw(st.integers(2, most)))


class _Generator:
    """Draws the ops of one kernel."""

    def __init__(self, draw: st.Draw) -> None:
        self.draw, self.b = draw, Builder()
        self.width = draw(st.integers(1, MOST_WIDE))
        self.values: list[ops.Value] = []
        self.sums: list[ops.Value] = []

    def program(self, count: int) -> ops.Program:
        """The launch of a kernel with so many statements."""
        b, n = self.b, sym_int(symbol="n")
        flat = self.draw(st.booleans())
        shape, strides = ((n,), (1,)) if flat else ((n, self.width), (self.width, 1))
        self.tensors = [ops.Value(TensorType(Int32, shape, strides, 4), name) for name in TENSORS]
        self.offset = ops.Value(Int32, "offset")
        with b.region() as body:
            self.number_of_thread()
            self.values = [self.thread, self.offset]
            form = self.draw(st.sampled_from(["plain", "guarded", "exchanging"]))
            if form == "exchanging":
                self.exchange()
            if form == "guarded":
                end = b.size(Int32, n)
                if flat:
                    end = b.binary("floordiv", end, self.number(self.width))
                within = b.compare("lt", self.row(), end)
                with b.region() as inside:
                    self.statements(count)
                b.if_(within, inside.freeze(), ops.Region(), ())
            else:
                self.statements(count)
        params = (*self.tensors, self.offset)
        kernel = ops.Function("neighbours", "kernel", params, body.freeze())
        sizes = [ops.Value(Int64, f"size{position}") for position in range(6)]
        return known(threads(kernel, sizes, (n,)), SIZES)

    # ---- numbers ----

    def number(self, value: int) -> ops.Value:
        return self.b.constant(Int32, value)

    def value(self) -> ops.Value:
        return self.draw(st.sampled_from(self.values))

    def number_of_thread(self) -> None:
        """The number of the thread in its block: as it is, or of rows of threads."""
        b = self.b
        self.thread = b.special("thread_idx", 0)
        self.length = self.draw(st.sampled_from([0, 2, 3, 4]))
        if self.length:
            length = self.number(self.length)
            self.line = b.binary("floordiv", self.thread, length)
            self.column = b.binary("mod", self.thread, length)

    def row(self) -> ops.Value:
        """The number of the thread in the grid, computed anew most of the time."""
        b = self.b
        if self.sums and self.draw(st.booleans()):
            return self.draw(st.sampled_from(self.sums))
        thread = self.thread
        if self.length and self.draw(st.booleans()):
            start = b.binary("mul", self.line, self.number(self.length))
            thread = b.binary("add", start, self.column)
        block = b.binary("mul", b.special("block_idx", 0), self.number(THREADS))
        row = b.binary("add", block, thread)
        self.sums.append(row)
        return row

    def indices(self, tensor: ops.Value, place: ops.Value | None = None) -> tuple[ops.Value, ...]:
        """An element of the thread's own; `place`: which of them."""
        b, row = self.b, self.row()
        if place is None:
            place = self.number(self.draw(st.integers(0, self.width - 1)))
            if self.width > 1 and self.draw(st.integers(0, 3)) == 0:
                least = self.number(self.draw(st.integers(0, self.width - 2)))
                place = b.binary("add", self.offset, least)  # the offset is 0 or 1
        if len(tensor.tensor.shape) == 2:
            return row, place
        return (b.binary("add", b.binary("mul", row, self.number(self.width)), place),)

    # ---- statements ----

    def statements(self, count: int) -> None:
        for _ in range(count):
            getattr(self, self.draw(st.sampled_from(_STATEMENTS)))()

    def load(self, place: ops.Value | None = None) -> ops.Value:
        tensor = self.draw(st.sampled_from(self.tensors))
        found = self.b.load(tensor, self.indices(tensor, place))
        self.values.append(found)
        return found

    def store(self, place: ops.Value | None = None) -> None:
        op = self.draw(st.sampled_from(["add", "sub", "xor", "max"]))
        tensor = self.draw(st.sampled_from(self.tensors))
        number = self.number(self.draw(st.integers(1, 9)))
        made = self.b.binary(op, self.value(), number)
        self.b.store(tensor, self.indices(tensor, place), made)

    def update(self) -> None:
        """An element becomes more by a value, with the index written twice."""
        tensor = self.draw(st.sampled_from(self.tensors))
        place = self.number(self.draw(st.integers(0, self.width - 1)))
        before = self.b.load(tensor, self.indices(tensor, place))
        self.b.store(
            tensor, self.indices(tensor, place), self.b.binary("add", before, self.value())
        )

    def branch(self) -> None:
        """A store under a condition."""
        b = self.b
        condition = b.compare("lt", self.value(), self.value())
        values, sums = list(self.values), list(self.sums)
        with b.region() as then:
            self.load()
            self.store()
        self.values, self.sums = values, sums
        b.if_(condition, then.freeze(), ops.Region(), ())

    def loop(self) -> None:
        """Goes over the first elements of the thread."""
        b, index = self.b, ops.Value(Int32, "k")
        count = self.draw(st.integers(0, self.width))
        values, sums = list(self.values), list(self.sums)
        bounds = (self.number(0), self.number(count), self.number(1))
        with b.region() as body:
            for _ in range(self.draw(st.integers(1, 3))):
                self.load(self.draw(st.sampled_from([index, None])))
                self.store(self.draw(st.sampled_from([index, None])))
        self.values, self.sums = values, sums
        b.append(ops.For((), index, *bounds, (), (), body.freeze()))

    def exchange(self) -> None:
        """A value of another thread of the block, so that threads wait for each other."""
        b = self.b
        tile = b.shared(TensorType(Int32, (THREADS,), (1,), 4, AddressSpace.smem))
        b.store(tile, (self.thread,), self.load())
        b.barrier()
        other = b.binary("sub", self.number(THREADS - 1), self.thread)
        self.values.append(b.load(tile, (other,)))


_STATEMENTS: Final = ("load", "load", "store", "store", "store", "update", "branch", "loop")

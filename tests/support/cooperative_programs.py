"""Random kernels whose threads work together, in loops and branches.

`cooperative_kernels()` draws a kernel for blocks of `THREADS` threads that takes tensors `a` and
`out` of Int32, one element for each thread of the grid.  Every kernel is free of races and
diverges nowhere, so all ways to run it give the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import draws as st
from cpu_machine import threads, vector

from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, Boolean, Int32, Int64, Uint8, Uint32, sym_int

THREADS = 64
GRID = 2
FULL = 0xFFFFFFFF


@st.composite
def cooperative_kernels(draw: st.Draw, most: int = 6, depth: int = 2) -> ops.Program:
    """A program that launches such a kernel with grid and block from its arguments, or with
    `GRID` blocks of `THREADS` threads that are known while compiling.

    `most`: statements side by side at the outermost; `depth`: branches and loops in each other.
    """
    program = _Generator(draw).program(draw(st.integers(1, most)), depth)
    return known(program) if draw(st.booleans()) else program


def known(program: ops.Program, of: Sequence[int] = (GRID, 1, 1, THREADS, 1, 1)) -> ops.Program:
    """The program with constants for grid and block, which it takes as arguments no less."""
    (launch,) = program.host.body.ops
    constants = [ops.Constant(ops.Value(Int64, "known"), size) for size in of]
    sizes = tuple(constant.result for constant in constants)
    launch = replace(launch, grid=sizes[:3], block=sizes[3:])
    body = ops.Region((*constants, launch))
    return replace(program, host=replace(program.host, body=body))


class _Generator:
    """Draws the ops of one kernel; `mask` and `whole` say which threads run them."""

    def __init__(self, draw: st.Draw) -> None:
        self.draw, self.b = draw, Builder()
        self.mask = FULL
        self.whole = True
        """Whether all threads of the block are here, so that a barrier may be."""
        self.values: list[ops.Value] = []
        self.uniform: list[ops.Value] = []

    def program(self, count: int, depth: int) -> ops.Program:
        """The launch of a kernel with so many statements."""
        b, n = self.b, sym_int(symbol="n")
        a, out = (ops.Value(vector(Int32, n), name) for name in ("a", "out"))
        with b.region() as body:
            self.thread = b.special("thread_idx", 0)
            base = b.binary("mul", b.special("block_idx", 0), b.special("block_dim", 0))
            i = b.binary("add", base, self.thread)
            self.a, self.size = a, b.size(Int32, n)
            self.values = [self.thread, b.load(a, (i,))]
            self.uniform = [b.special("block_idx", 0), self.number(3)]
            self.statements(count, depth)
            total = self.values[0]
            for value in self.values[1:]:
                total = b.binary("add", b.binary("mul", total, self.number(31)), value)
            b.store(out, (i,), total)
        kernel = ops.Function("mixed", "kernel", (a, out), body.freeze())
        sizes = [ops.Value(Int64, f"size{position}") for position in range(6)]
        return threads(kernel, sizes, (n,))

    def number(self, value: int) -> ops.Value:
        return self.b.constant(Int32, value)

    def value(self) -> ops.Value:
        return self.draw(st.sampled_from(self.values))

    def statements(self, count: int, depth: int) -> None:
        """Adds values; those of inner regions are forgotten behind them."""
        for _ in range(count):
            kinds = ["arithmetic", "shuffle", "vote", "match", "fragment", "strided", "masked"]
            if self.whole:
                kinds += ["exchange", "exchange", "shared_total", "named"]
                kinds += ["rows", "rows", "butterfly", "guarded"]
            if depth:
                kinds += ["loop", "branch", "count_down"]
                kinds += ["halves"] * (self.mask == FULL)
                kinds += ["warps"] * self.whole
            getattr(self, self.draw(st.sampled_from(kinds)))(depth - 1)

    # ---- without control flow ----

    def arithmetic(self, _: int) -> None:
        op = self.draw(st.sampled_from(["add", "sub", "mul", "xor", "max", "floordiv"]))
        self.values.append(self.b.binary(op, self.value(), self.value()))

    def shuffle(self, _: int) -> None:
        b = self.b
        op = self.draw(st.sampled_from(["idx", "up", "down", "bfly"]))
        # An even distance stays among the even or odd lanes.
        by = self.number(2 * self.draw(st.integers(0, 15)))
        if op == "idx":  # the same parity as the own lane
            by = b.binary("xor", by, b.binary("and", self.thread, self.number(1)))
        width = self.draw(st.sampled_from([32, 16, 8]))
        bound = 0 if op == "up" else 31
        clamp = self.number((32 - width) << 8 | bound)
        self.values.append(b.shuffle(op, self.value(), by, self.lanes(), clamp))

    def lanes(self) -> ops.Value:
        return self.b.constant(Uint32, self.mask)

    def vote(self, _: int) -> None:
        b = self.b
        op = self.draw(st.sampled_from(["all", "any", "uni", "ballot"]))
        predicate = b.compare("lt", self.value(), self.value())
        self.values.append(b.cast(Int32, b.vote(op, predicate, self.lanes())))

    def match(self, _: int) -> None:
        b = self.b
        op = self.draw(st.sampled_from(["any", "all"]))
        value = b.binary("and", self.value(), self.number(self.draw(st.sampled_from([0, 1, 6]))))
        self.values.append(b.cast(Int32, b.match(op, value, self.lanes())))

    def fragment(self, _: int) -> None:
        """A tensor of the thread's own that lives across a place where threads wait."""
        b = self.b
        type_ = TensorType(Int32, (3,), (1,), 4, AddressSpace.rmem)
        own = b.fragment(type_)
        for position in range(3):
            b.store(own, (self.number(position),), self.value())
        self.vote(0)
        index = b.binary("mod", self.value(), self.number(3))
        self.values.append(b.load(own, (index,)))

    def strided(self, _: int) -> None:
        """Each thread goes through a tensor in steps, beginning at its own number."""
        b, index, total = self.b, ops.Value(Int32, "i"), ops.Value(Int32, "total")
        first = self.number(self.draw(st.sampled_from([0, 0, 5, 70])))
        start = b.binary("add", first, self.thread)
        step = self.number(self.draw(st.sampled_from([1, 16, THREADS, 100])))
        stop = b.binary("sub", self.size, self.number(self.draw(st.integers(0, 70))))
        initial = self.value()
        with b.region() as body:
            element = b.load(self.a, (index,))
            other = b.binary("xor", b.binary("mul", total, self.number(3)), element)
            following = b.binary("add", other, self.value())
        result = ops.Value(Int32, "summed")
        frozen = body.freeze(following)
        b.append(ops.For((result,), index, start, stop, step, (initial,), (total,), frozen))
        self.values.append(result)

    def masked(self, _: int) -> None:
        """Elements whose indices have masks, in a loop or not."""
        if self.draw(st.booleans()):
            self.values.append(self.b.load(self.a, (self.bounded(self.value()),)))
            return
        b, index, total = self.b, ops.Value(Int32, "j"), ops.Value(Int32, "total")
        bounds = (self.number(self.draw(st.sampled_from([0, 1]))), self.number(16), self.number(1))
        initial = self.value()
        with b.region() as body:
            element = b.load(self.a, (self.bounded(b.binary("add", index, self.value())),))
            following = b.binary("add", total, element)
        result = ops.Value(Int32, "gathered")
        b.append(ops.For((result,), index, *bounds, (initial,), (total,), body.freeze(following)))
        self.values.append(result)

    def bounded(self, value: ops.Value) -> ops.Value:
        """An index of this block's part of `a`, which has a power of two of elements."""
        b, within = self.b, self.draw(st.sampled_from([1, 4, 8, THREADS]))
        kind = self.draw(st.sampled_from(["and", "mod", "shift", "narrow"]))
        if kind == "mod":
            low = b.binary("mod", value, self.number(within))
        elif kind == "narrow":
            narrow = b.cast(Int32, b.cast(Uint8, value))
            low = b.binary("and", narrow, self.number(within - 1))
        else:
            shifted = b.binary("shr", value, self.number(2)) if kind == "shift" else value
            low = b.binary("and", shifted, self.number(within - 1))
        rest = self.draw(st.sampled_from([0, THREADS - within]))
        block = b.binary("mod", b.special("block_idx", 0), self.number(GRID))
        start = b.binary("mul", block, self.number(THREADS))
        return b.binary("add", b.binary("add", start, self.number(rest)), low)

    # ---- shared memory ----

    def tile(self) -> ops.Value:
        return self.b.shared(TensorType(Int32, (THREADS,), (1,), 4, AddressSpace.smem))

    def exchange(self, _: int) -> None:
        """Each thread reads what another one wrote."""
        b, tile = self.b, self.tile()
        b.store(tile, (self.thread,), self.value())
        b.barrier()
        odd = self.number(2 * self.draw(st.integers(0, 31)) + 1)
        other = b.binary("mod", b.binary("mul", self.thread, odd), self.number(THREADS))
        if self.draw(st.booleans()):
            self.values.append(b.load(tile, (other,)))
        else:
            found = b.load(tile, (self.number(self.draw(st.integers(0, THREADS - 1))),))
            self.values.append(found)
            self.uniform.append(found)
        b.barrier()

    def rows(self, _: int) -> None:
        """Threads in rows read along columns: a transposition, a neighbour, or the end of a row."""
        b, tile, width = self.b, self.tile(), self.draw(st.sampled_from([2, 4, 8, 16, 32, 3]))
        row = b.binary("floordiv", self.thread, self.number(width))
        column = b.binary("mod", self.thread, self.number(width))
        b.store(tile, (self.thread,), self.value())
        b.barrier()
        match self.draw(st.sampled_from(["transposed", "neighbour", "end", "first"])):
            case "transposed" if THREADS % width == 0:
                pitch = self.number(THREADS // width)
                place = b.binary("add", b.binary("mul", column, pitch), row)
            case "end":
                last = b.binary("mul", row, self.number(width))
                place = b.binary("add", last, self.number(width - 1))
                place = b.binary("min", place, self.number(THREADS - 1))
            case "first":
                place = column
            case _:
                turned = b.binary("add", column, self.number(1))
                turned = b.binary("mod", turned, self.number(width))
                place = b.binary("add", b.binary("mul", row, self.number(width)), turned)
                place = b.binary("min", place, self.number(THREADS - 1))
        self.values += [b.load(tile, (place,)), row, column]
        b.barrier()

    def butterfly(self, _: int) -> None:
        """The first half of the threads has a pair each, as in a sort or an FFT."""
        b, tile, stage = self.b, self.tile(), self.draw(st.integers(0, 5))
        b.store(tile, (self.thread,), self.value())
        b.barrier()
        with b.region() as paired:
            low = b.binary("and", self.thread, self.number((1 << stage) - 1))
            high = b.binary("shr", self.thread, self.number(stage))
            first = b.binary("add", b.binary("shl", high, self.number(stage + 1)), low)
            second = b.binary("add", first, self.number(1 << stage))
            one, other = b.load(tile, (first,)), b.load(tile, (second,))
            op = self.draw(st.sampled_from(["min", "sub", "add"]))
            b.store(tile, (first,), b.binary(op, one, other))
            b.store(tile, (second,), b.binary("max", one, self.number(7)))
        half = b.compare("lt", self.thread, self.number(THREADS // 2))
        b.if_(half, paired.freeze(), ops.Region(), ())
        b.barrier()
        self.values.append(b.load(tile, (self.thread,)))
        b.barrier()

    def guarded(self, _: int) -> None:
        """Stores with a guard each, as of a row that may end early, one after the other."""
        b = self.b
        pieces = self.draw(st.integers(1, 3))
        count = pieces * THREADS
        tile = b.shared(TensorType(Int32, (count,), (1,), 4, AddressSpace.smem))
        end = self.draw(st.sampled_from([*self.uniform, self.size, self.number(THREADS + 7)]))
        for piece in range(pieces):
            place = b.binary("add", self.thread, self.number(piece * THREADS))
            b.store(tile, (place,), self.number(piece))
            with b.region() as inside:
                b.store(tile, (place,), self.value())
            b.if_(b.compare("lt", place, end), inside.freeze(), ops.Region(), ())
        b.barrier()
        odd = self.number(2 * self.draw(st.integers(0, 31)) + 1)
        other = b.binary("mod", b.binary("mul", self.thread, odd), self.number(count))
        self.values.append(b.load(tile, (other,)))
        b.barrier()

    def shared_total(self, _: int) -> None:
        """An atomic in shared memory."""
        b, tile = self.b, self.tile()
        zero = self.number(0)
        with b.region() as first:
            b.store(tile, (zero,), self.number(7))
        b.if_(b.compare("eq", self.thread, zero), first.freeze(), ops.Region(), ())
        b.barrier()
        op = self.draw(st.sampled_from(["add", "max", "xor"]))
        b.atomic(op, tile, (zero,), self.value())
        b.barrier()
        self.values.append(b.load(tile, (zero,)))
        b.barrier()

    def named(self, _: int) -> None:
        """A barrier that each warp waits at in another place."""
        b, tile = self.b, self.tile()
        sides = []
        half = self.number(THREADS)
        for added in (0, 1):
            with b.region() as side:
                b.store(tile, (self.thread,), b.binary("add", self.value(), self.number(added)))
                b.barrier(self.number(3), half)
                other = b.binary("xor", self.thread, self.number(32))
                found = b.load(tile, (other,))
                b.barrier(self.number(3), half)
            sides.append(side.freeze(found))
        first = b.compare("lt", self.thread, self.number(32))
        self.values += b.if_(first, *sides, ("found",))

    # ---- control flow ----

    def inside(self, depth: int, **state: Any) -> ops.Value:
        """Statements in a region; gives a value of theirs."""
        kept = (list(self.values), list(self.uniform), self.mask, self.whole)
        for name, value in state.items():
            setattr(self, name, value)
        self.statements(self.draw(st.integers(1, 3)), depth)
        found = self.value()
        self.values, self.uniform, self.mask, self.whole = kept
        return found

    def loop(self, depth: int) -> None:
        b, carried, index = self.b, ops.Value(Int32, "carried"), ops.Value(Int32, "index")
        initial = self.value()
        with b.region() as body:
            inner = [*self.values, carried, index]
            found = self.inside(depth, values=inner, uniform=[*self.uniform, index])
        result = ops.Value(Int32, "looped")
        bounds = (self.number(0), self.number(self.draw(st.integers(0, 3))), self.number(1))
        frozen = body.freeze(found)
        b.append(ops.For((result,), index, *bounds, (initial,), (carried,), frozen))
        self.values.append(result)

    def count_down(self, depth: int) -> None:
        """A loop with a test, which all threads run equally often."""
        b, carried, left = self.b, ops.Value(Int32, "carried"), ops.Value(Int32, "left")
        first = self.draw(st.sampled_from(self.uniform))
        initial = (b.binary("and", first, self.number(3)), self.value())
        with b.region() as test:
            goes_on = b.compare("gt", left, self.number(0))
        with b.region() as body:
            inner = [*self.values, carried]
            found = self.inside(depth, values=inner, uniform=[*self.uniform, left])
            fewer = b.binary("sub", left, self.number(1))
        results = (ops.Value(Int32, "none"), ops.Value(Int32, "counted"))
        regions = test.freeze(goes_on), body.freeze(fewer, found)
        b.append(ops.While(results, initial, (left, carried), *regions))
        self.values.append(results[1])

    def choose(self, condition: ops.Value, depth: int, *states: dict[str, Any]) -> None:
        """A branch with statements on both sides."""
        b, sides = self.b, []
        for state in states:
            with b.region() as side:
                found = self.inside(depth, **state)
            sides.append(side.freeze(found))
        self.values += b.if_(condition, *sides, ("chosen",))

    def branch(self, depth: int) -> None:
        """All threads of a block go the same way."""
        value = self.draw(st.sampled_from(self.uniform))
        parity = self.b.binary("and", value, self.number(1))
        self.choose(self.b.cast(Boolean, parity), depth, {}, {})

    def warps(self, depth: int) -> None:
        """Whole warps go their ways."""
        first = self.b.compare("lt", self.thread, self.number(32))
        self.choose(first, depth, {"whole": False}, {"whole": False})

    def halves(self, depth: int) -> None:
        """Even and odd lanes go their ways."""
        odd = self.b.cast(Boolean, self.b.binary("and", self.thread, self.number(1)))
        masks = (0xAAAAAAAA, 0x55555555)
        self.choose(odd, depth, *({"whole": False, "mask": mask} for mask in masks))

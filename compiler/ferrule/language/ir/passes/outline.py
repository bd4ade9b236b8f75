"""Makes kernels of the whole-tensor expressions of a host function, for targets with launches.

Each `Parallel` becomes a kernel that runs its body for one coordinate, and a launch with a thread
for each coordinate.  Threads are numbered in the memory order of the stored tensor, so that
neighbouring threads write neighbouring elements.

With several axes (see `collapse`) a block is a rectangle: 2**k threads along the innermost axis, as
many as it needs and at most all, and the rest of the threads along the rows, which all other axes
number together.  The host function computes k.  Blocks lie along x of the grid as they lie along a
row; y and z are together the number of their rows, as y alone has at most 65,535.  A row of several
axes is divided further, in 64 bits without sign, which LLVM narrows to 32 where it proves that this
suffices or inserts a test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.passes.cleanup import remove_unused
from ferrule.language.ir.passes.collapse import known_sizes, loop_order, product
from ferrule.language.ir.passes.neighbours import Neighbours, neighbours
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.specs import Compound, Dim, Int32, Int64, Uint32, Uint64, ceil_div
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import interval

_SHIFT: Final = 8
THREADS: Final = 1 << _SHIFT
"""The threads of a block: enough that few blocks fill a multiprocessor, few enough that any kernel
can run."""

MAX_BLOCKS: Final = 2**31 - 1
"""The limit of a grid along x, on every target."""

_MAX_LAYER: Final = 2**16 - 1
"""The limit of a grid along y and along z."""

Maker = ops.Constant | ops.Size


def outline(program: ops.Program, *, wide: bool = False) -> ops.Program:
    """An equal program without `Parallel`.

    With `wide` a thread computes several neighbouring elements, if tensors are contiguous.  Each
    new kernel is named after the host function and the tensor that it stores to.  A call with
    a tensor of more elements than a launch can have threads is a LaunchError.  Raises TypeError for
    a `Parallel` with an extent that is neither a `Size` nor a `Constant`.
    """
    host = program.host
    makers = {op.result: op for op in host.facts.ops if isinstance(op, Maker)}
    outliner = _Outliner(program, known_sizes(host), makers, wide)
    host = replace(host, body=rewrite(host.body, outliner.rule))
    kernels = (*program.kernels, *outliner.kernels)
    return remove_unused(replace(program, kernels=kernels, host=host))


@dataclass(slots=True)
class _Outliner:
    """Collects the kernels of one program.

    `sizes`: the values of the host function that are sizes; `makers`: the ops whose results a
    kernel can compute itself.
    """

    program: ops.Program
    sizes: Mapping[ops.Value, Dim]
    makers: Mapping[ops.Value, Maker]
    wide: bool
    kernels: list[ops.Function] = field(default_factory=list)

    def rule(self, b: Builder, op: ops.Op) -> None:
        """Replaces a `Parallel` by a launch."""
        if isinstance(op, ops.Parallel):
            self.launch(b, op)
        else:
            b.append(op)

    def launch(self, b: Builder, op: ops.Parallel) -> None:
        """The kernel, and its launch with checked sizes."""
        name, total = self.name(op), self.total(op)
        kernel, one = _Kernel(self.makers, self.sizes), b.constant(Int64, 1)
        grid = (one, one, one)
        threads = b.constant(Int64, THREADS) if op.indices else one
        if not op.indices:
            body = kernel.of_one(op)
        elif len(op.indices) == 1:
            together = neighbours(op) if self.wide else None
            count = 1 if together is None else together.count
            grid = (_blocks(b, op, total, name, count), one, one)
            body = kernel.of_axis(op, total, together)
        else:
            order = loop_order(op)
            rows = product(self.sizes[op.extents[axis]] for axis in order[:-1])
            _size(b, op, total, name)
            tiles = _Tiles.of(b, op, rows, order[-1], name)
            grid, body = tiles.grid, kernel.of_axes(op, order, rows, tiles)
        self.kernels.append(ops.Function(name, "kernel", tuple(kernel.params), body))
        launch = ops.Launch(
            name,
            grid,
            (threads, one, one),
            tuple(kernel.arguments),
            location=op.location,
        )
        b.append(launch)

    def name(self, op: ops.Parallel) -> str:
        """A name that is not used by a kernel."""
        stored = (each.tensor.hint for each in all_ops(op.body) if isinstance(each, ops.Store))
        wanted = f"{self.program.name}_{next(stored, 'parallel')}"
        taken = {kernel.name for kernel in (*self.program.kernels, *self.kernels)}
        name, count = wanted, 0
        while name in taken:
            count += 1
            name = f"{wanted}_{count}"
        return name

    def total(self, op: ops.Parallel) -> Dim:
        """The number of coordinates."""
        for extent in op.extents:
            if extent not in self.sizes:
                raise TypeError(f"an extent of a Parallel is no size: %{extent.hint}")
        return product(self.sizes[extent] for extent in op.extents)


def _blocks(b: Builder, op: ops.Parallel, total: Dim, name: str, count: int) -> ops.Value:
    """The number of blocks, whose threads compute `count` elements each, checked like that of every
    launch."""
    blocks = ceil_div(total, THREADS * count)
    size = _size(b, op, blocks, name)
    if not (isinstance(blocks, int) and 0 <= blocks <= MAX_BLOCKS):
        _check_blocks(b, op, size, name)
    return size


def _size(b: Builder, op: ops.Parallel, dim: Dim, name: str) -> ops.Value:
    """The value of a size that a launch depends on."""
    overflow = f"Invalid launch of {name}: grid x overflows 64 bits or divides by zero"
    fault = Fault("LaunchError", overflow, op.location)
    return b.size(Int64, dim, fault if isinstance(dim, Compound) else None)


def _check_blocks(b: Builder, op: ops.Parallel, blocks: ops.Value, name: str) -> None:
    _check_between(b, op, name, "grid x", blocks, MAX_BLOCKS)


def _check_between(
    b: Builder, op: ops.Parallel, name: str, what: str, value: ops.Value, most: int
) -> None:
    message = f"Invalid launch of {name}: expected {what} to be in [0, {most}], but got {{}}"
    above = b.compare("ge", value, b.constant(Int64, 0))
    below = b.compare("le", value, b.constant(Int64, most))
    fits = b.binary("and", above, below)
    b.check(fits, Fault("LaunchError", message, op.location), value)


@dataclass(frozen=True, slots=True)
class _Tiles:
    """How blocks lie over rows, as values of the host function.

    `grid`: Int64s along x, y and z.  Int32s: `width` and `height` of a block in threads, powers of
    two; `shift`, the logarithm of the width.
    """

    grid: tuple[ops.Value, ops.Value, ops.Value]
    width: ops.Value
    height: ops.Value
    shift: ops.Value

    @classmethod
    def of(cls, b: Builder, op: ops.Parallel, rows: Dim, inner: int, name: str) -> _Tiles:
        """Those of a `Parallel`, checked; `inner` is its innermost axis.  The number of all
        coordinates is known to fit 64 bits."""
        length, count = op.extents[inner], _size(b, op, rows, name)
        shift = b.constant(Int64, _SHIFT)
        for each in reversed(range(_SHIFT)):
            suffices = b.compare("le", length, b.constant(Int64, 1 << each))
            shift = b.select(suffices, b.constant(Int64, each), shift)
        other = b.binary("sub", b.constant(Int64, _SHIFT), shift)
        across, down = _divided_up(b, length, shift), _divided_up(b, count, other)
        _check_blocks(b, op, across, name)
        most = _MAX_LAYER * _MAX_LAYER
        _check_between(b, op, name, "grid y times grid z", down, most)
        layers = _ceil_div(b, down, b.constant(Int64, _MAX_LAYER))
        one = b.constant(Int64, 1)
        # As many blocks in each layer, so that less than one of each is beyond the last row.
        high = _ceil_div(b, down, b.binary("max", layers, one))
        sides = (b.binary("shl", one, each) for each in (shift, other))
        return cls((across, high, layers), *(b.cast(Int32, each) for each in (*sides, shift)))


def _ceil_div(b: Builder, value: ops.Value, by: ops.Value) -> ops.Value:
    """value / by, rounded up, where nothing overflows."""
    more = b.binary("sub", by, b.constant(Int64, 1))
    return b.binary("floordiv", b.binary("add", value, more), by)


def _divided_up(b: Builder, value: ops.Value, shift: ops.Value) -> ops.Value:
    """value / 2**shift, rounded up; nothing overflows."""
    one = b.constant(Int64, 1)
    mask = b.binary("sub", b.binary("shl", one, shift), one)
    rest = b.compare("ne", b.binary("and", value, mask), b.constant(Int64, 0))
    return b.binary("add", b.binary("shr", value, shift), b.cast(Int64, rest))


@dataclass(slots=True)
class _Kernel:
    """A kernel under construction.

    `values` maps values of the host function to the kernel's values.  `arguments` are the values
    that are passed as `params`.
    """

    makers: Mapping[ops.Value, Maker]
    sizes: Mapping[ops.Value, Dim]
    b: Builder = field(default_factory=Builder)
    values: dict[ops.Value, ops.Value] = field(default_factory=dict)
    params: list[ops.Value] = field(default_factory=list)
    arguments: list[ops.Value] = field(default_factory=list)

    def of_one(self, op: ops.Parallel) -> ops.Region:
        """The body of the only thread, where there is no axis."""
        with self.b.region() as whole:
            self.element(op, {})
        return whole.freeze()

    def of_axis(
        self, op: ops.Parallel, total: Dim, together: Neighbours | None = None
    ) -> ops.Region:
        """The body of a thread: its coordinate, if its number is in range."""
        if together is not None:
            return self.of_neighbours(op, total, together)
        b = self.b
        with b.region() as whole:
            number = self.thread()
            inside = b.compare("lt", number, b.size(Int64, total))
            with b.region() as guarded:
                self.element(op, {op.indices[0]: number})
            b.if_(inside, guarded.freeze(), ops.Region(), ())
        return whole.freeze()

    def of_neighbours(self, op: ops.Parallel, total: Dim, together: Neighbours) -> ops.Region:
        """The body of a thread that computes neighbours, if its block is full and the tensors are
        aligned; else elements a block apart, so that neighbouring threads have neighbours."""
        b, count = self.b, together.count
        with b.region() as whole:
            for value in _captured(op):
                self.value(value)
            size = b.size(Int64, total)
            block = b.cast(Int64, b.special("block_idx", 0))
            first = b.binary("mul", block, b.constant(Int64, THREADS * count))
            own = b.cast(Int64, b.special("thread_idx", 0))
            end = b.binary("add", first, b.constant(Int64, THREADS * count))
            fits = b.binary("and", b.compare("le", end, size), self.aligned(together))
            with b.region() as wide:
                start = b.binary("add", first, b.binary("mul", own, b.constant(Int64, count)))
                self.together(op, start, together)
            with b.region() as single:
                self.singles(op, b.binary("add", first, own), size, count)
            b.if_(fits, wide.freeze(), single.freeze(), ())
        return whole.freeze()

    def aligned(self, together: Neighbours) -> ops.Value:
        """Whether all tensors are aligned for accesses of neighbours."""
        b, rest = self.b, self.b.constant(Int64, 0)
        for tensor in together.tensors:
            wanted = together.bytes_of(tensor)
            if tensor.tensor.align % wanted:
                address = ops.Value(Int64, "address")
                b.append(ops.Address(address, self.values[tensor]))
                low = b.binary("and", address, b.constant(Int64, wanted - 1))
                rest = b.binary("or", rest, low)
        return b.compare("eq", rest, b.constant(Int64, 0))

    def together(self, op: ops.Parallel, start: ops.Value, together: Neighbours) -> None:
        """The elements from a coordinate on."""
        b, same = self.b, dict(self.values)
        for tensor in together.tensors:
            type_, wanted = tensor.tensor, together.bytes_of(tensor)
            align = math.lcm(type_.align, wanted)
            same[tensor] = b.view(self.values[tensor], replace(type_, align=align))
        each = []
        for place in range(together.count):
            index = b.binary("add", start, b.constant(Int64, place)) if place else start
            each.append({**same, op.indices[0]: index})
        for inner in together.emitted(each):
            b.append(inner)

    def singles(self, op: ops.Parallel, first: ops.Value, size: ops.Value, count: int) -> None:
        """The elements at `first` and each block of threads further on, as far as there are any."""
        b, index = self.b, ops.Value(Int64, "i")
        last = b.binary("add", first, b.constant(Int64, THREADS * count))
        stop = b.binary("min", last, size)
        with b.region() as body:
            for inner in substitute(op.body, {**self.values, op.indices[0]: index}).ops:
                b.append(inner)
        step, hints = b.constant(Int64, THREADS), ops.LoopHints(unroll=1)
        b.append(ops.For((), index, first, stop, step, (), (), body.freeze(), hints))

    def of_axes(
        self, op: ops.Parallel, order: Sequence[int], rows: Dim, tiles: _Tiles
    ) -> ops.Region:
        """The same, where the threads of a block are a rectangle; `order` is that of the axes."""
        b, inner = self.b, order[-1]
        with b.region() as whole:
            width, height = self.passed(tiles.width, "width"), self.passed(tiles.height, "height")
            right, thread = b.cast(Uint32, b.special("block_idx", 0)), b.special("thread_idx", 0)
            high, layer = b.special("grid_dim", 1), b.special("block_idx", 2)
            first = b.binary("mul", b.cast(Uint32, layer), b.cast(Uint32, high))
            down = b.binary("add", first, b.cast(Uint32, b.special("block_idx", 1)))
            mask = b.binary("sub", width, b.constant(Int32, 1))
            length = self.sizes[op.extents[inner]]
            column = self.place(right, width, b.binary("and", thread, mask), length)
            # The mask changes nothing, and says to LLVM that the shift is less than 32.
            shift = b.binary("and", self.passed(tiles.shift, "shift"), b.constant(Int32, 31))
            row = self.place(down, height, b.binary("shr", thread, shift), rows)
            inside = b.binary(
                "and",
                b.compare("lt", column, self.value(op.extents[inner])),
                b.compare("lt", row, b.size(Int64, rows)),
            )
            with b.region() as guarded:
                found = self.coordinates(op, order[:-1], row)
                self.element(op, {**found, op.indices[inner]: column})
            b.if_(inside, guarded.freeze(), ops.Region(), ())
        return whole.freeze()

    def place(self, tile: ops.Value, length: ops.Value, within: ops.Value, count: Dim) -> ops.Value:
        """tile * length + within, an Int64, of the tiles that cover `count` places.

        Where that has 31 bits, 32 are enough: the last tile ends less than a block behind them.
        """
        b, dtype = self.b, Uint32 if interval(count)[1] <= Int32.range[1] else Int64
        first = b.binary("mul", b.cast(dtype, tile), b.cast(dtype, b.cast(Uint32, length)))
        return b.cast(Int64, b.binary("add", first, b.cast(dtype, within)))

    def passed(self, outer: ops.Value, hint: str) -> ops.Value:
        """A value of the host function as a parameter."""
        inner = ops.Value(outer.type, hint)
        self.params.append(inner)
        self.arguments.append(outer)
        return inner

    def thread(self) -> ops.Value:
        """The number of the thread in the whole grid."""
        b, number = self.b, ops.Value(Int64, "thread")
        block = b.cast(Int64, b.special("block_idx", 0))
        first = b.binary("mul", block, b.constant(Int64, THREADS))
        own = b.cast(Int64, b.special("thread_idx", 0))
        b.append(ops.Binary(number, "add", first, own))
        return number

    def coordinates(
        self, op: ops.Parallel, order: Sequence[int], number: ops.Value
    ) -> dict[ops.Value, ops.Value]:
        """The coordinates of the row with this number, by index."""
        b = self.b
        if len(order) == 1:
            return {op.indices[order[0]]: number}
        found, rest = {}, b.cast(Uint64, number)
        for axis in reversed(order[1:]):
            extent = b.cast(Uint64, self.value(op.extents[axis]))
            quotient = b.binary("floordiv", rest, extent)
            remainder = b.binary("sub", rest, b.binary("mul", quotient, extent))
            found[op.indices[axis]] = b.cast(Int64, remainder)
            rest = quotient
        found[op.indices[order[0]]] = b.cast(Int64, rest)
        return found

    def element(self, op: ops.Parallel, coordinates: Mapping[ops.Value, ops.Value]) -> None:
        """The ops of the body for these coordinates."""
        for value in _captured(op):
            self.value(value)
        for inner in substitute(op.body, {**self.values, **coordinates}).ops:
            self.b.append(inner)

    def value(self, outer: ops.Value) -> ops.Value:
        """The kernel's value for a value of the host function: computed again, or passed."""
        if outer not in self.values:
            inner = ops.Value(outer.type, outer.hint)
            match self.makers.get(outer):
                case ops.Constant(_, number):
                    self.b.append(ops.Constant(inner, number))
                case ops.Size(_, dim):
                    # If it has a fault, the host function checks it before the launch.
                    self.b.append(ops.Size(inner, dim))
                case None:
                    inner = self.passed(outer, outer.hint)
            self.values[outer] = inner
        return self.values[outer]


def _captured(op: ops.Parallel) -> list[ops.Value]:
    """The values that the body uses but does not define, in the order of their first use."""
    used: dict[ops.Value, None] = {}
    defined = set(op.indices)
    for inner in all_ops(op.body):
        used.update(dict.fromkeys(inner.operands))
        for region in inner.regions:
            used.update(dict.fromkeys(region.yields))
        defined.update((*inner.defined, *inner.defined_inside))
    return [value for value in used if value not in defined]

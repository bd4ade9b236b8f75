"""Makes kernels of the whole-tensor expressions of a host function, for targets with launches.

Each `Parallel` becomes a kernel that runs its body for one coordinate, and a launch with a thread
for each coordinate.  Threads are numbered in the memory order of the stored tensor, so that
neighbouring threads write neighbouring elements.  With several axes (see `collapse`) a thread
divides its number to find its coordinates.  The division is unsigned: on a GPU a 64-bit division is
several times slower, and LLVM narrows it to 32 bits where it proves that this suffices or inserts a
test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.axes import known_sizes, loop_order, product
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.passes.cleanup import remove_unused
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.specs import Compound, Dim, Int64, Uint64, ceil_div
from ferrule.specs.deferred import dataclass

THREADS: Final = 256
"""The threads of a block: enough that few blocks fill a multiprocessor, few enough that any kernel
can run."""

MAX_BLOCKS: Final = 2**31 - 1
"""The limit of a grid along x, on every target."""

Maker = ops.Constant | ops.Size


def outline(program: ops.Program) -> ops.Program:
    """An equal program without `Parallel`.

    Each new kernel is named after the host function and the tensor that it stores to.  A call with
    a tensor of more elements than a launch can have threads is a LaunchError.  Raises TypeError for
    a `Parallel` with an extent that is neither a `Size` nor a `Constant`.
    """
    host = program.host
    makers = {op.result: op for op in host.facts.ops if isinstance(op, Maker)}
    outliner = _Outliner(program, known_sizes(host), makers)
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
        kernel = _Kernel(self.makers)
        body = kernel.body(op, total)
        self.kernels.append(ops.Function(name, "kernel", tuple(kernel.params), body))
        one = b.constant(Int64, 1)
        threads = b.constant(Int64, THREADS) if op.indices else one
        grid = (_blocks(b, op, total, name) if op.indices else one, one, one)
        arguments = tuple(kernel.arguments)
        b.append(ops.Launch(name, grid, (threads, one, one), arguments, location=op.location))

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


def _blocks(b: Builder, op: ops.Parallel, total: Dim, name: str) -> ops.Value:
    """The number of blocks, checked like that of every launch."""
    blocks, where = ceil_div(total, THREADS), f"Invalid launch of {name}: "
    overflow = f"{where}grid x overflows 64 bits or divides by zero"
    known = not isinstance(blocks, Compound)
    size = b.size(Int64, blocks, None if known else Fault("LaunchError", overflow, op.location))
    if isinstance(blocks, int) and 0 <= blocks <= MAX_BLOCKS:
        return size
    limits = f"{where}expected grid x to be in [0, {MAX_BLOCKS}], but got {{}}"
    above = b.compare("ge", size, b.constant(Int64, 0))
    below = b.compare("le", size, b.constant(Int64, MAX_BLOCKS))
    fits = b.binary("and", above, below)
    b.check(fits, Fault("LaunchError", limits, op.location), size)
    return size


@dataclass(slots=True)
class _Kernel:
    """A kernel under construction.

    `values` maps values of the host function to the kernel's values.  `arguments` are the values
    that are passed as `params`.
    """

    makers: Mapping[ops.Value, Maker]
    b: Builder = field(default_factory=Builder)
    values: dict[ops.Value, ops.Value] = field(default_factory=dict)
    params: list[ops.Value] = field(default_factory=list)
    arguments: list[ops.Value] = field(default_factory=list)

    def body(self, op: ops.Parallel, total: Dim) -> ops.Region:
        """The body of a thread: its coordinate, if its number is in range."""
        b = self.b
        with b.region() as whole:
            if not op.indices:
                self.element(op, {})
            else:
                number = self.thread()
                inside = b.compare("lt", number, b.size(Int64, total))
                with b.region() as guarded:
                    self.element(op, self.coordinates(op, number))
                b.if_(inside, guarded.freeze(), ops.Region(), ())
        return whole.freeze()

    def thread(self) -> ops.Value:
        """The number of the thread in the whole grid."""
        b, number = self.b, ops.Value(Int64, "thread")
        block = b.cast(Int64, b.special("block_idx", 0))
        first = b.binary("mul", block, b.constant(Int64, THREADS))
        own = b.cast(Int64, b.special("thread_idx", 0))
        b.append(ops.Binary(number, "add", first, own))
        return number

    def coordinates(self, op: ops.Parallel, number: ops.Value) -> dict[ops.Value, ops.Value]:
        """The coordinates of the thread with this number, by index."""
        order, b = loop_order(op), self.b
        if len(order) == 1:
            return {op.indices[0]: number}
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
                    self.params.append(inner)
                    self.arguments.append(outer)
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

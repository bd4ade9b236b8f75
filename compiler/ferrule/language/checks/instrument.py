"""The pass of `--enable-checks`: inserts a check before each op that may fail.

Unless they are known to hold, it checks: indices against the dims of their tensor; elements of
views in other layouts, and accesses through pointers, against the memory of their base; divisors of
integers; the alignment that a view claims; accesses to shared memory that may conflict (see
`races`).  A kernel gets facts that only its launch knows as parameters: one with the bytes of
dynamic shared memory, and for a tensor that is a view made by the host function two, the bytes
before and after its first element.  The shadow of dynamic shared memory follows it.

The threads of a block run in the order of their numbers, and blocks in theirs, up to the first
fault: so the first fault does not depend on the number of cores.
"""

from __future__ import annotations

from dataclasses import field, replace

from ferrule.language.checks import sizes
from ferrule.language.checks.extents import Room
from ferrule.language.checks.function import Checked
from ferrule.language.checks.memory import Memory
from ferrule.language.checks.places import Places
from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.language.ir.shared import uses_dynamic
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.walk import drive
from ferrule.specs import Dim, Int64
from ferrule.specs.deferred import dataclass


def instrument(program: ops.Program, places: Places) -> ops.Program:
    """The program with checks.  Its input is verified, and its result is valid too."""
    host = _Host.of(program)
    facts = launched(program)
    kernels = tuple(
        _kernel(program, kernel, places, host, facts.get(kernel.name, Launched()))
        for kernel in program.kernels
    )
    checked = Checked.of(program, program.host, places, Launched())
    drive(checked.region(program.host.body))
    body = rewrite(checked.build(), host.launch)
    return replace(program, kernels=kernels, host=replace(program.host, body=body))


def _kernel(
    program: ops.Program,
    kernel: ops.Function,
    places: Places,
    host: _Host,
    known: Launched,
) -> ops.Function:
    """A kernel with checks, and with parameters for facts of its launch."""
    views = [kernel.params[position] for position in host.passed.get(kernel.name, ())]
    checked = Checked.of(program, kernel, places, known, host.sizes.get(kernel.name), views)
    more = []
    for param in views:
        room = Room(
            ops.Value(Int64, f"{param.hint}.before"), ops.Value(Int64, f"{param.hint}.behind")
        )
        checked.extents.rooms[param] = room
        more += [room.before, room.behind]
    if uses_dynamic(kernel):
        checked.extents.smem = ops.Value(Int64, "smem")
        more.append(checked.extents.smem)
    checked.start()
    drive(checked.region(kernel.body))
    return replace(kernel, params=(*kernel.params, *more), body=checked.build())


@dataclass(slots=True)
class _Host:
    """The arguments that a program's launches pass to kernels.

    `passed`: by kernel, the parameters that are views made by the host function.  `sizes`: by
    kernel, the sizes of grid and block that all of its launches agree on.
    """

    program: ops.Program
    memory: Memory = field(default_factory=Memory)
    passed: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: dict[str, dict[tuple[ops.Register, int], Dim]] = field(default_factory=dict)
    dims: dict[ops.Value, Dim] = field(default_factory=dict)

    @classmethod
    def of(cls, program: ops.Program) -> _Host:
        """The launches of a program."""
        host = cls(program)
        for op in program.host.facts.ops:
            host.memory.take(op)
            if isinstance(op, ops.Size):
                host.dims[op.result] = op.dim
            if isinstance(op, ops.Cast) and op.operand in host.dims and op.result.type is Int64:
                host.dims[op.result] = host.dims[op.operand]
            if isinstance(op, ops.Launch):
                host.launched(op)
                known = {*host.passed.get(op.kernel, ())}
                known.update(at for at, given in enumerate(op.arguments) if host.is_view(given))
                host.passed[op.kernel] = tuple(sorted(known))
        return host

    def launched(self, op: ops.Launch) -> None:
        """Records the sizes of a launch."""
        given: dict[tuple[ops.Register, int], Dim] = {}
        for axis in range(3):
            if op.grid[axis] in self.dims:
                given["grid_dim", axis] = self.dims[op.grid[axis]]
            if op.block[axis] in self.dims:
                given["block_dim", axis] = self.dims[op.block[axis]]
        before = self.sizes.get(op.kernel, given)
        both = {place: dim for place, dim in given.items() if before.get(place) == dim}
        self.sizes[op.kernel] = both

    def is_view(self, value: ops.Value) -> bool:
        """Whether the type of an argument does not determine the memory that it is in."""
        if not isinstance(value.type, TensorType):
            return False
        origin = self.memory.origin(value)
        return not origin.inside or bool(origin.pending)

    def launch(self, b: Builder, op: ops.Op) -> None:
        """A launch with the additional arguments of its kernel."""
        if not isinstance(op, ops.Launch):
            b.append(op)
            return
        kernel = self.program.kernel(op.kernel)
        more: list[ops.Value] = []
        for position in self.passed.get(op.kernel, ()):
            more += self.room(b, op.arguments[position])
        smem = op.smem
        if uses_dynamic(kernel):
            size = b.constant(Int64, 0) if smem is None else smem
            more.append(size)
            smem = sizes.with_shadow(b, size, sizes.granule_of(kernel))
        b.append(replace(op, arguments=(*op.arguments, *more), smem=smem))

    def room(self, b: Builder, argument: ops.Value) -> list[ops.Value]:
        """The bytes of an argument's root before its first element, and from it on."""
        root = self.memory.origin(argument).root
        found = sizes.memory_of(b, root)
        if found is None:
            return [b.constant(Int64, sizes.UNKNOWN)] * 2
        begin, size = found
        before = b.binary("sub", sizes.address(b, argument), begin)
        return [before, b.binary("sub", size, before)]

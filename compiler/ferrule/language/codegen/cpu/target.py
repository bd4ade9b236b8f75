"""The CPU target: a program as one LLVM module, its threads as loops.

`lower_cpu` makes the `Body` of a verified program whose maths is expanded.  The module has one
external function, `ferrule_body`, which is the host function; kernels and helpers are internal.
The text is not optimised, and depends only on the program; LLVM verifies it when it makes the
object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final, Protocol, TypeVar

from llvmlite import ir

from ferrule.compiler.artefacts import Body, Fault
from ferrule.compiler.host.owned import SYMBOL, declare_inner
from ferrule.language.codegen.cpu import interrupts, sharing, strips
from ferrule.language.codegen.cpu.cooperate import atomics
from ferrule.language.codegen.cpu.kernels import Shape, emit_blocks
from ferrule.language.codegen.cpu.sharing import Frame
from ferrule.language.codegen.facts import guards
from ferrule.language.codegen.facts.costs import cost_of
from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.codegen.functions.loops import ONE, ZERO
from ferrule.language.codegen.functions.lowering import (
    Faults,
    FunctionLowering,
    Lines,
)
from ferrule.language.codegen.host.allocation import (
    Allocator,
    frame,
    needs_frame,
    places_of,
)
from ferrule.language.codegen.host.function import (
    emit_host,
    finished,
    host_types,
    parameter_type,
)
from ferrule.language.codegen.passes.decided import decided
from ferrule.language.codegen.passes.synchronous import synchronous
from ferrule.language.ir import ops
from ferrule.language.ir.shared import cooperates, uses_dynamic
from ferrule.language.ir.walk import Work
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, I64
from ferrule.specs import Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.intervals import Interval

_T = TypeVar("_T")

_ROW: Final = 16
"""The number of threads in a row that fill vectors."""


class KernelsElsewhere(Protocol):
    """Kernels whose code is in other modules, which become parts of the body.

    `faults` are numbered from 1 in their order.
    """

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults whose numbers the kernels' functions may return."""

    def call(
        self, lowering: FunctionLowering, kernel: ops.Function, given: list[ir.Value]
    ) -> ir.Value:
        """The status of a call that runs blocks of a kernel.

        `given`: the buffer for the values of a fault, the parameters, the symbols, grid and block,
        the bytes of dynamic shared memory, the first block, and the end.
        """

    def thread(self, kernel: ops.Function) -> str | None:
        """The symbol of the coroutine of a kernel's thread, as in `cooperate.coroutines`, if only
        that is elsewhere; None if `call` runs the blocks."""


def lower_cpu(
    program: ops.Program,
    elsewhere: KernelsElsewhere | None = None,
    lines: Callable[[Emitter], Lines] | None = None,
) -> Body:
    """The body of a program for the CPU; `lines` makes its source lines.

    Raises CodegenError for ops that the target does not support.
    """
    program, emitter = decided(synchronous(program)), Emitter(program.name)
    module = _Module(program, emitter, elsewhere=elsewhere)
    module.lines = None if lines is None else lines(emitter)
    # First, because the code in the other modules has these numbers in it.
    for fault in () if elsewhere is None else elsewhere.faults:
        module.faults.number(fault)
    module.emit()
    if module.lines is not None:
        module.lines.finish()
    return finished(program, module.emitter, module.faults)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The function that runs blocks of a kernel, and its frame, which omits sizes that are `known`.

    `fused`: the threads of all blocks along x are one loop.
    """

    blocks: ir.Function
    frame: Frame
    fused: bool
    known: Launched


@dataclass(slots=True)
class _Module:
    """The module under construction."""

    program: ops.Program
    emitter: Emitter
    faults: Faults = field(default_factory=Faults)
    kernels: dict[str, _Kernel] = field(default_factory=dict)
    allocator: Allocator | None = None
    shares: bool = False
    repeats: bool = False
    elsewhere: KernelsElsewhere | None = None
    lines: Lines | None = None

    def emit(self) -> None:
        facts = launched(self.program)
        for kernel in self.program.kernels:
            self.kernel(kernel, facts.get(kernel.name, Launched()))
        e, (types, names) = self.emitter, host_types(self.program)
        outer = e.declare(SYMBOL, I32, types, names=names, attributes=("nounwind",))
        if not needs_frame(self.program):
            with e.body(outer):
                self.emit_host(outer.args)
            self.hurry(outer)
            return
        inner = declare_inner(e, types, names)
        with e.body(outer):
            if self.lines is not None:  # LLVM drops the lines of what it inlines into one without
                self.lines.enter(self.program.host)
            frame(self.program, e, inner, outer.args)
        with e.body(inner):
            places = places_of(self.program, e, inner.args)
            self.allocator = Allocator(places, DeviceType.CPU, e.const_i32(0))
            self.emit_host(inner.args[1:])
        self.hurry(outer, inner)

    def hurry(self, function: ir.Function, *inlined: ir.Function) -> None:
        """Do not optimise a host function whose loops are all in other functions.

        That would save nanoseconds of a launch, and take LLVM as long as a small kernel.
        """
        loops = self.program.host.facts.has(ops.For, ops.While)
        if self.shares and not self.repeats and not loops:
            # LLVM's verifier refuses `optnone` without `noinline`. Calls in such a function are
            # inlined only where the callee is `alwaysinline`.
            for attribute in ("noinline", "optnone"):
                function.attributes.add(attribute)
            for inner in inlined:
                inner.attributes.add("alwaysinline")

    def emit_host(self, arguments: Sequence[ir.Value]) -> None:
        """The code of the host function."""
        lowering = FunctionLowering(
            self.emitter, self.faults, host_op=self.host_op, lines=self.lines
        )
        lowering.chained = _chained(self.program.host)
        emit_host(self.program, lowering, arguments, interrupts.watch)

    def kernel(self, kernel: ops.Function, known: Launched) -> None:
        """The function that runs blocks of a kernel; sizes that are constant in every launch are
        constants in it."""
        frame = self.frame(kernel, known)
        with sharing.part(self.emitter, f"blocks_{kernel.name}", frame) as part:
            given = iter(part.frame)
            lowering = FunctionLowering(self.emitter, self.faults, lines=self.lines)
            lowering.fault_values = part.values
            if known.blocks == (1, 1, 1):
                lowering.chained = _chained(kernel)
            lowering.values = {param: next(given) for param in kernel.params}
            lowering.symbols = {symbol: next(given) for symbol in self.program.symbols}
            lowering.assume_bounds(self.program.facts)
            grid = tuple(_constant(size) or next(given) for size in known.grid)
            block = tuple(_constant(size) or next(given) for size in known.block)
            shape = Shape(grid, block, known)
            fused = False
            dynamic = next(given) if uses_dynamic(kernel) else ZERO
            thread = None if self.elsewhere is None else self.elsewhere.thread(kernel)
            if lowering.lines is not None:
                lowering.lines.enter(kernel)
            blocks = (part.first, part.last)
            with lowering.inside(kernel.body, "kernel", kernel.name):
                lowering.say(_size_of(known))
                if self.elsewhere is not None and thread is None:
                    self.call_elsewhere(lowering, kernel, shape, (dynamic, *blocks))
                elif (cut := self.cut(kernel, known)) is not None:
                    from ferrule.language.codegen.cpu.cooperate.blocks import emit_cooperating

                    emit_cooperating(lowering, cut, shape, dynamic, blocks, thread)
                else:
                    plans = guards.plan(kernel, known.blocks)
                    lowering.thread_op = atomics.alone
                    emit_blocks(lowering, kernel, shape, plans, blocks)
                    fused = bool(plans[0].fused)
        self.kernels[kernel.name] = _Kernel(part.function, frame, fused, known)

    def cut(self, kernel: ops.Function, known: Launched) -> ops.Function | None:
        """The kernel as it is cut where its threads wait, or into phases for the sake of its
        loops; None if it is not cut."""
        if known.block[0][0] < _ROW or not kernel.facts.has(ops.For):
            return kernel if cooperates(kernel) else None
        from ferrule.language.codegen.cpu.cooperate import frames
        from ferrule.language.codegen.cpu.cooperate.opened import opened

        form = opened(kernel)
        return form if cooperates(kernel) or frames.pays(form) else None

    def call_elsewhere(
        self,
        lowering: FunctionLowering,
        kernel: ops.Function,
        shape: Shape,
        rest: Sequence[ir.Value],
    ) -> None:
        """The call of a kernel whose code is in another module; a fault ends the function."""
        assert self.elsewhere is not None and lowering.fault_values is not None
        e, params = self.emitter, [lowering.values[param] for param in kernel.params]
        sizes = [*self.symbol_values(lowering.symbols), *shape.grid, *shape.block]
        given = [lowering.fault_values, *params, *sizes, *rest]
        status = self.elsewhere.call(lowering, kernel, given)
        failed, on = e.block("failed"), e.block("on")
        e.cond_branch(e.icmp("eq", status, e.const_i32(0)), on, failed)
        e.at(failed)
        e.ret(status)
        e.at(on)

    def frame(self, kernel: ops.Function, known: Launched) -> Frame:
        """The values that all blocks of a launch share, without constants."""
        sizes = _unknown(known, [f"{of}.{axis}" for of in ("grid", "block") for axis in ops.AXES])
        symbols = self.program.symbols
        types = [parameter_type(param.type) for param in kernel.params]
        types += [I64] * (len(symbols) + len(sizes))
        names = [*(p.hint for p in kernel.params), *symbols.values(), *sizes]
        if uses_dynamic(kernel):
            types, names = [*types, I64], [*names, "smem"]
        return Frame(tuple(types), tuple(names))

    def host_op(self, lowering: FunctionLowering, op: ops.HostOp) -> Work | None:
        """Emits an op that only a host function has."""
        match op:
            case ops.Alloc() | ops.Shrink():
                assert self.allocator is not None
                self.allocator.make(lowering, op)
                return None
            case ops.Parallel():
                from ferrule.language.codegen.cpu import parallel

                if parallel.is_shared(lowering, op):
                    self.shares = True
                else:
                    self.repeats = True
                return parallel.lower(lowering, op)
            case ops.Launch():
                self.shares = True
                with lowering.inside(op, "launch", op.kernel):
                    self.launch(lowering, op)
                return None
            case ops.CallDevice(result):
                lowering.values[result] = self.emitter.const_i64(DeviceType.CPU)
                return None
            case _:
                # Few host functions call others or read containers.
                from ferrule.language.codegen.host.calls import Surroundings, emit_call

                places = None if self.allocator is None else self.allocator.places
                zero = self.emitter.const_i32(0)
                emit_call(lowering, op, Surroundings(DeviceType.CPU, zero, places))
                return None

    def launch(self, lowering: FunctionLowering, op: ops.Launch) -> None:
        """The call that runs all blocks of a kernel."""
        kernel, values = self.kernels[op.kernel], lowering.values
        symbols = self.symbol_values(lowering.symbols)
        grid, block = ([values[size] for size in sizes] for sizes in (op.grid, op.block))
        given = [values[argument] for argument in op.arguments]
        smem = ZERO if op.smem is None else values[op.smem]
        sizes = _unknown(kernel.known, [*grid, *block])
        # Only kernels that use dynamic shared memory have the last one.
        stored = [*given, *symbols, *sizes, smem][: len(kernel.frame.types)]
        frame = kernel.frame.store(self.emitter, stored)
        cost = cost_of(self.program.kernel(op.kernel).body)
        b = lowering.b
        work = sharing.Work(
            count=sharing.product(b, grid),
            cost=sharing.product(b, [*block, ir.Constant(I64, cost.operations)]),
            bounded=cost.bounded,
            grain=_strip(b, block[0]) if kernel.fused else ONE,
        )
        sharing.emit_work(lowering, kernel.blocks, frame, work)

    def symbol_values(self, symbols: Mapping[Sym, ir.Value]) -> list[ir.Value]:
        """The values of the program's symbols, in their order."""
        return [symbols[symbol] for symbol in self.program.symbols]


def _size_of(known: Launched) -> str:
    """The size of a block, for remarks."""
    sizes = [str(size) if size is not None else "any number" for size in known.blocks]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    return f"blocks of {' by '.join(sizes)} thread{'' if sizes == ['1'] else 's'}"


def _strip(b: ir.IRBuilder, block: ir.Value) -> ir.Value:
    """The number of blocks of this size whose threads fill a strip."""
    return sharing.rounded_up(b, strips.WIDTH, block)


def _constant(interval: Interval) -> ir.Constant | None:
    low, high = interval
    return ir.Constant(I64, low) if low == high else None


def _unknown(known: Launched, sizes: Sequence[_T]) -> list[_T]:
    """The items for sizes of grid and block that are not constants."""
    intervals = (*known.grid, *known.block)
    return [
        size for size, interval in zip(sizes, intervals, strict=True) if not _constant(interval)
    ]


def _chained(function: ops.Function) -> dict[ops.Value, bool]:
    """The values of chains of a function whose loops one thread runs, see `functions.chains`."""
    extremes = any(op.op in ("min", "max") for op in function.facts.each(ops.Binary))
    if not extremes or not function.facts.has(ops.For):
        return {}
    from ferrule.language.codegen.functions.chains import chained

    return chained(function)

"""The CPU target: a program as one LLVM module, its threads as loops.

`lower_cpu` gives the `Body` of a program that was verified and whose maths was expanded.  The
module has one external function, `ferrule_body`, which is the host function; kernels and helpers
are internal.  The text is verified by LLVM, not optimised, and depends on the program alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llvmlite import ir

from ferrule.compiler.artefacts import Body
from ferrule.language.codegen import guards, hints, parallel
from ferrule.language.codegen.allocation import Allocator, declare_inner, frame, needs_frame
from ferrule.language.codegen.calls import emit_call
from ferrule.language.codegen.functions import Faults, FunctionLowering, HostOp
from ferrule.language.codegen.host import SYMBOL, emit_host, finished, host_types, parameter_type
from ferrule.language.codegen.intervals import Interval
from ferrule.language.codegen.kernels import Launched, Shape, emit_threads, launched
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work, all_ops
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I32, I64, PTR, VOID
from ferrule.specs import Sym


def lower_cpu(program: ops.Program) -> Body:
    """The body of a program for the CPU.  Raises CodegenError for what the target cannot do."""
    module = _Module(program, Emitter(program.name))
    module.emit()
    return finished(program, module.emitter, module.faults)


@dataclass(slots=True)
class _Module:
    """The module under construction."""

    program: ops.Program
    emitter: Emitter
    faults: Faults = field(default_factory=Faults)
    kernels: dict[str, ir.Function] = field(default_factory=dict)
    allocator: Allocator | None = None

    def emit(self) -> None:
        facts = launched(self.program)
        for kernel in self.program.kernels:
            self.kernel(kernel, facts.get(kernel.name, Launched()))
        e, (types, names) = self.emitter, host_types(self.program)
        if not needs_frame(self.program):
            with e.define(SYMBOL, I32, types, names=names, attributes=("nounwind",)) as f:
                emit_host(self.program, e, self.faults, f.args, self.host_op)
            return
        inner = declare_inner(e, types, names)
        with e.define(SYMBOL, I32, types, names=names, attributes=("nounwind",)) as f:
            frame(self.program, e, inner, f.args)
        with e.body(inner):
            self.allocator = Allocator(inner.args[0], DeviceType.CPU, e.const_i32(0))
            emit_host(self.program, e, self.faults, inner.args[1:], self.host_op)

    def kernel(self, kernel: ops.Function, known: Launched) -> None:
        """A kernel, with its loops; what is constant in every launch is constant in it."""
        sizes = [f"{of}.{axis}" for of in ("grid", "block") for axis in ops.AXES]
        symbols = self.program.symbols
        checks = may_fail(kernel)
        types = [PTR] if checks else []
        types += [parameter_type(param.type) for param in kernel.params]
        types += [I64] * (len(symbols) + len(sizes))
        names = ["values"] if checks else []
        names += [*(p.hint for p in kernel.params), *symbols.values(), *sizes]
        name, attributes = f"kernel_{kernel.name}", ("nounwind",)
        result = I32 if checks else VOID
        with self.emitter.define(
            name, result, types, names=names, linkage="internal", attributes=attributes
        ) as function:
            hints.prefer_wide_vectors(function)
            arguments = iter(function.args)
            lowering = FunctionLowering(self.emitter, self.faults)
            lowering.fault_values = next(arguments) if checks else None
            lowering.values = {param: next(arguments) for param in kernel.params}
            lowering.symbols = {symbol: next(arguments) for symbol in symbols}
            grid = tuple(_constant_or(next(arguments), size) for size in known.grid)
            block = tuple(_constant_or(next(arguments), size) for size in known.block)
            plans = guards.plan(kernel, known.blocks)
            emit_threads(lowering, kernel, Shape(grid, block, known), plans)
            self.emitter.ret(ir.Constant(I32, 0) if checks else None)
        self.kernels[kernel.name] = function

    def host_op(self, lowering: FunctionLowering, op: HostOp) -> Work | None:
        """Emits an op that only a host function has."""
        match op:
            case ops.Alloc():
                assert self.allocator is not None
                self.allocator.allocate(lowering, op)
                return None
            case ops.Call():
                emit_call(lowering, op, DeviceType.CPU, self.emitter.const_i32(0))
                return None
            case ops.Parallel():
                return parallel.lower(lowering, op)
            case ops.Launch(kernel, grid, block, arguments):
                symbols = self.symbol_values(lowering.symbols)
                values = lowering.values
                sizes = [values[size] for size in (*grid, *block)]
                given = [values[argument] for argument in arguments]
                self.launch(lowering, self.program.kernel(kernel), [*given, *symbols, *sizes])
                return None

    def launch(
        self, lowering: FunctionLowering, kernel: ops.Function, arguments: list[ir.Value]
    ) -> None:
        """The call of a kernel; where a thread of it failed, the host function ends with that."""
        e, function = self.emitter, self.kernels[kernel.name]
        if not may_fail(kernel):
            e.call(function, arguments)
            return
        status = e.call(function, [lowering.fault_values, *arguments], "status")
        done, failed = e.block("launched"), e.block("failed")
        passed = lowering.b.icmp_signed("==", status, ir.Constant(I32, 0))
        e.cond_branch(passed, done, failed, LIKELY)
        e.at(failed)
        e.ret(status)
        e.at(done)

    def symbol_values(self, symbols: Mapping[Sym, ir.Value]) -> list[ir.Value]:
        """The values of the program's symbols, in their order."""
        return [symbols[symbol] for symbol in self.program.symbols]


def may_fail(kernel: ops.Function) -> bool:
    """Whether a thread of a kernel may end the call."""
    return any(isinstance(op, ops.Check) for op in all_ops(kernel.body))


def _constant_or(value: ir.Value, interval: Interval) -> ir.Value:
    low, high = interval
    return ir.Constant(I64, low) if low == high else value

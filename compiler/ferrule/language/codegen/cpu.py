"""The CPU target: a program as one LLVM module, its threads as loops.

`lower_cpu` gives the `Body` of a program that was verified and whose maths was expanded.  The
module has one external function, `ferrule_body`, which is the host function; kernels and helpers
are internal.  The text is verified by LLVM, not optimised, and depends on the program alone.
Nothing in it refers to a symbol outside, now or after any optimisation for any CPU, except
memcpy and memset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from llvmlite import binding as llvm
from llvmlite import ir

from ferrule.compiler.artefacts import Body
from ferrule.language.codegen import guards, hints, parallel
from ferrule.language.codegen.functions import Faults, FunctionLowering
from ferrule.language.codegen.intervals import Interval
from ferrule.language.codegen.kernels import Launched, Shape, emit_threads, launched
from ferrule.language.codegen.scalars import memory_type, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.walk import Work, drive
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR, VOID
from ferrule.specs import Boolean, Sym

SYMBOL: Final = "ferrule_body"


def lower_cpu(program: ops.Program) -> Body:
    """The body of a program for the CPU.  Raises CodegenError for what the target cannot do."""
    module = _Module(program, Emitter(program.name))
    module.emit()
    text = module.emitter.text()
    with llvm.parse_assembly(text, context=llvm.create_context()) as parsed:
        parsed.verify()
    faults = tuple(module.faults.known)
    return Body(text, SYMBOL, tuple(program.symbols), faults, program.relations)


@dataclass(slots=True)
class _Module:
    """The module under construction."""

    program: ops.Program
    emitter: Emitter
    faults: Faults = field(default_factory=Faults)
    kernels: dict[str, ir.Function] = field(default_factory=dict)

    def emit(self) -> None:
        facts = launched(self.program)
        for kernel in self.program.kernels:
            self.kernel(kernel, facts.get(kernel.name, Launched()))
        self.host(self.program.host)

    def kernel(self, kernel: ops.Function, known: Launched) -> None:
        """A kernel, with its loops; what is constant in every launch is constant in it."""
        sizes = [f"{of}.{axis}" for of in ("grid", "block") for axis in ops.AXES]
        symbols = self.program.symbols
        types = [*(_type(p.type) for p in kernel.params), *([I64] * (len(symbols) + len(sizes)))]
        names = [*(p.hint for p in kernel.params), *symbols.values(), *sizes]
        name, attributes = f"kernel_{kernel.name}", ("nounwind",)
        with self.emitter.define(
            name, VOID, types, names=names, linkage="internal", attributes=attributes
        ) as function:
            hints.prefer_wide_vectors(function)
            arguments = iter(function.args)
            lowering = FunctionLowering(self.emitter, self.faults)
            lowering.values = {param: next(arguments) for param in kernel.params}
            lowering.symbols = {symbol: next(arguments) for symbol in symbols}
            grid = tuple(_constant_or(next(arguments), size) for size in known.grid)
            block = tuple(_constant_or(next(arguments), size) for size in known.block)
            plans = guards.plan(kernel, known.blocks)
            emit_threads(lowering, kernel, Shape(grid, block, known), plans)
            self.emitter.ret()
        self.kernels[kernel.name] = function

    def host(self, host: ops.Function) -> None:
        """The host function, with the C type that `Body` documents."""
        symbols = self.program.symbols
        types = [PTR, *(_type(p.type, memory=True) for p in host.params)]
        types += [I32 if symbol.width == 32 else I64 for symbol in symbols]
        names = ["values", *(p.hint for p in host.params), *symbols.values()]
        with self.emitter.define(SYMBOL, I32, types, names=names, attributes=("nounwind",)) as f:
            hints.prefer_wide_vectors(f)
            arguments = iter(f.args)
            lowering = FunctionLowering(self.emitter, self.faults, host_op=self.host_op)
            lowering.fault_values = next(arguments)
            for param in host.params:
                lowering.values[param] = self.received(param.type, next(arguments))
            lowering.symbols = {symbol: self.widened(next(arguments)) for symbol in symbols}
            drive(lowering.region(host.body))
            self.emitter.ret(ir.Constant(I32, 0))

    def received(self, type_: Type, argument: ir.Value) -> ir.Value:
        """A parameter as a value: a bool comes as a byte."""
        if type_ is not Boolean:
            return argument
        return self.emitter.builder.icmp_unsigned("!=", argument, ir.Constant(I8, 0))

    def widened(self, symbol: ir.Value) -> ir.Value:
        """A symbol's value in 64 bits."""
        return symbol if symbol.type == I64 else self.emitter.builder.sext(symbol, I64)

    def host_op(self, lowering: FunctionLowering, op: ops.Parallel | ops.Launch) -> Work | None:
        """Emits an op that only a host function has."""
        match op:
            case ops.Parallel():
                return parallel.lower(lowering, op)
            case ops.Launch(kernel, grid, block, arguments):
                symbols = self.symbol_values(lowering.symbols)
                values = lowering.values
                sizes = [values[size] for size in (*grid, *block)]
                given = [values[argument] for argument in arguments]
                self.emitter.call(self.kernels[kernel], [*given, *symbols, *sizes])
                return None

    def symbol_values(self, symbols: Mapping[Sym, ir.Value]) -> list[ir.Value]:
        """The values of the program's symbols, in their order."""
        return [symbols[symbol] for symbol in self.program.symbols]


def _type(type_: Type, *, memory: bool = False) -> ir.Type:
    """The LLVM type of a parameter: that of C code, or that of a value."""
    if isinstance(type_, (TensorType, HandleType)):
        return PTR
    return memory_type(type_) if memory else value_type(type_)


def _constant_or(value: ir.Value, interval: Interval) -> ir.Value:
    low, high = interval
    return ir.Constant(I64, low) if low == high else value

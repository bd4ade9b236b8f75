"""The host function of a program, for every target: a `Body` around what the target does.

Its ops run on the CPU.  What a target does with a `Launch` and a `Parallel` it brings along.
Nothing in a body refers to a symbol outside, now or after any optimisation for any CPU, except
memcpy, memset and what the target's launches need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import binding as llvm
from llvmlite import ir

from ferrule.compiler.artefacts import Body, DeviceCode
from ferrule.language.codegen import hints
from ferrule.language.codegen.functions import Faults, FunctionLowering, HostOps
from ferrule.language.codegen.scalars import memory_type, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR
from ferrule.specs import Boolean

SYMBOL: Final = "ferrule_body"


def host_types(program: ops.Program) -> tuple[list[ir.Type], list[str]]:
    """Types and names of what a body receives: `values`, parameters, symbols (see `Body`)."""
    params, symbols = program.host.params, program.symbols
    types = [PTR, *(parameter_type(p.type, memory=True) for p in params)]
    types += [I32 if symbol.width == 32 else I64 for symbol in symbols]
    return types, ["values", *(p.hint for p in params), *symbols.values()]


def emit_host(
    program: ops.Program,
    emitter: Emitter,
    faults: Faults,
    arguments: Sequence[ir.Value],
    host_op: HostOps,
) -> None:
    """The code of the host function, to the `ret`, at the beginning of a function with these
    arguments."""
    hints.prefer_wide_vectors(emitter.current)
    rest = iter(arguments)
    lowering = FunctionLowering(emitter, faults, host_op=host_op)
    lowering.fault_values = next(rest)
    for param in program.host.params:
        lowering.values[param] = _received(emitter, param.type, next(rest))
    lowering.symbols = {symbol: _widened(emitter, next(rest)) for symbol in program.symbols}
    drive(lowering.region(program.host.body))
    emitter.ret(ir.Constant(I32, 0))


def _received(emitter: Emitter, type_: Type, argument: ir.Value) -> ir.Value:
    """A parameter as a value: a bool comes as a byte."""
    if type_ is not Boolean:
        return argument
    return emitter.builder.icmp_unsigned("!=", argument, ir.Constant(I8, 0))


def _widened(emitter: Emitter, symbol: ir.Value) -> ir.Value:
    """A symbol's value in 64 bits."""
    return symbol if symbol.type == I64 else emitter.builder.sext(symbol, I64)


def parameter_type(type_: Type, *, memory: bool = False) -> ir.Type:
    """The LLVM type of a parameter: that of C code, or that of a value."""
    if isinstance(type_, (TensorType, HandleType)):
        return PTR
    return memory_type(type_) if memory else value_type(type_)


def finished(
    program: ops.Program, emitter: Emitter, faults: Faults, device_code: DeviceCode | None = None
) -> Body:
    """The body that an emitter holds, verified by LLVM."""
    text = emitter.text()
    with llvm.parse_assembly(text, context=llvm.create_context()) as parsed:
        parsed.verify()
    return Body(
        text,
        SYMBOL,
        tuple(program.symbols),
        tuple(faults.known),
        program.relations,
        device_code=device_code,
    )

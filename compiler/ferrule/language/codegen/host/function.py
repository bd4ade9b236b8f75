"""The host function of a program, for every target: a `Body` around the target's code.

Its ops run on the CPU.  The target provides the code for a `Launch` and a `Parallel`.  A body
refers to no outside symbol, also after optimisation for any CPU, except memcpy, memset and the
symbols for the target's launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import Body
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.host.owned import SYMBOL
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.functions.dispatch import emit_region
from ferrule.language.codegen.functions.lowering import Faults, FunctionLowering, Watch
from ferrule.language.codegen.host.allocation import keeps, owned_tensors
from ferrule.language.codegen.host.linking import device_code_of, links_of, parts_of
from ferrule.language.codegen.values.scalars import memory_type, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, PTR
from ferrule.specs import Boolean, Dim, Sym
from ferrule.specs.deferred import dataclass


def host_types(program: ops.Program) -> tuple[list[ir.Type], list[str]]:
    """Types and names of a body's arguments: `values`, parameters, symbols, objects (see
    `Body`)."""
    params, symbols = program.host.params, program.given
    results = [] if program.result is None else ["results"]
    results += ["keeps"] if keeps(program) else []
    types = [PTR] * (1 + len(results))
    types += [parameter_type(p.type, memory=True) for p in params]
    types += [I32 if symbol.width == 32 else I64 for symbol in symbols]
    types += [PTR] * len(program.objects)
    objects = (f"{each.hint}.object" for each in program.held)
    return types, ["values", *results, *(p.hint for p in params), *symbols.values(), *objects]


def emit_host(
    program: ops.Program,
    lowering: FunctionLowering,
    arguments: Sequence[ir.Value],
    watch: Callable[[ops.Function, FunctionLowering], Watch | None] | None = None,
) -> None:
    """The code of the host function, up to the `ret`, at the beginning of a function with these
    arguments.  `watch` starts the checks for signals in its loops."""
    emitter, rest = lowering.emitter, iter(arguments)
    hints.prefer_wide_vectors(emitter.current)
    if lowering.lines is not None:
        lowering.lines.enter(program.host)
    lowering.watch = None if watch is None else watch(program.host, lowering)
    lowering.owned = owned_tensors(program)
    lowering.fault_values = next(rest)
    lowering.results = None if program.result is None else next(rest)
    if keeps(program):
        next(rest)  # `places_of` reads it
    for param in program.host.params:
        lowering.values[param] = _received(emitter, param.type, next(rest))
    given = {symbol: _widened(emitter, next(rest)) for symbol in program.given}
    lowering.objects.update((param, next(rest)) for param in program.held)
    lowering.made = {symbol: _place(emitter, program.symbols[symbol]) for symbol in program.made}
    lowering.symbols = given
    # Before the other symbols are added: those have no value yet.
    lowering.assume_bounds(program.facts)
    if lowering.made:
        lowering.symbols = _Symbols(emitter, given, lowering.made)
    drive(emit_region(lowering, program.host.body))
    emitter.ret(ir.Constant(I32, 0))


@dataclass(frozen=True, slots=True)
class _Symbols(Mapping[Sym, ir.Value]):
    """The values of symbols: those from the caller, and those in memory, loaded on use."""

    emitter: Emitter
    given: Mapping[Sym, ir.Value]
    made: Mapping[Dim, ir.Value]

    def __getitem__(self, symbol: Sym) -> ir.Value:
        if symbol in self.made:
            return self.emitter.load(self.made[symbol], I64)
        return self.given[symbol]

    def __iter__(self) -> Iterator[Sym]:
        yield from self.given
        yield from (symbol for symbol in self.made if isinstance(symbol, Sym))

    def __len__(self) -> int:
        return len(self.given) + len(self.made)


def _place(emitter: Emitter, name: str) -> ir.Value:
    """Memory for the value of a symbol; it is 0 until it is set."""
    place = emitter.alloca(I64, name=name)
    emitter.store(emitter.const_i64(0), place)
    return place


def _received(emitter: Emitter, type_: Type, argument: ir.Value) -> ir.Value:
    """A parameter as a value: a bool is passed as a byte."""
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
    program: ops.Program,
    emitter: Emitter,
    faults: Faults,
    device_code: DeviceCode | None = None,
    *,
    takes_device: bool = False,
) -> Body:
    """The body in an emitter; LLVM verifies it before it is used."""
    return Body(
        emitter.text(),
        SYMBOL,
        tuple(program.given),
        tuple(faults.known),
        program.relations,
        device_code=device_code_of(program, device_code),
        takes_device=takes_device,
        parts=parts_of(program),
        links=links_of(program),
        keeps=keeps(program),
        objects=tuple(place for _, place in program.objects),
    )

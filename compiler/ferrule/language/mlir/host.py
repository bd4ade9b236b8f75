"""The host function for the CPU: its ops, its launches as calls, its whole-tensor loops."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import field
from functools import partial

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.host.owned import SYMBOL
from ferrule.language.codegen.functions.lowering import Faults
from ferrule.language.codegen.host.allocation import needs_frame, owned_tensors
from ferrule.language.ir import ops
from ferrule.language.ir.passes.collapse import loop_order
from ferrule.language.mlir import control, kernels, memory, output
from ferrule.language.mlir import requests as outside
from ferrule.language.mlir.functions import FunctionText, unknown
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import Spaces
from ferrule.runtime.abi import DeviceType
from ferrule.specs import Boolean
from ferrule.specs.deferred import dataclass


def is_plain(program: ops.Program) -> bool:
    """Whether MLIR can compile the host function, and not only the kernels."""
    return not needs_frame(program) and not any(
        isinstance(op, outside.OUTSIDE) for op in program.host.facts.ops
    )


@dataclass(slots=True)
class CpuHost:
    """The surroundings of the host function; `results` is the address for the parts of the result.

    A launch is a call of the kernel's function.
    """

    program: ops.Program
    values: str
    results: str | None = None
    spaces: Spaces = field(default_factory=Spaces)
    unwritten: Set[ops.Value] = frozenset()
    approximates: bool = False
    native: bool = False
    unchecked: bool = False

    def fails(self, op: ops.Op) -> bool:
        if isinstance(op, ops.Launch):
            return kernels.kernel_fails(self.program.kernel(op.kernel))
        return kernels.can_fail(op)

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        output.check(f, self.values, ok, fault, values)

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        output.print_(f, op)

    def other(self, f: FunctionText, op: ops.Op) -> None:
        match op:
            case ops.Parallel():
                self.parallel(f, op)
            case ops.Launch():
                self.launch(f, op)
            case ops.Return(values):
                self.return_(f, values)
            case ops.Define():
                outside.define(f, op)
            case ops.CallDevice(result):
                f.values[result] = f.t.const_i64(DeviceType.CPU)
            case _:
                raise unknown(op, "the host function of the CPU has none")

    def launch(self, f: FunctionText, op: ops.Launch) -> None:
        """Calls the function that runs all blocks of a kernel."""
        t, kernel = f.t, self.program.kernel(op.kernel)
        grid, block = ([f.values[size] for size in sizes] for sizes in (op.grid, op.block))
        smem = t.const_i64(0) if op.smem is None else f.values[op.smem]
        count = t.binary("mul", t.binary("mul", grid[0], grid[1]), grid[2])
        given = [self.values, *(handed(f, argument) for argument in op.arguments)]
        given += [f.symbols[symbol] for symbol in self.program.symbols]
        given += [*grid, *block, smem, t.const_i64(0), count]
        types = ", ".join(t.types[value] for value in given)
        name = kernels.function_name(kernel)
        status = t.op(f"func.call {name}({', '.join(given)}) : ({types}) -> i32", "i32")
        if self.fails(op):
            control.leave_if(f, status)

    def parallel(self, f: FunctionText, op: ops.Parallel) -> None:
        """Nested loops; the innermost one runs over elements that are adjacent in memory."""
        if not f.fails(op):
            parallel(f, op)
            return

        def along(axes: Sequence[int]) -> None:
            if not axes:
                f.region(op.body)
                return
            axis, *rest = axes

            def each(number: str) -> None:
                f.values[op.indices[axis]] = number
                along(rest)

            end = f.values[op.extents[axis]]
            control.counted(f, f.t.const_i64(0), end, each, fails=True, hint="i")

        along(loop_order(op))

    def return_(self, f: FunctionText, values: Sequence[ops.Value]) -> None:
        """Stores the parts of the result in their slots."""
        assert self.results is not None, "the program has no result"
        t = f.t
        for position, value in enumerate(values):
            part = f.values[value]
            part = t.cast("extui", part, "i8") if value.type is Boolean else part
            part = t.cast("bitcast", part, "i16") if t.types[part] in ("f16", "bf16") else part
            slot = f"llvm.getelementptr {self.results}[{position}] : (!llvm.ptr) -> !llvm.ptr, i64"
            slot = t.op(slot, "!llvm.ptr")
            t.line(f"llvm.store {part}, {slot} : {t.types[part]}, !llvm.ptr")


def parallel(f: FunctionText, op: ops.Parallel) -> None:
    """An `scf.parallel`; without indices only the body is emitted."""
    t, order = f.t, loop_order(op)
    if not order:
        f.region(op.body)
        return
    hints = [op.indices[axis].hint if f.reads else "i" for axis in order]
    names = [t.known(t.name(hint), "index") for hint in hints]
    zero, one = t.index(0), t.index(1)
    ends = ", ".join(t.as_index(f.values[op.extents[axis]]) for axis in order)
    many = ", ".join([zero] * len(order)), ", ".join([one] * len(order))
    t.line(f"scf.parallel ({', '.join(names)}) = ({many[0]}) to ({ends}) step ({many[1]}) {{")
    with t.indented():
        for axis, name in zip(order, names, strict=True):
            f.values[op.indices[axis]] = t.cast("index_cast", name, "i64")
        f.region(op.body)
        if not f.reads:
            t.line("scf.reduce")
    t.line("}")


def handed(f: FunctionText, value: ops.Value) -> str:
    """An argument of a launch, as the kernel's function takes it."""
    if f.type_of(value).startswith("memref"):
        return memory.pointer(f, value)
    given = f.values[value]
    return f.t.cast("bitcast", given, kernels.interface_type(value.type))


def emit_host(
    t: Text,
    program: ops.Program,
    faults: Faults,
) -> None:
    """Emits the host function with the interface that `Body` documents."""
    params = [(p.hint, kernels.interface_type(p.type, memory=True)) for p in program.host.params]
    symbols = [(n, "i32" if s.width == 32 else "i64") for s, n in program.given.items()]
    results = [] if program.result is None else [("results", "!llvm.ptr")]
    listed = [("values", "!llvm.ptr"), *results, *params, *symbols]
    names = [t.known(t.name(name), type_) for name, type_ in listed]
    header = ", ".join(f"{name}: {t.types[name]}" for name in names)
    where = CpuHost(program, names[0], names[1] if results else None)
    f = FunctionText(t, where, faults=faults, owned=owned_tensors(program))
    kernels.with_body(
        f,
        f"func.func @{SYMBOL}({header}) -> i32",
        partial(_body, f, program, names[1 + len(results) :]),
    )


def _body(f: FunctionText, program: ops.Program, given: Sequence[str]) -> None:
    params = program.host.params
    rest = iter(given[len(params) :])
    f.symbols = {symbol: f.t.cast("extsi", next(rest), "i64") for symbol in program.given}
    made = [symbol for symbol in program.symbols if symbol in program.made]
    if made:
        f.symbols = outside.Symbols.of(f.t, f.symbols, made)
    for param, argument in zip(params, given, strict=False):
        f.receive(param, argument)
    f.region(program.host.body)

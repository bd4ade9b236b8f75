"""Kernels on the CPU: a function for each that runs some of a launch's blocks, thread by thread.

    i32 @blocks_<kernel>(ptr values, <parameters>, <symbols>, <grid>, <block>, smem, first, last)

runs the blocks first <= i < last, numbered with x fastest, and returns 0 or the number of the first
fault, whose values it writes to `values`.  Sizes are i64.  A kernel whose threads wait for each
other at the same places runs in the phases into which `codegen.cpu.cooperate.phases` cuts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import field
from functools import partial

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.functions.lowering import Faults
from ferrule.language.ir import ops
from ferrule.language.ir.shared import cooperates, uses_dynamic
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.mlir import atomics, control, cooperative, output
from ferrule.language.mlir.cooperative import AXES, locate, threads
from ferrule.language.mlir.functions import FunctionText, unknown
from ferrule.language.mlir.halves import INTERNAL
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import Spaces, scalar_type
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass


def interface_type(type_: Type, *, memory: bool = False) -> str:
    """The type of a parameter as LLVM code passes it; with `memory`, as C code passes it."""
    match type_:
        case TensorType() | HandleType():
            return "!llvm.ptr"
        case DType(kind="bool") if memory:
            return "i8"
        case DType(kind="float", bits=16):
            return "i16"
    return scalar_type(type_)


@dataclass(slots=True)
class CpuKernel:
    """The surroundings of a kernel's body; a fault writes its values to `values`."""

    kernel: ops.Function
    values: str
    spaces: Spaces = field(default_factory=Spaces)
    unwritten: Set[ops.Value] = frozenset()
    approximates: bool = False
    native: bool = False
    unchecked: bool = False
    phase: Callable[[FunctionText, ops.Parallel], None] | None = None
    """Emits a phase, if the kernel has phases."""

    def fails(self, op: ops.Op) -> bool:
        return can_fail(op)

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        output.check(f, self.values, ok, fault, values)

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        output.print_(f, op)

    def other(self, f: FunctionText, op: ops.Op) -> None:
        if isinstance(op, ops.Parallel) and self.phase is not None:
            self.phase(f, op)
        else:
            alone(f, op, self.kernel)


def alone(f: FunctionText, op: ops.Op, kernel: ops.Function) -> None:
    """Emits an op for which a kernel waits for no other thread."""
    match op:
        case ops.Atomic():
            atomics.emit(f, op)
        case ops.Fence(scope) if scope != "block":
            f.t.line("llvm.fence seq_cst")
        case ops.Fence() | ops.Shared() | ops.DynamicShared():
            pass  # one core runs a block, and shared memory is allocated before
        case _:
            raise unknown(op, f"the CPU runs {kernel.name} without it")


def can_fail(op: ops.Op) -> bool:
    """Whether an op without regions may end a kernel early."""
    return isinstance(op, ops.Check) or (isinstance(op, ops.Size) and op.fault is not None)


def kernel_fails(kernel: ops.Function) -> bool:
    """Whether a launch of a kernel may fail."""
    return cooperates(kernel) or any(map(can_fail, kernel.facts.ops))


def symbol(kernel: ops.Function) -> str:
    """The symbol of the function that runs blocks."""
    return f"blocks_of_{kernel.name}"


def function_name(kernel: ops.Function) -> str:
    """The symbol of the function that runs blocks, as MLIR quotes it."""
    return f'@"{symbol(kernel)}"'


def parameters(program: ops.Program, kernel: ops.Function) -> list[tuple[str, str]]:
    """Names and types of the parameters of a kernel's function, in order."""
    own = [(f"parameter{i}", interface_type(p.type)) for i, p in enumerate(kernel.params)]
    symbols = [(f"symbol{i}", "i64") for i, _ in enumerate(program.symbols)]
    sizes = [f"{of}.{axis}" for of in ("grid", "block") for axis in AXES]
    rest = [*sizes, "smem", "first", "last"]
    return [("values", "!llvm.ptr"), *own, *symbols, *((name, "i64") for name in rest)]


def emit_kernel(
    t: Text, program: ops.Program, kernel: ops.Function, faults: Faults, *, external: bool
) -> None:
    """Emits the function that runs blocks of a kernel; `external`: other modules call it."""
    given = {name: t.known(t.name(name), type_) for name, type_ in parameters(program, kernel)}
    header = ", ".join(f"{name}: {t.types[name]}" for name in given.values())
    attributes = "" if external else f" attributes {{{INTERNAL}}}"
    where = CpuKernel(kernel, given["values"])
    f = FunctionText(t, where, faults=faults)
    f.symbols = {s: given[f"symbol{i}"] for i, s in enumerate(program.symbols)}
    for axis in AXES:
        f.coordinates["grid_dim", axis] = given[f"grid.{axis}"]
        f.coordinates["block_dim", axis] = given[f"block.{axis}"]
    with_body(
        f,
        f"func.func {function_name(kernel)}({header}) -> i32{attributes}",
        partial(_body, f, where, given),
    )


def with_body(f: FunctionText, header: str, body: Callable[[], None]) -> None:
    """Emits a function that returns a status, which is 0 after its body."""
    t = f.t
    before, t.lines, t.prologue = t.lines, [], []
    exit_ = t.label("exit")
    f.exits.append(exit_)
    with t.indented():
        body()
        t.line(f"return {t.integer(0, 'i32')} : i32")
        if exit_ in f.left:
            status = t.known(t.name("status"), "i32")
            t.block(exit_, f"({status}: i32)")
            t.line(f"return {status} : i32")
    t.lines = [*before, f"  {header} {{", *t.prologue, *t.lines, "  }"]


def _body(f: FunctionText, where: CpuKernel, given: dict[str, str]) -> None:
    kernel = where.kernel
    for number, param in enumerate(kernel.params):
        f.receive(param, given[f"parameter{number}"])
    blocks = given["first"], given["last"]
    if cooperates(kernel):
        smem = given["smem"] if uses_dynamic(kernel) else f.t.const_i64(0)
        cooperative.emit(f, where, smem, blocks)
        return
    fails = kernel_fails(kernel)

    def block(number: str) -> None:
        locate(f, number)
        threads(f, lambda: f.region(kernel.body), fails=fails)

    control.counted(f, *blocks, block, fails=fails, hint="block")

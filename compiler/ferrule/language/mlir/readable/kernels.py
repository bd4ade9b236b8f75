"""Kernels in the text that people read: each is a `gpu.func` of memrefs and numbers.

A tensor that is an argument of the host function, or a new one, is a memref without an offset.
Sizes are read from the memrefs; a size that no tensor of the kernel has is a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
    kernel_parameters,
)
from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.mlir.device.lines import Lines
from ferrule.language.mlir.device.module import MODULE, DeviceKernel, bounds, coordinates
from ferrule.language.mlir.folding import without_unused
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.memory import strides_of
from ferrule.language.mlir.text import Text, quoted
from ferrule.language.mlir.types import Spaces, static_size, static_stride, value_type, whole_type
from ferrule.specs import Sym

SHOWN: Final = Spaces(smem=3, boolean="i1")
"""The memory of a kernel: what a memref of the host function points to is in the default space."""


def emit_kernels(
    t: Text, program: ops.Program, names: Mapping[str, str], lines: Lines | None
) -> None:
    """Emits the `gpu.module` with a program's kernels under these names."""
    outside, t.declared = t.declared, {}
    facts, made = launched(program), list[str]()
    for kernel in program.kernels:
        made += _kernel(t, program, kernel, names, facts.get(kernel.name, Launched()), lines)
    inside = [f"  {line}" for text in t.declared.values() for line in text.splitlines()]
    made = [f"  {line}" for line in made]
    t.lines, t.declared = [f"  gpu.module @{MODULE} {{", *inside, *made, "  }"], outside


def _kernel(
    t: Text,
    program: ops.Program,
    kernel: ops.Function,
    names: Mapping[str, str],
    known: Launched,
    lines: Lines | None,
) -> list[str]:
    """The lines of a kernel's function."""
    t.start()
    where = DeviceKernel.of(kernel, names[kernel.name], None)
    where.spaces = SHOWN
    f = FunctionText(t, where, lines=lines)
    given = [
        (each, t.known(t.name(parameter_name(program, each)), parameter_type(program, each)))
        for each in parameters(kernel)
    ]
    with t.indented():
        for parameter, argument in given:
            _receive(f, where, program, parameter, argument)
        coordinates(f, kernel)
        f.region(kernel.body)
        t.line("gpu.return")
    header = ", ".join(f"{name}: {t.types[name]}" for _, name in given)
    opening = f"gpu.func @{quoted(where.name)}({header}) kernel attributes {{{bounds(known)}}} {{"
    inside = without_unused([*t.prologue, *t.lines])
    return [f"  {opening}", *inside, "  }"]


def parameters(kernel: ops.Function) -> list[KernelParameter]:
    """The parameters of a kernel: its symbols are `index`, after all others."""
    return list(kernel_parameters(kernel))


def parameter_name(program: ops.Program, parameter: KernelParameter) -> str:
    """The name of a parameter, without the `%`."""
    match parameter:
        case SymbolParameter(symbol):
            return program.symbols[symbol]
        case TensorParameter(value) | ScalarParameter(value) | MapParameter(value):
            return value.hint


def parameter_type(program: ops.Program, parameter: KernelParameter) -> str:
    """The type of a parameter."""
    match parameter:
        case TensorParameter(value) if is_whole(program, value):
            return whole_type(value.tensor, SHOWN)
        case TensorParameter(value) | ScalarParameter(value):
            return value_type(value.type, SHOWN)
        case SymbolParameter():
            return "index"
        case MapParameter():
            return "!llvm.ptr"


def is_whole(program: ops.Program, param: ops.Value) -> bool:
    """Whether each launch passes an argument of the host function, or a new tensor."""
    host = program.host
    made = (op.result for op in host.facts.ops if isinstance(op, ops.Alloc | ops.Shrink))
    whole = {*host.params, *made}
    for launch in host.facts.each(ops.Launch):
        kernel = program.kernel(launch.kernel)
        for own, given in zip(kernel.params, launch.arguments, strict=True):
            if own is param and given not in whole:
                return False
    return True


def _receive(
    f: FunctionText,
    where: DeviceKernel,
    program: ops.Program,
    parameter: KernelParameter,
    argument: str,
) -> None:
    match parameter:
        case TensorParameter(value):
            f.values[value] = argument
            _bind_sizes(f, program, value.tensor, argument)
        case ScalarParameter(value):
            f.values[value] = argument
        case SymbolParameter(symbol):
            _bind(f, symbol, argument)
        case MapParameter(value, boxes):
            where.maps[value, boxes] = argument


def _bind_sizes(f: FunctionText, program: ops.Program, type_: TensorType, argument: str) -> None:
    """Binds the symbols that are sizes or strides of a memref."""
    t = f.t
    for axis, dim in enumerate(type_.shape):
        if isinstance(dim, Sym) and dim not in f.symbols and not static_size(dim):
            text = f"memref.dim {argument}, {t.index(axis)} : {t.types[argument]}"
            _bind(f, dim, t.op(text, "index", program.symbols[dim]))
    if "strided" in t.types[argument] and not all(map(static_stride, type_.strides)):
        strides = strides_of(f, type_, argument)
        for axis, dim in enumerate(type_.strides):
            if isinstance(dim, Sym) and dim not in f.symbols:
                _bind(f, dim, strides[axis])


def _bind(f: FunctionText, symbol: Sym, value: str) -> None:
    folding = f.t.folding
    if symbol.width == 32 and folding is not None:
        folding.small[value] = 32
    f.symbols = {**f.symbols, symbol: f.t.cast("index_cast", value, "i64")}

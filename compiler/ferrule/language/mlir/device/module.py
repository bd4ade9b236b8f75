"""Kernels for NVIDIA GPUs: a `gpu.module` with a `gpu.func` for each, and the surroundings of their
bodies.

The parameters are those of `codegen.cuda.parameters`: a tensor is a struct, passed by value, of its
address and its dynamic sizes and strides.  Each thread runs the body once; `gpu`'s ops give its
coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from math import prod
from typing import Final

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.cuda.launcher.tensor_maps import ALIGN
from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.language.checks.places import Places
from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
    kernel_parameters,
    number_type,
)
from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.codegen.facts.uniform import Divergent, Uniform
from ferrule.language.codegen.passes.clusters import LEAST, without_clusters
from ferrule.language.ir import ops
from ferrule.language.ir.effects import unwritten_tensors
from ferrule.language.mlir.device import output as device_output
from ferrule.language.mlir.device import threads as device_threads
from ferrule.language.mlir.device.lines import Lines, completed
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.kernels import interface_type
from ferrule.language.mlir.text import Text
from ferrule.language.mlir.types import Spaces
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import Dim, Sym
from ferrule.specs.deferred import dataclass

MODULE: Final = "kernels"
"""The name of the `gpu.module`."""
SPACES: Final = Spaces(gmem=1, smem=3)
_IDS: Final[dict[ops.Register, str]] = {
    "thread_idx": "thread_id",
    "block_idx": "block_id",
    "block_dim": "block_dim",
    "grid_dim": "grid_dim",
    "cluster_idx": "cluster_id",
    "cluster_dim": "cluster_dim",
    "block_in_cluster_idx": "cluster_block_id",
    "block_in_cluster_dim": "cluster_dim_blocks",
}
"""The names of the registers in `gpu`."""


@dataclass(slots=True)
class DeviceKernel:
    """The surroundings of a kernel's body; `aligned`: all threads of a warp reach each barrier
    together."""

    kernel: ops.Function
    name: str
    paths: bool
    aligned: bool
    spaces: Spaces = SPACES
    unwritten: Set[ops.Value] = frozenset()
    approximates: bool = False
    native: bool = True
    unchecked: bool = False
    shared: int = 0
    """The number of tensors in static shared memory that the kernel has so far."""
    maps: dict[tuple[ops.Value, ops.Boxes], str] = field(default_factory=dict)
    """The tensor maps among its parameters."""

    @staticmethod
    def of(kernel: ops.Function, name: str, options: DeviceOptions | None) -> DeviceKernel:
        """The surroundings of a kernel that is compiled with these options; None: its text is only
        shown."""
        paths = options is None or options.paths
        found = DeviceKernel(kernel, name, paths, _is_aligned(kernel))
        found.approximates = options is not None
        return found

    def fails(self, op: ops.Op) -> bool:
        return False  # a check that fails ends the CUDA context

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        device_output.check(f, self.kernel.name, ok, fault, values, paths=self.paths)

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        device_output.print_(f, op)

    def other(self, f: FunctionText, op: ops.Op) -> None:
        device_threads.lower(f, self, op)


def device_text(
    program: ops.Program,
    names: Mapping[str, str],
    capability: int | None,
    options: DeviceOptions,
    places: Places | None = None,
) -> str:
    """The module of a program's kernels, under these names, for GPUs of a compute capability; with
    `places`, each op has its source line.

    Raises CodegenError for an op that MLIR cannot express.
    """
    t = Text()
    emit_device(t, program, names, capability, options, places)
    return t.module() if places is None else completed(t.module())


def emit_device(
    t: Text,
    program: ops.Program,
    names: Mapping[str, str],
    capability: int | None = None,
    options: DeviceOptions | None = None,
    places: Places | None = None,
) -> None:
    """Emits the `gpu.module` with a program's kernels; `options` are given if it is to be
    compiled."""
    outside, t.declared = t.declared, {}
    before, t.lines = t.lines, []
    facts = launched(program)
    for kernel in program.kernels:
        if capability is not None and capability < LEAST:
            kernel = without_clusters(kernel)
        known = facts.get(kernel.name, Launched())
        where = DeviceKernel.of(kernel, names[kernel.name], options)
        if options is not None and options.noalias:
            where.unwritten = unwritten_tensors(program, kernel)
        lines = None if places is None or options is None else Lines(places, options.paths)
        _kernel(t, where, known, lines)
    inside = [f"  {line}" for text in t.declared.values() for line in text.splitlines()]
    t.lines = [*before, f"  gpu.module @{MODULE} {{", *inside, *t.lines, "  }"]
    t.declared = outside


def parameter_type(parameter: KernelParameter) -> str:
    """The type of a kernel's parameter."""
    match parameter:
        case TensorParameter(shape=shape, strides=strides):
            parts = [_numbers(part) for part in (shape, strides) if part]
            layout = f", struct<({', '.join(parts)})>" if parts else ""
            return f"!llvm.struct<(ptr{layout})>"
        case ScalarParameter(dtype=dtype):
            return interface_type(dtype, memory=True)
        case SymbolParameter(symbol):
            return dim_type(symbol)
        case MapParameter():
            return "!llvm.ptr"


def _attributes(parameter: KernelParameter) -> str:
    """The attributes of a kernel's argument: `pipeline` recognises a tensor map by its
    alignment."""
    return f" {{llvm.align = {ALIGN} : i64}}" if isinstance(parameter, MapParameter) else ""


def dim_type(dim: Dim) -> str:
    """The type of a size in a parameter."""
    return "i32" if number_type(dim) == I32 else "i64"


def _numbers(dims: Sequence[Dim]) -> str:
    return f"struct<({', '.join(map(dim_type, dims))})>"


def _kernel(t: Text, where: DeviceKernel, known: Launched, lines: Lines | None) -> None:
    kernel, name = where.kernel, where.name
    parameters = kernel_parameters(kernel)
    f = FunctionText(t, where, lines=lines)
    given = [t.known(t.name("parameter"), parameter_type(each)) for each in parameters]
    header = ", ".join(
        f"{name}: {t.types[name]}{_attributes(each)}"
        for name, each in zip(given, parameters, strict=True)
    )

    def body() -> None:
        for parameter, argument in zip(parameters, given, strict=True):
            _bind(f, parameter, argument)
        for parameter, argument in zip(parameters, given, strict=True):
            _receive(f, where, parameter, argument)
        coordinates(f, kernel)
        f.region(kernel.body)

    opening = f'gpu.func @"{name}"({header}) kernel attributes {{{bounds(known)}}} {{'
    t.place = place = "" if lines is None else lines.of(kernel)
    _with_body(t, opening, body, place)
    t.place = ""


def _with_body(t: Text, opening: str, body: Callable[[], None], place: str) -> None:
    before, t.lines, t.prologue = t.lines, [], []
    with t.indented():
        body()
        t.line("gpu.return")
    t.lines = [*before, f"  {opening}", *t.prologue, *t.lines, f"  }}{place}"]


def _is_aligned(kernel: ops.Function) -> bool:
    """Whether the threads of a warp reach each barrier together."""
    try:
        Uniform.of(kernel)
    except Divergent:
        return False
    return True


def bounds(known: Launched) -> str:
    """The attributes that bound the number of threads of a block and ask for a number of blocks per
    SM."""
    least = f", nvvm.minctasm = {known.min_blocks} : i32" if known.min_blocks else ""
    required = [size for size in known.blocks if size is not None]
    if len(required) == len(known.blocks) and 1 <= prod(required) <= MAX_THREADS:
        return f"nvvm.reqntid = array<i32: {', '.join(map(str, required))}>{least}"
    if any(known.max_threads):
        return f"nvvm.maxntid = array<i32: {', '.join(map(str, known.max_threads))}>{least}"
    most = 1
    for _, high in known.block:
        most = min(MAX_THREADS, most * high)
    return f"nvvm.maxntid = array<i32: {max(1, most)}>{least}"


def _bind(f: FunctionText, parameter: KernelParameter, argument: str) -> None:
    """Binds the symbols that a parameter contains, or is."""
    match parameter:
        case TensorParameter():
            for number in parameter.numbers():
                if isinstance(number.dim, Sym) and number.dim not in f.symbols:
                    place = ", ".join(map(str, number.positions))
                    text = f"llvm.extractvalue {argument}[{place}] : {f.t.types[argument]}"
                    _bound(f, number.dim, f.t.op(text, dim_type(number.dim)))
        case SymbolParameter(symbol):
            _bound(f, symbol, argument)


def _bound(f: FunctionText, symbol: Sym, number: str) -> None:
    f.symbols = {**f.symbols, symbol: f.t.cast("extsi", number, "i64")}


def _receive(
    f: FunctionText, where: DeviceKernel, parameter: KernelParameter, argument: str
) -> None:
    match parameter:
        case TensorParameter(value):
            text = f"llvm.extractvalue {argument}[0] : {f.t.types[argument]}"
            f.receive(value, f.t.op(text, "!llvm.ptr"))
        case ScalarParameter(value):
            f.receive(value, argument)
        case MapParameter(value, boxes):
            where.maps[value, boxes] = argument


def coordinates(f: FunctionText, kernel: ops.Function) -> None:
    """Reads each register that a kernel uses, once."""
    for op in kernel.facts.ops:
        if isinstance(op, ops.Special) and (op.register, op.axis) not in f.coordinates:
            name, axis = _IDS[op.register], ops.AXES[op.axis]
            found = f.t.op(f"gpu.{name} {axis}", "index", f"{name}_{axis}" if f.reads else "")
            f.coordinates[op.register, op.axis] = f.t.cast("index_cast", found, "i64")

"""Kernels for NVIDIA GPUs: a program's kernels as one PTX module.

Each thread runs the kernel's body once; its coordinates are special registers.  The text is PTX
for one architecture, made by LLVM after its ordinary pipeline.  Nothing in it refers to a library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from llvmlite import binding as llvm
from llvmlite import ir

from ferrule.compiler.artefacts import stage
from ferrule.compiler.cuda import archs
from ferrule.compiler.cuda.assembly import with_cubin
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.kernelfacts import KernelImage
from ferrule.compiler.cuda.libdevice import link_libdevice
from ferrule.compiler.cuda.limits import MAX_THREADS
from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.compiler.cuda.selection import select_ptx
from ferrule.language.checks.places import Places
from ferrule.language.codegen.cuda.maths import DeviceMaths
from ferrule.language.codegen.cuda.narrow import used_in
from ferrule.language.codegen.cuda.output import DeviceOutput
from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
    kernel_parameters,
    space,
)
from ferrule.language.codegen.cuda.threads import DeviceThreads, require_cooperation
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.codegen.facts.offsets import Reach, measured
from ferrule.language.codegen.functions.dispatch import emit_region
from ferrule.language.codegen.functions.lines import LineInfo
from ferrule.language.codegen.functions.lowering import Faults, FunctionLowering
from ferrule.language.codegen.passes import clusters
from ferrule.language.ir import ops
from ferrule.language.ir.effects import unwritten_tensors
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.walk import drive
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, I64, VOID
from ferrule.runtime.llvm.passes import run_pipeline
from ferrule.specs import Boolean, Int32, Sym
from ferrule.specs.conditions import Comparison
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.specs.implied import Product

# Address spaces of NVPTX in LLVM: global is 1, shared is 3, constant is 4.
_CONSTANT: Final = 4
_GLOBAL: Final = ir.PointerType(addrspace=1)
_REGISTERS: Final[dict[ops.Register, str]] = {
    "thread_idx": "tid",
    "block_idx": "ctaid",
    "block_dim": "ntid",
    "grid_dim": "nctaid",
    **clusters.REGISTERS,
}
_ORDINARY: Final = DeviceOptions(())
_WORDS: Final = ("", "_", "WARP_SZ")
"""Names that are invalid in PTX."""


def lower_device(
    program: ops.Program,
    options: DeviceOptions,
    places: Places | None = None,
    entries: Entries | None = None,
) -> DeviceCode:
    """The kernels of a program as PTX for each architecture; with `places`, with source lines.
    `entries` are those of the program, where they are known.

    Raises CodegenError for ops that a target does not support.
    """
    entries = entries_of(program, options) if entries is None else entries
    images = tuple(_image(program, arch, entries, options, places) for arch in options.archs)
    names = tuple(each.name for versions in entries.values() for each in versions)
    return DeviceCode(images, names, options.assembling)


def _image(
    program: ops.Program,
    arch: str,
    entries: Entries,
    options: DeviceOptions,
    places: Places | None,
) -> KernelImage:
    with stage(f"kernels for {arch}", "from kernel IR to PTX"):
        with stage("write", "the text of the kernels as LLVM IR"):
            text = device_module(program, arch, entries, options, places)
        most = parameter_bytes(program, archs.parameter_limit(arch))
        with stage("LLVM", "parses, optimises, and writes PTX"):
            image = KernelImage(arch, (ptx(text, arch, most, options.opt_level),))
    return with_cubin(image, options.assembling) if options.cubin else image


def device_module(
    program: ops.Program,
    arch: str,
    entries: Entries,
    options: DeviceOptions = _ORDINARY,
    places: Places | None = None,
) -> str:
    """A program's kernels as LLVM text, as these entries, neither verified nor optimised.

    Raises CodegenError for ops that the target does not support.
    """
    emitter = Emitter(program.name, archs.TRIPLE, str(archs.machine(arch).target_data))
    facts = launched(program)
    lines = None if places is None else LineInfo(emitter, places, paths=options.paths)
    sizes, limits = sizes_of(program), _limits(program.facts)
    for kernel in program.kernels:
        require_cooperation(kernel, arch)
        if archs.capability(arch) < clusters.LEAST:
            kernel = clusters.without_clusters(kernel)
        known = facts.get(kernel.name, Launched())
        for entry in entries[kernel.name]:
            built = _Kernel(emitter, kernel, known, options, lines)
            built.lowering.sizes, built.lowering.limits = sizes, limits
            built.lowering.measured = entry.measured
            if options.noalias:
                built.lowering.unwritten = unwritten_tensors(program, kernel)
            built.emit(entry.name, program.facts)
    if lines is not None:
        lines.finish()
    return emitter.text()


def sizes_of(program: ops.Program) -> frozenset[Sym]:
    """The symbols that are sizes of the caller's tensors, which a call checks."""
    tensors = (param.type for param in program.host.params if isinstance(param.type, TensorType))
    return frozenset(dim for type_ in tensors for dim in type_.shape if isinstance(dim, Sym))


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel in PTX.  `measured`: the layouts whose offsets it computes in 32 bits, each with a
    tensor of this layout; a launch finds out whether they fit."""

    name: str
    measured: Mapping[Reach, ops.Value] = field(default_factory=dict)


Entries: TypeAlias = Mapping[str, tuple[Entry, ...]]
"""By the name of a kernel.  The last entry of several has its name and is for all tensors."""


def entries_of(program: ops.Program, options: DeviceOptions = _ORDINARY) -> Entries:
    """The entries of each kernel of a program."""
    names, limits = entry_names(program), _limits(program.facts)
    # With the other kernels' own names, which people launch by and which must stay as they are.
    taken = {*names.values(), *_WORDS}
    found: dict[str, tuple[Entry, ...]] = {}
    for kernel in program.kernels:
        name = names[kernel.name]
        reaches = {} if options.index_bitwidth == 64 else measured(kernel, limits)
        if reaches and options.index_bitwidth is None:
            # Who launches the PTX without the host function takes the kernel for all tensors.
            short = Entry(_unique(f"{name}_int32", taken), reaches)
            found[kernel.name] = (short, Entry(name))
        else:
            found[kernel.name] = (Entry(name, reaches),)
    return found


def entry_names(program: ops.Program) -> dict[str, str]:
    """The name of each kernel in PTX: its own, in PTX's letters, and unique."""
    names: dict[str, str] = {}
    taken = set(_WORDS)
    for kernel in program.kernels:
        wanted = re.sub(r"[^A-Za-z0-9_]", lambda found: f"$u{ord(found[0]):x}", kernel.name)
        names[kernel.name] = _unique(f"kernel_{wanted}" if wanted in _WORDS else wanted, taken)
    return names


def _unique(wanted: str, taken: set[str]) -> str:
    """A name that is not taken yet, and is from now on."""
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}_{count}"
    taken.add(name)
    return name


def parameter_bytes(program: ops.Program, limit: int) -> int:
    """The largest parameter space of a kernel.  Raises CodegenError if it exceeds the limit."""
    most = 0
    for kernel in program.kernels:
        size = space(kernel_parameters(kernel))
        if size > limit:
            raise CodegenError(
                f"the parameters of the kernel {kernel.name} take {size} bytes, but the target has "
                f"room for {limit}: pass fewer tensors, or make more of their sizes constant"
            )
        most = max(most, size)
    return most


def _limits(facts: Sequence[Comparison]) -> Sequence[Product]:
    """What is known of products of sizes."""
    if not facts:
        return ()
    from ferrule.specs.implied import products

    return products(facts)


class _Kernel:
    """One kernel under construction."""

    def __init__(
        self,
        emitter: Emitter,
        kernel: ops.Function,
        known: Launched,
        options: DeviceOptions,
        lines: LineInfo | None,
    ) -> None:
        self.emitter: Final = emitter
        self.kernel: Final = kernel
        self.known: Final = known
        self.lines: Final = lines
        self.lowering: Final = FunctionLowering(
            emitter,
            Faults(),
            maths=DeviceMaths(options.libdevice),
            constant_space=_CONSTANT,
            spaces=(_GLOBAL.addrspace, 3),
            lines=lines,
            output=DeviceOutput(kernel.name, options.paths),
        )
        self.symbols: Final[dict[Sym, ir.Value]] = {}

    def emit(self, name: str, facts: Sequence[Comparison]) -> None:
        """The entry point: loads the parameters, then runs the body for this thread."""
        parameters = kernel_parameters(self.kernel)
        types = [parameter.type for parameter in parameters]
        names = [_name(parameter) for parameter in parameters]
        with self.emitter.define(
            name, VOID, types, names=names, attributes=("nounwind",)
        ) as function:
            function.calling_convention = "ptx_kernel"
            for parameter, argument in zip(parameters, function.args, strict=True):
                if isinstance(parameter, MapParameter):
                    # As strings, because llvmlite's own `byval` is for typed pointers.
                    for attribute in parameter.attributes:
                        set.add(argument.attributes, attribute)
            for bound in self._bounds():
                set.add(function.attributes, bound)
            if self.lines is not None:
                self.lines.enter(self.kernel)
            for parameter, argument in zip(parameters, function.args, strict=True):
                self._receive(parameter, argument)
            self.lowering.symbols, self.lowering.narrow = self.symbols, True
            self.lowering.assume_bounds(facts)
            self.lowering.thread_op = DeviceThreads.of(self.kernel, name).lower
            self._coordinates()
            drive(emit_region(self.lowering, self.kernel.body))
            self.emitter.ret()

    def _bounds(self) -> Iterator[str]:
        """The number of threads in a block, so that the registers always suffice, and the number of
        blocks that must fit on an SM."""
        if self.known.min_blocks:
            yield f'"nvvm.minctasm"="{self.known.min_blocks}"'
        sizes = self.known.blocks
        required = [size for size in sizes if size is not None]
        if len(required) == len(sizes) and 1 <= prod(required) <= MAX_THREADS:
            yield '"nvvm.reqntid"="' + ",".join(map(str, required)) + '"'
        elif any(self.known.max_threads):
            most = ",".join(map(str, self.known.max_threads))
            yield f'"nvvm.maxntid"="{most}"'
        else:
            most_threads = 1
            for _, high in self.known.block:
                most_threads = min(MAX_THREADS, most_threads * high)
            yield f'"nvvm.maxntid"="{max(1, most_threads)}"'

    def _receive(self, parameter: KernelParameter, argument: ir.Value) -> None:
        b, lowering = self.emitter.builder, self.lowering
        match parameter:
            case TensorParameter(value):
                data = b.extract_value(argument, [0], name=f"{value.hint}.data")
                lowering.values[value] = b.addrspacecast(data, _GLOBAL)
                for number in parameter.numbers():
                    if isinstance(number.dim, Sym) and number.dim not in self.symbols:
                        self._bind(number.dim, b.extract_value(argument, number.positions))
            case ScalarParameter(value, dtype):
                is_bool = dtype is Boolean
                lowering.values[value] = (
                    b.icmp_unsigned("!=", argument, ir.Constant(I8, 0)) if is_bool else argument
                )
            case SymbolParameter(symbol):
                self._bind(symbol, argument)
            case MapParameter(value, boxes):
                lowering.tensor_maps[value, boxes] = argument

    def _bind(self, symbol: Sym, number: ir.Value) -> None:
        """A size is widened as coordinates are, without a sign: PTX multiplies two numbers of 32
        bits to 64 in one instruction if both are widened alike."""
        b = self.emitter.builder
        if number.type == I64:
            self.symbols[symbol] = number
        elif symbol in self.lowering.sizes:
            b.assume(b.icmp_signed(">=", number, ir.Constant(I32, 0)))
            self.symbols[symbol] = b.zext(number, I64)
        else:
            self.symbols[symbol] = b.sext(number, I64)

    def _coordinates(self) -> None:
        """The special registers of the thread, as i64; constant ones as constants."""
        facts = {"grid_dim": self.known.grid, "block_dim": self.known.block}
        sizes = {"thread_idx": self.known.block, "block_idx": self.known.grid}
        for register, name in _REGISTERS.items():
            if register in clusters.REGISTERS and not clusters.uses_clusters(self.kernel):
                continue
            for axis, letter in enumerate(ops.AXES):
                low, high = facts[register][axis] if register in facts else (0, -1)
                most = sizes[register][axis][1] if register in sizes else None
                self.lowering.coordinates[register, axis] = (
                    ir.Constant(I64, low)
                    if low == high
                    else self._special(f"{name}.{letter}", most)
                )

    def _special(self, name: str, below: int | None) -> ir.Value:
        """A special register.  LLVM is told what it is `below`: by itself it takes each coordinate
        of a thread to be below the product of the block's sizes."""
        intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}"
        value = self.emitter.call(
            self.emitter.symbol(intrinsic, ir.FunctionType(I32, [])), [], name=name
        )
        if below is not None and 0 < below <= Int32.range[1]:
            limits = [ir.Constant(I32, 0), ir.Constant(I32, below)]
            # LLVM's ranges exclude their end.
            value.set_metadata("range", self.emitter.module.add_metadata(limits))
        return self.emitter.builder.zext(value, I64)


def _name(parameter: KernelParameter) -> str:
    if isinstance(parameter, SymbolParameter):
        return parameter.symbol.name or "size"
    if isinstance(parameter, MapParameter):
        return f"{parameter.value.hint}.map"
    return parameter.value.hint


def ptx(text: str, arch: str, parameter_bytes: int = 0, opt_level: int = 3) -> str:
    """The PTX from LLVM's pipeline and back end for a module, whose kernels have at most this many
    bytes of parameters."""
    features = archs.features(arch, (text,), parameter_bytes, narrow=used_in(text))
    machine = archs.machine(arch, features, opt_level)
    context = llvm.create_context()
    with llvm.parse_assembly(text, context) as module:
        module.verify()
        link_libdevice(module, context)
        _optimise(module, machine, opt_level)
        return select_ptx(module, machine, context)


def _optimise(module: Any, machine: Any, opt_level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    # Threads are the lanes of a GPU. Wide loads and stores are made by a pass of LLVM's back end.
    options.loop_vectorization = options.slp_vectorization = False
    run_pipeline(module, machine, options)

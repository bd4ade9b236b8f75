"""The CUDA target: kernels as PTX, the host function as a body that launches them.

The body has two functions: `ferrule_body` makes the call's device current, calls `host`, and
restores the previous context, also after an error.  Every launch passes the addresses of its
parameters, which are on the stack in the layout of `parameters`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.artefacts import Body, Fault, Location, stage
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.compiler.cuda.launcher.driver import SHARED_BY_DEFAULT
from ferrule.compiler.cuda.launcher.faults import failures
from ferrule.compiler.cuda.launcher.images import images_of
from ferrule.compiler.cuda.launcher.launch import Large, Launcher, Otherwise
from ferrule.compiler.cuda.options import DeviceOptions
from ferrule.compiler.host.flow import return_if_failed
from ferrule.compiler.host.owned import SYMBOL, declare_inner
from ferrule.language.checks.places import Places as SourcePlaces
from ferrule.language.codegen.cuda.kernels import (
    Entries,
    Entry,
    entries_of,
    entry_names,
    lower_device,
    sizes_of,
)
from ferrule.language.codegen.cuda.launch_attributes import (
    encoded_map,
    launch_attributes,
    require_attributes,
)
from ferrule.language.codegen.cuda.maths import DeviceMaths
from ferrule.language.codegen.cuda.measuring import Measuring
from ferrule.language.codegen.cuda.narrow import have_instructions
from ferrule.language.codegen.cuda.parameters import (
    KernelParameter,
    MapParameter,
    ScalarParameter,
    SymbolParameter,
    TensorParameter,
    kernel_parameters,
    number_type,
)
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.functions.lowering import Faults, FunctionLowering
from ferrule.language.codegen.host.allocation import (
    Allocator,
    Made,
    Places,
    frame,
    needs_frame,
    places_of,
)
from ferrule.language.codegen.host.calls import Surroundings, emit_call, needs_device
from ferrule.language.codegen.host.function import emit_host, finished, host_types
from ferrule.language.codegen.passes.decided import decided
from ferrule.language.codegen.passes.relaxed import relaxed
from ferrule.language.codegen.passes.unrolled import unrolled
from ferrule.language.codegen.values.casts import truncate
from ferrule.language.ir import ops, shared
from ferrule.language.ir.passes.outline import outline
from ferrule.language.ir.walk import Work
from ferrule.language.mathlib import expand_maths
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64, PTR
from ferrule.specs import Dim
from ferrule.specs.deferred import dataclass

_STRAIGHT: Final = ("noinline", "optnone")
"""Attributes of straight-line code that runs once a launch: LLVM's optimising instruction selection
would take a third of a compilation for it, to save a nanosecond."""


LowerDevice: TypeAlias = Callable[[ops.Program, DeviceOptions, SourcePlaces | None], DeviceCode]
"""The type of `lower_device`, which makes the kernels of a program."""


def lower_cuda(
    program: ops.Program,
    options: DeviceOptions,
    places: SourcePlaces | None = None,
    *,
    kernels: LowerDevice | None = None,
) -> Body:
    """The body of a program with unexpanded maths, for GPUs of these architectures, on a host CPU.

    With `places` the kernels have source lines.  `kernels` makes the kernels, `lower_device` by
    default.  Raises CodegenError for ops that the target does not support.
    """
    # Whole-tensor assignments become kernels first, so that the other passes see all kernels.
    program = unrolled(decided(outline(program, wide=kernels is None)))
    # These two change which functions `expand_maths` leaves to the GPU.
    if options.fast_math:
        program = relaxed(program)
    if options.libdevice:
        from ferrule.language.codegen.passes.composed import composed

        program = composed(program)
    native = kernels is None and have_instructions(options.archs)
    with stage("expand", "functions of the maths library become operations"):
        program = expand_maths(program, DeviceMaths(options.libdevice, native).keeps, on_gpu=True)
    if not program.kernels:
        return _without_kernels(program)
    require_attributes(program, options.archs)
    entries = _entries(program, options, kernels)
    code = (kernels or partial(lower_device, entries=entries))(program, options, places)
    with stage("write launches", "the text of the code that launches them"):
        emitter = Emitter(program.name)
        launcher = Launcher(emitter, images_of(code), code.kernels, options.jit)
        module = _Module(program, emitter, launcher, entries)
        module.emit()
        return finished(program, emitter, module.faults, code)


def _entries(program: ops.Program, options: DeviceOptions, kernels: LowerDevice | None) -> Entries:
    """The names of the kernels in the code; kernels that another pipeline lowers compute offsets in
    64 bits."""
    if kernels is None:
        return entries_of(program, options)
    if options.index_bitwidth == 32:
        raise CodegenError(
            "--pipeline mlir computes offsets of elements in 64 bits: leave out --index-bitwidth 32"
        )
    return {kernel: (Entry(name),) for kernel, name in entry_names(program).items()}


def _without_kernels(program: ops.Program) -> Body:
    """A body without launches, which needs a GPU only for the memory of new tensors."""
    emitter, faults = Emitter(program.name), Faults()
    types, names = host_types(program)
    on_device = needs_device(program)
    if on_device:
        types, names = [*types, I32], [*names, "device"]
    attributes = ("nounwind",)
    with emitter.define(SYMBOL, I32, types, names=names, attributes=attributes) as function:
        if not needs_frame(program):
            index = at_least_0(emitter, function.args[-1]) if on_device else emitter.const_i32(0)
            arguments = function.args[:-1] if on_device else function.args
            lowering = FunctionLowering(emitter, faults, host_op=partial(_calls, index))
            emit_host(program, lowering, arguments)
        else:
            inner = declare_inner(emitter, types, names)
            frame(program, emitter, inner, function.args)
    if needs_frame(program):
        with emitter.body(inner):
            index = at_least_0(emitter, inner.args[-1]) if on_device else emitter.const_i32(0)
            places = places_of(program, emitter, inner.args)
            allocator = Allocator(places, DeviceType.CUDA, index)
            arguments = inner.args[1:-1] if on_device else inner.args[1:]
            host_op = partial(_allocations, allocator)
            emit_host(program, FunctionLowering(emitter, faults, host_op=host_op), arguments)
    return finished(program, emitter, faults, takes_device=on_device)


def _allocations(allocator: Allocator, lowering: FunctionLowering, op: ops.HostOp) -> Work | None:
    if not isinstance(op, Made):
        return _calls(allocator.index, lowering, op, allocator.places)
    allocator.make(lowering, op)
    return None


def _calls(
    index: ir.Value, lowering: FunctionLowering, op: ops.HostOp, places: Places | None = None
) -> Work | None:
    if isinstance(op, ops.Outgoing | ops.ObjectOp):
        emit_call(lowering, op, Surroundings(DeviceType.CUDA, index, places))
        return None
    if isinstance(op, ops.CallDevice):
        lowering.values[op.result] = device_bits(lowering.emitter, index)
        return None
    raise TypeError(f"a program without kernels has a {type(op).__name__}")


@dataclass(slots=True)
class _Module:
    """The module under construction."""

    program: ops.Program
    emitter: Emitter
    launcher: Launcher
    entries: Entries
    faults: Faults = field(default_factory=Faults)
    device: ir.Value | None = None
    stream: ir.Value | None = None
    allocator: Allocator | None = None

    def emit(self) -> None:
        types, names = host_types(self.program)
        types, names = [*types, I32], [*names, "device"]
        framed = needs_frame(self.program)
        outer = self.emitter.declare(
            SYMBOL, I32, types, names=names, attributes=("nounwind", *_STRAIGHT)
        )
        entry = declare_inner(self.emitter, types, names) if framed else outer
        if framed:
            types, names = [PTR, *types], ["tensors", *names]
        host = self.emitter.declare(
            "host", I32, types, names=names, linkage="internal", attributes=self.attributes()
        )
        if framed:
            with self.emitter.body(outer):
                frame(self.program, self.emitter, entry, outer.args)
        with self.emitter.body(entry):
            self.entered(host, entry.args, entry.args[1 if framed else 0])
        with self.emitter.body(host):
            self.host(host.args, framed=framed)

    def entered(self, host: ir.Function, arguments: Sequence[ir.Value], values: ir.Value) -> None:
        """The call of the host function on the call's device."""
        status, token, device = self.launcher.enter(arguments[-1], values)
        self.require(status, f"at the start of {self.program.name}", None)
        result = self.emitter.call(host, [*arguments[:-1], device], name="result")
        self.leave(result, token, values)

    def host(self, arguments: Sequence[ir.Value], *, framed: bool) -> None:
        """The code of the host function."""
        self.device = arguments[-1]
        if self.uses_current_stream():
            self.stream = self.launcher.current_stream(self.device)
        if framed:
            places = places_of(self.program, self.emitter, arguments)
            self.allocator = Allocator(places, DeviceType.CUDA, self.device)
            arguments = arguments[1:]
        lowering = FunctionLowering(self.emitter, self.faults, host_op=self.host_op)
        emit_host(self.program, lowering, arguments[:-1])

    def attributes(self) -> tuple[str, ...]:
        """The attributes of the host function: straight-line code is inlined into its caller."""
        repeats = self.program.host.facts.has(ops.For, ops.While)
        return ("nounwind",) if repeats else ("nounwind", "alwaysinline")

    def leave(self, result: ir.Value, token: ir.Value, values: ir.Value) -> None:
        """Ends the body with the host function's result; an error of the host function has
        priority."""
        e = self.emitter
        done, failed = e.block("done"), e.block("failed")
        e.cond_branch(e.icmp("eq", result, ir.Constant(I32, 0)), done, failed, LIKELY)
        e.at(failed)
        self.launcher.leave(token)
        e.ret(result)
        e.at(done)
        status = self.launcher.leave(token, values)
        self.require(status, f"at the end of {self.program.name}", None)
        e.ret(ir.Constant(I32, 0))

    def uses_current_stream(self) -> bool:
        """Whether a launch uses the caller's current stream."""
        launches = self.program.host.facts.each(ops.Launch)
        return any(launch.stream is None for launch in launches)

    def require(self, status: ir.Value, doing: str, location: Location | None) -> None:
        """Ends the function with the launcher's failure, whose values it has stored."""
        self.require_faults(status, failures(doing, location))

    def require_faults(self, status: ir.Value, faults: Sequence[Fault]) -> None:
        """Ends the function if the status is not 0: it is the number of one of the faults."""
        numbers = [self.faults.number(fault) for fault in faults]
        return_if_failed(self.emitter, status, numbers, "passed")

    def host_op(self, lowering: FunctionLowering, op: ops.HostOp) -> Work | None:
        """Emits a launch or an allocation."""
        if isinstance(op, Made):
            assert self.allocator is not None
            self.allocator.make(lowering, op)
            return None
        if isinstance(op, ops.Outgoing | ops.ObjectOp):
            assert self.device is not None
            places = None if self.allocator is None else self.allocator.places
            emit_call(lowering, op, Surroundings(DeviceType.CUDA, self.device, places))
            return None
        if isinstance(op, ops.CallDevice):
            assert self.device is not None
            lowering.values[op.result] = device_bits(self.emitter, self.device)
            return None
        if isinstance(op, ops.Parallel):
            raise TypeError("every Parallel was outlined")
        kernel = self.program.kernel(op.kernel)
        otherwise = self.for_larger(lowering, kernel, op)
        parameters = self.packed(lowering, kernel, op.arguments)
        values = lowering.values
        status = self.launcher.launch(
            self.entries[kernel.name][0].name,
            [values[size] for size in op.grid],
            [values[size] for size in op.block],
            self.smem(lowering, op),
            self.stream if op.stream is None else values[op.stream],
            parameters,
            lowering.fault_values,
            self.large(lowering, kernel, op),
            launch_attributes(lowering, op),
            otherwise,
        )
        self.require(status, f"in the launch of {kernel.name}", op.location)
        return None

    def for_larger(
        self, lowering: FunctionLowering, kernel: ops.Function, op: ops.Launch
    ) -> Otherwise | None:
        """The kernel for tensors whose offsets need 64 bits; without one, but with layouts to
        measure, such tensors are refused."""
        first, *larger = self.entries[kernel.name]
        measuring = Measuring(lowering, sizes_of(self.program))
        if larger:
            return Otherwise(measuring.all_fit(first.measured), larger[0].name)
        for reach, tensor in first.measured.items():
            doing = f"in the launch of {kernel.name}"
            measuring.require_fit(reach, tensor, doing, op.location)
        return None

    def smem(self, lowering: FunctionLowering, op: ops.Launch) -> ir.Value:
        """The bytes of dynamic shared memory, i32."""
        if op.smem is None:
            return ir.Constant(I32, 0)
        return truncate(self.emitter.builder, lowering.values[op.smem], I32, "smem")

    def large(
        self, lowering: FunctionLowering, kernel: ops.Function, op: ops.Launch
    ) -> Large | None:
        """The arguments for a launch whose blocks may need more shared memory than the default
        limit."""
        if op.smem is None:
            return None
        _, static = shared.offsets(kernel)
        size = lowering.values[op.smem]
        if isinstance(size, ir.Constant) and size.constant + static <= SHARED_BY_DEFAULT:
            return None
        assert self.device is not None
        return Large(self.device, static)

    def packed(
        self, lowering: FunctionLowering, kernel: ops.Function, arguments: Sequence[ops.Value]
    ) -> list[ir.Value]:
        """The addresses of a launch's parameters, which are stored there."""
        given = dict(zip(kernel.params, arguments, strict=True))
        return [self.stored(lowering, parameter, given) for parameter in kernel_parameters(kernel)]

    def stored(
        self,
        lowering: FunctionLowering,
        parameter: KernelParameter,
        given: Mapping[ops.Value, ops.Value],
    ) -> ir.Value:
        """The address of one parameter, which is stored there."""
        e = self.emitter
        match parameter:
            case TensorParameter(value, layout=layout):
                place = e.alloca(layout, name=value.hint)
                e.store_field(place, layout, "data", lowering.values[given[value]])
                for number in parameter.numbers():
                    e.store_field(place, layout, number.path, self.size(lowering, number.dim))
                return place
            case ScalarParameter(value, type=kind):
                scalar = lowering.values[given[value]]
                stored = e.builder.zext(scalar, kind) if scalar.type == I1 else scalar
            case SymbolParameter(symbol, type=kind):
                stored = self.size(lowering, symbol)
            case MapParameter(value):
                where = f"in a launch of {self.program.name}"
                maps = encoded_map(self.launcher, lowering, given[value], parameter, where)
                place, encoded, faults = maps
                self.require_faults(encoded, faults)
                return place
        place = e.alloca(kind, name="parameter")
        e.store(stored, place)
        return place

    def size(self, lowering: FunctionLowering, dim: Dim) -> ir.Value:
        """A size in its type as a parameter."""
        wide, kind = lowering.dim(dim), number_type(dim)
        return wide if kind == I64 else truncate(self.emitter.builder, wide, kind, "size")


# ---- the ordinal of a GPU ----


def at_least_0(emitter: Emitter, device: ir.Value) -> ir.Value:
    """The call's device, or the first one if it has none."""
    zero = emitter.const_i32(0)
    return emitter.select(emitter.icmp("slt", device, zero), zero, device)


def device_bits(emitter: Emitter, index: ir.Value) -> ir.Value:
    """A GPU as the bits of a DLDevice."""
    wide = emitter.builder.zext(index, I64)
    above = emitter.binary("shl", wide, emitter.const_i64(32))
    return emitter.binary("or", above, emitter.const_i64(DeviceType.CUDA))

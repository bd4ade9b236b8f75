"""The attributes of a launch on a GPU besides its sizes, and its tensor maps, for the launcher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.cuda.archs import capability
from ferrule.compiler.cuda.launcher.attributes import Asked, Event
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.cuda.launcher.tensor_maps import encoding_faults
from ferrule.language.codegen.cuda.parameters import MapParameter
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.casts import truncate
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I32

_LEAST: Final = 90
"""Ten times the first compute capability with clusters and programmatic launches."""


def require_attributes(program: ops.Program, archs: Sequence[str]) -> None:
    """Raises CodegenError if a launch has an attribute that an architecture does not support."""
    old = [arch for arch in archs if capability(arch) < _LEAST]
    for launch in program.host.facts.each(ops.Launch) if old else ():
        if launch.cluster or launch.options.programmatic:
            what = "cluster" if launch.cluster else "use_pdl"
            raise CodegenError(
                f"{what} in the launch of {launch.kernel} needs sm_90 or newer, but the kernels "
                f"are compiled for {', '.join(old)}"
            )


def launch_attributes(lowering: FunctionLowering, op: ops.Launch) -> Asked:
    """The attributes of a launch, with the values of this call."""
    values, options = lowering.values, op.options
    cluster = None
    if op.cluster:
        x, y, z = (_narrow(lowering, values[size]) for size in op.cluster)
        cluster = (x, y, z)
    return Asked(
        cluster=cluster,
        cooperative=options.cooperative,
        programmatic=options.programmatic,
        priority=None if op.priority is None else values[op.priority],
        carveout=options.carveout,
        completion=_event(lowering, op.completion_event, options.completion_flags),
        programmatic_event=_event(
            lowering,
            op.programmatic_event,
            options.programmatic_flags,
            at_block_start=options.at_block_start,
        ),
    )


def _event(
    lowering: FunctionLowering, event: ops.Value | None, flags: int, *, at_block_start: bool = False
) -> Event | None:
    return None if event is None else Event(lowering.values[event], flags, at_block_start)


def _narrow(lowering: FunctionLowering, size: ir.Value) -> ir.Value:
    return truncate(lowering.emitter.builder, size, I32, "cluster")


def encoded_map(
    launcher: Launcher,
    lowering: FunctionLowering,
    tensor: ops.Value,
    parameter: MapParameter,
    doing: str,
) -> tuple[ir.Value, ir.Value, tuple[Fault, ...]]:
    """The address of a tensor's map, the status of its encoding, and the faults of that status.

    See `Launcher.encode_tensor_map`.
    """
    boxes = parameter.boxes
    e, type_, order = lowering.emitter, tensor.tensor, boxes.order
    assert lowering.fault_values is not None, "the host function has room for faults"
    itemsize = e.const_i64(type_.dtype.itemsize)
    sizes = [lowering.dim(type_.shape[dim]) for dim in order]
    # cuTensorMapEncodeTiled takes no stride of the innermost dim: its elements are side by side.
    steps = [lowering.dim(type_.strides[dim]) for dim in order[1:]]
    strides = [e.binary("mul", step, itemsize) for step in steps]
    place, address = launcher.tensor_map(), lowering.values[tensor]
    given = (boxes.tiling, place, address, sizes, strides, lowering.fault_values)
    faults = encoding_faults(boxes.tiling, parameter.value.hint, doing, None)
    return place, launcher.encode_tensor_map(*given), faults

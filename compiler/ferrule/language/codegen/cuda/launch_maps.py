"""The tensor maps that a launch passes."""

from __future__ import annotations

from llvmlite import ir

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.cuda.launcher.launch import Launcher
from ferrule.compiler.cuda.launcher.tensor_maps import encoding_faults
from ferrule.language.codegen.cuda.parameters import MapParameter
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops


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
    steps = [lowering.dim(type_.strides[dim]) for dim in order[1:]]
    strides = [e.binary("mul", step, itemsize) for step in steps]
    place, address = launcher.tensor_map(), lowering.values[tensor]
    given = (boxes.tiling, place, address, sizes, strides, lowering.fault_values)
    faults = encoding_faults(boxes.tiling, parameter.value.hint, doing, None)
    return place, launcher.encode_tensor_map(*given), faults

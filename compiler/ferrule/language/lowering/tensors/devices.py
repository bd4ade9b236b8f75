"""Devices: the device of a call's tensors, `a.device`, and its compile-time facts.

All tensors of a call are on one device, of the target's type; only the index of a GPU is a run-time
value.
"""

from __future__ import annotations

import ast
from typing import Any

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import is_device
from ferrule.language.values import Handle, TensorView
from ferrule.specs import DEVICE_CODES, Int64, params
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CallDevice(Handle):
    """The device of the call's tensors; `kind` is its type."""

    kind: str


def device_of(low: Lowering, tensor: TensorView, node: ast.AST) -> CallDevice:
    """`a.device`."""
    if low.kind != "host" or low.elementwise:
        low.fail(
            node,
            f"the device of {tensor.name} is known in the host function alone",
            hint="ask for it there, and hand what depends on it to the kernel",
        )
    name = f"{tensor.name}.device"
    return CallDevice(params.Device("device"), (_here(low),), name, low.state.target)


def _here(low: Lowering) -> ops.Value:
    """The bits of the device of the call's tensors."""
    if low.state.target == "cpu":
        return low.builder.constant(Int64, DEVICE_CODES["cpu"])
    result = ops.Value(Int64, "device")
    low.builder.append(ops.CallDevice(result))
    return result


def known_equality(left: Any, right: Any, parts: tuple[int, int | None] | None) -> bool | None:
    """Whether two devices are equal, if that is known at compile time; else None.

    `parts` are type and index of a device in the source.
    """
    if isinstance(left, CallDevice) and isinstance(right, CallDevice):
        return True
    device = left if isinstance(left, CallDevice) else right
    if not isinstance(device, CallDevice) or parts is None:
        return None
    code, number = parts
    if code != DEVICE_CODES[device.kind]:
        return False
    if number is None:
        return True
    return number == 0 if device.kind == "cpu" else None


def require_here(low: Lowering, device: Any, node: ast.AST) -> None:
    """Requires the device of a new tensor to be that of the call's tensors."""
    if device is None or isinstance(device, CallDevice) or device == low.state.target:
        return
    if not is_device(device):
        low.fail(
            node,
            f"the new tensor is to be on {describe(device, plain=True)}, but the target "
            f"is {low.state.target}",
            expected="no device: a tensor is made on the target's, where the call's tensors are",
        )
    build, here = low.builder, _here(low)
    message = "Invalid device of a new tensor, expected {device}, where the call's tensors are, "
    fault = Fault("ValueError", f"{message}but got {{device}}", low.location(node))
    build.check(build.compare("eq", device.leaves[0], here), fault, here, device.leaves[0])

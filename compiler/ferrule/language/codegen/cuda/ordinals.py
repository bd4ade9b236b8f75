"""The ordinal of a GPU, and its other representations."""

from __future__ import annotations

from llvmlite import ir

from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I64


def at_least_0(emitter: Emitter, device: ir.Value) -> ir.Value:
    """The call's device, or the first one if it has none."""
    zero = emitter.const_i32(0)
    return emitter.select(emitter.icmp("slt", device, zero), zero, device)


def device_bits(emitter: Emitter, index: ir.Value) -> ir.Value:
    """A GPU as the bits of a DLDevice."""
    wide = emitter.builder.zext(index, I64)
    above = emitter.binary("shl", wide, emitter.const_i64(32))
    return emitter.binary("or", above, emitter.const_i64(DeviceType.CUDA))

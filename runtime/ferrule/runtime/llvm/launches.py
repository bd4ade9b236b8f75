"""Launches of kernels through the CUDA driver, for generated code: CUlaunchConfig and its values.

Machine code that launches is written here, that of functions with kernels in their object and that
of modules of PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.runtime import abi
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32, PTR, Field, Layout

LAUNCH_CONFIG: Final = Layout(
    "CUlaunchConfig",
    [Field(name, I32 if kind == "i32" else PTR) for name, kind in abi.LAUNCH_CONFIG],
)
LAUNCH: Final = ir.FunctionType(I32, [PTR, PTR, PTR, PTR])
"""cuLaunchKernelEx: the config, the kernel, the addresses of its parameters, and null."""


def store_config(
    e: Emitter,
    grid: Sequence[ir.Value],
    block: Sequence[ir.Value],
    smem: ir.Value,
    stream: ir.Value,
    attributes: tuple[ir.Value, int],
) -> ir.Value:
    """Store a config on the stack; returns its address.

    Sizes are i32, or i64 that fit; `attributes` are the address of the launch attributes and their
    number.
    """
    config = e.alloca(LAUNCH_CONFIG, name="config")
    for size, dims in (("grid", grid), ("block", block)):
        for axis, dim in zip("XYZ", dims, strict=True):
            e.store_field(config, LAUNCH_CONFIG, f"{size}Dim{axis}", _narrow(e, dim))
    address, count = attributes
    e.store_field(config, LAUNCH_CONFIG, "sharedMemBytes", _narrow(e, smem))
    e.store_field(config, LAUNCH_CONFIG, "hStream", stream)
    e.store_field(config, LAUNCH_CONFIG, "attrs", address)
    e.store_field(config, LAUNCH_CONFIG, "numAttrs", e.const_i32(count))
    return config


def store_parameters(e: Emitter, addresses: Sequence[ir.Value]) -> ir.Value:
    """Store the addresses of a kernel's parameters on the stack; returns the address of the array,
    null if there are none."""
    return store_array(e, PTR, addresses, "parameters")


def store_array(e: Emitter, kind: ir.Type, values: Sequence[ir.Value], name: str) -> ir.Value:
    """Store values of one type on the stack; returns the address of the array, null for none."""
    if not values:
        return e.null()
    array = e.alloca(kind, len(values), name=name)
    for number, value in enumerate(values):
        e.store(value, e.index(array, kind, number))
    return array


def current_stream(e: Emitter, device: ir.Value) -> ir.Value:
    """The caller's current stream on a GPU, whose ordinal is an i32."""
    return e.call("TVMFFIEnvGetStream", [e.const_i32(DeviceType.CUDA), device], "stream")


def _narrow(e: Emitter, size: ir.Value) -> ir.Value:
    """A size as i32."""
    if size.type == I32:
        return size
    if isinstance(size, ir.Constant):
        return ir.Constant(I32, size.constant)
    return e.builder.trunc(size, I32)

"""Copies of memory that called code allocated, as tensors of the caller's allocator.

The owner of a tensor must be able to free it after the function's code is unloaded, so what a
called function has allocated is copied before it is freed.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.compiler.artefacts import Fault, literal
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.host import tensors
from ferrule.compiler.support.entries import ALIGNMENT
from ferrule.runtime.abi import DeviceType
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I64
from ferrule.specs import Tensor, symbols_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """The elements to copy: the address of the first one, the address of the sizes, int64 each, and
    the address of the distances, int64 each, which are counted in units of `unit` bytes."""

    start: ir.Value
    sizes: ir.Value
    steps: ir.Value
    unit: int


def copied(call: Call, source: Source, tensor: Tensor, function: str) -> ir.Value:
    """A new compact tensor with these elements; the body owns it.

    Sizes that differ from those that the spec knows are a RuntimeError of the call.
    """
    e, rank = call.emitter, len(tensor.shape)
    call.steps.add(f"copy what {function} returned into a new tensor, {tensor.name}")
    sizes = _words(e, source.sizes, rank)
    _check(call, tensor, sizes, function)
    strides = e.null() if tensor.align <= ALIGNMENT else e.alloca(I64, max(1, rank))
    described = tensors.DLTensor(
        e.null(), DeviceType.CPU, e.const_i32(0), tensor.dtype, rank, source.sizes, strides
    )
    handle = call.allocated(tensor, described.store(e, tensor.name))
    unit = e.const_i64(source.unit)
    steps = [e.builder.mul(step, unit) for step in _words(e, source.steps, rank)]
    _copy(e, source.start, tensors.elements(e, handle), sizes, steps, tensor.dtype.itemsize)
    return handle


def _words(e: Emitter, at: ir.Value, count: int) -> list[ir.Value]:
    return [e.load(e.index(at, I64, position), I64) for position in range(count)]


def _check(call: Call, tensor: Tensor, sizes: Sequence[ir.Value], function: str) -> None:
    """End the call if the sizes differ from the spec."""
    e = call.emitter
    for axis, (dim, size) in enumerate(zip(tensor.shape, sizes, strict=True)):
        what = f"shape[{axis}] of {tensor.name}"
        if all(symbol in call.symbols for symbol in symbols_of(dim)):
            wanted = call.size(dim, what)
            message = f"{literal(function)} returned {what} = {{}}, expected {{}}"
            flag = e.icmp("ne", size, wanted)
            call.refuse(flag, Fault("RuntimeError", message), [size, wanted])


def _copy(
    e: Emitter,
    source: ir.Value,
    to: ir.Value,
    sizes: Sequence[ir.Value],
    steps: Sequence[ir.Value],
    itemsize: int,
) -> None:
    """Copy elements to a place without gaps, row by row; distances are in bytes."""
    if not sizes:
        _copy_element(e, source, to, itemsize)
        return
    row: ir.Value = e.const_i64(itemsize)
    for size in sizes[1:]:
        row = e.builder.mul(row, size)
    with e.loop(sizes[0]) as i:
        inner = e.index(source, I8, e.builder.mul(i, steps[0]))
        there = e.index(to, I8, e.builder.mul(i, row))
        _copy(e, inner, there, sizes[1:], steps[1:], itemsize)


def _copy_element(e: Emitter, source: ir.Value, to: ir.Value, itemsize: int) -> None:
    """Copy one element in words of at most 8 bytes: a complex number of 16 bytes need not lie at a
    multiple of 16."""
    word = min(itemsize, 8)
    kind = ir.IntType(8 * word)
    for position in range(itemsize // word):
        value = e.load(e.index(source, kind, position), kind)
        e.store(value, e.index(to, kind, position))

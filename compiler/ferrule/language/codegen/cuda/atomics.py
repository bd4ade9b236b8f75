"""Atomics on a GPU.

LLVM's back end selects an instruction for an `atomicrmw`, but drops its order and scope: the
instruction is relaxed, with the scope of the GPU.  So fences around it implement the order, as
PTX's memory model allows, and atomics with the scope of the system, or without an instruction, are
loops of compare-and-swap, whose scope LLVM keeps.  For two bytes LLVM swaps the word of four bytes
around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions import memory
from ferrule.language.codegen.functions.lowering import EmitOp, FunctionLowering
from ferrule.language.codegen.values import arithmetic
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import F32, F64, I32, I64
from ferrule.specs import DType, Float16

_SCOPES: Final[dict[ops.MemoryScope, str | None]] = {
    "cta": "block",
    "cluster": "device",  # only GPUs since sm_90 have the scope of a cluster
    "gpu": "device",
    "sys": None,
}
_BEFORE: Final = ("release", "acq_rel")
_AFTER: Final = ("acquire", "acq_rel")
INSTRUCTIONS: Final[dict[tuple[ops.AtomicOp, str], str]] = {
    ("add", "int"): "add",
    ("add", "uint"): "add",
    ("add", "float"): "fadd",
    ("min", "int"): "min",
    ("min", "uint"): "umin",
    ("max", "int"): "max",
    ("max", "uint"): "umax",
    **{(op, kind): op for op in ("and", "or", "xor") for kind in ("int", "uint")},
    **{("exch", kind): "xchg" for kind in ("int", "uint", "float")},
    ("inc", "uint"): "uinc_wrap",
    ("dec", "uint"): "udec_wrap",
}
"""LLVM's names of atomics with an instruction."""
_BITS: Final = {F32: I32, F64: I64}
"""The integers with the bits of floats; a 2-byte float is an integer already."""


def _atomic(lowering: FunctionLowering, op: ops.Atomic) -> ir.Value:
    """Emits an atomic; returns the old element."""
    target = _SCOPES[op.scope]
    if op.sem in _BEFORE:
        lowering.b.fence("acq_rel", target)
    old = _changed(lowering, op, target)
    if op.sem in _AFTER:
        lowering.b.fence("acq_rel", target)
    return old


def _changed(lowering: FunctionLowering, op: ops.Atomic, target: str | None) -> ir.Value:
    b, dtype, value = lowering.b, dtype_of(op.value), lowering.values[op.value]
    address, _, _ = memory.element(lowering, op.tensor, op.indices)
    if op.compare is not None:
        expected = lowering.values[op.compare]
        return b.bitcast(_swapped(b, address, expected, value, target), value.type)
    name = INSTRUCTIONS.get((op.op, dtype.kind))
    if name is None or target is None or not _has_instruction(op.op, dtype):
        return _loop(lowering, op, address, target)
    kind = ir.HalfType() if dtype is Float16 else value.type
    old = b.atomic_rmw(name, address, b.bitcast(value, kind), _order(target))
    return b.bitcast(old, value.type)


def _has_instruction(op: ops.AtomicOp, dtype: DType) -> bool:
    """Whether every GPU has an instruction for a dtype."""
    return dtype.bits > 16 or (op == "add" and dtype is Float16)


def _loop(
    lowering: FunctionLowering, op: ops.Atomic, address: ir.Value, target: str | None
) -> ir.Value:
    """Computes the new element from the old one until no other thread has changed it meanwhile."""
    e, value = lowering.emitter, lowering.values[op.value]
    bits = ir.IntType(dtype_of(op.value).bits)
    # A plain load is enough: what it reads is a guess, about which the compare-and-swap decides.
    first = e.load(address, bits)
    before, again, done = lowering.b.block, e.block("atomic.again"), e.block("atomic.done")
    e.branch(again)
    e.at(again)
    seen = lowering.b.phi(bits, name="seen")
    seen.add_incoming(first, before)
    old = lowering.b.bitcast(seen, value.type)
    new = _computed(lowering, op, old)
    found = _swapped(lowering.b, address, old, new, target)
    seen.add_incoming(found, lowering.b.block)
    e.cond_branch(lowering.b.icmp_unsigned("==", found, seen), done, again)
    e.at(done)
    return old


def _computed(lowering: FunctionLowering, op: ops.Atomic, old: ir.Value) -> ir.Value:
    """The new element."""
    e, b, dtype, value = lowering.emitter, lowering.b, dtype_of(op.value), lowering.values[op.value]
    one, zero = ir.Constant(I32, 1), ir.Constant(I32, 0)
    match op.op:
        case "add" | "min" | "max" | "and" | "or" | "xor":
            return arithmetic.binary(e, op.op, dtype, old, value)
        case "inc":
            return b.select(b.icmp_unsigned(">=", old, value), zero, b.add(old, one))
        case "dec":
            wraps = b.or_(b.icmp_unsigned("==", old, zero), b.icmp_unsigned(">", old, value))
            return b.select(wraps, value, b.sub(old, one))
        case "exch" | "cas":
            return value


def _swapped(
    b: ir.IRBuilder, address: ir.Value, expected: ir.Value, new: ir.Value, target: str | None
) -> ir.Value:
    """The current bits, which `new` replaces if they equal those of `expected`."""
    bits = _BITS.get(new.type, new.type)
    words = [b.bitcast(each, bits) for each in (expected, new)]
    return b.extract_value(b.cmpxchg(address, *words, _order(target), "monotonic"), 0)


def _order(target: str | None) -> str:
    """A relaxed order with its scope, side by side as in LLVM's text."""
    return "monotonic" if target is None else f'syncscope("{target}") monotonic'


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.Atomic: _atomic})

"""Atomics on the CPU, and fences.

The blocks of a launch may run on several cores, so an atomic on global memory is an atomic
instruction.  A block runs on one core, which switches threads only where they wait for each other:
an atomic on shared memory is a load and a store.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions import memory
from ferrule.language.codegen.functions.lowering import FunctionLowering, ThreadOp
from ferrule.language.codegen.values import arithmetic
from ferrule.language.codegen.values.scalars import dtype_of, memory_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter

ORDERS: Final = {
    "relaxed": ("monotonic", "monotonic"),
    "acquire": ("acquire", "acquire"),
    # A failed compare-and-swap stores nothing, so LLVM takes no release order for it.
    "release": ("release", "monotonic"),
    "acq_rel": ("acq_rel", "acquire"),
}
"""LLVM's memory orders, and those of a failed compare-and-swap."""

INSTRUCTIONS: Final = {
    ("add", "int"): "add",
    ("add", "uint"): "add",
    ("and", "int"): "and",
    ("and", "uint"): "and",
    ("or", "int"): "or",
    ("or", "uint"): "or",
    ("xor", "int"): "xor",
    ("xor", "uint"): "xor",
    ("exch", "int"): "xchg",
    ("exch", "uint"): "xchg",
    ("min", "int"): "min",
    ("min", "uint"): "umin",
    ("max", "int"): "max",
    ("max", "uint"): "umax",
}


def alone(lowering: FunctionLowering, op: ThreadOp) -> None:
    """Emits an op of a kernel whose threads neither wait for each other nor share memory."""
    match op:
        case ops.Atomic():
            emit(lowering, op)
        case ops.Fence(scope):
            fence(lowering, scope)
        case _:
            raise TypeError(f"{type(op).__name__}: there is no code for it on the CPU here")


def emit(lowering: FunctionLowering, op: ops.Atomic) -> None:
    """Emits an atomic; its result is the old element."""
    address, _, kind = memory.element(lowering, op.tensor, op.indices)
    dtype = dtype_of(op.result)
    if op.tensor.tensor.is_shared:
        old = lowering.b.load(address, name="old", typ=kind)
        lowering.b.store(_new(lowering, op, old), address)
    elif name := INSTRUCTIONS.get((op.op, dtype.kind)):
        order, _ = ORDERS[op.sem]
        old = lowering.b.atomic_rmw(name, address, lowering.values[op.value], order, name="old")
    else:
        old = _loop(lowering, op, address)
    lowering.values[op.result] = old


def fence(lowering: FunctionLowering, scope: ops.FenceScope) -> None:
    """Orders the accesses of one core for the others; a block runs on one core only."""
    if scope != "block":
        lowering.b.fence("seq_cst")


def _new(lowering: FunctionLowering, op: ops.Atomic, old: ir.Value) -> ir.Value:
    """The new value of the element."""
    e, b, value = lowering.emitter, lowering.b, lowering.values[op.value]
    dtype = dtype_of(op.value)
    match op.op:
        case "exch":
            return value
        case "cas":
            assert op.compare is not None
            # As bits, as PTX compares: a NaN equals itself, and 0.0 does not equal -0.0.
            wanted = _bits(e, lowering.values[op.compare])
            return b.select(b.icmp_unsigned("==", _bits(e, old), wanted), value, old)
        case "inc":
            # PTX's `atom.inc` counts from 0 to the operand and then begins again, `atom.dec`
            # downwards.
            more = b.add(old, ir.Constant(old.type, 1))
            return b.select(b.icmp_unsigned(">=", old, value), ir.Constant(old.type, 0), more)
        case "dec":
            zero = ir.Constant(old.type, 0)
            wraps = b.or_(b.icmp_unsigned("==", old, zero), b.icmp_unsigned(">", old, value))
            return b.select(wraps, value, b.sub(old, ir.Constant(old.type, 1)))
        case name:
            return arithmetic.binary(e, name, dtype, old, value)


def _loop(lowering: FunctionLowering, op: ops.Atomic, address: ir.Value) -> ir.Value:
    """A loop of compare-and-swap until no other core interferes; `cas` itself is one
    compare-and-swap."""
    e, b, orders = lowering.emitter, lowering.b, ORDERS[op.sem]
    kind = memory_type(dtype_of(op.result))
    bits = _integer(kind)
    if op.op == "cas":
        assert op.compare is not None
        wanted, value = (_bits(e, lowering.values[v]) for v in (op.compare, op.value))
        swapped = b.cmpxchg(address, wanted, value, *orders)
        return b.bitcast(b.extract_value(swapped, 0), kind, name="old")
    head, after = e.block("atomic"), e.block("atomic.end")
    # The first read is only a guess, but it must not be torn.
    size = bits.width // 8
    first, before = b.load_atomic(address, "monotonic", size, typ=bits), b.block
    e.branch(head)
    e.at(head)
    guess = b.phi(bits, name="guess")
    guess.add_incoming(first, before)
    new = _bits(e, _new(lowering, op, b.bitcast(guess, kind)))
    swapped = b.cmpxchg(address, guess, new, *orders)
    found = b.extract_value(swapped, 0)
    guess.add_incoming(found, b.block)
    e.cond_branch(b.extract_value(swapped, 1), after, head)
    e.at(after)
    return b.bitcast(found, kind, name="old")


def _bits(e: Emitter, value: ir.Value) -> ir.Value:
    """A value as an integer of its size."""
    kind = _integer(value.type)
    return value if value.type == kind else e.builder.bitcast(value, kind)


def _integer(kind: ir.Type) -> ir.IntType:
    match kind:
        case ir.IntType():
            return kind
        case ir.FloatType():
            return ir.IntType(32)
        case _:
            return ir.IntType(64)

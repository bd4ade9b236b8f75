"""Atomics in LLVM's dialect, because `memref`'s atomics have neither order nor scope.

An operation for which machines have an instruction is an `llvm.atomicrmw`; the others are loops of
compare-and-swap.  On a CPU one core runs a block, so an atomic of shared memory is a load and a
store there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ferrule.language.codegen.cpu.cooperate.atomics import INSTRUCTIONS, ORDERS
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.mlir import arithmetic, memory

if TYPE_CHECKING:
    from ferrule.language.mlir.functions import FunctionText


def spelled(names: Mapping[tuple[Any, str], str]) -> dict[tuple[str, str], str]:
    """LLVM's names of instructions as MLIR spells them: a name that is an MLIR keyword gets a
    `_`."""
    words = ("and", "or", "xor")
    return {key: f"_{name}" if name in words else name for key, name in names.items()}


_INSTRUCTIONS: Final = spelled(INSTRUCTIONS)


def emit(f: FunctionText, op: ops.Atomic) -> None:
    """Emits an atomic on a CPU; its result is the old element."""
    t, dtype = f.t, dtype_of(op.result)
    if op.tensor.tensor.is_shared:
        f.values[op.result] = memory.load(f, ops.Load(op.result, op.tensor, op.indices))
        new = ops.Value(dtype, "new")
        f.values[new] = _new(f, op, f.values[op.result])
        memory.store(f, ops.Store(op.tensor, op.indices, new))
        return
    place, kind = memory.pointer(f, op.tensor, op.indices), f.type_of(op.result)
    order, failed = ORDERS[op.sem]
    name = _INSTRUCTIONS.get((op.op, dtype.kind))
    if name is not None:
        value = f.values[op.value]
        text = f"llvm.atomicrmw {name} {place}, {value} {order} : {t.types[place]}, {kind}"
        f.values[op.result] = t.op(text, kind, "old")
    else:
        f.values[op.result] = swapped_until(f, op, place, f"{order} {failed}")


def swapped_until(f: FunctionText, op: ops.Atomic, place: str, orders: str) -> str:
    """A loop of compare-and-swap that ends when no other thread wrote in between; `cas` itself
    needs no loop."""
    t, kind = f.t, f.type_of(op.result)
    bits = f"i{dtype_of(op.result).bits}"
    both = f"!llvm.struct<({bits}, i1)>"
    if op.compare is not None:
        wanted, value = (t.cast("bitcast", f.values[v], bits) for v in (op.compare, op.value))
        found = _swapped(f, place, wanted, value, orders, bits)
        old = t.op(f"llvm.extractvalue {found}[0] : {both}", bits)
        return t.cast("bitcast", old, kind)
    first = t.op(f"llvm.load {place} : {t.types[place]} -> {bits}", bits)
    guess = t.known(t.name("guess"), bits)
    name = t.known(t.name("old"), bits)
    t.line(f"{name} = scf.while ({guess} = {first}) : ({bits}) -> ({bits}) {{")
    with t.indented():
        new = t.cast("bitcast", _new(f, op, t.cast("bitcast", guess, kind)), bits)
        found = _swapped(f, place, guess, new, orders, bits)
        old = t.op(f"llvm.extractvalue {found}[0] : {both}", bits)
        done = t.op(f"llvm.extractvalue {found}[1] : {both}", "i1")
        t.line(f"scf.condition({t.not_(done)}) {old} : {bits}")
    t.line("} do {")
    with t.indented():
        again = t.known(t.name("again"), bits)
        t.block("^bb0", f"({again}: {bits})")
        t.line(f"scf.yield {again} : {bits}")
    t.line("}")
    return t.cast("bitcast", name, kind)


def _swapped(f: FunctionText, place: str, wanted: str, new: str, orders: str, bits: str) -> str:
    text = f"llvm.cmpxchg {place}, {wanted}, {new} {orders} : {f.t.types[place]}, {bits}"
    return f.t.op(text, f"!llvm.struct<({bits}, i1)>")


def _new(f: FunctionText, op: ops.Atomic, old: str) -> str:
    """The new value of the element."""
    t, value, kind = f.t, f.values[op.value], f.t.types[old]
    match op.op:
        case "exch":
            return value
        case "cas":
            assert op.compare is not None
            bits = f"i{dtype_of(op.value).bits}"
            sides = (t.cast("bitcast", v, bits) for v in (old, f.values[op.compare]))
            return t.select(t.icmp("eq", *sides), value, old)
        case "inc":
            more = t.binary("add", old, t.integer(1, kind))
            return t.select(t.icmp("uge", old, value), t.integer(0, kind), more)
        case "dec":
            zero = t.integer(0, kind)
            wraps = t.binary("or", t.icmp("eq", old, zero), t.icmp("ugt", old, value))
            return t.select(wraps, value, t.binary("sub", old, t.integer(1, kind)))
        case name:
            native = f.where.native
            return arithmetic.binary(t, name, dtype_of(op.value), old, value, native=native)

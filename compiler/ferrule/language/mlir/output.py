"""Prints and failed checks on the CPU, by the C library and the buffer for the values of a
fault."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault
from ferrule.language.ir import ops
from ferrule.language.mlir.functions import FunctionText
from ferrule.specs import Boolean


def check(f: FunctionText, place: str, ok: str, fault: Fault, values: Sequence[str]) -> None:
    """Ends the region with the fault's number if the i1 is false; its values are stored at
    `place`."""
    t = f.t
    passed, failed = t.label("passed"), t.label("failed")
    t.line(f"cf.cond_br {ok}, {passed}, {failed}")
    t.block(failed)
    for position, value in enumerate(values[:MAX_FAULT_VALUES]):
        slot = t.op(
            f"llvm.getelementptr {place}[{position}] : (!llvm.ptr) -> !llvm.ptr, i64", "!llvm.ptr"
        )
        t.line(f"llvm.store {value}, {slot} : i64, !llvm.ptr")
    t.line(f"cf.br {f.exit()}({t.integer(f.faults.number(fault), 'i32')} : i32)")
    t.block(passed)


def print_(f: FunctionText, op: ops.Print) -> None:
    """One call of the C library's `dprintf`, which has no buffer: the order of outputs is kept."""
    t = f.t
    t.declare("@dprintf", "  llvm.func @dprintf(i32, !llvm.ptr, ...) -> i32")
    shown = [named(f, value) for value in op.values]
    given = [t.integer(1, "i32"), f.bytes_constant(op.format.encode()), *shown]
    types = ", ".join(t.types[value] for value in given)
    t.op(
        f"llvm.call @dprintf({', '.join(given)}) vararg(!llvm.func<i32 (i32, ptr, ...)>) "
        f": ({types}) -> i32",
        "i32",
    )


def named(f: FunctionText, value: ops.Value) -> str:
    """A value as it is printed: a Boolean is "True" or "False"."""
    if value.type is not Boolean:
        return f.values[value]
    return f.t.select(f.values[value], f.bytes_constant(b"True"), f.bytes_constant(b"False"))

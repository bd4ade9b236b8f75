"""Prints of kernels on a GPU, and the messages of checks that failed: calls of the driver's
functions.

`int vprintf(const char* format, void* values)`, whose values have 8 bytes each here, and `void
__assertfail(const char* message, const char* file, unsigned line, const char* function, size_t
character)`, which ends the context (CUDA's PTX interoperability guide, "System Calls").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ferrule.compiler.artefacts import Fault
from ferrule.language.codegen.cuda.output import as_format, still
from ferrule.language.ir import ops
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.output import named


def print_(f: FunctionText, op: ops.Print) -> None:
    """Prints with a format of `ops.Print`."""
    _vprintf(f, op.format, [named(f, value) for value in op.values])


def check(
    f: FunctionText, kernel: str, ok: str, fault: Fault, values: Sequence[str], *, paths: bool
) -> None:
    """Ends the context if `ok` is false; the values of the message are printed before."""
    t = f.t
    t.line(f"scf.if {t.not_(ok)} {{")
    with t.indented():
        if values:
            format_, shown = as_format(fault, values, partial(_flag, f))
            _vprintf(f, format_ + "\n", shown)
        where, line, function = "?", 0, kernel
        if fault.location is not None:
            where, line = fault.location.file, fault.location.line
            function = fault.location.function
        file = where if paths else Path(where).name
        texts = [f.bytes_constant(each.encode()) for each in (still(fault), file, function)]
        given = [texts[0], texts[1], t.integer(line, "i32"), texts[2], t.const_i64(1)]
        types = "!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, i64"
        t.declare(
            "@__assertfail",
            f'  llvm.func @__assertfail({types}) attributes {{passthrough = ["noreturn"]}}',
        )
        t.line(f"llvm.call @__assertfail({', '.join(given)}) : ({types}) -> ()")
    t.line("}")


def _flag(f: FunctionText, value: str) -> str:
    words = (f.bytes_constant(b"True"), f.bytes_constant(b"False"))
    return f.t.select(f.t.icmp("ne", value, f.t.const_i64(0)), *words)


def _vprintf(f: FunctionText, format_: str, values: Sequence[str]) -> None:
    """Calls `vprintf`; each value has 8 bytes."""
    t = f.t
    t.declare("@vprintf", "  llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32")
    if values:
        count = t.first(f"llvm.mlir.constant({len(values)} : i32) : i32", "i32")
        place = t.first(f"llvm.alloca {count} x i64 : (i32) -> !llvm.ptr", "!llvm.ptr", "printed")
    else:
        place = t.op("llvm.mlir.zero : !llvm.ptr", "!llvm.ptr")
    for number, value in enumerate(values):
        slot = f"llvm.getelementptr {place}[{number}] : (!llvm.ptr) -> !llvm.ptr, i64"
        slot = t.op(slot, "!llvm.ptr")
        t.line(f"llvm.store {value}, {slot} : {t.types[value]}, !llvm.ptr")
    given = f"{f.bytes_constant(format_.encode())}, {place}"
    t.op(f"llvm.call @vprintf({given}) : (!llvm.ptr, !llvm.ptr) -> i32", "i32")

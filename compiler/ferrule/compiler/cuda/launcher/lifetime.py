"""The memory of a state in an object, from opening to closing its library."""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from ferrule.compiler.cuda.launcher.cold import PROTOTYPES, REGISTER, UNLOAD
from ferrule.compiler.cuda.launcher.state import STATE
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, PTR, VOID

_USUAL: Final = 65535
"""The default priority of constructors and destructors."""


def static_state(emitter: Emitter, size: int) -> ir.Value:
    """Memory of the object, zero at start; its images are unloaded together with the code."""
    kind = ir.ArrayType(I8, size)
    state = ir.GlobalVariable(emitter.module, kind, emitter.module.get_unique_name("cuda.state"))
    state.linkage = "internal"
    state.initializer = ir.Constant(kind, None)
    state.align = STATE.align
    state.type = PTR
    _with_library(emitter, state)
    return state


def _with_library(emitter: Emitter, state: ir.Value) -> None:
    """Register the state, and unload it together with the code."""
    for when, entry in (("llvm.global_ctors", REGISTER), ("llvm.global_dtors", UNLOAD)):
        name = emitter.module.get_unique_name(entry.replace("ferrule_cuda_", "cuda."))
        with emitter.define(name, VOID, [], linkage="internal") as function:
            emitter.call(emitter.symbol(entry, PROTOTYPES[entry]), [state])
            emitter.ret()
        _append(emitter.module, when, function)


def _append(module: ir.Module, name: str, function: ir.Function) -> None:
    """Make a function run when the code is loaded, or unloaded (LLVM's language reference)."""
    address = ir.FormattedConstant(PTR, function.get_reference())
    row = ir.Constant.literal_struct([ir.Constant(I32, _USUAL), address, ir.Constant(PTR, None)])
    known = module.globals.get(name)
    rows = [row] if known is None else [*known.initializer.constant, row]
    kind = ir.ArrayType(row.type, len(rows))
    if known is None:
        known = ir.GlobalVariable(module, kind, name)
        known.linkage = "appending"
    known.value_type = kind
    known.initializer = ir.Constant(kind, rows)

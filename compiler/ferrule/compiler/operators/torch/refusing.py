"""torch's own kernel for operations without a derivative, registered for an operator.

It is a function of C++ alone: `autogradNotImplementedFallback` gives a kernel, `Library::_impl`
takes it. The objects that go between them are torch's; a few lines of LLVM IR hand them on. With
it a backward pass through the operator is torch's error, and a call pays for no Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from llvmlite import ir

from ferrule.compiler.operators.torch.symbols import addresses
from ferrule.runtime.linking.engine import Engine, host_triple
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I8, I32, PTR, VOID
from ferrule.runtime.llvm.native import compile_native

# Mangled as in the Itanium C++ ABI: `torch::autograd::autogradNotImplementedFallback()`,
# `torch::Library::_impl(const char*, torch::CppFunction&&, ...) &`, and the destructor of
# `torch::CppFunction`.
FALLBACK: Final = "_ZN5torch8autograd30autogradNotImplementedFallbackEv"
IMPL: Final = "_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"
DESTROY: Final = "_ZN5torch11CppFunctionD1Ev"
_TYPES: Final = {
    FALLBACK: ir.FunctionType(VOID, [PTR]),
    IMPL: ir.FunctionType(PTR, [PTR, PTR, PTR, I32]),
    DESTROY: ir.FunctionType(VOID, [PTR]),
}
_NAME: Final = "refuse_gradients"
_ROOM: Final = 4096
"""More than torch's CppFunction takes, in bytes."""

REFUSE: Final = f"__tvm_ffi_{_NAME}"
"""`void refuse(torch::Library* library, const char* name)`."""


def is_possible(triple: str) -> bool:
    """Whether code for this triple can register the kernel."""
    return triple.startswith("x86_64-")


def declared(e: Emitter, name: str) -> ir.Function:
    """Declares one of torch's C++ functions; it is null where torch lacks it."""
    function = e.symbol(name, _TYPES[name])
    function.linkage = "extern_weak"
    return function


def emit_refusal(
    e: Emitter, functions: Sequence[ir.Function], library: ir.Value, name: ir.Value
) -> None:
    """Register the kernel in a library for the key Autograd."""
    fallback, impl, destroy = functions
    kernel = e.alloca(ir.ArrayType(I8, _ROOM), name="kernel")
    kernel.align = 16
    e.call(fallback, [kernel])
    e.call(impl, [library, name, kernel, e.const_i32(0)])
    e.call(destroy, [kernel])


@cache
def refusing_code() -> Engine | None:
    """The code of `REFUSE`; None if this torch does not have the functions."""
    names = (FALLBACK, IMPL, DESTROY)
    found = addresses(names) if is_possible(host_triple()) else None
    if found is None:
        return None
    e = Emitter("ferrule.refusing", host_triple())
    functions = [e.symbol(name, _TYPES[name]) for name in names]
    arguments = ("library", "name")
    with e.define(REFUSE, VOID, [PTR, PTR], names=arguments, attributes=("uwtable",)) as function:
        emit_refusal(e, functions, *function.args)
        e.ret()
    return Engine.load(compile_native(_NAME, e.text()), found)

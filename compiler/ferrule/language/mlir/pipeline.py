"""The second lowering of a program: MLIR's text through upstream's passes to LLVM IR, as a `Body`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from llvmlite import ir

from ferrule.compiler.artefacts import Body, Fault, Part
from ferrule.compiler.mlir.child import in_child
from ferrule.compiler.mlir.session import Session
from ferrule.language.codegen.cpu import lower_cpu
from ferrule.language.codegen.functions import FunctionLowering
from ferrule.language.codegen.host import SYMBOL
from ferrule.language.codegen.linking import device_code_of, links_of, parts_of
from ferrule.language.codegen.synchronous import synchronous
from ferrule.language.ir import ops
from ferrule.language.ir.outline import outline
from ferrule.language.mathlib import expand_maths
from ferrule.language.mlir.host import is_plain
from ferrule.language.mlir.module import host_text, kernel_texts
from ferrule.runtime.llvm.layouts import I32

TO_LLVM: Final = (
    "convert-scf-to-cf,convert-math-to-llvm,convert-func-to-llvm,expand-strided-metadata,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,"
    "convert-ub-to-llvm,reconcile-unrealized-casts"
)
"""The passes from the dialects of the text to `llvm`."""
HOST: Final = f"builtin.module({TO_LLVM})"


def lower_cpu_by_mlir(program: ops.Program) -> Body:
    """The body of a program that was verified, for the CPU.

    Where the host function calls TVM-FFI, for new tensors, objects or other functions, its kernels
    and whole-tensor expressions go through MLIR, and what calls them is that of `lower_cpu`.
    Raises CodegenError for what MLIR cannot express, CompileError where no package offers MLIR.
    """
    if not is_plain(program):
        return _kernels_alone(program)
    program = synchronous(expand_maths(program))
    made = host_text(program)
    (text,) = in_child(_lowered, (made.text,))
    return Body(
        text,
        SYMBOL,
        tuple(program.given),
        made.faults,
        program.relations,
        device_code=device_code_of(program, None),
        parts=parts_of(program),
        links=links_of(program),
    )


def _lowered(session: Session, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The LLVM IR of these modules."""
    found = []
    for text in texts:
        module = session.parse(text)
        session.run(module, HOST)
        found.append(session.translate(module))
    return tuple(found)


def _kernels_alone(program: ops.Program) -> Body:
    """A body whose kernels alone, whole-tensor expressions among them, went through MLIR."""
    program = synchronous(expand_maths(outline(program)))
    made = kernel_texts(program)
    texts = in_child(_lowered, tuple(each.text for each in made.kernels))
    symbols = {each.kernel: each.symbol for each in made.kernels}
    body = lower_cpu(program, _Elsewhere(made.faults, symbols))
    parts = (
        Part(each.symbol, each.symbol, text)
        for each, text in zip(made.kernels, texts, strict=True)
    )
    return replace(body, parts=(*body.parts, *parts))


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """Kernels that are parts of the body: see `codegen.cpu.KernelsElsewhere`."""

    faults: tuple[Fault, ...]
    symbols: dict[str, str]

    def call(
        self, lowering: FunctionLowering, kernel: ops.Function, given: list[ir.Value]
    ) -> ir.Value:
        """The call of a kernel's function with the values of its parameters."""
        e, symbol = lowering.emitter, self.symbols[kernel.name]
        kind = ir.FunctionType(I32, [value.type for value in given])
        return e.call(e.symbol(symbol, kind), given, "status")

"""The CPU target: a program as one LLVM module, its threads as loops.

`lower_cpu` gives the `Body` of a program that was verified and whose maths was expanded.  The
module has one external function, `ferrule_body`, which is the host function; kernels and helpers
are internal.  The text is verified by LLVM, not optimised, and depends on the program alone.
Nothing in it refers to a symbol outside, now or after any optimisation for any CPU, except
memcpy and memset.
"""

from __future__ import annotations

from typing import Final

from llvmlite import binding as llvm

from ferrule.compiler.artefacts import Body
from ferrule.language.codegen import kernels
from ferrule.language.codegen.functions import Faults
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter

SYMBOL: Final = "ferrule_body"


def lower_cpu(program: ops.Program) -> Body:
    """The body of a program for the CPU.  Raises CodegenError for what the target cannot do."""
    emitter, faults = Emitter(program.name), Faults()
    plans = kernels.plan_launches(program)
    for kernel in program.kernels:
        _kernel(emitter, program, kernel, faults, plans)
    _host(emitter, program, faults)
    text = emitter.text()
    _verify(text)
    return Body(text, SYMBOL, tuple(program.symbols), tuple(faults.known), program.relations)


def _verify(text: str) -> None:
    with llvm.parse_assembly(text, context=llvm.create_context()) as module:
        module.verify()

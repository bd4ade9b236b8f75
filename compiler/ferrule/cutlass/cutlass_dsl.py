"""`cutlass.cutlass_dsl` of CuTe DSL's programs: what it has of `cutlass`, from there."""

from __future__ import annotations

from ferrule.compiler.errors import CompileError
from ferrule.cutlass import names
from ferrule.cutlass.mlir import T as T
from ferrule.runtime.errors import CudaError

DSLCudaRuntimeError = CudaError
DSLRuntimeError = CompileError

__getattr__ = names.resolver("cutlass.cutlass_dsl")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cutlass_dsl")

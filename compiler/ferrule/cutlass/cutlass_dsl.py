"""`cutlass.cutlass_dsl` of CuTe DSL's programs: what it has of `cutlass`, from there."""

from __future__ import annotations

import builtins
from typing import Any, NoReturn

from ferrule.compiler.errors import CompileError
from ferrule.cutlass import names
from ferrule.cutlass.mlir import T as T
from ferrule.runtime.errors import CudaError

max, min = builtins.max, builtins.min  # of numbers, as in `cutlass`
DSLCudaRuntimeError = CudaError
DSLRuntimeError = CompileError


def while_generate(*_: Any, **__: Any) -> NoReturn:
    """A while, which needs no function around it."""
    raise CompileError(names.missing("cutlass.cutlass_dsl", "while_generate"))


__getattr__ = names.resolver("cutlass.cutlass_dsl")


def __dir__() -> list[str]:
    return names.names_of("cutlass.cutlass_dsl")

"""The threads of a block, for the code that runs them."""

from __future__ import annotations

from llvmlite import ir

from ferrule.language.codegen.cpu.kernels import Shape
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Team:
    """The threads of a block: the state of the function that runs them."""

    lowering: FunctionLowering
    kernel: ops.Function
    shape: Shape
    shared: tuple[ops.Value, ...]
    """The tensors in shared memory."""
    threads: ir.Value
    """The number of threads in a block, i64."""

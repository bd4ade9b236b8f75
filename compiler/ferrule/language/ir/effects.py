"""What a program does to its arguments."""

from __future__ import annotations

from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops


def written_params(program: ops.Program) -> set[ops.Value]:
    """The tensor parameters of the host function that it or its kernels write to."""
    kernels = {kernel.name: _stored(kernel) for kernel in program.kernels}
    written = {p for p in program.host.params if p in _stored(program.host)}
    for op in all_ops(program.host.body):
        if isinstance(op, ops.Launch):
            params = program.kernel(op.kernel).params
            pairs = zip(params, op.arguments, strict=True)
            written |= {argument for param, argument in pairs if param in kernels[op.kernel]}
    return written


def _stored(function: ops.Function) -> set[ops.Value]:
    return {op.tensor for op in all_ops(function.body) if isinstance(op, ops.Store)}

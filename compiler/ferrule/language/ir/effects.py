"""What a program does to its arguments."""

from __future__ import annotations

from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops


def written_params(program: ops.Program) -> set[ops.Value]:
    """The tensor parameters of the host function that it or its kernels write to."""
    kernels = {kernel.name: _stored(kernel) for kernel in program.kernels}
    roots = _roots(program.host)
    written = {p for p in program.host.params if p in _stored(program.host)}
    for op in all_ops(program.host.body):
        if isinstance(op, ops.Call):
            written |= {roots.get(argument, argument) for argument in op.arguments}
        if isinstance(op, ops.CallBody):
            given = (op.arguments[position] for position in op.callee.written)
            written |= {roots.get(argument, argument) for argument in given}
        if isinstance(op, ops.Launch):
            params = program.kernel(op.kernel).params
            pairs = zip(params, op.arguments, strict=True)
            stored = (argument for param, argument in pairs if param in kernels[op.kernel])
            written |= {roots.get(argument, argument) for argument in stored}
    return written


def _stored(function: ops.Function) -> set[ops.Value]:
    """The tensors that a function writes to, each as what it is a view of."""
    roots = _roots(function)
    writes = (op for op in all_ops(function.body) if isinstance(op, ops.Store | ops.Atomic))
    stored = (op.tensor for op in writes)
    return {roots.get(tensor, tensor) for tensor in stored}


def _roots(function: ops.Function) -> dict[ops.Value, ops.Value]:
    """For each view the value that it is a view of, which is none itself."""
    roots: dict[ops.Value, ops.Value] = {}
    for op in all_ops(function.body):
        if isinstance(op, ops.View):
            roots[op.result] = roots.get(op.tensor, op.tensor)
    return roots

"""The tensors that a program reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule.language.ir import ops
from ferrule.language.ir.walk import merged_by


def written_params(program: ops.Program) -> set[ops.Value]:
    """The tensor parameters of the host function that it or its kernels write."""
    anywhere = any(_writes_anywhere(each) for each in (*program.kernels, program.host))
    touched_by = _reached if anywhere else _stored
    kernels = {kernel.name: touched_by(kernel) for kernel in program.kernels}
    touched = touched_by(program.host)
    for launch in program.host.facts.each(ops.Launch):
        params = program.kernel(launch.kernel).params
        pairs = zip(params, launch.arguments, strict=True)
        touched |= {argument for param, argument in pairs if param in kernels[launch.kernel]}
    return _memory_of(program.host, touched) & set(program.host.params)


def unwritten_tensors(program: ops.Program, kernel: ops.Function) -> set[ops.Value]:
    """The tensors that a kernel reads from the memory of parameters that it does not write.

    Two parameters are assumed not to alias unless a launch passes the same memory for both.
    """
    stored, params = _stored(kernel), set(kernel.params)
    for launch in program.host.facts.each(ops.Launch):
        if launch.kernel == kernel.name:
            pairs = zip(kernel.params, launch.arguments, strict=True)
            given = {param: _memory_of(program.host, {value}) for param, value in pairs}
            written = [given[param] for param in stored & params]
            stored |= {p for p in params if any(not given[p].isdisjoint(w) for w in written)}
    if _writes_anywhere(kernel):
        return set()
    reads = {load.tensor for load in kernel.facts.each(ops.Load)}
    found = set()
    for tensor in reads:
        memory = _memory_of(kernel, {tensor})
        made = {op.result for op in kernel.facts.ops if isinstance(op, _MADE)}
        if memory.isdisjoint(stored | made) and not memory.isdisjoint(params):
            found.add(tensor)
    return found


def _writes_anywhere(function: ops.Function) -> bool:
    """Whether a function may write to the memory of any tensor: at an address, which is that of
    some tensor, also where PTX inside of a kernel does, or a function that is called."""
    stored, others = _stored(function), _but_launches(function)
    by_address = any(op.result in stored for op in function.facts.each(ops.Pointer))
    return by_address or any(op.writes_elsewhere for op in others)


_MADE = ops.Fragment | ops.Shared | ops.DynamicShared
"""Ops that make memory of the kernel's own."""


def _stored(function: ops.Function) -> set[ops.Value]:
    """The tensors that a function writes, and the tensors of which they are views."""
    return _memory_of(function, _stores(function))


def _stores(function: ops.Function) -> set[ops.Value]:
    """The tensors that the ops of a function write; the effects of a launch are those of its
    kernel."""
    return {tensor for op in _but_launches(function) for tensor in op.written}


def _reached(function: ops.Function) -> set[ops.Value]:
    """The tensors that a function writes if what it does with addresses is not known."""
    addresses = {op.operand for op in function.facts.each(ops.Address)}
    return _memory_of(function, _stores(function) | addresses)


def _but_launches(function: ops.Function) -> Iterator[ops.Op]:
    return (op for op in function.facts.ops if not isinstance(op, ops.Launch))


def _memory_of(function: ops.Function, tensors: set[ops.Value]) -> set[ops.Value]:
    """These tensors, and all whose memory they may share: their base tensors, and the operands of
    selects and phis."""
    sources: dict[ops.Value, set[ops.Value]] = {}
    for op in function.facts.ops:
        for of, to in _flows(op):
            sources.setdefault(to, set()).add(of)
    found, rest = set(tensors), list(tensors)
    while rest:
        new = sources.get(rest.pop(), set()) - found
        found |= new
        rest += new
    return found


def _flows(op: ops.Op) -> Iterator[tuple[ops.Value, ops.Value]]:
    """Pairs of values; the second is, or may be, the memory of the first."""
    match op:
        case ops.View(result, tensor) | ops.Shrink(result, tensor):
            yield tensor, result
        case _:
            yield from merged_by(op)

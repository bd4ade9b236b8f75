"""Folds branches on the size of the block if all launches of a kernel have the same one.

Branches that are not taken are removed before threads become loops, vectors or coroutines: they
cost nothing, neither at run time nor at compile time.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TypeAlias

from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.folding import scalars
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

_Known: TypeAlias = "dict[ops.Value, scalars.Scalar]"


def decided(program: ops.Program) -> ops.Program:
    """The program without branches that no block of its kernels takes."""
    facts = launched(program)
    return replace(
        program,
        kernels=tuple(_kernel(each, facts.get(each.name, Launched())) for each in program.kernels),
    )


def _kernel(kernel: ops.Function, facts: Launched) -> ops.Function:
    known = _known(kernel, facts)
    branches = kernel.facts.each(ops.If)
    if not any(op.condition in known for op in branches):
        return kernel
    chosen = _Chosen(known)
    body = rewrite(kernel.body, chosen.rule)
    return replace(kernel, body=substitute(body, chosen.values) if chosen.values else body)


def _known(kernel: ops.Function, facts: Launched) -> _Known:
    """The integers and conditions computed from constants and the size of the block."""
    known: _Known = {}
    for op in kernel.facts.ops:
        match op:
            case ops.Special(result, "block_dim", axis):
                if (size := facts.blocks[axis]) is not None:
                    known[result] = size
            case ops.Constant(result, int(value)):
                known[result] = value
            case ops.Binary(result, name, x, y) if x in known and y in known:
                if isinstance(result.type, DType) and _is_computed(name, result.type):
                    known[result] = scalars.binary(name, result.type, known[x], known[y])
            case ops.Compare(result, name, x, y) if x in known and y in known:
                known[result] = scalars.compare(name, known[x], known[y])
    return known


def _is_computed(name: str, dtype: DType) -> bool:
    return name in ("add", "sub", "mul", "and", "or", "xor", "min", "max") and dtype.kind != "float"


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Replaces a branch by its taken side; `values` are the replacements of its results."""

    known: _Known
    values: dict[ops.Value, ops.Value] = field(default_factory=dict)

    def rule(self, b: Builder, op: ops.Op) -> None:
        """See `rewrite`: nested branches are done already."""
        if not isinstance(op, ops.If) or op.condition not in self.known:
            b.append(op)
            return
        side = op.then if self.known[op.condition] else op.otherwise
        b.current.ops.extend(side.ops)
        for result, value in zip(op.results, side.yields, strict=True):
            # The value may be a result of a branch inside, which has been replaced before.
            self.values[result] = self.values.get(value, value)

"""Contraction: a product and the sum that reads it become one operation, which rounds once.

    p = mul a, b          fma a, b, c                      a * b + c, c + a * b
    s = add p, c    →     fma a, b, (neg c)                a * b - c
                          fma (neg a), b, c                c - a * b

It is done here, on the kernel IR, and so the same for all targets.  Exactly this is contracted:

* an addition or a subtraction of float32 or float64 that the program wrote, as an operator, in a
  function where `fmad` holds;
* of which an operand, the left one if it is both, is a multiplication that the program wrote so;
* where the product is computed in the same block of the program, that is, not outside of a loop or
  a branch that the sum stands in;
* and where nothing else reads the product, so that it never exists with two values.

What ferrule makes of one operation of the program, such as a function of `fe.math` or a product of
complex numbers, is not contracted, nor are operations with fast-math flags, which are LLVM's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial

from ferrule.language.fastmath import FMAD
from ferrule.language.ir import ops
from ferrule.language.ir.builder import FUSED, Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.specs.deferred import dataclass


def contracted(program: ops.Program) -> ops.Program:
    """The program with its marked sums of products contracted.  Products and sums lose their marks;
    functions of the maths library keep theirs until they are expanded."""
    found = [_Found.of(each) for each in (program.host, *program.kernels)]
    host, *kernels = (each.rewritten() for each in found)
    fused = any(each.products or each.formulas for each in found)
    return replace(program, host=host, kernels=tuple(kernels), contracted=fused)


@dataclass(slots=True)
class _Found:
    """For each sum of a function to contract, by its result, the product; and these products."""

    function: ops.Function
    products: dict[ops.Value, ops.Binary] = field(default_factory=dict)
    gone: set[ops.Value] = field(default_factory=set)
    formulas: bool = False

    @classmethod
    def of(cls, function: ops.Function) -> _Found:
        """What the docstring of the module says."""
        found, readers = cls(function), _readers(function)
        for region in _regions(function):
            alone: dict[ops.Value, ops.Binary] = {}
            for op in region.ops:
                if not isinstance(op, (ops.Unary, ops.Binary)) or FMAD not in op.flags:
                    continue
                if isinstance(op, ops.Unary) or op.op not in FUSED:
                    found.formulas = True
                elif op.op == "mul":
                    if readers[op.result] == 1:
                        alone[op.result] = op
                elif (product := alone.get(op.lhs) or alone.get(op.rhs)) is not None:
                    found.products[op.result] = product
                    found.gone.add(product.result)
        return found

    def rewritten(self) -> ops.Function:
        """The function with them contracted."""
        body = rewrite(self.function.body, partial(_rule, self))
        return replace(self.function, body=body)


def _regions(function: ops.Function) -> Iterator[ops.Region]:
    yield function.body
    for op in function.facts.ops:
        yield from op.regions


def _readers(function: ops.Function) -> Counter[ops.Value]:
    """How often each value is read."""
    readers: Counter[ops.Value] = Counter()
    for op in function.facts.ops:
        readers.update(op.operands)
    for region in _regions(function):
        readers.update(region.yields)
    return readers


def _rule(found: _Found, b: Builder, op: ops.Op) -> None:
    if not isinstance(op, ops.Binary) or FMAD not in op.flags or op.op not in FUSED:
        b.append(op)
    elif (product := found.products.get(op.result)) is not None:
        _fused(b, op, product)
    elif op.result not in found.gone:
        b.append(replace(op, flags=()))


def _fused(b: Builder, op: ops.Binary, product: ops.Binary) -> None:
    """Defines the result of a sum as that of the product and the other operand."""
    x, y, is_left = product.lhs, product.rhs, op.lhs is product.result
    other = op.rhs if is_left else op.lhs
    if op.op == "sub" and is_left:
        other = b.unary("neg", other)
    elif op.op == "sub":
        x = b.unary("neg", x)
    b.append(ops.Fma(op.result, x, y, other))

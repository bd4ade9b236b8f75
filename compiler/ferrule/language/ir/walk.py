"""Traverses nested regions without Python's recursion, at any nesting depth.

A handler of a region is a generator that yields the handlers of the regions inside it, each at the
place where its work is due; `drive` runs them with an explicit stack.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final, TypeAlias, TypeGuard, get_args

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import Sym, symbols_of

Work: TypeAlias = "Generator[Work, None, None]"


PlainOp: TypeAlias = "ops.Constant | ops.Arithmetic | ops.Load"

_PLAIN: Final = frozenset((ops.Constant, *get_args(ops.Arithmetic), ops.Load))


def is_plain(op: ops.Op) -> TypeGuard[PlainOp]:
    """Whether an op only computes a result from its operands, as most ops of a program do.

    A `match` tests one class after the other; this tests all of these at once.
    """
    return type(op) in _PLAIN


def drive(work: Work) -> None:
    """Runs a handler and all that it yields, innermost first."""
    stack = [work]
    while stack:
        try:
            stack.append(next(stack[-1]))
        except StopIteration:
            stack.pop()


def merged_by(op: ops.Op) -> Iterator[tuple[ops.Value, ops.Value]]:
    """Pairs of values at the control-flow joins of an op: an incoming value and the value that it
    becomes."""
    match op:
        case ops.If(results, _, then, otherwise):
            for side in (then, otherwise):
                yield from zip(side.yields, results, strict=True)
        case ops.For() | ops.While():
            for each in (op.initial, op.body.yields):
                yield from zip(each, op.carried, strict=True)
            yield from zip(op.carried, op.results, strict=True)


def symbols_read(function: ops.Function) -> set[Sym]:
    """The symbols that a function's ops read: in sizes, and in the types of tensors, but for those
    that the op itself gives their values."""
    found: set[Sym] = set(_in_types(function.params))
    for op in function.facts.ops:
        if isinstance(op, ops.Size):
            found.update(symbols_of(op.dim))
        found |= {*_in_types((*op.operands, *op.defined))} - {*op.symbols}
    return found


def sizes_read(program: ops.Program) -> set[Sym]:
    """The symbols that a program computes with: not those of the types of tensors, by which
    elements are found."""
    functions = (program.host, *program.kernels)
    read = (op for function in functions for op in function.facts.ops)
    dims = (op.dim for op in read if isinstance(op, ops.Size))
    return {symbol for dim in dims for symbol in symbols_of(dim)}


def _in_types(values: Iterable[ops.Value]) -> Iterator[Sym]:
    for value in values:
        if isinstance(value.type, TensorType):
            for dim in (*value.type.shape, *value.type.strides):
                yield from symbols_of(dim)

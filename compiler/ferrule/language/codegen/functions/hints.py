"""What LLVM is told so that it makes vectors of loops: metadata and attributes.

Threads of a kernel and iterations of a `Parallel` run in any order, by what the IR means.  Without
being told so, LLVM compares addresses before every loop and runs one by one where they overlap,
as they do in a kernel that works in place.

On CPUs that have vectors of 512 bits LLVM keeps to 256 by default.  Here it shall use them: loops
that compute run up to twice as fast, and those that wait for memory no slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions import orders
from ferrule.language.ir import ops
from ferrule.language.ir.walk import all_ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I32
from ferrule.specs import DType

SHORT: Final = 128
"""Iterations times ops of a loop that is unrolled without being asked: about what LLVM would."""

SMALL: Final = 6
SUMMANDS: Final = 4
"""How many ops such a loop of floats has at most, and how many of its iterations become one."""

FEW: Final = 64
"""Threads of which a loop is short: a few vectors."""

FEW_OPS: Final = 128
"""Ops of an iteration that is small: LLVM unrolls 32 of them, and says nothing."""


class _Distinct(ir.MDValue):  # type: ignore[misc]
    """A node that is itself alone, whatever it holds."""

    def descr(self, buf: list[str]) -> None:
        """The text of the node, as llvmlite asks for it."""
        references = ", ".join(operand.get_reference() for operand in self.operands)
        buf += (f"distinct !{{ {references} }}", "\n")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Group:
    """Loads and stores of a loop whose iterations run in any order.

    `straight`: each iteration is to be vectors of its own, not one lane of those of the loop.
    `small`: an iteration has so few ops that some vectors of iterations are no loop.
    """

    node: ir.MDValue
    straight: bool = False
    small: bool = False


def access_group(
    emitter: Emitter, *, straight: bool = False, body: ops.Region | None = None
) -> Group:
    """A new group of loads and stores; `body`: what an iteration does, where it is known."""
    small = body is not None and _is_small(body)
    return Group(_distinct(emitter), straight, small)


def _is_small(body: ops.Region) -> bool:
    """Whether LLVM certainly unrolls some vectors of an iteration.

    A store under a condition becomes a branch for each element of a vector: that loop is not
    unrolled, and as it was to be, LLVM says so on the standard error of the process.
    """
    every = list(all_ops(body))
    branches = (op for op in every if isinstance(op, ops.If))
    stores = any(isinstance(op, ops.Store) for branch in branches for op in _inside(branch))
    return len(every) <= FEW_OPS and not stores


def _inside(branch: ops.If) -> Iterator[ops.Op]:
    for side in (branch.then, branch.otherwise):
        yield from all_ops(side)


def mark_access(instruction: ir.Instruction, group: Group) -> None:
    """Puts a load or store into a group."""
    instruction.set_metadata("llvm.access.group", group.node)


def mark_parallel(
    emitter: Emitter, latch: ir.Instruction, group: Group, count: int | None = None
) -> None:
    """Says of the loop that `latch` closes: no access of the group depends on another iteration.

    It is not unrolled either.  LLVM would unroll a short one before it makes vectors, and out of a
    straight line it cannot, since nothing says there that addresses differ; the rest of a vector
    loop gets slower too, as it is seldom long.  But the vector loop is unrolled where the `count`
    of iterations is known and small, and they are.
    """
    said = [["llvm.loop.parallel_accesses", group.node], ["llvm.loop.unroll.disable"]]
    if group.straight:
        said.append(["llvm.loop.vectorize.enable", ir.Constant(I1, 0)])
    elif group.small and count is not None and count <= FEW:
        said.append(["llvm.loop.vectorize.followup_vectorized", *_whole(emitter)])
    nodes = [emitter.module.add_metadata(each) for each in said]
    loop = _distinct(emitter)
    loop.operands = (loop, *nodes)
    latch.set_metadata("llvm.loop", loop)


def _whole(emitter: Emitter) -> Iterator[ir.MDValue]:
    """What is said of a vector loop so that it is unrolled, and what it changes in registers."""
    for said in (["llvm.loop.unroll.full"], ["llvm.loop.isvectorized", ir.Constant(I32, 1)]):
        yield emitter.module.add_metadata(said)


def mark_outer(emitter: Emitter, latch: ir.Instruction) -> None:
    """Says of a loop around others that it is not unrolled: that only makes copies of those."""
    whole = emitter.module.add_metadata(["llvm.loop.unroll.disable"])
    loop = _distinct(emitter)
    loop.operands = (loop, whole)
    latch.set_metadata("llvm.loop", loop)


def mark_wishes(emitter: Emitter, latch: ir.Instruction, wishes: ops.LoopHints) -> None:
    """Says how the loop that `latch` closes would like to be compiled.

    Only what LLVM does without fail or leaves without a word: for a wish that it was forced to and
    could not fulfil it writes a warning to the standard error of the process.
    """
    loop = _distinct(emitter)
    loop.operands = (loop, *(emitter.module.add_metadata(w) for w in _metadata(wishes)))
    latch.set_metadata("llvm.loop", loop)


def possible(op: ops.For, count: int | None, *, alone: bool = False) -> ops.LoopHints | None:
    """The wishes of a loop that LLVM can fulfil: it unrolls innermost loops with one exit.

    `count`: the number of iterations, where it is a constant, so that it can unroll all.  A short
    loop without wishes is unrolled, for the loop around it may become vectors then; so is, in
    part, a sum of floats in order that runs `alone`, not for many threads: it never becomes one.

    A width is no wish for a loop that may reduce floats: LLVM takes it as leave to reorder them.
    """
    given = op.hints
    if given is not None and given.vectorize not in (None, False) and orders.may_reduce(op):
        given = replace(given, vectorize=None) if given.unroll is not None else None
    wishes = given or ops.LoopHints()
    if wishes.unroll == 1:
        return wishes
    inner = list(all_ops(op.body))
    simple = not any(isinstance(each, (ops.For, ops.While, ops.Check)) for each in inner)
    if wishes.unroll is None and simple and count is not None and count * len(inner) <= SHORT:
        return replace(wishes, unroll="full")
    if given is None and alone and simple and len(inner) <= SMALL and _adds_floats(op):
        return replace(wishes, unroll=SUMMANDS)
    if simple and (count is not None or wishes.unroll != "full"):
        return given
    return replace(wishes, unroll=None)


def _adds_floats(op: ops.For) -> bool:
    """Whether an iteration needs a float of the one before."""
    return any(isinstance(c.type, DType) and c.type.kind == "float" for c in op.carried)


def _metadata(wishes: ops.LoopHints) -> Iterator[list[str | ir.Constant]]:
    match wishes.unroll:
        case "full":
            yield ["llvm.loop.unroll.full"]
        case 1:
            yield ["llvm.loop.unroll.disable"]
        case int(count):
            yield ["llvm.loop.unroll.count", ir.Constant(I32, count)]
    match wishes.vectorize:
        case False:
            yield ["llvm.loop.vectorize.enable", ir.Constant(I1, 0)]
        case int(width) if width is not True:
            yield ["llvm.loop.vectorize.width", ir.Constant(I32, width)]


def prefer_wide_vectors(function: ir.Function) -> None:
    """Lets a function use vectors of 512 bits where the CPU has them."""
    # llvmlite knows no attributes with a value, and refuses what it does not know.
    set.add(function.attributes, '"prefer-vector-width"="512"')


def _distinct(emitter: Emitter) -> ir.MDValue:
    return _Distinct(emitter.module, (), str(len(emitter.module.metadata)))

"""Hints for LLVM's loop vectoriser: metadata and attributes.

By the semantics of the IR, threads of a kernel and iterations of a `Parallel` run in any order.
Without hints, LLVM compares addresses before every loop and runs the scalar loop if they overlap,
as they do in a kernel that works in place.

On CPUs with vectors of 512 bits LLVM uses 256 by default.  Here it uses 512: compute-bound loops
run up to twice as fast, and memory-bound ones no slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions import orders
from ferrule.language.codegen.functions.interleaved import may_move
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I1, I32
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

SHORT: Final = 128
"""The product of iterations and ops up to which a loop is unrolled without a hint: about LLVM's own
limit."""

SMALL: Final = 6
SUMMANDS: Final = 4
"""SMALL and SUMMANDS: the limit of ops in such a loop of floats, and its unroll factor."""

FEW: Final = 64
"""The number of threads up to which a loop is short: a few vectors."""

FEW_OPS: Final = 128
"""The limit of ops of a small iteration: LLVM unrolls 32 of them without a warning."""


TANGLED: Final = (
    "LLVM's vectoriser would ask for minutes what follows from a load that is the same in all "
    "iterations: load it before the loop"
)
"""What is said of a loop that is not vectorised, see `tangles`."""

_UNTANGLED: Final = 10
"""The limit of instructions, of three operands at most, that cannot have as many paths."""


class _Distinct(ir.MDValue):  # type: ignore[misc]
    """A node that is distinct, independent of its contents."""

    def descr(self, buf: list[str]) -> None:
        """The text of the node, for llvmlite."""
        references = ", ".join(operand.get_reference() for operand in self.operands)
        buf += (f"distinct !{{ {references} }}", "\n")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Group:
    """Loads and stores of a loop whose iterations run in any order.

    `straight`: each iteration has vectors of its own, instead of being one lane.  `small`: an
    iteration has so few ops that a few vectors of iterations can be unrolled.  `whole`: the loop is
    unrolled, for the one around it, whose group is `copied`: an iteration has several copies of the
    accesses.
    """

    node: ir.MDValue
    straight: bool = False
    small: bool = False
    whole: bool = False
    copied: bool = False
    accesses: list[ir.Instruction] = field(default_factory=list)


def access_group(
    emitter: Emitter, *, straight: bool = False, body: ops.Region | None = None
) -> Group:
    """A new group of loads and stores; `body`: the body of an iteration, if known."""
    small = body is not None and _is_small(body)
    return Group(_distinct(emitter), straight, small)


def _is_small(body: ops.Region) -> bool:
    """Whether LLVM certainly unrolls a few vectors of iterations.

    A store under a condition becomes a branch for each element of a vector: such a loop is not
    unrolled, and after an unroll hint LLVM prints a warning to standard error.  So it is after one
    that may end the kernel: what `--enable-checks` adds leaves the loop.
    """
    every = list(all_ops(body))
    if any("fails" in op.effects for op in every):
        return False
    branches = (op for op in every if isinstance(op, ops.If))
    stores = any(isinstance(op, ops.Store) for branch in branches for op in _inside(branch))
    return len(every) <= FEW_OPS and not stores


def _inside(branch: ops.If) -> Iterator[ops.Op]:
    for side in (branch.then, branch.otherwise):
        yield from all_ops(side)


def mark_access(instruction: ir.Instruction, group: Group) -> None:
    """Puts a load or store into a group."""
    group.accesses.append(instruction)
    instruction.set_metadata("llvm.access.group", group.node)


def is_tangled(latch: ir.Instruction) -> bool:
    """Whether LLVM's vectoriser may never leave the loop that a branch to its head closes."""
    (head,) = (each for each in latch.operands if isinstance(each, ir.Block))
    blocks = latch.function.blocks
    loop = blocks[blocks.index(head) : blocks.index(latch.parent) + 1]
    every = [each for block in loop for each in block.instructions]
    makes = [each for each in every if not isinstance(each, _MAKE_NOTHING)]
    if len(makes) <= _UNTANGLED and not any(isinstance(each, ir.CallInstr) for each in makes):
        return False
    # Most small programs have no other loops.
    from ferrule.language.codegen.functions import tangles

    return tangles.is_tangled(every)


_MAKE_NOTHING: Final = (ir.PhiInstr, ir.StoreInstr, ir.Branch, ir.ConditionalBranch)


def mark_parallel(
    emitter: Emitter,
    latch: ir.Instruction,
    group: Group,
    counter: ir.Value,
    count: int | None = None,
) -> None:
    """Marks the loop that `latch` closes: no access of the group depends on another iteration.

    Not where LLVM would then change the order of accesses of one iteration, see `interleaved`.
    A loop with few iterations is not unrolled.  LLVM would unroll it before vectorising it, and
    cannot vectorise the straight-line code, because it does not know that the addresses differ.
    But its vector loop is unrolled if the iterations are small.  `count`: the number of iterations,
    if known.  To forbid unrolling also forbids several vectors in an iteration, which long loops
    need: that is why they may be unrolled.
    """
    said: list[list[object]] = []
    if group.whole:
        said.append(["llvm.loop.unroll.full"])
    elif group.straight or not may_move(group.accesses, counter, copied=group.copied):
        said.append(["llvm.loop.parallel_accesses", group.node])
    few = not group.whole and count is not None and count <= FEW
    if few:
        said.append(["llvm.loop.unroll.disable"])
    if group.straight or is_tangled(latch):
        said.append(["llvm.loop.vectorize.enable", ir.Constant(I1, 0)])
    elif group.small and few:
        said.append(["llvm.loop.vectorize.followup_vectorized", *_whole(emitter)])
    nodes = [emitter.module.add_metadata(each) for each in said]
    loop = _distinct(emitter)
    loop.operands = (loop, *nodes)
    latch.set_metadata("llvm.loop", loop)


def _whole(emitter: Emitter) -> Iterator[ir.MDValue]:
    """Metadata that make LLVM unroll a vector loop completely, and mark it as vectorised."""
    for said in (["llvm.loop.unroll.full"], ["llvm.loop.isvectorized", ir.Constant(I32, 1)]):
        yield emitter.module.add_metadata(said)


def mark_outer(emitter: Emitter, latch: ir.Instruction) -> None:
    """Marks a loop around others as not unrolled: that would only copy them."""
    whole = emitter.module.add_metadata(["llvm.loop.unroll.disable"])
    loop = _distinct(emitter)
    loop.operands = (loop, whole)
    latch.set_metadata("llvm.loop", loop)


def mark_wishes(emitter: Emitter, latch: ir.Instruction, wishes: ops.LoopHints) -> None:
    """Adds the hints of the loop that `latch` closes.

    Only hints that LLVM always follows or silently ignores: for a forced hint that it cannot follow
    it prints a warning to standard error.
    """
    loop = _distinct(emitter)
    loop.operands = (loop, *(emitter.module.add_metadata(w) for w in _metadata(wishes)))
    latch.set_metadata("llvm.loop", loop)


def possible(
    op: ops.For, count: int | None, *, alone: bool = False, threads: bool = False
) -> ops.LoopHints | None:
    """The hints of a loop that LLVM can follow: it unrolls innermost loops with one exit.

    `count`: the number of iterations if it is a constant, so that it can unroll all.  A short loop
    without hints is unrolled, because then the loop around it may be vectorised; so is, partially,
    a sum of floats in order that runs `alone`, not for many threads, because it is never
    vectorised; and a short loop in the `threads` of a GPU.  A vector width is dropped for a loop
    that may reduce floats: LLVM takes it as permission to reorder them.  So it is for one that LLVM
    cannot vectorise, of which it would print a remark to standard error.
    """
    given = op.hints
    wide = given is not None and given.vectorize not in (None, False)
    if given is not None and wide and (orders.may_reduce(op) or not _may_be_vectors(op)):
        given = replace(given, vectorize=None) if given.unroll is not None else None
    wishes = given or ops.LoopHints()
    if wishes.unroll == 1:
        return wishes
    inner = list(all_ops(op.body))
    simple = not any(isinstance(each, (ops.For, ops.While, ops.Check)) for each in inner)
    if wishes.unroll is None and simple and count is not None and count * len(inner) <= SHORT:
        return replace(wishes, unroll="full")
    in_order = alone and _adds_floats(op) and orders.may_reduce(op)
    if given is None and in_order and simple and len(inner) <= SMALL:
        return replace(wishes, unroll=SUMMANDS)
    if given is None and count is None and threads and (factor := _factor(op.body)):
        return replace(wishes, unroll=factor)
    if simple and (count is not None or wishes.unroll != "full"):
        return given
    return replace(wishes, unroll=None)


def _may_be_vectors(op: ops.For) -> bool:
    """Whether LLVM finds only what it knows in a loop: no other loop, no end but its own, and sums,
    products and the like as carried values."""
    inner = list(all_ops(op.body))
    if any(
        each.regions and not isinstance(each, ops.If) or "fails" in each.effects for each in inner
    ):
        return False
    return all(map(partial(_is_reduced, inner), op.carried, op.body.yields))


def _is_reduced(inner: Sequence[ops.Op], carried: ops.Value, after: ops.Value) -> bool:
    """Whether a value is read once in an iteration, by the op that makes the next one of it."""
    readers = [each for each in inner if carried in each.operands]
    match readers:
        case [ops.Binary(result, name)] if result is after:
            return name in _REDUCTIONS and not any(after in each.operands for each in inner)
    return False


_REDUCTIONS: Final = ("add", "mul", "and", "or", "xor", "min", "max")
"""What LLVM makes of the lanes of a vector at the end of a loop."""


def is_short(op: ops.For, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether a loop without hints is unrolled: its iterations are known, and few."""
    bounds = [makers.get(value) for value in (op.start, op.stop, op.step)]
    numbers = [each.value for each in bounds if isinstance(each, ops.Constant)]
    if len(numbers) < 3 or not numbers[2]:
        return False
    return len(range(*map(int, numbers))) * len(list(all_ops(op.body))) <= SHORT


def _factor(body: ops.Region) -> int:
    """How often a loop of a thread of a GPU is unrolled; 0 leaves it to LLVM.

    LLVM unrolls without a hint 8 to 32 times, then ptxas unrolls that four times more, and both
    leave remainders: a matrix multiplication has twice the instructions, and is no faster.  What
    has a hint, ptxas leaves alone.
    """
    if not all(op.effects <= _MEMORY and not op.regions for op in body.ops):
        return 0
    cost = sum(_SLOW if isinstance(op, ops.Binary) and op.op == "div" else 1 for op in body.ops)
    return next((factor for most, factor in _FACTORS if cost <= most), 0)


_MEMORY: Final = frozenset(("reads", "writes"))
_SLOW: Final = 16
"""The ops of a division, about."""
_FACTORS: Final = ((12, 16), (96, 4))
"""For bodies of so many ops at most."""


def _adds_floats(op: ops.For) -> bool:
    """Whether an iteration depends on a float of the previous one."""
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
    """Lets a function use vectors of 512 bits if the CPU has them."""
    # llvmlite does not support attributes with a value, and refuses unknown ones.
    set.add(function.attributes, '"prefer-vector-width"="512"')


def begin_at_a_line(function: ir.Function) -> None:
    """Lets a function begin at a cache line, so that its loops always lie in the same way."""
    # llvmlite knows no alignment of functions; LLVM reads it among the attributes.
    set.add(function.attributes, "align 64")


def _distinct(emitter: Emitter) -> ir.MDValue:
    return _Distinct(emitter.module, (), str(len(emitter.module.metadata)))

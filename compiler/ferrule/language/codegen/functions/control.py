"""Branches and loops: blocks, and phis for results and carried values.

Other modules emit the contents of their regions: each function takes `emit`, which returns the work
of a region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.language.codegen.functions import hints, loops
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import opaque
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.operation import EVERY
from ferrule.language.ir.walk import Work
from ferrule.runtime.llvm.layouts import I32, I64, PTR
from ferrule.specs import DType

_RARE: Final = (1, 1 << 20)
"""Weights with which LLVM keeps a branch where it could compute both sides."""

_STAYS: Final = EVERY - {"fails", "ends", "asks", "calls"}
"""The effects of ops that never end the function."""

Links: TypeAlias = Mapping[ops.Value, ir.Value]
"""The values that arrive at a block, of results that are in chains."""

EmitRegion: TypeAlias = Callable[[FunctionLowering, ops.Region], Work]
"""Emits the ops of a region; nested regions are yielded."""


def if_(lowering: FunctionLowering, op: ops.If, emit: EmitRegion) -> Work:
    """A branch, and a phi for each result; no branch if its condition is constant."""
    known = lowering.values[op.condition]
    if isinstance(known, ir.Constant):
        taken = op.then if known.constant else op.otherwise
        yield emit(lowering, taken)
        _pass_on(lowering, taken.yields, op.results)
        return
    then, end = lowering.emitter.block("then"), lowering.emitter.block("endif")
    # A phi needs a block for each side: with `end` itself both would come from one block.
    has_else = bool(op.otherwise.ops) or bool(op.results)
    otherwise = lowering.emitter.block("else") if has_else else end
    weights = _RARE if op.rare else None
    lowering.emitter.cond_branch(lowering.values[op.condition], then, otherwise, weights)
    incoming = []
    for block, region in ((then, op.then), (otherwise, op.otherwise)):
        if block is end:
            continue
        lowering.emitter.at(block)
        yield emit(lowering, region)
        # Not `block`: a branch or loop in the region ends in another one.
        incoming.append(
            (lowering.b.block, region.yields, _links(lowering, op.results, region.yields))
        )
        lowering.emitter.branch(end)
    lowering.emitter.at(end)
    _merge(lowering, op.results, incoming)


def _merge(
    lowering: FunctionLowering,
    results: Sequence[ops.Value],
    incoming: Sequence[tuple[ir.Block, Sequence[ops.Value], Links]],
) -> None:
    """One phi per result; two (address, object) for an owned tensor."""
    linked = [result for result in results if result in lowering.chained]
    if linked:
        from ferrule.language.codegen.functions import chains
    for result in linked:
        phi = chains.phi(lowering, result)
        for block, _, links in incoming:
            phi.add_incoming(links[result], block)
    for position, result in enumerate(results):
        if result in lowering.chained:
            continue
        phi = lowering.b.phi(_type_of(result), name=result.hint)
        for block, values, _ in incoming:
            phi.add_incoming(lowering.values[values[position]], block)
        lowering.values[result] = phi
    for position, result in enumerate(results):
        if result in lowering.owned:
            phi = lowering.b.phi(PTR, name=f"{result.hint}.object")
            for block, values, _ in incoming:
                phi.add_incoming(_object_of(lowering, values[position]), block)
            lowering.objects[result] = phi
    for result in linked:  # after all phis of the block
        lowering.values[result] = chains.number(lowering, result)


def _links(
    lowering: FunctionLowering, results: Sequence[ops.Value], values: Sequence[ops.Value]
) -> Links:
    """What arrives for those results that are in chains: emitted before the branch to them."""
    if not lowering.chained:
        return {}
    from ferrule.language.codegen.functions import chains

    return {
        result: chains.link(lowering, value)
        for result, value in zip(results, values, strict=True)
        if result in lowering.chained
    }


def _object_of(lowering: FunctionLowering, tensor: ops.Value) -> ir.Value:
    """The object of a tensor that the function owns; null for one whose object is never read."""
    return lowering.objects.get(tensor, lowering.emitter.null())


def _pass_on(
    lowering: FunctionLowering, values: Sequence[ops.Value], results: Sequence[ops.Value]
) -> None:
    """Defines results as aliases of values."""
    for value, result in zip(values, results, strict=True):
        lowering.values[result] = lowering.values[value]
        if value in lowering.objects:
            lowering.objects[result] = lowering.objects[value]


def for_(lowering: FunctionLowering, op: ops.For, emit: EmitRegion) -> Work:
    """A counted loop."""
    b, dtype = lowering.b, dtype_of(op.index)
    bounds = (lowering.as_i64(value) for value in (op.start, op.stop, op.step))
    limits = loops.python_range(b, dtype, *bounds)
    size = None if lowering.watch is None else lowering.watch.round(op)
    if size is None:
        yield _counted(lowering, op, limits, op.initial, emit)
        _pass_on(lowering, op.carried, op.results)
    else:
        yield _rounds(lowering, op, limits, size, emit)


def _rounds(
    lowering: FunctionLowering, op: ops.For, limits: loops.Range, size: int, emit: EmitRegion
) -> Work:
    """A counted loop as a loop over rounds of `size` iterations, with a check for signals after
    each."""
    b, watch = lowering.b, lowering.watch
    assert watch is not None
    head, body, end = (lowering.emitter.block(f"round.{part}") for part in ("head", "body", "end"))
    before, links = b.block, _links(lowering, op.results, op.initial)
    lowering.emitter.branch(head)
    lowering.emitter.at(head)
    counter = b.phi(I64, name="round")
    counter.add_incoming(limits.first, before)
    _merge(lowering, op.results, [(before, op.initial, links)])
    lowering.emitter.cond_branch(limits.more(b, counter), body, end)
    lowering.emitter.at(body)
    piece = limits.piece(b, counter, size)
    yield _counted(lowering, op, piece, op.results, emit)
    watch.look(lowering)
    counter.add_incoming(piece.end, b.block)
    _close_loop(lowering, op.results, op.carried, head, end)


def _counted(
    lowering: FunctionLowering,
    op: ops.For,
    limits: loops.Range,
    initial: Sequence[ops.Value],
    emit: EmitRegion,
) -> Work:
    """A loop with these iterations; after it, the carried values have their last values."""
    b = lowering.b
    head, body, end = (lowering.emitter.block(f"for.{part}") for part in ("head", "body", "end"))
    before, links = b.block, _links(lowering, op.carried, initial)
    lowering.emitter.branch(head)
    lowering.emitter.at(head)
    counter = b.phi(I64, name=op.index.hint)
    counter.add_incoming(limits.first, before)
    _merge(lowering, op.carried, [(before, initial, links)])
    lowering.emitter.cond_branch(limits.more(b, counter), body, end)
    lowering.emitter.at(body)
    lowering.define_integer(op.index, limits.index(b, counter))
    lowering.multiples.note_index(op)
    yield emit(lowering, op.body)
    counter.add_incoming(limits.next(b, counter), b.block)
    if not lowering.chained.keys().isdisjoint(op.carried):
        from ferrule.language.codegen.functions.chains import CHAINED

        lowering.say(CHAINED)
    count, alone = _iterations(lowering, op), lowering.host_op is not None
    wishes = hints.possible(op, count, alone=alone, threads=lowering.narrow)
    _close_loop(lowering, op.carried, op.body.yields, head, end, wishes)


def _iterations(lowering: FunctionLowering, op: ops.For) -> int | None:
    """The number of iterations of a loop, if it is a constant."""
    bounds = [lowering.values[value] for value in (op.start, op.stop, op.step)]
    if not all(isinstance(bound, ir.Constant) for bound in bounds):
        return None
    start, stop, step = (bound.constant for bound in bounds)
    return len(range(start, stop, step)) if step else 0


def while_(lowering: FunctionLowering, op: ops.While, emit: EmitRegion) -> Work:
    """A loop with a test before each iteration."""
    head, body, end = (lowering.emitter.block(f"while.{part}") for part in ("head", "body", "end"))
    before, links = lowering.b.block, _links(lowering, op.carried, op.initial)
    lowering.emitter.branch(head)
    lowering.emitter.at(head)
    _merge(lowering, op.carried, [(before, op.initial, links)])
    yield emit(lowering, op.test)
    goes_on = lowering.values[op.test.yields[0]]
    if _leaves_otherwise(op):
        goes_on = _hidden(lowering, goes_on)
    lowering.emitter.cond_branch(goes_on, body, end)
    lowering.emitter.at(body)
    yield emit(lowering, op.body)
    if lowering.watch is not None:
        lowering.watch.count(lowering, op)
    _close_loop(lowering, op.carried, op.body.yields, head, end)
    _pass_on(lowering, op.carried, op.results)


def _leaves_otherwise(op: ops.While) -> bool:
    """Whether a loop can end other than by one comparison: its test consists of several ops, like
    that of a loop with a `break`, or its body can end the function."""
    tests = sum(isinstance(each, ops.Compare | ops.Binary | ops.Unary) for each in op.test.ops)
    return tests > 1 or any(not _STAYS >= each.effects for each in all_ops(op.body))


def _hidden(lowering: FunctionLowering, condition: ir.Value) -> ir.Value:
    """A condition that is opaque to LLVM: the same value, passed through inline assembly.

    LLVM 22.1 wrongly hoists the test of a loop if an exit before the test compares the counter with
    a value that is loaded in each iteration; then the loop runs past its end (`IndVarSimplify`, the
    value that it makes is called `first_iter`):

        for (i = 0; i < n && !found; ++i) {
          if (i >= *limit) return 1;   // becomes, with n read once: loop while (n != 1 && !found)
          found = a[i] == k;
        }
    """
    b = lowering.b
    return b.icmp_unsigned("!=", opaque(b, b.zext(condition, I32)), ir.Constant(I32, 0))


def _close_loop(
    lowering: FunctionLowering,
    carried: Sequence[ops.Value],
    yields: Sequence[ops.Value],
    head: ir.Block,
    end: ir.Block,
    wishes: ops.LoopHints | None = None,
) -> None:
    """The back edge to the head with the next values; then continue after the loop."""
    for value, link in _links(lowering, carried, yields).items():
        lowering.chains[value].add_incoming(link, lowering.b.block)
    for value, following in zip(carried, yields, strict=True):
        if value in lowering.chained:
            continue
        lowering.values[value].add_incoming(lowering.values[following], lowering.b.block)
        if value in lowering.owned:
            lowering.objects[value].add_incoming(_object_of(lowering, following), lowering.b.block)
    latch = lowering.b.branch(head)
    if hints.is_tangled(latch):
        lowering.say(hints.TANGLED)
        wishes = replace(wishes or ops.LoopHints(), vectorize=False)
    if wishes is not None:
        hints.mark_wishes(lowering.emitter, latch, wishes)
    lowering.emitter.at(end)


def _type_of(value: ops.Value) -> ir.Type:
    """The LLVM type of a value: tensors and handles are addresses."""
    return value_type(value.type) if isinstance(value.type, DType) else PTR

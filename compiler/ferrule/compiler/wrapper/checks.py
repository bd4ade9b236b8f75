"""Checks of a call, grouped: one branch for many, told apart only where one failed.

A check is a *term*: an integer that is zero where all is well.  `refuse` adds one to the group
that is pending, `settle` ends the group: the terms are or-ed, and one branch leads to a cold block
where something is wrong.  That block finds the first check that failed, in the order in which they
were added, and goes to the current failure target with the number of its message.

A settled group is needed only before code that relies on its checks, such as a load through a
pointer that must not be null.  A check never raises by itself: where a failure goes is decided by
the innermost of the failure targets.

A term may be *excused*: strictly seen it is not zero, but the call is right all the same.  The hot
way only sees the strict term, and the cold block returns where every failure was excused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.messages.parts import Message
from ferrule.compiler.messages.support import FIRST, FIRST_TERMS
from ferrule.compiler.messages.table import Table
from ferrule.runtime.llvm.emitter import UNLIKELY, Emitter
from ferrule.runtime.llvm.layouts import I64

Lazy: TypeAlias = "Callable[[], ir.Value]"

VALUE_SLOTS: Final = 8
"""Room in the buffer of values that messages show; a body's faults use the first ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """One message of a check, and its own term, emitted in the cold block."""

    message: Message
    term: Lazy
    excusable: bool = False
    shown: tuple[tuple[int, Lazy], ...] = ()


@dataclass(slots=True)
class Target:
    """Where failures go: a block, and the numbers of messages with which it is reached."""

    block: ir.Block
    reached: list[tuple[ir.Value, ir.Block]] = field(default_factory=list)


class Checks:
    """The checks of one wrapper under construction."""

    def __init__(self, emitter: Emitter, table: Table) -> None:
        self.emitter = emitter
        self.table = table
        self.values = emitter.alloca(I64, VALUE_SLOTS, name="values")
        self.cold_blocks: list[ir.Block] = []
        self._targets: list[Target] = []
        self._terms: list[ir.Value] = []
        self._cases: list[Case] = []
        self._slots = 0

    # ---- failure targets ----

    @contextmanager
    def failing_to(self, block: ir.Block) -> Iterator[Target]:
        """Send the failures of what is emitted here to `block`."""
        target = Target(block)
        self._targets.append(target)
        try:
            yield target
            self.settle()
        finally:
            self._targets.pop()

    def fail(self, number: ir.Value) -> None:
        """End the block at the insertion point: go to the failure target with this message."""
        target = self._targets[-1]
        target.reached.append((number, self.emitter.builder.block))
        self.emitter.branch(target.block)

    def cold_block(self, name: str) -> ir.Block:
        """A block that only failures reach; such blocks stand at the end of the function."""
        block = self.emitter.block(name)
        self.cold_blocks.append(block)
        return block

    # ---- checks ----

    def refuse(
        self,
        term: ir.Value,
        message: Message,
        *,
        excuse: Lazy | None = None,
        shown: Sequence[Lazy] = (),
    ) -> None:
        """Fail with `message` where `term`, an integer, is not zero.

        `excuse` gives, in the cold block, a mask: all bits where the term counts, none where it is
        excused.  `shown` give, there, values that the message shows, in slots from `next_slot` on.
        """
        strict = self._widened(term)
        slots = tuple((self._slots + i, value) for i, value in enumerate(shown))
        lazy = _same(strict) if excuse is None else self._masked(strict, excuse)
        self._slots += len(shown)
        self.refuse_together(strict, [Case(message, lazy, excuse is not None, slots)])

    def refuse_together(self, term: ir.Value, cases: Sequence[Case]) -> None:
        """Fail where `term` is not zero, with the first message whose own term is not zero."""
        if len(self._cases) + len(cases) > FIRST_TERMS:
            self.settle()
        self._terms.append(self._widened(term))
        self._cases.extend(cases)

    def next_slot(self, count: int) -> int:
        """The first of the slots that the next check's `count` shown values will have."""
        if self._slots + count > VALUE_SLOTS or len(self._cases) == FIRST_TERMS:
            self.settle()
        return self._slots

    def settle(self) -> None:
        """End the pending group: behind this, all of its checks hold."""
        if not self._terms:
            return
        emitter = self.emitter
        terms, cases = self._terms, self._cases
        self._terms, self._cases, self._slots = [], [], 0
        wrong = terms[0]
        for term in terms[1:]:
            wrong = emitter.builder.or_(wrong, term)
        failed = emitter.builder.icmp_unsigned("!=", wrong, emitter.const_i64(0))
        cold, behind = self.cold_block("refused"), emitter.block("checked")
        emitter.cond_branch(failed, cold, behind, UNLIKELY)
        with emitter.within(cold):
            self._tell_apart(cases, behind)
        emitter.at(behind)

    def _tell_apart(self, cases: Sequence[Case], behind: ir.Block) -> None:
        emitter = self.emitter
        numbers = [self.table.add(case.message) for case in cases]
        if len(cases) == 1 and not cases[0].excusable:
            found: ir.Value = emitter.const_i32(numbers[0])
        else:
            terms = [case.term() for case in cases]
            terms += [emitter.const_i64(0)] * (FIRST_TERMS - len(terms))
            first = emitter.symbol("ferrule_first", FIRST)
            found = emitter.call(first, [emitter.const_i32(numbers[0]), *terms], "failed")
        for slot, value in (shown for case in cases for shown in case.shown):
            emitter.store(value(), emitter.index(self.values, I64, slot))
        if any(case.excusable for case in cases):
            excused = emitter.builder.icmp_signed("<", found, emitter.const_i32(0))
            refused = self.cold_block("failed")
            emitter.cond_branch(excused, behind, refused)
            emitter.at(refused)
        self.fail(found)

    def _widened(self, term: ir.Value) -> ir.Value:
        return term if term.type == I64 else self.emitter.builder.zext(term, I64)

    def _masked(self, term: ir.Value, excuse: Lazy) -> Lazy:
        return lambda: self.emitter.builder.and_(term, excuse())


def _same(term: ir.Value) -> Lazy:
    return lambda: term



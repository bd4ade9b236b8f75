"""Checks of a call: a compare and a branch each, on a way that is straight while all is well.

A check never raises by itself: where a failure goes is decided by the innermost failure target,
and what arrives there is the number of a message.  Behind `check` its condition holds, so code
that relies on it (a load through a pointer that must not be null) can follow at once.

A failure may be *excused*: strictly seen the condition does not hold, but the call is right all
the same.  The hot way sees the strict condition only; the excuse is looked for in a cold block,
which comes back to the hot way where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from llvmlite import ir

from ferrule.compiler.messages.parts import Message
from ferrule.compiler.messages.table import Table
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I64

Lazy: TypeAlias = "Callable[[], ir.Value]"
"""A value for a cold block, emitted there."""

VALUE_SLOTS: Final = 4
"""Room in the buffer of values that messages show."""


@dataclass(slots=True)
class Target:
    """Where failures go: a block, and the messages with which it is reached from others."""

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

    @contextmanager
    def failing_to(self, block: ir.Block) -> Iterator[Target]:
        """Send the failures of what is emitted inside to `block`."""
        target = Target(block)
        self._targets.append(target)
        try:
            yield target
        finally:
            self._targets.pop()

    def cold_block(self, name: str) -> ir.Block:
        """A block that only failures reach; such blocks stand at the end of the function."""
        block = self.emitter.block(name)
        self.cold_blocks.append(block)
        return block

    def fail(self, number: ir.Value) -> None:
        """End the block at the insertion point: go to the failure target with this message."""
        self.emitter.branch(self._reach(number))

    def check(
        self,
        ok: ir.Value,
        message: Message,
        *,
        excuse: Lazy | None = None,
        shown: Sequence[Lazy] = (),
    ) -> None:
        """Fail with `message` unless `ok`, an i1, holds or `excuse`, an i1 as well, does.

        `shown` are the i64 that the message shows from slot 0 of the buffer of values on.
        """
        emitter = self.emitter
        number = emitter.const_i32(self.table.add(message))
        behind = emitter.block("ok")
        if excuse is None and not shown:
            emitter.cond_branch(ok, behind, self._reach(number))
        else:
            cold = self.cold_block("doubt")
            emitter.cond_branch(ok, behind, cold)
            with emitter.within(cold):
                self._doubt(number, behind, excuse, shown)
        emitter.at(behind)

    def check_both(self, ok: ir.Value, first: tuple[Lazy, Message], second: Message) -> None:
        """Two conditions in one compare: where `ok` does not hold, `first`'s tells them apart."""
        emitter = self.emitter
        behind, cold = emitter.block("ok"), self.cold_block("doubt")
        emitter.cond_branch(ok, behind, cold)
        with emitter.within(cold):
            numbers = [emitter.const_i32(self.table.add(each)) for each in (first[1], second)]
            self.fail(emitter.builder.select(first[0](), numbers[1], numbers[0]))
        emitter.at(behind)

    def _doubt(
        self, number: ir.Value, behind: ir.Block, excuse: Lazy | None, shown: Sequence[Lazy]
    ) -> None:
        emitter = self.emitter
        excused = None if excuse is None else excuse()
        for slot, value in enumerate(shown):
            emitter.store(value(), emitter.index(self.values, I64, slot))
        if excused is None:
            self.fail(number)
        else:
            emitter.cond_branch(excused, behind, self._reach(number))

    def _reach(self, number: ir.Value) -> ir.Block:
        """The failure target, reached from the insertion point with a message."""
        target = self._targets[-1]
        target.reached.append((number, self.emitter.builder.block))
        return target.block

"""The code of a direct entry: bind, read, call the wrapper, give its result or its error.

The entry is a vectorcall function, `ptr (self, args, nargsf, kwnames)`. Its hot path is straight
code. If it cannot read an argument, it hands the unchanged call to the gate, before the wrapper or
any Python code has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from llvmlite import ir

from ferrule.runtime.abi import SYMBOL_PREFIX
from ferrule.runtime.entry.invoke import Invocation
from ferrule.runtime.entry.key import EntryKey
from ferrule.runtime.entry.python import VECTORCALL, near
from ferrule.runtime.entry.readers import Form, Reader
from ferrule.runtime.entry.structs import NO_DEVICE, PLAN, STATE, UNUSED_DEVICE
from ferrule.runtime.entry.support import BIND, BIND_TYPE
from ferrule.runtime.entry.values import Frame, read_tensors, read_value
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import ANY, PTR, Layout
from ferrule.specs.deferred import dataclass

ENTRY_NAME: Final = "entry"

GATE: Final = "ferrule_gate"
"""The symbol of the gate, which gets the calls that the entry cannot make."""


def entry_text(
    readers: Sequence[Reader],
    key: EntryKey,
    instance: Layout,
    triple: str,
    *,
    compact_ints: bool = True,
) -> str:
    """The entry as LLVM IR, which reads its arguments with `readers`.

    `instance` is the layout of the callable. `compact_ints`: whether short ints have the layout
    that `compact_int` reads.
    """
    e = Emitter("ferrule.entry", triple)
    names = ("self", "args", "nargsf", "kwnames")
    entry = e.declare(SYMBOL_PREFIX + ENTRY_NAME, PTR, VECTORCALL.args, names=names)
    with e.body(entry):
        _Entry(e, readers, key, instance, compact_ints).emit(*entry.args)
    return e.text()


@dataclass(slots=True)
class _Entry:
    e: Emitter
    readers: Sequence[Reader]
    key: EntryKey
    instance: Layout
    compact_ints: bool

    def emit(self, me: ir.Value, args: ir.Value, nargsf: ir.Value, kwnames: ir.Value) -> None:
        e, count = self.e, self.e.const_i64(self.positional)
        refused = e.block("refused")
        self._require_plain(me, args, nargsf, kwnames)
        plan = e.load_field(me, self.instance, "plan")
        state = e.alloca(STATE, name="state")
        e.store_field(state, STATE, "framework", e.null())
        device = NO_DEVICE if self.key.uses_stream else UNUSED_DEVICE
        e.store_field(state, STATE, "device", e.const_i64(device))
        holds = any(map(_borrows, self.readers))
        if holds:
            e.store_field(state, STATE, "held", e.null())
        frame = Frame(e, self.instance, state, refused, self.compact_ints)
        packed = self._read(frame, args)
        torch = any(map(_reads_torch, self.readers))
        streams, allocates = self.key.uses_stream and torch, self.key.allocates and torch
        made = Invocation(e, streams, allocates, state, frame.temps, frame.owned, holds)
        released = e.load_field(me, self.instance, "release_gil")
        code, result = e.load_field(plan, PLAN, "code"), made.new_result()
        number = e.const_i32(len(self.readers))
        form = e.load_field(plan, PLAN, "form") if self.key.unpacks else None
        made.finish(made.call(code, released, packed, number, result), result, form)
        with e.within(refused):
            made.release()
            self._leave_to(near(e, GATE, VECTORCALL), [me, args, count, kwnames])

    def _require_plain(
        self, me: ir.Value, args: ir.Value, nargsf: ir.Value, kwnames: ir.Value
    ) -> None:
        """Continue if the call gives each parameter in order; otherwise leave the hot path.

        The last arguments can be keywords: then `kwnames` is the tuple object of the plan. The
        function object that owns the call plan must still be the handle of the callable.
        """
        e = self.e
        gone, kept, bind, ready = (e.block(name) for name in ("gone", "kept", "bind", "ready"))
        handle = e.load_field(me, self.instance, "handle")
        owner = e.load_field(me, self.instance, "owner")
        e.cond_branch(e.icmp("eq", handle, owner), kept, gone, LIKELY)
        e.at(kept)
        # The highest bit is a flag of the vectorcall protocol, not a part of the number.
        given = e.binary("shl", nargsf, e.const_i64(1))
        all_given = e.icmp("eq", given, e.const_i64(2 * self.positional))
        plain = e.binary("and", all_given, e.icmp("eq", kwnames, self._kwnames(me)))
        e.cond_branch(plain, ready, bind, LIKELY)
        gate = near(e, GATE, VECTORCALL)
        with e.within(gone):
            self._leave_to(gate, [me, args, nargsf, kwnames])
        with e.within(bind):
            self._leave_to(near(e, BIND, BIND_TYPE), [me, args, nargsf, kwnames, gate])
        e.at(ready)

    @property
    def positional(self) -> int:
        """The number of arguments that a call passes by position."""
        return len(self.readers) - self.key.keywords

    def _kwnames(self, me: ir.Value) -> ir.Value:
        if not self.key.keywords:
            return self.e.null()
        plan = self.e.load_field(me, self.instance, "plan")
        return self.e.load_field(plan, PLAN, "kwnames")

    def _leave_to(self, function: ir.Function, arguments: Sequence[ir.Value]) -> None:
        """Tail-call another function and return its result; it must not use this call's stack."""
        self.e.ret(self.e.tail_call(function, arguments))

    # ---- arguments ----

    def _read(self, frame: Frame, values: ir.Value) -> ir.Value:
        e, count = self.e, len(self.readers)
        packed = e.alloca(ANY, max(1, count), name="packed")
        for reader, first, number in _runs(self.readers):
            args, outs = e.index(values, PTR, first), e.index(packed, ANY, first)
            if number > 1:
                read_tensors(frame, reader, args, outs, number)
            else:
                read_value(frame, reader, e.load(args, PTR), outs)
        return packed


def _reads_torch(reader: Reader) -> bool:
    return Form.TORCH in reader.forms or any(map(_reads_torch, reader.items))


def _borrows(reader: Reader) -> bool:
    return reader.borrows or any(map(_borrows, reader.items))


def _runs(readers: Sequence[Reader]) -> Iterator[tuple[Reader, int, int]]:
    """Readers with first position and count; neighbouring equal tensor readers form one run."""
    first = 0
    for reader, group in groupby(readers):
        number = len(list(group))
        if reader.borrows_only:
            yield reader, first, number
        else:
            yield from ((reader, first + i, 1) for i in range(number))
        first += number

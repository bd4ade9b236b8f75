"""Assembles a check program: rows, the texts and paths that they refer to, labels.

The result depends only on the calls, so the same signature gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from typing import Final

from ferrule.compiler.checker.format import GOING, Op, pack_row, row_size
from ferrule.compiler.messages.context import (
    HEADER_FIELDS,
    MAX_LOOPS,
    PATH_STRUCT,
    PROGRAM,
    PROGRAM_STRUCT,
    RUNNING,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import DYNAMIC

KEY: Final = 1 << 30
"""A step to the current key of the loop whose level is in the low bits."""
VALUE: Final = 1 << 29
"""A step to the current value of that loop."""

_WORD: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class At:
    """The place of a value in a call: an argument, then steps into it, and its name in messages.

    `suffix` is a format: each running index in it is a `%lld`.
    """

    argument: int
    name: str
    steps: tuple[int, ...] = ()
    suffix: str = ""

    def item(self, position: int) -> At:
        """An item of the tuple here."""
        return self._step(position, f"[{position}]")

    def running(self, level: int) -> At:
        """The current element of the container here, in loop `level`."""
        return self._step(RUNNING | _checked(level), "[%lld]")

    def key(self, level: int) -> At:
        """The current key of the map here, in loop `level`."""
        return self._step(KEY | _checked(level), ".keys()[%lld]")

    def value(self, level: int) -> At:
        """The current value of the map here, in loop `level`."""
        return self._step(VALUE | _checked(level), ".values()[%lld]")

    def _step(self, step: int, suffix: str) -> At:
        return replace(self, steps=(*self.steps, step), suffix=self.suffix + suffix)

    @property
    def first(self) -> str:
        """The name of this place in the first iteration of every loop."""
        return self.name + self.suffix.replace("%lld", "0")


def _checked(level: int) -> int:
    if level >= MAX_LOOPS:
        raise NotImplementedError(f"containers can be nested {MAX_LOOPS} deep, not deeper")
    return level


@dataclass(frozen=True, slots=True)
class Mask:
    """A set of type indices."""

    low: int
    high: int
    others: int

    def operands(self) -> dict[str, int]:
        """As operands of a row."""
        signed = self.low - (1 << 64) if self.low >> 63 else self.low
        return {"kind": self.others, "axis": self.high, "b": signed}


def mask_of(indices: Iterable[int]) -> Mask:
    """The mask of these indices; `DYNAMIC` means all types that are registered at run time."""
    bits = sum(1 << index for index in indices if index != DYNAMIC)
    return Mask(bits & ((1 << 64) - 1), bits >> 64, int(DYNAMIC in indices))


class Code:
    """A program under construction."""

    def __init__(self) -> None:
        self._rows: list[list[int]] = []
        self._texts = bytearray()
        self._offsets: dict[str, int] = {}
        self._paths: dict[At, int] = {}
        self._steps: list[int] = []
        self._packed_paths: list[tuple[int, int, int, int, int]] = []
        self._at: At | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ops(self) -> frozenset[Op]:
        """The operations of the rows so far."""
        return frozenset(Op(row[0]) for row in self._rows)

    def row(self, op: Op, *, kind: int = 0, axis: int = 0, a: int = 0, b: int = 0) -> int:
        """Add a row; its number."""
        self._rows.append([op, kind, axis, a, b])
        return len(self._rows) - 1

    def here(self, *rows: int, at: At | None = None) -> None:
        """Let these rows go to the row that is added next.

        `at` is the current path, if it is the same for all predecessors.
        """
        for row in rows:
            self._rows[row][3] = len(self._rows)
        self._at = at

    def at(self, at: At) -> None:
        """Choose the path for the rows that follow."""
        if self._at != at:
            self.row(Op.AT, a=self.path(at))
            self._at = at

    def head(self) -> int:
        """The number of the next row, as a target of backward jumps."""
        self._at = None
        return len(self._rows)

    def text(self, text: str) -> int:
        """The offset of a text, which is padded with one to four zero bytes."""
        known = self._offsets.get(text)
        if known is None:
            known = self._offsets[text] = PROGRAM.size + len(self._texts)
            data = text.encode()
            # One zero at least, so that C can read it as a string.
            self._texts += len(data).to_bytes(4, "little") + data + bytes(4 - len(data) % 4)
        return known

    def path(self, at: At) -> int:
        """The number of a path."""
        known = self._paths.get(at)
        if known is None:
            known = self._paths[at] = len(self._paths)
            first, suffix = len(self._steps), self.text(at.suffix) if at.suffix else 0
            row = (at.argument, len(at.steps), first, self.text(at.name), suffix)
            self._packed_paths.append(row)
            self._steps += at.steps
        return known

    def data(
        self,
        *,
        signature: str,
        trace: str,
        leaves: int,
        symbols: int,
        stack: int,
        is_result: bool = False,
    ) -> bytes:
        """The program: header, texts, paths, steps, rows."""
        head = {"signature": self.text(signature), "trace": self.text(trace) if trace else 0}
        paths = PROGRAM.size + _aligned(len(self._texts))
        steps = paths + PATH_STRUCT.size * len(self._packed_paths)
        code = steps + _aligned(4 * len(self._steps))
        head |= {"paths": paths, "code": code}
        head |= {"leaves": leaves, "symbols": symbols, "stack": stack}
        packed = PROGRAM_STRUCT.pack(*(head[name] for name in HEADER_FIELDS), is_result)
        packed += bytes(self._texts).ljust(paths - PROGRAM.size, b"\0")
        for argument, count, first, name, suffix in self._packed_paths:
            packed += PATH_STRUCT.pack(argument, count, steps + 4 * first, name, suffix)
        packed += b"".join(step.to_bytes(4, "little") for step in self._steps)
        return packed.ljust(code, b"\0") + self._packed_rows()

    def _packed_rows(self) -> bytes:
        """The rows, and 8 bytes after the last one, so that every row can be read like a longer
        one."""
        starts = list(accumulate((row_size(row[-1]) for row in self._rows), initial=0))
        packed = (
            pack_row(Op(op), kind, axis, starts[a] if op in GOING else a, b)
            for op, kind, axis, a, b in self._rows
        )
        return b"".join([*packed, bytes(8)])


def _aligned(size: int) -> int:
    return -(-size // 8) * 8

"""Splits a range of a space with several axes into pieces of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ferrule.language.codegen.functions.hints import mark_outer
from ferrule.language.codegen.functions.loops import ONE, ZERO
from ferrule.language.codegen.values.arithmetic import intrinsic
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class RowPiece:
    """The places begin <= i < end of one row; `outer` are its coordinates, the outermost first."""

    begin: ir.Value
    end: ir.Value
    outer: tuple[ir.Value, ...]


@contextmanager
def rows(
    emitter: Emitter, first: ir.Value, last: ir.Value, sizes: Sequence[ir.Value], name: str
) -> Iterator[RowPiece]:
    """Emits a loop over the row pieces of the places first <= i < last.

    `sizes` are those of the space, i64, the innermost one last; places are numbered along rows.
    There is no loop if the space is known to be one row.
    """
    *outer, width = [ONE if _is_one(size) else size for size in sizes]
    if all(size is ONE for size in outer):
        yield RowPiece(first, last, (ZERO,) * len(outer))
        return
    e, b = emitter, emitter.builder
    start, head, after = (e.block(f"{name}.{part}") for part in ("rows", "row", "end"))
    e.cond_branch(b.icmp_signed("<", first, last), start, after)
    e.at(start)
    # These are the only divisions: `_next` makes the coordinates of each later row by additions.
    row, begin = (first, ZERO) if width is ONE else (b.udiv(first, width), b.urem(first, width))
    at_first = _coordinates(b, row, outer)
    e.branch(head)
    e.at(head)
    place, column, *at = (b.phi(I64) for _ in range(2 + len(outer)))
    for phi, value in zip((place, column, *at), (first, begin, *at_first), strict=True):
        phi.add_incoming(value, start)
    count: ir.Value = ONE
    if width is ONE:
        yield RowPiece(ZERO, ONE, tuple(at))
    else:
        count = intrinsic(b, "llvm.smin", b.sub(width, column), b.sub(last, place))
        yield RowPiece(column, b.add(column, count, flags=("nsw",)), tuple(at))
    following = b.add(place, count, flags=("nsw",))
    values = (following, ZERO, *_next(b, at, outer))
    for phi, value in zip((place, column, *at), values, strict=True):
        phi.add_incoming(value, b.block)
    mark_outer(e, b.cbranch(b.icmp_signed("<", following, last), head, after))
    e.at(after)


def _is_one(size: ir.Value) -> bool:
    return isinstance(size, ir.Constant) and size.constant == 1


def _coordinates(
    b: ir.IRBuilder, number: ir.Value, sizes: Sequence[ir.Value]
) -> Iterator[ir.Value]:
    """The coordinates of a number, the outermost first."""
    found = []
    for size in reversed(sizes[1:]):
        found.append(b.urem(number, size))
        number = b.udiv(number, size)
    return iter((number, *reversed(found)))


def _next(b: ir.IRBuilder, at: Sequence[ir.Value], sizes: Sequence[ir.Value]) -> Iterator[ir.Value]:
    """The coordinates of the row that follows, the outermost first."""
    step: ir.Value = ONE
    found = []
    for coordinate, size in reversed(list(zip(at[1:], sizes[1:], strict=True))):
        moved = b.add(coordinate, step, flags=("nsw",))
        full = b.icmp_signed("==", moved, size)
        found.append(b.select(full, ZERO, moved))
        step = b.zext(full, I64)
    return iter((b.add(at[0], step, flags=("nsw",)), *reversed(found)))

"""Loops over threads that a kernel arranges in rows: `row, column = t // 16, t % 16`.

    for t in range(256):                       for row in range(16):
        tile[t // 16, t % 16] = …                  for column in range(16):
                                                       tile[row, column] = …

On the left LLVM sees places that jump, and reads and writes them one by one.  On the right the
inner loop goes along a row.  Rows of two or three threads are unrolled: the loop over rows has
vectors if it goes through memory in steps of a few elements.

Shifts and masks are divisions by powers of two: the number of a thread is never negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.facts import lanes
from ferrule.language.codegen.facts.spine import multiple, nearness
from ferrule.language.codegen.functions.loops import ZERO, counted
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.runtime.llvm.layouts import I64
from ferrule.specs import Int32
from ferrule.specs.deferred import dataclass

SHORTEST: Final = 4
"""The length of a row whose threads are lanes; a shorter one is unrolled."""

MOST_OPS: Final = 128
"""The limit of ops of a row that is unrolled."""


@dataclass(frozen=True, slots=True)
class Pitch:
    """The number of threads, those of a row, and the values that are a thread's row and its place
    in it."""

    count: int
    length: int
    rows: tuple[ops.Value, ...]
    columns: tuple[ops.Value, ...]

    @property
    def unrolled(self) -> bool:
        """Whether the loop over rows has the vectors."""
        return self.length < SHORTEST


# ---- analysis ----


def find(
    kernel: ops.Function, axis: int, constants: Mapping[ops.Value, int], count: int
) -> Pitch | None:
    """The rows in which this number of threads along an axis is arranged, if it pays.

    `constants`: those from outside of the kernel's body.
    """
    every = list(all_ops(kernel.body))
    known = {**constants, **dict(_constants(every))}
    found = dict[int, tuple[list[ops.Value], list[ops.Value]]]()
    for length, is_row, value in _parts(every, axis, known):
        found.setdefault(length, ([], []))[not is_row].append(value)
    if len(found) != 1:
        return None
    ((length, (rows, columns)),) = found.items()
    pitch = Pitch(count, length, tuple(rows), tuple(columns))
    if count % length or length == count or not _pays(every, pitch, axis, known):
        return None
    return pitch


def _constants(every: Iterable[ops.Op]) -> Iterator[tuple[ops.Value, int]]:
    for op in every:
        match op:
            case ops.Constant(result, int(value)):
                yield result, value


def _parts(
    every: Iterable[ops.Op], axis: int, constants: Mapping[ops.Value, int]
) -> Iterator[tuple[int, bool, ops.Value]]:
    """Of each division of a thread's number: the length, whether it gives rows, the result."""
    numbers = set[ops.Value]()
    for op in every:
        match op:
            case ops.Special(result, "thread_idx", at) if at == axis:
                numbers.add(result)
            case ops.Binary(result, name, lhs, rhs) if lhs in numbers and rhs in constants:
                length = _length(name, constants[rhs])
                if length > 1:
                    yield length, name in _ROWS, result


_ROWS: Final = ("floordiv", "shr")


def cuts(name: ops.BinaryOp, number: object) -> bool:
    """Whether an op of a thread's number and this constant gives rows, or places in them."""
    return isinstance(number, int) and _length(name, number) > 1


def _length(name: ops.BinaryOp, number: int) -> int:
    """The length of a row that a division by a number gives; 0 if it is none."""
    match name:
        case "floordiv" | "mod":
            return number
        case "shr":
            return 1 << number if 0 <= number < 16 else 0
        case "and":
            return number + 1 if number > 0 and number & (number + 1) == 0 else 0
    return 0


def _pays(
    every: Sequence[ops.Op], pitch: Pitch, axis: int, constants: Mapping[ops.Value, int]
) -> bool:
    """Whether more accesses are side by side; of unrolled rows, whether all are near."""
    apart = _Degrees(axis, constants)
    before = sum(apart.is_within(op, 1) for op in apart.accesses(every))
    if not pitch.unrolled:
        along = _Degrees(axis, constants, dict.fromkeys(pitch.columns, 1))
        along.known.update(dict.fromkeys(pitch.rows, 0))
        return sum(along.is_within(op, 1) for op in along.accesses(every)) > before
    looped = any(isinstance(op, ops.For | ops.While) for op in every)
    if looped or len(every) * pitch.length > MOST_OPS:
        return False
    down = _Degrees(axis, constants, dict.fromkeys(pitch.rows, 1), pitch.length)
    down.known.update(dict.fromkeys(pitch.columns, 0))
    near = [down.is_within(op, lanes.MOST) for op in down.accesses(every)]
    return all(near) and len(near) > before


@dataclass(slots=True)
class _Degrees:
    """By how much values grow from one iteration of a loop to the next; None for anything else.

    `known` are values, and `thread` is the growth of a thread's number.
    """

    axis: int
    constants: Mapping[ops.Value, int]
    known: dict[ops.Value, int | None] = field(default_factory=dict)
    thread: int = 1

    def accesses(self, every: Iterable[ops.Op]) -> Iterator[ops.Load | ops.Store]:
        """The accesses to memory, each when the degrees of its operands are known."""
        for op in every:
            self.note(op)
            if isinstance(op, ops.Load | ops.Store):
                yield op

    def note(self, op: ops.Op) -> None:
        """Records the degrees of an op's results."""
        match op:
            case ops.Special(result, "thread_idx", axis) if axis == self.axis:
                self.known[result] = self.thread
            case _ if isinstance(op, ops.SimpleOp):
                self.known.setdefault(op.result, self.of(op))
            case _ if op.regions:
                carried = op.carried if isinstance(op, ops.For | ops.While) else ()
                self.known.update(dict.fromkeys((*op.defined, *carried)))

    def of(self, op: ops.SimpleOp) -> int | None:
        """The degree of an op's result; a load's is unknown where its place differs."""
        operands = [self.known.get(value, 0) for value in op.operands]
        if isinstance(op, ops.Load):
            return None if any(degree != 0 for degree in operands) else 0
        found = multiple(op, self.axis, operands, self.constants)
        return nearness(op, self.axis, operands) if found is None else found

    def is_within(self, op: ops.Load | ops.Store, most: int) -> bool:
        """Whether the places of neighbours are at most so many elements apart."""
        degrees = [self.known.get(index, 0) for index in op.indices]
        moving = [
            (degree, stride)
            for degree, stride in zip(degrees, op.tensor.tensor.strides, strict=True)
            if degree != 0
        ]
        if self.known.get(op.tensor, 0) != 0 or len(moving) > 1:
            return False
        return all(degree is not None and degree <= most and s == 1 for degree, s in moving)


# ---- emission ----


def say(lowering: FunctionLowering, kernel: ops.Function, pitch: Pitch) -> None:
    """Tells the remarks."""
    lowering.say("row by row")
    if lowering.lines is not None:
        along = dict.fromkeys(pitch.rows, 0) | dict.fromkeys(pitch.columns, 1)
        lowering.lines.along(kernel.body, None if pitch.unrolled else along)


def whole(
    lowering: FunctionLowering, pitch: Pitch, piece: tuple[ir.Value, ir.Value, ir.Value]
) -> Iterator[bool]:
    """Branches on whether a piece has all threads, and yields the answer where each is to be
    emitted; only true if that is known.

    The piece: where it begins, and its first thread and end.
    """
    begin, first, end = piece
    if begin is ZERO and first is ZERO and isinstance(end, ir.Constant):
        yield True
        return
    e, b = lowering.emitter, lowering.b
    every, some, after = (e.block(f"threads.{name}") for name in ("all", "some", "after"))
    missing = b.or_(b.or_(begin, first), b.xor(end, ir.Constant(I64, pitch.count)))
    e.cond_branch(b.icmp_signed("==", missing, ZERO), every, some)
    for block in (every, some):
        e.at(block)
        yield block is every
        e.branch(after)
    e.at(after)


@contextmanager
def loops(
    lowering: FunctionLowering,
    pitch: Pitch,
    name: str,
    body: ops.Region,
    define: Callable[[ir.Value], None],
) -> Iterator[None]:
    """The loop over rows, and the one along a row; `define` takes the thread, `body` is what it
    runs."""
    e, b, group = lowering.emitter, lowering.b, lowering.group
    assert group is not None, "the threads of a kernel run in parallel"
    length, rows = (ir.Constant(I64, n) for n in (pitch.length, pitch.count // pitch.length))
    outer, inner = None, group
    if pitch.unrolled:
        outer, inner = replace(group, copied=True), replace(group, whole=True)
    with counted(e, ZERO, rows, f"{name}.row", outer) as row:
        if lowering.numbers:
            _define_rowwise(lowering, pitch, body, row)
        with counted(e, ZERO, length, name, inner) as place:
            define(b.add(b.mul(row, length, flags=("nsw",)), place, flags=("nsw",)))
            for values, number in ((pitch.rows, row), (pitch.columns, place)):
                for value in values:
                    lowering.define_integer(value, number)
            yield


def _define_rowwise(
    lowering: FunctionLowering, pitch: Pitch, body: ops.Region, row: ir.Value
) -> None:
    """Defines the values with parameters that are the same along a row."""
    # Few kernels have functions of phases.
    from ferrule.language.codegen.cpu.rowwise import Rowwise

    every = list(all_ops(body))
    outside = ((value, c.constant) for value, c in lowering.values.items() if _is_number(value, c))
    found = Rowwise.of(
        lowering, {**dict(outside), **dict(_constants(every))}, row, pitch.count // pitch.length
    )
    found.rows(pitch.rows)
    found.places(pitch.columns, pitch.length)
    found.define(every)


def _is_number(value: ops.Value, found: ir.Value) -> bool:
    return value.type is Int32 and isinstance(found, ir.Constant)

"""Whether LLVM moves accesses of one iteration past each other where it vectorises a loop.

LLVM makes one vector access of neighbours, such as `x[2 * t]` and `x[2 * t + 1]`: the loads of a
group move up to the first of them, and the stores down to the last (`InterleavedAccessInfo`).  In a
loop that is marked as parallel it takes every such move for legal.  But the mark says only that
iterations do not depend on each other.  Within one, accesses may:

    y[2 * t] = x[2 * t + 1]
    y[2 * t + 1] = x[2 * t]         # in place, y is x: this load must not move up

A loop with such accesses is not marked.  Then LLVM finds out itself what depends on what, and tests
before the loop whether tensors overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Final, Literal

from llvmlite import ir

from ferrule.language.codegen.facts.lanes import MOST
from ferrule.runtime.llvm.layouts import size_of
from ferrule.specs.deferred import dataclass

FEWEST: Final = 3
"""The fewest accesses of which one can move: past another, to a third."""

Kind = Literal["fixed", "irregular", "unknown"]
"""What a value is in the iterations: the same in all, read from memory for each, or anything."""


def may_move(accesses: Sequence[ir.Instruction], counter: ir.Value, *, copied: bool) -> bool:
    """Whether LLVM may move a load up past a store of the same iteration, or a store down past
    another access, that may be of the same memory.

    `accesses`: the loads and stores of an iteration, in the order of the program.  `counter`: that
    of the loop.  `copied`: an iteration has the accesses several times, for each of some threads.
    """
    head = counter.parent
    blocks = _reachable(head)
    inside = [each for each in accesses if each.parent in blocks]
    written = {id(_root(each)) for each in inside if isinstance(each, ir.StoreInstr)}
    if len(inside) < FEWEST - copied or not written:
        return False
    forms = _Forms(counter, blocks, written)
    found = [forms.access(at, each) for at, each in enumerate(inside)]
    if not any(each.is_strided for each in found):
        return False
    repeats = {block: _is_repeated(block, head) for block in {each.parent for each in inside}}
    return _Order(found, [repeats[each.parent] for each in inside], copied).is_broken()


# ---- blocks of a loop ----


def _reachable(head: ir.Block, start: ir.Block | None = None) -> set[ir.Block]:
    """The blocks that run after the head of a loop, or after `start`, and before the head runs
    again."""
    found, pending = set[ir.Block](), [start or head]
    while pending:
        for block in _successors(pending.pop()):
            if block is not head and block not in found:
                found.add(block)
                pending.append(block)
    return found


def _successors(block: ir.Block) -> Iterator[ir.Block]:
    end = block.terminator
    if end is not None:
        yield from (each for each in end.operands if isinstance(each, ir.Block))
        yield from (target for _, target in getattr(end, "cases", ()))


def _is_repeated(block: ir.Block, head: ir.Block) -> bool:
    """Whether a block may run several times in an iteration: it is in a loop inside."""
    return block in _reachable(head, block)


# ---- places of accesses ----


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store.

    `root`: the pointer that its address is made of, `terms` the multiples of values that are added
    to it, and `constant` the number, all in bytes.  `stride`: by how many bytes the address grows
    from one iteration to the next, 0 if that differs, None if it is not known.
    """

    at: int
    writes: bool
    root: int
    is_room: bool
    terms: tuple[tuple[int, int], ...]
    constant: int
    size: int
    stride: int | None

    @property
    def is_strided(self) -> bool:
        """Whether it may be in a group."""
        if self.stride is None:
            return True
        return self.size < abs(self.stride) <= MOST * self.size

    def may_be_grouped(self, other: _Access) -> bool:
        """Whether LLVM may find that both have one base.

        Two pointers can turn out to be parts of one tensor where functions become one.
        """
        return self.root == other.root or not (self.is_room or other.is_room)

    def may_overlap(self, other: _Access) -> bool:
        """Whether both may be of the same memory, in one iteration."""
        if self.root != other.root:
            return not (self.is_room and other.is_room)
        if self.terms != other.terms:
            return True
        first, second = sorted((self, other), key=lambda each: each.constant)
        return second.constant - first.constant < first.size


@dataclass(frozen=True, slots=True)
class _Order:
    """The accesses of an iteration; `repeated`: those that may run before and after others."""

    accesses: Sequence[_Access]
    repeated: Sequence[bool]
    copied: bool

    def is_broken(self) -> bool:
        """Whether the groups that LLVM may form break the order of what may overlap."""
        grouped = [each for each in self.accesses if each.is_strided]
        return any(self._is_broken_by(moved, grouped) for moved in grouped)

    def _is_broken_by(self, moved: _Access, grouped: Sequence[_Access]) -> bool:
        """Whether an access moves past one that may overlap, to another of its group."""
        # Most overlap none: a long iteration has too many triples to look at each.
        kept = [
            other
            for other in self.accesses
            if other is not moved and other.writes | moved.writes and other.may_overlap(moved)
        ]
        return bool(kept) and any(
            other is not to and self._is_passed(moved, other, to)
            for to in grouped
            if self._may_move_to(moved, to)
            for other in kept
        )

    def _may_move_to(self, moved: _Access, to: _Access) -> bool:
        """Whether both may be in one group, and are not the same access that runs once."""
        if moved is to and not self._is_again(moved):
            return False
        return moved.writes == to.writes and moved.may_be_grouped(to)

    def _is_passed(self, moved: _Access, other: _Access, to: _Access) -> bool:
        """Whether `other` is between an access and where it moves."""
        if moved.writes:
            between = self._is_before(moved, other), self._is_before(other, to)
        else:
            between = self._is_before(other, moved), self._is_before(to, other)
        # What moves to the copy of another thread may pass all of its own.
        return between[0] and (between[1] or self.copied)

    def _is_before(self, first: _Access, second: _Access) -> bool:
        return first.at < second.at or (self.repeated[first.at] and self.repeated[second.at])

    def _is_again(self, access: _Access) -> bool:
        """Whether an access is several times in an iteration."""
        return self.copied or self.repeated[access.at]


@dataclass(slots=True)
class _Sum:
    """Multiples of values, by their keys, and a constant."""

    terms: dict[int, int] = field(default_factory=dict)
    constant: int = 0

    def add(self, other: _Sum, factor: int) -> None:
        """Adds a multiple of another sum."""
        self.constant += factor * other.constant
        for key, count in other.terms.items():
            self.terms[key] = self.terms.get(key, 0) + factor * count


@dataclass(slots=True)
class _Forms:
    """Addresses as sums, in a loop with this counter, these blocks, and stores to these pointers.

    Equal keys are of equal values: of one instruction, or of the same operation on such values.
    """

    counter: ir.Value
    blocks: set[ir.Block]
    written: set[int]
    keys: dict[object, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    kinds: dict[int, Kind] = field(default_factory=dict)

    def access(self, at: int, instruction: ir.Instruction) -> _Access:
        """The place of a load or store."""
        writes = isinstance(instruction, ir.StoreInstr)
        place, total = instruction.operands[-1], _Sum()
        for step in takewhile(lambda step: len(step.indices) == 1, _steps(instruction)):
            total.add(self.sum_of(step.indices[0]), _size_of(step.source_etype))
            place = step.pointer
        fixed = self.is_fixed(place)
        size = _size_of(instruction.operands[0].type if writes else instruction.type)
        own = self.key(self.counter)
        # Nothing is known of a pointer that differs: it may be equal to each other one.
        terms = sorted(each for each in total.terms.items() if each[1]) if fixed else [(-1, at)]
        return _Access(
            at,
            writes,
            root=self.key(place) if fixed else -1,
            is_room=isinstance(place, ir.AllocaInstr),
            terms=tuple(terms),
            constant=total.constant,
            size=size,
            stride=self.stride(total, own) if fixed else None,
        )

    def stride(self, total: _Sum, own: int) -> int | None:
        """By how much a sum grows from one iteration to the next; 0 if that differs."""
        kinds = {self.kinds[key] for key, count in total.terms.items() if count and key != own}
        if "irregular" in kinds:
            return 0
        return None if "unknown" in kinds else total.terms.get(own, 0)

    def sum_of(self, value: ir.Value) -> _Sum:
        """A value as a sum."""
        found = _Sum()
        if isinstance(value, ir.Constant):
            found.constant = int(value.constant)
        elif isinstance(value, ir.Instruction) and self._add(found, value):
            pass
        else:
            found.terms[self.key(value)] = 1
        return found

    def _add(self, found: _Sum, value: ir.Instruction) -> bool:
        """Adds what a value is the sum of, if it is one."""
        match value.opname, value.operands:
            case "add" | "sub" as name, (x, y):
                found.add(self.sum_of(x), 1)
                found.add(self.sum_of(y), 1 if name == "add" else -1)
            case "mul", (x, ir.Constant(constant=int(factor))) | (
                ir.Constant(constant=int(factor)),
                x,
            ):
                found.add(self.sum_of(x), factor)
            case "shl", (x, ir.Constant(constant=int(count))):
                found.add(self.sum_of(x), 1 << count)
            case _:
                return False
        return True

    def key(self, value: ir.Value) -> int:
        """The key of a value; its kind is known then."""
        if id(value) not in self.known:
            operation = isinstance(value, ir.Instruction) and value.opname in _PURE
            form: object = id(value)
            if isinstance(value, ir.Constant):
                form = str(value)
            elif operation:
                form = (value.opname, str(value.type), *map(self.key, value.operands))
            key = self.known[id(value)] = self.keys.setdefault(form, len(self.keys))
            self.kinds[key] = self._kind(value)
        return self.known[id(value)]

    def is_fixed(self, value: ir.Value) -> bool:
        """Whether a value is the same in all iterations."""
        return self.kinds[self.key(value)] == "fixed"

    def _kind(self, value: ir.Value) -> Kind:
        if value is self.counter:
            return "unknown"
        if not isinstance(value, ir.Instruction) or value.parent not in self.blocks:
            return "fixed"
        if isinstance(value, ir.LoadInstr):
            return self._kind_of_load(value)
        kinds = {self.kinds[self.key(each)] for each in value.operands}
        if value.opname in _PURE and kinds <= {"fixed"}:
            return "fixed"
        return "irregular" if value.opname in _WIDTHS and "irregular" in kinds else "unknown"

    def _kind_of_load(self, load: ir.LoadInstr) -> Kind:
        """What is read: anything, where it was written in the same iteration."""
        root = _root(load)
        if isinstance(root, ir.AllocaInstr) or id(root) in self.written:
            return "unknown"
        indices = (index for step in _steps(load) for index in step.indices)
        return "fixed" if all(map(self.is_fixed, (root, *indices))) else "irregular"


def _steps(access: ir.Instruction) -> Iterator[ir.GEPInstr]:
    """What makes the address of a load or store of a pointer, the last step first."""
    place = access.operands[-1]
    while isinstance(place, ir.GEPInstr):
        yield place
        place = place.pointer


def _root(access: ir.Instruction) -> ir.Value:
    """The pointer that the address of a load or store is made of."""
    place = access.operands[-1]
    for step in _steps(access):
        place = step.pointer
    return place


def _size_of(kind: ir.Type) -> int:
    """Bytes of an element in memory."""
    if isinstance(kind, ir.VectorType):
        return int(kind.count) * size_of(kind.element)
    return max(size_of(kind), 1)


_WIDTHS: Final = ("sext", "zext", "trunc")
_PURE: Final = frozenset(
    ("add", "sub", "mul", "and", "or", "xor", "shl", "ashr", "lshr", "udiv", "sdiv", "urem", "srem")
) | {*_WIDTHS, "select"}
"""Operations of which equal operands give equal results.  A comparison is none: its predicate is
no operand."""

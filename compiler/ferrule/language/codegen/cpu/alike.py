"""Phases that are the same but for some integers become one function, which each of them calls.

    for size in (2, 4, 8): …                      def stage(held, size): …
        for thread: held[…] = … & size …          stage(held, 2); stage(held, 4); stage(held, 8)

LLVM takes milliseconds for each loop over threads, and a network of stages that is written out, a
sort or a transform, has dozens of them.

Only integers that are no part of an address become parameters: of the others LLVM must know the
values, since they decide how a loop becomes vectors.  A phase that may end the kernel, that has
loops of its own or that uses sizes which only a call knows stays where it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from typing import Any, Final, TypeAlias

from ferrule.language.codegen.cpu import pitches
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.language.ir.types import TensorType
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass

FEWEST: Final = 3
"""The number of phases from which on a function pays: a call takes a nanosecond or two."""

_SIMPLE: Final = frozenset(
    (
        *(ops.Constant, ops.Unary, ops.Binary, ops.Compare, ops.Cast, ops.Bitcast, ops.Select),
        *(ops.Special, ops.Load, ops.Store, ops.If),
    )
)
"""The classes of ops that a function may have: they need nothing but values and coordinates."""

_READERS: Final = frozenset(("add", "sub", "and", "or", "xor", "shl", "shr", "min", "max"))
"""Ops of integers that are as fast with an operand that is known only at run time."""

Key: TypeAlias = tuple[Any, ...]
Constants: TypeAlias = Mapping[ops.Value, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Phases with one body.

    `parameters` are the integers from outside of it that differ, and `numbers` has their values
    for each phase; `outside` are the other values from outside.
    """

    body: ops.Region
    outside: tuple[ops.Value, ...]
    parameters: tuple[ops.Value, ...]
    numbers: Mapping[ops.Op, tuple[int, ...]]


def find(frame: ops.Region, fit: Collection[ops.Value]) -> dict[ops.Op, Alike]:
    """The phases of a frame that are alike; `fit`: values that do not wrap."""
    every = list(all_ops(frame))
    phases = [op for op in every if isinstance(op, ops.Parallel)]
    if len(phases) < FEWEST:
        return {}
    constants = {op.result: op.value for op in every if isinstance(op, ops.Constant)}
    groups: dict[Key, list[tuple[ops.Op, _Shape]]] = {}
    for phase in phases:
        shape = _Shape.of(phase.body, constants, fit)
        if shape is not None:
            groups.setdefault(tuple(shape.key), []).append((phase, shape))
    found: dict[ops.Op, Alike] = {}
    for members in groups.values():
        if len(members) >= FEWEST:
            alike = _joined(members)
            found.update(dict.fromkeys(alike.numbers, alike))
    return found


def _joined(members: Sequence[tuple[ops.Op, _Shape]]) -> Alike:
    """The function of these phases, with the body of the first."""
    first = members[0][1]
    rows = {phase: tuple(shape.holes.values()) for phase, shape in members}
    columns = list(zip(*rows.values(), strict=True))
    differing = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    holes = list(first.holes)
    parameters = {holes[at]: ops.Value(holes[at].type, holes[at].hint) for at in differing}
    outside = tuple(value for value in first.outside if value not in parameters)
    numbers = {phase: tuple(row[at] for at in differing) for phase, row in rows.items()}
    body = substitute(rewrite(first.body, partial(_keep_others, parameters)), parameters)
    return Alike(body, outside, tuple(parameters.values()), numbers)


def _keep_others(parameters: Collection[ops.Value], b: Builder, op: ops.Op) -> None:
    """Drops the constants that have become parameters."""
    if not (isinstance(op, ops.Constant) and op.result in parameters):
        b.append(op)


@dataclass(slots=True)
class _Shape:
    """A phase as a key, without the integers that may be parameters, the `holes`.

    `constants` are the constants of the kernel.
    """

    body: ops.Region
    constants: Constants
    fit: Collection[ops.Value]
    pinned: set[ops.Value]
    key: list[Any] = field(default_factory=list)
    holes: dict[ops.Value, int] = field(default_factory=dict)
    outside: dict[ops.Value, None] = field(default_factory=dict)
    known: dict[ops.Value, int] = field(default_factory=dict)
    """The number of each value that the phase makes, and of each hole, from -1 down."""

    @classmethod
    def of(
        cls, body: ops.Region, constants: Constants, fit: Collection[ops.Value]
    ) -> _Shape | None:
        """None for a phase that stays where it is."""
        every = list(all_ops(body))
        if not _is_flat(body) or not all(type(op) in _SIMPLE for op in every):
            return None
        threads = {op.result for op in every if isinstance(op, ops.Special)}
        shape = cls(body, constants, fit, _pinned(body, constants, threads))
        shape.region(body)
        made = {value for op in every for value in op.defined}
        for value in made.intersection(shape.outside):  # constants, which are where they are needed
            del shape.outside[value]
        return shape if all(map(_is_known, (*made, *shape.outside))) else None

    def region(self, region: ops.Region) -> None:
        """Appends a region to the key."""
        for op in region.ops:
            self.op(op)
        self.key += ("yield", *map(self.value, region.yields))

    def op(self, op: ops.Op) -> None:
        """Appends an op, with all that it says; a constant is told where it is read."""
        if isinstance(op, ops.Constant):
            return
        self.key.append(type(op))
        self.key += (_word(getattr(op, name)) for name in _words(op))
        self.key += map(self.value, op.operands)
        for inner in op.regions:
            self.region(inner)
        for value in op.defined:
            self.known[value] = len(self.known)
            self.key += (value.type, value in self.fit)

    def value(self, value: ops.Value) -> object:
        """A value, by the place where it is made; one from outside is itself or its number."""
        known = self.known.get(value)
        if known is not None:
            return known
        self.outside[value] = None
        number = self.constants.get(value)
        if number is None:
            return value
        if value in self.pinned or not _is_integer(value):
            return value.type, value in self.fit, _word(number)
        self.holes[value] = int(number)
        self.known[value] = -len(self.holes)
        return value.type, value in self.fit, -len(self.holes)


def _is_integer(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.kind in ("int", "uint")


def _words(op: ops.Op) -> tuple[str, ...]:
    """The fields of an op that are no values and no regions."""
    known = _WORDS.get(type(op))
    if known is None:
        taken = {name for names in op.fields.values() for name in names}
        known = tuple(each.name for each in fields(op) if each.name not in taken)
        _WORDS[type(op)] = known
    return known


_WORDS: Final[dict[type, tuple[str, ...]]] = {}


def _word(value: object) -> object:
    """What a field says: 0.0 is not -0.0, True is not 1, and a NaN is equal to itself."""
    return value.hex() if isinstance(value, float) else (type(value), value)


def _is_flat(region: ops.Region) -> bool:
    """Whether its branches have no branches inside."""
    sides = (side for op in region.ops for side in op.regions)
    return not any(op.regions for side in sides for op in side.ops)


def _is_known(value: ops.Value) -> bool:
    """Whether no size of it is known only at a call."""
    match value.type:
        case DType():
            return True
        case TensorType(_, shape, strides):
            return all(isinstance(dim, int) for dim in (*shape, *strides))
    return False


def _pinned(
    body: ops.Region, constants: Constants, threads: Collection[ops.Value]
) -> set[ops.Value]:
    """The values that are parts of addresses, or operands of what LLVM makes faster of constants.

    From the last op to the first, branches before what is in them.
    """
    pinned: set[ops.Value] = set(body.yields)
    pending = list(body.ops)
    while pending:
        op = pending.pop()
        match op:
            case ops.Load() | ops.Store():
                pinned.update((op.tensor, *op.indices))
            case ops.If(results, _, then, otherwise):
                for side in (then, otherwise):
                    pairs = zip(results, side.yields, strict=True)
                    pinned.update(value for result, value in pairs if result in pinned)
                    pending += side.ops
                continue
            case ops.Binary(_, name, lhs, rhs) if name in _READERS:
                if lhs in threads and pitches.cuts(name, constants.get(rhs)):
                    pinned.add(rhs)
            case ops.Compare() | ops.Select() | ops.Constant() | ops.Special():
                pass
            case _:
                pinned.update(op.operands)
        if not pinned.isdisjoint(op.defined):
            pinned.update(op.operands)
    return pinned

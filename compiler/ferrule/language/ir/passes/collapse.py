"""Merges axes of a `Parallel` if all its tensors move over them as over one axis.

For a tensor, an outer and an inner axis (in memory order) are equivalent to one if its stride along
the outer axis is the inner extent times its stride along the inner axis.  If this is proved for
every tensor of the body, and the two indices only address loads and stores, one index runs over the
product of the extents.  Over compact tensors of any rank this leaves one plain loop on a CPU, and
coordinates without a division on a GPU.

The tensors keep their types: the new index replaces the inner one and 0 the outer one, so an index
can be beyond its dim, but no element is beyond the memory.  Sizes are equal if they are the same
products of numbers, symbols and expressions, after replacing symbols that the program's relations
require to be equal by one.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import reduce

from ferrule.compiler.artefacts import Relation
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.specs import Compound, Dim, Int64, Sym, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import make


def collapse(program: ops.Program) -> ops.Program:
    """The program with as few axes in each `Parallel` as can be proved sufficient."""
    host = program.host
    if not any(len(parallel.indices) > 1 for parallel in host.facts.each(ops.Parallel)):
        return program
    sizes, facts = known_sizes(host), _Facts(program.relations)

    def rule(b: Builder, op: ops.Op) -> None:
        b.append(_Axes(op, sizes, facts).collapsed(b) if isinstance(op, ops.Parallel) else op)

    return replace(program, host=replace(host, body=rewrite(host.body, rule)))


@dataclass(slots=True)
class _Facts:
    """The equalities of sizes in every call that satisfies the program's relations."""

    relations: tuple[Relation, ...]
    known: dict[Sym, Sym | int] = field(default_factory=dict)
    """For a symbol, an equal symbol or its value; there are no cycles."""

    def __post_init__(self) -> None:
        for relation in self.relations:
            match self.plain(relation.left), self.plain(relation.right):
                case ((Sym() | int()) as left, Sym() as right) if left != right:
                    self.known[right] = left
                case (Sym() as left, int() as right):
                    self.known[left] = right

    def plain(self, dim: Dim) -> Dim:
        """The size with one representative for all equal symbols."""
        match dim:
            case Sym() if dim in self.known:
                return self.plain(self.known[dim])
            case Compound(op, lhs, rhs):
                return make(op, self.plain(lhs), self.plain(rhs))
            case _:
                return dim

    def equal(self, size: Dim, factors: Iterable[Dim]) -> bool:
        """Whether a size is provably the product of others."""
        return self.factors((size,)) == self.factors(factors)

    def factors(self, dims: Iterable[Dim]) -> tuple[int, Counter[Dim]]:
        """A product as a number and a multiset of the other factors."""
        number, others, todo = 1, Counter[Dim](), [self.plain(dim) for dim in dims]
        while todo:
            match todo.pop():
                case int(value):
                    number *= value
                case Compound("mul", lhs, rhs):
                    todo += [lhs, rhs]
                case other:
                    others[other] += 1
        return (number, others) if number else (0, Counter())


@dataclass(slots=True)
class _Axes:
    """The axes of one `Parallel`.

    `moves`: for each load and store of the body, the stride of each index in the tensor's memory.
    `numbers`: the values that the body uses for anything but addressing.
    """

    op: ops.Parallel
    sizes: Mapping[ops.Value, Dim]
    facts: _Facts
    moves: list[dict[ops.Value, Dim]] = field(default_factory=list)
    numbers: set[ops.Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        for inner in all_ops(self.op.body):
            self.numbers.update(v for region in inner.regions for v in region.yields)
            match inner:
                case ops.Load(_, tensor, indices):
                    self.moves.append(_strides(tensor, indices))
                case ops.Store(tensor, indices, value):
                    self.moves.append(_strides(tensor, indices))
                    self.numbers.add(value)
                case _:
                    self.numbers.update(inner.operands)

    def collapsed(self, b: Builder) -> ops.Parallel:
        """The `Parallel` over as few axes as can be proved sufficient."""
        op, groups = self.op, self.groups()
        if len(groups) == len(op.indices):
            return op
        values = dict.fromkeys(op.indices, b.constant(Int64, 0))
        indices, extents = [], []
        for group in groups:
            index, extent = self.merged(b, group)
            values[op.indices[group[-1]]] = index
            indices.append(index)
            extents.append(extent)
        body = substitute(op.body, values)
        return replace(op, indices=tuple(indices), extents=tuple(extents), body=body)

    def merged(self, b: Builder, group: list[int]) -> tuple[ops.Value, ops.Value]:
        """The index and the extent of axes that are merged."""
        index, extents = self.op.indices[group[0]], [self.op.extents[axis] for axis in group]
        if len(group) == 1:
            return index, extents[0]
        # An overflow is harmless: modulo 2**64 the product is right, and it is the number of
        # elements of the stored tensor.
        extent = b.size(Int64, product(self.sizes[each] for each in extents))
        return ops.Value(Int64, index.hint), extent

    def groups(self) -> list[list[int]]:
        """The axes in memory order, grouped by merging."""
        groups: list[list[int]] = []
        for axis in loop_order(self.op):
            if groups and self.are_one(groups[-1][-1], axis):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def are_one(self, outer: int, inner: int) -> bool:
        """Whether every tensor moves over the two axes as over one."""
        sizes = [self.sizes.get(self.op.extents[axis]) for axis in (outer, inner)]
        first, second = self.op.indices[outer], self.op.indices[inner]
        extent = sizes[1]
        if extent is None or None in sizes or not self.numbers.isdisjoint((first, second)):
            return False
        return all(
            self.facts.equal(strides.get(first, 0), (extent, strides.get(second, 0)))
            for strides in self.moves
        )


def _strides(tensor: ops.Value, indices: Iterable[ops.Value]) -> dict[ops.Value, Dim]:
    """The stride of each index in a tensor's memory."""
    strides: dict[ops.Value, Dim] = {}
    for index, stride in zip(indices, tensor.tensor.strides, strict=True):
        strides[index] = strides.get(index, 0) + stride
    return strides


# ---- the axes of a `Parallel`: their lengths, and their order by stride ----


def known_sizes(function: ops.Function) -> dict[ops.Value, Dim]:
    """The size that each value of a function is, for values that are sizes."""
    sizes: dict[ops.Value, Dim] = {}
    for op in function.facts.ops:
        match op:
            case ops.Size(result, dim):
                sizes[result] = dim
            case ops.Constant(result, int(value)):
                sizes[result] = value
    return sizes


def product(dims: Iterable[Dim]) -> Dim:
    """The product of sizes; 1 for no sizes."""
    return reduce(operator.mul, dims, 1)


def loop_order(op: ops.Parallel) -> tuple[int, ...]:
    """The axes from the outermost loop to the innermost: by decreasing stride of the stored
    tensor."""
    strides = _stored_strides(op)
    axes = range(len(op.indices))
    return tuple(sorted(axes, key=lambda axis: _size(strides.get(op.indices[axis])), reverse=True))


def _stored_strides(op: ops.Parallel) -> dict[ops.Value, Dim]:
    """The stride of each index in the tensor of the first store."""
    for inner in all_ops(op.body):
        if isinstance(inner, ops.Store):
            return dict(zip(inner.indices, inner.tensor.tensor.strides, strict=True))
    return {}


def _size(stride: Dim | None) -> tuple[int, int]:
    """An order of strides: a run-time size counts as larger than a number.

    More symbols count as larger: a stride of a compact tensor is a product of its sizes.
    """
    match stride:
        case None:
            return 1 << 31, 0
        case int():
            return 0, abs(stride)
        case _:
            return sum(1 for _ in symbols_of(stride)), 0

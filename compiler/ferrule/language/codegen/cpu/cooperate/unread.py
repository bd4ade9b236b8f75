"""Stores into a thread's own tensor whose elements are read only where others were stored.

    own.fill(0.0)                            own.fill(0.0)    # left out
    if t < n: own[0] = x[t]                  if t < n: own[0] = x[t]
    if T + t < n: own[1] = x[T + t]          if T + t < n: own[1] = x[T + t]
    ...                                      ...
    if t < n: y[t] = own[0] * 2              if t < n: y[t] = own[0] * 2

A fragment that outlives a phase is in memory, for all threads of the block, and most of a short
row's time would go by filling it.  An element is read behind the condition behind which it was
stored, so nobody reads what it was filled with.  What a thread computes stays the same.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import field, replace

from ferrule.language.codegen.cpu.cooperate import spread
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs import Boolean, DType
from ferrule.specs.deferred import dataclass

_Element = tuple[ops.Value, tuple[int, ...]]
"""A tensor and the indices of an element."""


def without_unread(kernel: ops.Function) -> ops.Function:
    """The kernel without these stores, of tensors that it makes at its beginning."""
    made = {op.result for op in kernel.body.ops if isinstance(op, ops.Fragment)}
    own = spread.found(kernel) & made
    if not own:
        return kernel
    makers = {result: op for op in all_ops(kernel.body) for result in op.defined}
    found = _Search(own, makers)
    for op in kernel.body.ops:
        found.take(op)
    unread = {op for element, op in found.fills.items() if element not in found.read}
    kept = tuple(op for op in kernel.body.ops if op not in unread)
    return replace(kernel, body=replace(kernel.body, ops=kept)) if unread else kernel


@dataclass(slots=True)
class _Search:
    """The elements of some tensors, in the order of the text.

    `fills`: the first access of each, if it is a store outside of all branches.  `stored`: the
    conditions of branches that have stored it since.  `read`: those that may be read with what they
    were filled with, or are accessed otherwise.
    """

    own: Collection[ops.Value]
    makers: Mapping[ops.Value, ops.Op]
    fills: dict[_Element, ops.Op] = field(default_factory=dict)
    stored: dict[_Element, set[Hashable]] = field(default_factory=dict)
    read: set[_Element] = field(default_factory=set)

    def take(self, op: ops.Op) -> None:
        """The next op outside of all branches."""
        match op:
            case ops.Store() if op.tensor in self.own and self._is_first(op):
                self.fills[self._element(op)] = op
            case ops.If():
                condition = _key(op.condition, self.makers)
                for inner in op.then.ops:
                    self._behind(condition, inner)
                self._all(op.otherwise.ops)
            case _:
                self._all((op,))

    def _is_first(self, op: ops.Store) -> bool:
        element = self._element(op)
        return element not in self.fills and element not in self.stored and element not in self.read

    def _behind(self, condition: Hashable, op: ops.Op) -> None:
        """The next op of a branch with this condition."""
        if isinstance(op, ops.Store) and op.tensor in self.own:
            self.stored.setdefault(self._element(op), set()).add(condition)
        elif isinstance(op, ops.Load) and op.tensor in self.own:
            if condition not in self.stored.get(self._element(op), ()):
                self.read.add(self._element(op))
        else:
            self._all((op,))

    def _all(self, given: Iterable[ops.Op]) -> None:
        """Ops of any other place: what they access keeps what it was filled with."""
        for op in all_ops(ops.Region(tuple(given))):
            if isinstance(op, (ops.Load, ops.Store)) and op.tensor in self.own:
                self.read.add(self._element(op))

    def _element(self, op: ops.Load | ops.Store) -> _Element:
        constants = [self.makers[index] for index in op.indices]
        return op.tensor, tuple(int(c.value) for c in constants if isinstance(c, ops.Constant))


def _key(value: ops.Value, makers: Mapping[ops.Value, ops.Op]) -> Hashable:
    """The same for values that are computed alike from the same integers."""
    op = makers.get(value)
    if op is None or not all(map(_is_integer, (*op.operands, *op.defined))):
        return value
    match op:
        case ops.Constant(_, number):
            return "constant", value.type, number
        case ops.Special(_, register, axis):
            return register, axis
        case ops.Size(_, dim, None):
            return "size", value.type, dim
        case ops.Binary() | ops.Compare():
            return op.op, value.type, *(_key(each, makers) for each in op.operands)
        case ops.Cast(_, operand):
            return "cast", value.type, operand.type, _key(operand, makers)
    return value


def _is_integer(value: ops.Value) -> bool:
    """Whether it is an integer or a Boolean: equal floats may be computed in different ways."""
    return isinstance(value.type, DType) and (value.type.is_integer or value.type is Boolean)

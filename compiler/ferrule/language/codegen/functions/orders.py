"""Whether a loop may be a reduction of floats, whose order affects the bits of the result.

A sum need not be a loop-carried value: LLVM also finds sums in an element that every iteration
reads and writes, in a fragment or in any tensor.  So the answer is yes, unless no computed float
can be carried from one iteration to the next.
"""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.specs import DType, Int32
from ferrule.specs.deferred import dataclass


def may_reduce(op: ops.For) -> bool:
    """Whether LLVM could recognise a sum or product of floats over the iterations of this loop."""
    inner = list(all_ops(op.body))
    if not any(map(_computes_floats, inner)):
        return False
    if any(_is_float(value) for value in op.carried):
        return True
    # A view may give elements of another dtype, as a bitcast does.
    if op.carried and any(isinstance(each, (ops.Bitcast, ops.View)) for each in inner):
        return True  # a carried integer may contain the bits of a float
    steps = _Steps.of(op, inner)
    return not all(steps.leaves(each) for each in inner if isinstance(each, ops.Store))


def _computes_floats(op: ops.Op) -> bool:
    match op:
        case ops.Binary(result, flags=flags):
            return "reassoc" not in flags and _is_float(result)
        case ops.Fma(result):
            return _is_float(result)
    return False


def _is_float(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.kind == "float"


@dataclass(frozen=True, slots=True)
class _Steps:
    """The values of a loop's iterations.

    `made`: the values that each iteration defines, with the defining op.  `moving`: the integers
    among them that certainly differ in the next iteration.
    """

    made: dict[ops.Value, ops.Op | None]
    moving: set[ops.Value]

    @classmethod
    def of(cls, loop: ops.For, inner: list[ops.Op]) -> _Steps:
        """The steps of a loop, whose body has these ops, including nested ones."""
        steps = cls(dict.fromkeys((loop.index, *loop.carried)), {loop.index})
        for op in inner:
            steps.made.update(dict.fromkeys(_defined_by(op), op))
            if isinstance(op, (ops.Binary, ops.Cast)) and steps._steps_on(op):
                steps.moving.add(op.result)
        return steps

    def _steps_on(self, op: ops.Binary | ops.Cast) -> bool:
        match op:
            case ops.Binary(_, "add" | "sub", lhs, rhs):
                # the difference of two moving values may stay the same
                return any(x in self.moving and self._stays(y) for x, y in _both(lhs, rhs))
            case ops.Binary(_, "mul", lhs, rhs):
                return any(x in self.moving and self._is_factor(y) for x, y in _both(lhs, rhs))
            case ops.Cast(result, operand) if operand in self.moving:
                return _is_as_wide(result, operand)
        return False

    def _stays(self, value: ops.Value) -> bool:
        return isinstance(self.made.get(value, _OUTSIDE), ops.Constant)

    def _is_factor(self, value: ops.Value) -> bool:
        op = self.made.get(value)
        return isinstance(op, ops.Constant) and op.value != 0

    def leaves(self, store: ops.Store) -> bool:
        """Whether the next iteration stores at another place.

        Exactly one coordinate may move: several could cancel out.
        """
        tensor, places = store.tensor, [(store.tensor, store.indices)]
        while isinstance(op := self.made.get(tensor), ops.View):
            tensor = op.tensor
            places.append((tensor, op.indices))
        if isinstance(self.made.get(tensor), ops.Fragment):
            return True  # a new tensor each time, undefined until it is written
        if tensor in self.made:
            return False
        found = [
            (index, stride)
            for owner, indices in places
            for index, stride in zip(indices, owner.tensor.strides if indices else (), strict=True)
            if not self._stays(index)
        ]
        return len(found) == 1 and found[0][0] in self.moving and found[0][1] != 0


def _both(lhs: ops.Value, rhs: ops.Value) -> tuple[tuple[ops.Value, ops.Value], ...]:
    return (lhs, rhs), (rhs, lhs)


def _defined_by(op: ops.Op) -> tuple[ops.Value, ...]:
    """The values that an op defines, for later ops and for its regions."""
    match op:
        case ops.For(results, index, carried=carried):
            return (*results, index, *carried)
        case ops.While(results, _, carried):
            return (*results, *carried)
        case ops.If(results=results):
            return results
        case ops.Parallel(indices=indices):
            return indices
    result = getattr(op, "result", None)
    return (result,) if isinstance(result, ops.Value) else ()


_OUTSIDE: Final = ops.Constant(ops.Value(Int32), 0)
"""Represents the definition of a value before the loop."""


def _is_as_wide(result: ops.Value, operand: ops.Value) -> bool:
    """Whether a conversion of an integer preserves its value."""
    source, target = operand.type, result.type
    if not (isinstance(source, DType) and isinstance(target, DType)):
        return False
    return target.is_integer and target.bits >= source.bits

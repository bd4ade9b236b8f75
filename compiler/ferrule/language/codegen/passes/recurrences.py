"""Recurrences of smallest and largest numbers, such as edit distances, with a short way round.

    for j in range(n):                        for j in range(n):
        ...                                       ...
        x = min(s, min(x, a) + c)                 if a + 2 * c overflows:   # hardly ever
                                                      x = min(s, min(x, a) + c)
                                                  else:
                                                      x = min(min(s, a + c), x + c)

An iteration waits for the x of the one before: on the left for a minimum, a sum and a minimum, on
the right for a sum and a minimum.  The two are equal where neither a + c nor x + c, with c > 0,
wraps.  Of a this is asked.  x is at most a + c of the iteration before, so it is known of x too,
but in the first iteration, and after one that had the branch.  A carried number tells: `end`, from
which on a takes the branch.  It becomes the least number of the dtype where an x may be near its
end, and then all further iterations take the branch.

Where x cannot be near the end of its dtype, because it begins with a constant and s is limited by
one, in a local alignment by 0, min(x, a) + c never wraps, nor does x + c, and a that is too near
can be taken for the last one that is not: there is no branch.

Integers of other sizes than 32 bits are in no vector (see `functions.chains`), for which this form
would be longer.  They get a choice,

    least = min(a, s - (c - 1))
    x = x + c if x < least else min(s, least + c)

which is the same where a + c does not wrap:

* If x < least, then x < a and x + c <= s, and both are x + c, which does not wrap.
* Else, if least is a, then x >= a, and both are min(s, a + c).
* Else least + c is s + 1, and a + c is not less, nor is x + c: both are s.

s - (c - 1) is at least the least number of the dtype; with that, least + c is above s too.

`max` with a difference is the same upside down.  This is done where one thread runs a loop, as in
`separated`; in others the threads are the lanes, for which a branch would be a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite
from ferrule.specs import DType, Int32, Uint32
from ferrule.specs.deferred import dataclass

_STEPS: Final[dict[ops.BinaryOp, ops.BinaryOp]] = {"min": "add", "max": "sub"}
"""The op on a constant that goes away from the better number."""

_BEYOND: Final[dict[ops.BinaryOp, ops.CompareOp]] = {"min": "gt", "max": "lt"}
"""Whether a number is further than another one on the way there."""


def shortened(program: ops.Program) -> ops.Program:
    """The program with such recurrences written otherwise."""
    facts = launched(program)

    def alone(kernel: ops.Function) -> bool:
        return facts.get(kernel.name, Launched()).blocks == (1, 1, 1)

    kernels = tuple(_function(k) if alone(k) else k for k in program.kernels)
    return replace(program, host=_function(program.host), kernels=kernels)


def _function(function: ops.Function) -> ops.Function:
    if not any(op.op in _STEPS for op in function.facts.each(ops.Binary)):
        return function
    constants = {op.result: int(op.value) for op in function.facts.each(ops.Constant) if _whole(op)}
    return replace(function, body=rewrite(function.body, partial(_rule, constants)))


def _whole(op: ops.Constant) -> bool:
    return isinstance(op.value, int)


def _rule(constants: dict[ops.Value, int], b: Builder, op: ops.Op) -> None:
    found = list(_recurrences(constants, op)) if isinstance(op, ops.For) else []
    if not isinstance(op, ops.For) or not found:
        b.append(op)
        return
    by_result = {each.last.result: each for each in found}
    ends = {each.last.result: ops.Value(each.dtype, "end") for each in found if each.watches}
    initial = dict(zip(op.carried, op.initial, strict=True))
    first = [by_result[last].first_end(b, initial[by_result[last].carried]) for last in ends]
    after: dict[ops.Value, ops.Value] = {}
    with b.region() as region:
        for inner in op.body.ops:
            each = by_result.get(inner.result) if isinstance(inner, ops.Binary) else None
            if isinstance(inner, ops.If) and _is_choice(inner):
                _choose(b, inner)
            elif each is None:
                b.append(inner)
            elif each.watches:
                after[each.last.result] = each.emit_watched(b, ends[each.last.result])
            else:
                each.emit(b)
    results = tuple(ops.Value(end.type, end.hint) for end in ends.values())
    b.append(
        replace(
            op,
            results=(*op.results, *results),
            initial=(*op.initial, *first),
            carried=(*op.carried, *ends.values()),
            body=region.freeze(*op.body.yields, *(after[last] for last in ends)),
        )
    )


def _is_choice(op: ops.If) -> bool:
    """Whether a branch is between constants."""
    sides = op.then, op.otherwise
    return all(isinstance(each, ops.Constant) for side in sides for each in side.ops) and all(
        isinstance(result.type, DType) for result in op.results
    )


def _choose(b: Builder, op: ops.If) -> None:
    """The choice without a branch, which `functions.chains` takes for an op of the chain."""
    b.current.ops.extend((*op.then.ops, *op.otherwise.ops))
    for result, *both in zip(op.results, op.then.yields, op.otherwise.yields, strict=True):
        b.append(ops.Select(result, op.condition, *both))


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """`last` is `op(other, step(op(carried, first), constant))`."""

    last: ops.Binary
    step: ops.Binary
    inner: ops.Binary
    carried: ops.Value
    first: ops.Value
    other: ops.Value
    constant: int
    bounded: bool

    @property
    def dtype(self) -> DType:
        """The dtype of its numbers."""
        dtype = self.last.result.type
        assert isinstance(dtype, DType)
        return dtype

    @property
    def is_linked(self) -> bool:
        """Whether it is a chain in registers of vectors, for which the form is a sum."""
        return self.dtype in (Int32, Uint32)

    @property
    def watches(self) -> bool:
        """Whether a carried number tells where steps could wrap."""
        return self.is_linked and not self.bounded

    # ---- chains ----

    def first_end(self, b: Builder, initial: ops.Value) -> ops.Value:
        """The number from which on `first` takes the branch, while no iteration has taken it."""
        near = b.compare(_BEYOND[self.last.op], initial, b.constant(self.dtype, self._last))
        always, usual = b.constant(self.dtype, self._always), b.constant(self.dtype, self._usual)
        return b.select(near, always, usual)

    @property
    def _always(self) -> int:
        """The number from which on any `first` takes the branch."""
        return self.dtype.range[0 if self.last.op == "min" else 1]

    @property
    def _last(self) -> int:
        """The last number from which a step does not wrap."""
        return _end(self.last.op, self.dtype, self.constant)

    @property
    def _usual(self) -> int:
        """The first number from which two steps wrap."""
        op = self.last.op
        return _end(op, self.dtype, 2 * self.constant) + (1 if op == "min" else -1)

    def emit_watched(self, b: Builder, end: ops.Value) -> ops.Value:
        """Defines the result of `last`; returns the next number from which steps could wrap."""
        wraps = b.compare("ge" if self.last.op == "min" else "le", self.first, end)
        with b.region() as slow:
            rare = self._as_written(b)
            always = b.constant(self.dtype, self._always)
        with b.region() as fast:
            chosen = self._linked(b, self.first, ops.Value(self.dtype, self.last.result.hint))
        sides = slow.freeze(rare, always), fast.freeze(chosen, end)
        following = ops.Value(self.dtype, "end")
        b.append(ops.If((self.last.result, following), wraps, *sides, rare=True))
        return following

    def _linked(self, b: Builder, first: ops.Value, result: ops.Value) -> ops.Value:
        """Defines `result` as the smaller one of two, one of which is a step further."""
        op, step = self.last.op, _STEPS[self.last.op]
        constant = b.constant(self.dtype, self.constant)
        limit = b.binary(op, self.other, b.binary(step, first, constant))
        b.append(ops.Binary(result, op, limit, b.binary(step, self.carried, constant)))
        return result

    def _as_written(self, b: Builder) -> ops.Value:
        inner, step, last = (
            replace(each, result=ops.Value(self.dtype, each.result.hint))
            for each in (self.inner, self.step, self.last)
        )
        b.append(inner)
        b.append(_using(step, self.inner.result, inner.result))
        b.append(_using(last, self.step.result, step.result))
        return last.result

    # ---- choices ----

    def emit(self, b: Builder) -> None:
        """Defines the result of `last`."""
        op, dtype = self.last.op, self.dtype
        if self.bounded and self.is_linked:
            last = b.constant(dtype, self._last)
            self._linked(b, b.binary(op, self.first, last), self.last.result)
            return
        if self.bounded:
            self._fast(b, dtype, self.last.result)
            return
        wraps = b.compare(_BEYOND[op], self.first, b.constant(dtype, self._last))
        with b.region() as slow:
            rare = self._as_written(b)
        with b.region() as fast:
            chosen = self._fast(b, dtype, ops.Value(dtype, self.last.result.hint))
        sides = slow.freeze(rare), fast.freeze(chosen)
        b.append(ops.If((self.last.result,), wraps, *sides, rare=True))

    def _fast(self, b: Builder, dtype: DType, result: ops.Value) -> ops.Value:
        """Defines `result` as the short form."""
        op, step = self.last.op, _STEPS[self.last.op]
        constant = b.constant(dtype, self.constant)
        limit = b.binary(op, self.first, self._limit(b, dtype))
        otherwise = b.binary(op, self.other, b.binary(step, limit, constant))
        is_better = b.compare("lt" if op == "min" else "gt", self.carried, limit)
        stepped = b.binary(step, self.carried, constant)
        b.append(ops.Select(result, is_better, stepped, otherwise))
        return result

    def _limit(self, b: Builder, dtype: DType) -> ops.Value:
        """The other number less one step, but for 1, at most at the end of the dtype."""
        rest = self.constant - 1
        if rest == 0:
            return self.other
        lowest, highest = dtype.range
        if self.last.op == "min":
            kept = b.binary("max", self.other, b.constant(dtype, lowest + rest))
            return b.binary("sub", kept, b.constant(dtype, rest))
        kept = b.binary("min", self.other, b.constant(dtype, highest - rest))
        return b.binary("add", kept, b.constant(dtype, rest))


def _end(op: ops.BinaryOp, dtype: DType, constant: int) -> int:
    """The last number from which a step does not wrap."""
    lowest, highest = dtype.range
    return highest - constant if op == "min" else lowest + constant


def _using(op: ops.Binary, old: ops.Value, new: ops.Value) -> ops.Binary:
    return replace(op, lhs=new if op.lhs is old else op.lhs, rhs=new if op.rhs is old else op.rhs)


def _recurrences(constants: dict[ops.Value, int], loop: ops.For) -> Iterator[_Recurrence]:
    """The recurrences among the values that a loop carries."""
    made = {op.result: op for op in loop.body.ops if isinstance(op, ops.Binary)}
    for carried, end in zip(loop.carried, loop.body.yields, strict=True):
        last = made.get(end)
        if last is not None and last.op in _STEPS:
            yield from _found(constants, loop, made, carried, last)


def _found(
    constants: dict[ops.Value, int],
    loop: ops.For,
    made: dict[ops.Value, ops.Binary],
    carried: ops.Value,
    last: ops.Binary,
) -> Iterator[_Recurrence]:
    dtype = last.result.type
    if not isinstance(dtype, DType) or not dtype.is_integer:
        return
    for stepped, other in ((last.lhs, last.rhs), (last.rhs, last.lhs)):
        step = made.get(stepped)
        if step is None:
            continue
        constant, inner = _step(constants, last.op, step), made.get(step.lhs)
        if constant is None or inner is None or inner.op != last.op:
            continue
        if carried not in (inner.lhs, inner.rhs) or inner.lhs is inner.rhs:
            continue
        first = inner.rhs if inner.lhs is carried else inner.lhs
        if not _depend(loop, carried) & {first, other}:
            initial = constants.get(loop.initial[loop.carried.index(carried)])
            limit = _constant_operand(constants, made.get(other), last.op)
            end = _end(last.op, dtype, constant)
            bounded = all(x is not None and _is_within(last.op, x, end) for x in (initial, limit))
            yield _Recurrence(last, step, inner, carried, first, other, constant, bounded)
            return


def _constant_operand(
    constants: dict[ops.Value, int], made: ops.Binary | None, op: ops.BinaryOp
) -> int | None:
    """The constant by which a number is limited."""
    if made is None or made.op != op:
        return None
    return constants.get(made.lhs, constants.get(made.rhs))


def _is_within(op: ops.BinaryOp, number: int, end: int) -> bool:
    return number <= end if op == "min" else number >= end


def _step(constants: dict[ops.Value, int], op: ops.BinaryOp, step: ops.Binary) -> int | None:
    """The positive number by which a step goes away from what is better; None for another op."""
    known = constants.get(step.rhs)
    if known is None or step.op not in ("add", "sub"):
        return None
    away = known if step.op == _STEPS[op] else -known
    dtype = step.result.type
    assert isinstance(dtype, DType)
    # Of an unsigned dtype a negative constant is a large one, which wraps.
    return away if 0 < away <= 1 << 16 and (step.op == _STEPS[op] or dtype.kind == "int") else None


def _depend(loop: ops.For, carried: ops.Value) -> set[ops.Value]:
    """The values of an iteration that depend on this one."""
    found = {carried}
    for op in loop.body.ops:
        inside = {value for region in op.regions for value in _read(region)}
        if not found.isdisjoint({*op.operands, *inside}):
            found.update(op.defined)
    return found


def _read(region: ops.Region) -> Iterator[ops.Value]:
    yield from region.yields
    for op in region.ops:
        yield from op.operands
        for inner in op.regions:
            yield from _read(inner)

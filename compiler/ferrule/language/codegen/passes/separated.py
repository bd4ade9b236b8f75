"""Loops that add up costly functions in order: the functions as vectors, and then the sum.

    for i in range(n):                    for base in range(0, n, 64):
        total += exp(a[i])                    for j in range(min(n - base, 64)):
                                                  buffer[j] = exp(a[base + j])
                                              for j in range(min(n - base, 64)):
                                                  total += buffer[j]

On the left nothing is vectorised, because floats are added in order; on the right the first inner
loop is. Each operation is the same, in the same order, so the bits are.

This is done where one thread runs a loop: in host functions, and in kernels with one thread in a
block. In others the threads are the lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Final

from ferrule.language.codegen.facts.launched import Launched, launched
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.rewrite import rewrite, substitute
from ferrule.language.ir.scalars import EVERY
from ferrule.language.ir.types import TensorType
from ferrule.specs import AddressSpace, DType, Int32, Int64
from ferrule.specs.deferred import dataclass

CHUNK: Final = 64
"""Iterations of an inner loop: some vectors of each width, in the first cache."""

# A cache line, and the widest vector of any CPU.
_ALIGN: Final = 64

_COSTLY: Final = frozenset(
    name for name, row in EVERY.items() if row.library and row.function == "rounded"
)
"""Functions of so many operations that a buffer costs nothing beside them."""


def separated(program: ops.Program) -> ops.Program:
    """The program with such loops in two parts."""
    facts = launched(program)

    def alone(kernel: ops.Function) -> bool:
        return facts.get(kernel.name, Launched()).blocks == (1, 1, 1)

    kernels = tuple(_function(k) if alone(k) else k for k in program.kernels)
    return replace(program, host=_function(program.host), kernels=kernels)


def _function(function: ops.Function) -> ops.Function:
    facts = function.facts
    if not facts.has(ops.For) or not any(map(_is_costly, facts.ops)):
        return function
    constants = {op.result: op.value for op in facts.each(ops.Constant)}
    return replace(function, body=rewrite(function.body, partial(_rule, constants)))


def _rule(constants: dict[ops.Value, bool | int | float], b: Builder, op: ops.Op) -> None:
    parts = None
    if isinstance(op, ops.For) and op.hints is None and constants.get(op.step) == 1:
        parts = _Parts.of(op)
    if parts is None or _is_few(constants, parts.loop):
        b.append(op)
    else:
        parts.emit(b)


def _is_few(constants: dict[ops.Value, bool | int | float], op: ops.For) -> bool:
    """Whether a loop has less iterations than a vector."""
    if op.start not in constants or op.stop not in constants:
        return False
    return constants[op.stop] - constants[op.start] < 16


@dataclass(slots=True)
class _Parts:
    """The ops of an iteration that do not depend on the carried values, and the others.

    `kept` are the values of the former that the latter use.
    """

    loop: ops.For
    before: list[ops.Op] = field(default_factory=list)
    after: list[ops.Op] = field(default_factory=list)
    kept: list[ops.Value] = field(default_factory=list)

    @classmethod
    def of(cls, loop: ops.For) -> _Parts | None:
        """The parts; None if the loop has effects or other loops, no costly function that can be
        computed first, or no order."""
        parts, dependent = cls(loop), set(loop.carried)
        for op in loop.body.ops:
            if op.regions or not op.effects <= {"reads"} or not _has_numbers(op.defined):
                return None
            depends = not dependent.isdisjoint(op.operands)
            (parts.after if depends else parts.before).append(op)
            dependent.update(op.defined if depends else ())
        if not loop.carried or not any(map(_is_costly, parts.before)):
            return None
        # Then LLVM makes vectors of the whole loop by itself.
        if all(map(_is_in_any_order, parts.after)):
            return None
        used = {value for op in parts.after for value in op.operands} | {*loop.body.yields}
        made = (value for op in parts.before for value in op.defined)
        parts.kept = [value for value in made if value in used]
        return parts

    def emit(self, b: Builder) -> None:
        """The loop over chunks."""
        loop = self.loop
        dtype = loop.index.type
        assert isinstance(dtype, DType)
        buffers = [b.fragment(_buffer(value), value.hint) for value in self.kept]
        step = b.constant(dtype, CHUNK)
        base = ops.Value(dtype, "base")
        with b.region() as region:
            left = b.binary("sub", b.cast(Int64, loop.stop), b.cast(Int64, base))
            count = b.cast(Int32, b.binary("min", left, b.constant(Int64, CHUNK)))
            zero, one = b.constant(Int32, 0), b.constant(Int32, 1)
            bounds = zero, count, one
            self._functions(b, base, bounds, buffers)
            yields = self._sums(b, base, bounds, buffers)
        body = region.freeze(*yields)
        limits = loop.start, loop.stop, step
        b.append(ops.For(loop.results, base, *limits, loop.initial, loop.carried, body))

    def _functions(
        self,
        b: Builder,
        base: ops.Value,
        bounds: tuple[ops.Value, ops.Value, ops.Value],
        buffers: Sequence[ops.Value],
    ) -> None:
        """The first inner loop."""
        place = ops.Value(Int32, "j")
        with b.region() as region:
            _index(b, base, place, self.loop.index)
            b.current.ops.extend(self.before)
            for buffer, value in zip(buffers, self.kept, strict=True):
                b.store(buffer, (place,), value)
        b.append(ops.For((), place, *bounds, (), (), region.freeze()))

    def _sums(
        self,
        b: Builder,
        base: ops.Value,
        bounds: tuple[ops.Value, ops.Value, ops.Value],
        buffers: Sequence[ops.Value],
    ) -> tuple[ops.Value, ...]:
        """The second inner loop; returns the carried values after it."""
        place, loop = ops.Value(Int32, "j"), self.loop
        inside = tuple(ops.Value(value.type, value.hint) for value in loop.carried)
        results = tuple(ops.Value(value.type, value.hint) for value in loop.carried)
        values = dict(zip(loop.carried, inside, strict=True))
        with b.region() as region:
            values[loop.index] = _index(b, base, place, ops.Value(base.type, loop.index.hint))
            for buffer, value in zip(buffers, self.kept, strict=True):
                values[value] = b.load(buffer, (place,))
            inner = substitute(ops.Region(tuple(self.after), loop.body.yields), values)
            b.current.ops.extend(inner.ops)
        body = region.freeze(*inner.yields)
        b.append(ops.For(results, place, *bounds, loop.carried, inside, body))
        return results


def _index(b: Builder, base: ops.Value, place: ops.Value, result: ops.Value) -> ops.Value:
    """Defines the index of an iteration, from the start of its chunk and its place there."""
    assert isinstance(base.type, DType)
    b.append(ops.Binary(result, "add", base, b.cast(base.type, place)))
    return result


def _buffer(value: ops.Value) -> TensorType:
    assert isinstance(value.type, DType)
    return TensorType(value.type, (CHUNK,), (1,), _ALIGN, AddressSpace.rmem)


def _has_numbers(values: Iterable[ops.Value]) -> bool:
    return all(isinstance(value.type, DType) for value in values)


def _is_in_any_order(op: ops.Op) -> bool:
    """Whether LLVM makes vectors of it without help."""
    return not isinstance(op, ops.Binary) or "reassoc" in op.flags


def _is_costly(op: ops.Op) -> bool:
    return isinstance(op, ops.Unary | ops.Binary) and op.op in _COSTLY

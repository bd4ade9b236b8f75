"""Carried integers that are smallest or largest numbers and sums in turn, in vector registers.

    for j in range(n):
        x = min(s, min(x, a) + 1)

An iteration waits for the x of the one before.  A minimum of integers is a comparison and a choice,
on x86 two operations after each other; of vectors it is one.  So such an x is in the first lane of
a vector, with all that is between one x and the next, where the CPU has these operations (see
`ferrule.compiler.host.chains`).  What is computed is the same.

`chained` finds the values.  Only where one thread runs the loop: others are lanes already.  A
minimum alone, without a sum in the chain, is left to LLVM, which makes vectors of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler.host.chains import APART, CHOICE, DECLARED, GET, PUT, TYPE
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values.arithmetic import opaque
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import I32
from ferrule.specs import DType, Int32, Uint32

CHAINED: Final = "its smallest or largest numbers stay in a register of vectors"
"""What is said of a loop with a chain."""

_EXTREMES: Final = ("min", "max")
_SUMS: Final = ("add", "sub")


# ---- which values ----


def chained(function: ops.Function) -> dict[ops.Value, bool]:
    """The values of all chains of a function: true for those that wait for the iteration before."""
    found: dict[ops.Value, bool] = {}
    for loop in function.facts.each(ops.For):
        found |= _of_loop(loop)
    return found


def _of_loop(loop: ops.For) -> dict[ops.Value, bool]:
    body = list(all_ops(loop.body))
    if any(isinstance(op, (ops.For, ops.While)) for op in body):
        return {}
    graph = _Graph(body)
    waits: set[ops.Value] = set()
    for carried, end in zip(loop.carried, loop.body.yields, strict=True):
        chain = graph.chain(carried, end)
        if graph.has(chain, _EXTREMES) and graph.has(chain, _SUMS):
            waits |= chain
    if not waits:
        return {}
    waits.update(graph.limits(loop, waits))
    others = graph.only_for(loop, waits)
    return dict.fromkeys(others, False) | dict.fromkeys(waits, True)


class _Graph:
    """What each value of an iteration is made of."""

    def __init__(self, body: Sequence[ops.Op]) -> None:
        self.body = body
        self.made: dict[ops.Value, Sequence[ops.Value]] = {}
        self.computed: dict[ops.Value, ops.Binary] = {}
        self.compared: dict[ops.Value, ops.Compare] = {}
        self.read: dict[ops.Value, list[ops.Op]] = {}
        for op in body:
            match op:
                case ops.If() if op.rare:
                    sides = op.then.yields, op.otherwise.yields
                    for result, *both in zip(op.results, *sides, strict=True):
                        self.made[result] = (*both, op.condition)
                case ops.Binary(result) if op.op in _EXTREMES + _SUMS and _fits(result):
                    self.computed[result] = op
                case ops.Compare(result, _, lhs) if _fits(lhs):
                    self.compared[result] = op
            for value in op.operands:
                self.read.setdefault(value, []).append(op)
            for value in (v for region in op.regions for v in region.yields):
                self.read.setdefault(value, []).append(op)
        self.made |= {value: op.operands for value, op in self.computed.items()}

    def has(self, values: Iterable[ops.Value], names: tuple[str, ...]) -> bool:
        """Whether one of the values is made by one of these ops."""
        return any(v in self.computed and self.computed[v].op in names for v in values)

    def chain(self, carried: ops.Value, end: ops.Value) -> Set[ops.Value]:
        """The values from a carried one to the next; none if another op is between them."""
        if not _fits(carried) or end is carried:
            return frozenset()
        after = self._after(carried)
        found, pending = {carried}, [end]
        while pending:
            value = pending.pop()
            if value in found or value not in after:
                continue
            if value not in self.made:
                return frozenset()
            found.add(value)
            pending += self.made[value]
        return found

    def _after(self, carried: ops.Value) -> Set[ops.Value]:
        """The values that depend on a carried one."""
        after, known = {carried}, 0
        while known != len(after):  # an op with regions stands before what is in them
            known = len(after)
            for op in self.body:
                inside = {value for region in op.regions for value in region.yields}
                if not after.isdisjoint({*op.operands, *inside}):
                    after.update(op.defined)
        return after

    def limits(self, loop: ops.For, chain: Set[ops.Value]) -> Iterator[ops.Value]:
        """Carried values that are only the smallest or largest of those of a chain."""
        for carried, end in zip(loop.carried, loop.body.yields, strict=True):
            op = self.computed.get(end)
            if op is None or op.op not in _EXTREMES or self.read.get(carried) != [op]:
                continue
            if not chain.isdisjoint(op.operands) and carried not in chain:
                yield from (carried, end)

    def only_for(self, loop: ops.For, chain: Set[ops.Value]) -> Set[ops.Value]:
        """Values that are made for a chain alone: sums, smallest and largest numbers, choices by
        comparisons, and what is carried to the next iteration for these."""
        inside = set(chain)
        for op in reversed(self.body):
            match op:
                case ops.Binary(result) if result in self.computed:
                    fits = True
                case ops.Select(result, condition) if condition in self.compared:
                    fits = _fits(result) and self.read[condition] == [op]
                case _:
                    continue
            if fits and self._is_read_by(result, inside):
                inside.add(result)
        for carried in loop.carried:
            if _fits(carried) and self._is_read_by(carried, inside):
                inside.add(carried)
        return inside - chain

    def _is_read_by(self, value: ops.Value, inside: Set[ops.Value]) -> bool:
        readers = self.read.get(value, [])
        return bool(readers) and all(
            isinstance(op, ops.Binary | ops.Select) and op.result in inside for op in readers
        )


def _fits(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type in (Int32, Uint32)


# ---- their code ----


class _Chain(ir.Type):  # type: ignore[misc]
    """The type of a value in a chain: another name for that of an integer."""

    def _to_string(self) -> str:
        return f'%"{TYPE}"'

    def get_declaration(self) -> str:
        """The line of the module that defines the name."""
        return f"{DECLARED}{I32}"


def phi(lowering: FunctionLowering, value: ops.Value) -> ir.PhiInstr:
    """A phi for a value of a chain."""
    found = lowering.b.phi(_type(lowering.emitter), name=value.hint)
    lowering.chains[value] = found
    return found


def link(lowering: FunctionLowering, value: ops.Value) -> ir.Value:
    """A value as one of a chain, which is computed here if it is none."""
    known = lowering.chains.get(value)
    if known is not None:
        return known
    e = lowering.emitter
    function = _defined(e, PUT, _type(e), (I32,), lambda x: x)
    return e.call(function, [lowering.values[value]])


def number(lowering: FunctionLowering, value: ops.Value) -> ir.Value:
    """The number that is in a chain."""
    e = lowering.emitter
    function = _defined(e, GET, I32, (_type(e),), lambda x: x)
    return e.call(function, [lowering.chains[value]])


def computed(lowering: FunctionLowering, op: ops.Binary) -> ir.Value:
    """The number of an op of a chain, which is then known as one of the chain too."""
    e, kind = lowering.emitter, _type(lowering.emitter)
    signed = dtype_of(op.result).kind == "int"
    name = f"{'s' if signed else 'u'}{op.op}" if op.op in _EXTREMES else op.op
    function = _defined(
        e, f"{TYPE}_{name}", kind, (kind, kind), lambda x, y: _binary(e.builder, name, x, y)
    )
    waits = lowering.chained[op.result]
    given = [_given(lowering, operand, waits=waits) for operand in op.operands]
    lowering.chains[op.result] = e.call(function, given, name=op.result.hint)
    return number(lowering, op.result)


def _given(lowering: FunctionLowering, operand: ops.Value, *, waits: bool) -> ir.Value:
    """An operand; LLVM does not see what was computed for an op that `waits`: it would take the sum
    and the operands of a minimum in another order, for which the next iteration waits longer."""
    linked = link(lowering, operand)
    return _apart(lowering, linked) if waits and not lowering.chained.get(operand, True) else linked


def _apart(lowering: FunctionLowering, linked: ir.Value) -> ir.Value:
    """The same, of which LLVM does not know how it was computed."""
    e = lowering.emitter
    kind = _type(e)
    return e.call(_defined(e, APART, kind, (kind,), lambda x: opaque(e.builder, x)), [linked])


def chosen(lowering: FunctionLowering, op: ops.Select, test: ops.Compare) -> ir.Value:
    """The number of a choice by a comparison."""
    e, kind = lowering.emitter, _type(lowering.emitter)
    signed = dtype_of(test.lhs).kind == "int"
    name = test.op if test.op in ("eq", "ne") else f"{'s' if signed else 'u'}{test.op}"

    def body(x: ir.Value, y: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
        compare = e.builder.icmp_signed if signed else e.builder.icmp_unsigned
        return e.builder.select(compare(_SIGNS[test.op], x, y), on_true, on_false)

    function = _defined(e, f"{CHOICE}_{name}", kind, (kind,) * 4, body)
    # LLVM would compare the numbers, and move the result into the register.
    given = [_apart(lowering, link(lowering, v)) for v in (test.lhs, test.rhs)]
    given += [link(lowering, v) for v in (op.on_true, op.on_false)]
    lowering.chains[op.result] = e.call(function, given, name=op.result.hint)
    return number(lowering, op.result)


_SIGNS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _binary(b: ir.IRBuilder, name: str, x: ir.Value, y: ir.Value) -> ir.Value:
    if name == "add":
        return b.add(x, y)
    if name == "sub":
        return b.sub(x, y)
    compare = b.icmp_signed if name[0] == "s" else b.icmp_unsigned
    return b.select(compare("<" if name.endswith("min") else ">", x, y), x, y)


def _type(emitter: Emitter) -> ir.Type:
    known: dict[str, Any] = emitter.module.context.identified_types
    return known.setdefault(TYPE, _Chain())


def _defined(
    emitter: Emitter,
    name: str,
    result: ir.Type,
    parameters: Sequence[ir.Type],
    body: Callable[..., ir.Value],
) -> ir.Function:
    """A function of this module, defined at its first use."""
    if name not in emitter.module.globals:
        attributes = ("alwaysinline", "nounwind")
        with emitter.define(
            name, result, parameters, names="xyab", linkage="internal", attributes=attributes
        ) as function:
            emitter.ret(body(*function.args))
    found: ir.Function = emitter.module.globals[name]
    return found

"""References of loop-carried objects: objects that an iteration has made or read.

The function owns them until their op runs again, in the next iteration.  So a loop that carries one
adds a reference at the end of each iteration, in two steps: all references are added before the
first old one is released, because names may have been swapped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import exits, templates
from ferrule.language.lowering.objects import foreign_calls
from ferrule.language.values import Handle, Maybe, Number, OneOf, TensorView
from ferrule.specs import Boolean, Int32, Int64, params

_Values = Sequence[ops.Value]

_BORROWED: Final = (params.Payload.BITS, params.Payload.ADDRESS)


def must_keep(region: ops.Region, values: _Values) -> bool:
    """Whether any of these values is, or is inside, an object that an op of this region owns."""
    return bool(_origins(region, values) & _owned(region))


def _owned(region: ops.Region) -> set[ops.Value]:
    return {result for op in all_ops(region) if op.is_owner for result in op.defined}


def _origins(region: ops.Region, values: _Values) -> set[ops.Value]:
    """These values and the addresses from which they are computed."""
    sources: dict[ops.Value, list[ops.Value]] = {}
    for op in all_ops(region):
        for result, given in _made_of(op):
            sources.setdefault(result, []).extend(given)
    found = {each for each in values if _is_address(each)}
    rest = list(found)
    while rest:
        new = {each for each in sources.get(rest.pop(), ()) if _is_address(each)} - found
        found |= new
        rest += new
    return found


def _made_of(op: ops.Op) -> Iterator[tuple[ops.Value, tuple[ops.Value, ...]]]:
    match op:
        case ops.If(results, _, then, otherwise):
            for position, result in enumerate(results):
                yield result, (then.yields[position], otherwise.yields[position])
        case ops.For() | ops.While():
            each = zip(op.results, op.carried, op.initial, op.body.yields, strict=True)
            for result, inside, first, following in each:
                yield inside, (first, following)
                yield result, (inside,)
        case _ if hasattr(op, "result"):
            yield op.result, op.operands


def _is_address(value: ops.Value) -> bool:
    return isinstance(value.type, (HandleType, TensorType))


def without_owner(low: Lowering, region: ops.Region, template: Any, values: _Values) -> bool:
    """Whether this is a view of a tensor that the region makes: its owner would be released."""
    return any(
        isinstance(part, TensorView)
        and part.value not in low.state.allocated
        and must_keep(region, values)
        for part in _leaves(template)
    )


def _leaves(template: Any) -> Iterator[Any]:
    match template:
        case Maybe(item=item):
            yield from _leaves(item)
        case OneOf(members=members):
            for _, member in members.values():
                yield from _leaves(member)
        case _:
            parts = structures.parts(template)
            if parts is None:
                yield template
            for _, part in parts or ():
                yield from _leaves(part)


def kept(
    low: Lowering,
    kinds: Sequence[Any],
    values: Sequence[_Values],
    node: ast.AST,
) -> list[list[ops.Value]]:
    """These values with references for the next iteration; placeholders if the function has
    returned."""
    returned = low.names.get(exits.RETURN, False)
    if not isinstance(returned, Number):
        return _both_steps(low, kinds, values, node)
    with low.builder.region() as gone:
        nothing = [templates.values(low, templates.NOTHING, each, node) for each in kinds]
    with low.builder.region() as going:
        found = _both_steps(low, kinds, values, node)
    sides = [region.freeze(*sum(each, [])) for region, each in ((gone, nothing), (going, found))]
    hints = ("kept",) * sum(map(len, nothing))
    results = iter(low.builder.if_(returned.value, sides[0], sides[1], hints))
    return [[next(results) for _ in each] for each in nothing]


def _both_steps(
    low: Lowering,
    kinds: Sequence[Any],
    values: Sequence[_Values],
    node: ast.AST,
) -> list[list[ops.Value]]:
    for _ in range(2):
        built = [
            templates.built(low, template, iter(each), "a value")
            for template, each in zip(kinds, values, strict=True)
        ]
        values = [
            templates.values(low, _kept(low, value, node), template, node)
            for template, value in zip(kinds, built, strict=True)
        ]
    return [list(each) for each in values]


def _kept(low: Lowering, value: Any, node: ast.AST) -> Any:
    """A value with a reference of its own."""
    match value:
        case TensorView(value=tensor) if tensor in low.state.allocated:
            result = ops.Value(tensor.type, tensor.hint)
            low.builder.append(ops.Peek(result, _keep(low, value, node), "tensor"))
            low.state.allocated.add(result)
            return replace(value, value=result)
        case Handle(param=param) if params.payload_of(param) not in _BORROWED:
            return _kept_handle(low, value, node)
        case Maybe(present=present, item=item):
            return Maybe(present, _where(low, present, item, node), value.name)
        case OneOf(tag=tag, members=members):
            inner = {
                i: (spec, _where(low, _is_member(low, tag, i), member, node))
                for i, (spec, member) in members.items()
            }
            return OneOf(tag, inner, value.name)
    parts = structures.parts(value)
    if parts is None:
        return value
    return structures.rebuild(value, [_kept(low, part, node) for _, part in parts])


def _is_member(low: Lowering, tag: ops.Value, position: int) -> Number:
    return Number(low.builder.compare("eq", tag, low.builder.constant(Int32, position)))


def _where(low: Lowering, present: Number, item: Any, node: ast.AST) -> Any:
    """An item with a reference, if it is present."""
    template = templates.common(low, item, item)
    with low.builder.region() as then:
        found = templates.values(low, _kept(low, item, node), template, node)
    with low.builder.region() as otherwise:
        nothing = templates.values(low, templates.NOTHING, template, node)
    assert present.dtype is Boolean
    sides = then.freeze(*found), otherwise.freeze(*nothing)
    results = low.builder.if_(present.value, *sides, ("kept",) * len(found))
    return templates.built(low, template, iter(results), "a value")


def _kept_handle(low: Lowering, handle: Handle, node: ast.AST) -> Handle:
    value = _keep(low, handle, node)
    match handle.param:
        case params.AnyValue():
            return replace(handle, leaves=(value,))
        case params.String() | params.Bytes():
            address, size = ops.Value(HandleType("bytes"), "text"), ops.Value(Int64, "text_size")
            low.builder.append(ops.Peek(address, value, "text"))
            low.builder.append(ops.Peek(size, value, "text_size"))
            return replace(handle, leaves=(address, size))
    result = ops.Value(handle.leaves[0].type, "object")
    low.builder.append(ops.Peek(result, value, "object"))
    return replace(handle, leaves=(result,))


def _keep(low: Lowering, value: Any, node: ast.AST) -> ops.Value:
    return foreign_calls.emit_packed(low, ops.Keep(), [value], "any", node)

"""Who owns the objects of tensors: this function, or its caller.

A parameter is the address of elements.  Its Tensor object, which keeps them alive, is asked for
only by a program that may return it: such a parameter is `owning`, and takes no `DLTensor*`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.language.ir import ops
from ferrule.language.lowering.context import ProgramState
from ferrule.specs import Param, Signature, params

_Places = dict[ops.Value, tuple[int, tuple[int, ...]]]


def lend(state: ProgramState, signature: Signature, leaves: Sequence[ops.Value]) -> _Places:
    """Notes the tensors that are parameters, or items of tuples; returns the positions of their
    leaves, and where they stand in a call."""
    arguments = {id(param): position for position, param in enumerate(signature.arguments)}
    places, position = {}, 0
    for param in signature.params:
        for slot, inner in _tensors(param, position):
            state.lent[leaves[slot]] = frozenset({leaves[slot]})
            places[leaves[slot]] = slot, (arguments[id(param)], *inner)
        position += len(leaves_of(param))
    return places


def _tensors(param: Param, position: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The tensors of a parameter that are always there: the position of the leaf, and the way."""
    match param:
        case params.Tensor():
            yield position, ()
        case params.Tuple(items=items):
            for i, item in enumerate(items):
                yield from ((slot, (i, *way)) for slot, way in _tensors(item, position))
                position += len(leaves_of(item))


def objects(state: ProgramState, places: _Places) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Those of these parameters whose objects were asked for."""
    return tuple(place for value, place in places.items() if value in state.held)


def has_object(state: ProgramState, tensor: ops.Value) -> bool:
    """Whether this is a tensor that is owned here, or by the caller."""
    return tensor in state.allocated or tensor in state.lent


def hold(state: ProgramState, tensor: ops.Value) -> bool:
    """Asks for the object of a tensor, which the function may return then; false if it has none."""
    state.held |= state.lent.get(tensor, frozenset())
    return has_object(state, tensor)


def join(state: ProgramState, result: ops.Value, left: ops.Value, right: ops.Value) -> None:
    """Notes that a tensor is one of two others: it has an object if both have one."""
    if left in state.allocated and right in state.allocated:
        state.allocated.add(result)
    elif has_object(state, left) and has_object(state, right):
        nobody: frozenset[ops.Value] = frozenset()
        state.lent[result] = state.lent.get(left, nobody) | state.lent.get(right, nobody)

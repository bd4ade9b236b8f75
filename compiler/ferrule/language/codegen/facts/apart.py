"""Accesses of a loop whose next iteration is not at the next element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ferrule.compiler.artefacts import Location
from ferrule.language.checks.places import Places
from ferrule.language.codegen.facts.spine import multiple
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import Dim
from ferrule.specs.deferred import dataclass

_X: Final = 0


@dataclass(frozen=True, slots=True)
class Apart:
    """An access: the tensor's name, whether it is written, and the elements from one iteration to
    the next, None if they may be anywhere."""

    tensor: str
    writes: bool
    stride: Dim | None
    location: Location | None


def accesses_apart(
    body: ops.Region,
    index: ops.Value | None,
    places: Places,
    known: Mapping[ops.Value, int] = MappingProxyType({}),
) -> tuple[Apart, ...]:
    """The accesses in a loop over this index, or over the threads along x; `known`: how many
    elements some values grow from one iteration to the next."""
    given = known if index is None else {**known, index: 1}
    return tuple(dict.fromkeys(_found(body, index, places, given)))


def _found(
    body: ops.Region, index: ops.Value | None, places: Places, known: Mapping[ops.Value, int]
) -> Iterator[Apart]:
    degrees: dict[ops.Value, int | None] = dict(known)
    constants: dict[ops.Value, int] = {}
    numbers: dict[ops.Value, ops.Value] = {}  # the complex tensor of a view of its parts
    for op in all_ops(body):
        match op:
            case ops.For() | ops.While():
                carried = (*op.carried, *op.results)
                degrees.update(dict.fromkeys(carried))
                if isinstance(op, ops.For):
                    bounds = (op.start, op.step)
                    degrees[op.index] = None if any(degrees.get(b, 0) for b in bounds) else 0
                continue
            case ops.If():
                degrees.update(dict.fromkeys(op.results))
                continue
            case ops.Constant(result, int(value)):
                constants[result] = value
            case ops.View(result, tensor, ()) if is_view_of_parts(result, tensor):
                numbers[result] = tensor
            case ops.Load(_, tensor, indices):
                whole = numbers.get(tensor, tensor)
                yield from _apart(whole, indices, degrees, places.at(op), writes=False)
            case ops.Store(tensor, indices):
                whole = numbers.get(tensor, tensor)
                yield from _apart(whole, indices, degrees, places.at(op), writes=True)
        if isinstance(op, ops.Special) and index is not None:
            continue  # the thread of a loop's iterations is one and the same
        if isinstance(op, ops.SimpleOp) and op.result not in known:
            operands = [degrees.get(value, 0) for value in op.operands]
            degree = multiple(op, _X, operands, constants)
            if degree != 0:
                degrees[op.result] = degree


def is_view_of_parts(view: ops.Value, tensor: ops.Value) -> bool:
    """Whether a view has the two floats of each complex number as its last dim."""
    if not isinstance(tensor.type, TensorType) or tensor.type.dtype.kind != "complex":
        return False
    return view.tensor.dtype is tensor.type.dtype.part and view.tensor.strides[-1:] == (1,)


def _apart(
    tensor: ops.Value,
    indices: tuple[ops.Value, ...],
    degrees: dict[ops.Value, int | None],
    at: Location | None,
    *,
    writes: bool,
) -> Iterator[Apart]:
    """The access, if its next iteration is elsewhere than at the next or the same element."""
    if tensor.tensor.is_own or tensor.tensor.is_shared or degrees.get(tensor, 0) != 0:
        return
    strides = tensor.tensor.strides
    moving = [
        (degrees[index], stride)
        for index, stride in zip(indices, strides, strict=False)  # not the part of a number
        if degrees.get(index, 0) != 0 and stride != 0
    ]
    match moving:
        case [] | [(1, 1)]:
            return
        case [(1, stride)]:
            yield Apart(tensor.hint, writes, stride, at)
        case [(int(factor), int(stride))]:
            yield Apart(tensor.hint, writes, factor * stride, at)
        case _:
            yield Apart(tensor.hint, writes, None, at)

"""Copies of specs with something changed in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from ferrule.specs import params
from ferrule.specs.expr import Compound, Dim, Sym, make

S = TypeVar("S")


def changed(spec: S, **values: Any) -> S:
    """A copy of a spec with some of its fields changed."""
    copied = copy.copy(spec)
    for name, value in values.items():
        object.__setattr__(copied, name, value)
    return copied


def mapped(param: params.Param, change: Callable[[params.Param], params.Param]) -> params.Param:
    """Apply `change` to each leaf of a spec (a spec that contains no other), at any depth."""

    def inner(each: params.Param) -> params.Param:
        return mapped(each, change)

    match param:
        case params.Tuple(items=items):
            return changed(param, items=tuple(map(inner, items)))
        case params.Union(members=members):
            return changed(param, members=tuple(map(inner, members)))
        case params.Optional(item=item):
            return changed(param, item=inner(item))
        case params.Elements(item=item) if item is not None:
            return changed(param, item=inner(item))
        case params.Pairs(key=key, value=value):
            key = None if key is None else inner(key)
            return changed(param, key=key, value=None if value is None else inner(value))
    return change(param)


def with_tensors(
    param: params.Param,
    change: Callable[[str, params.Tensor], params.Tensor],
    name: str | None = None,
) -> params.Param:
    """Apply `change` to each tensor in a spec, with its name in messages: in the tuple `p` they are
    `p[0]`, `p[1]`."""
    own = param.name if name is None else name

    def inner(each: params.Param) -> params.Param:
        return with_tensors(each, change, own)

    match param:
        case params.Tensor():
            return change(own, param)
        case params.Tuple(items=items):
            named = (with_tensors(each, change, f"{own}[{at}]") for at, each in enumerate(items))
            return changed(param, items=tuple(named))
        case params.Union(members=members):
            return changed(param, members=tuple(map(inner, members)))
        case params.Optional(item=item):
            return changed(param, item=inner(item))
    return param


def placed(param: params.Param, device: str) -> params.Param:
    """A spec in which every tensor that names no device is on this one."""

    def change(each: params.Param) -> params.Param:
        if isinstance(each, params.Tensor) and each.device is None:
            return changed(each, device=device)
        return each

    return mapped(param, change)


def substituted(param: params.Param, dims: Mapping[Sym, Dim]) -> params.Param:
    """A spec with sizes substituted for its symbols; other symbols are unchanged."""

    def sizes(before: tuple[Dim, ...]) -> tuple[Dim, ...]:
        return tuple(substitute(dim, dims) for dim in before)

    def change(each: params.Param) -> params.Param:
        match each:
            case params.Tensor(shape=shape, strides=strides):
                return changed(each, shape=sizes(shape), strides=sizes(strides))
            case params.Shape(dims=before):
                return changed(each, dims=sizes(before))
        return each

    return mapped(param, change)


def substitute(dim: Dim, dims: Mapping[Sym, Dim]) -> Dim:
    """A size with sizes substituted for its symbols."""
    match dim:
        case Sym():
            return dims.get(dim, dim)
        case Compound(op, lhs, rhs):
            return make(op, substitute(lhs, dims), substitute(rhs, dims))
    return dim


def with_exact_strides(param: params.Param, numbers: Collection[Dim]) -> params.Param:
    """A spec whose strides that are one of these symbols are exact, at any depth."""

    def change(each: params.Param) -> params.Param:
        if not isinstance(each, params.Tensor):
            return each
        return with_exact_dims(each, (i for i, dim in enumerate(each.strides) if dim in numbers))

    return mapped(param, change)


def with_exact_dims(tensor: params.Tensor, dims: Iterable[int]) -> params.Tensor:
    """The spec with the strides of these dims exact, beside those that are."""
    exact = tuple(sorted({*tensor.exact_strides, *dims}))
    return tensor if exact == tensor.exact_strides else changed(tensor, exact_strides=exact)

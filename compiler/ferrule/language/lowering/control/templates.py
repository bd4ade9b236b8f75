"""The kinds of joined and loop-carried values other than numbers: handles, tensors, and optionals.

A template represents the common kind of a value on all paths: it is a value of that kind, whose IR
values only provide their types.  Only host functions join such values.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.lowering import owners, structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.numbers import coercion
from ferrule.language.promotion import weak
from ferrule.language.values import Handle, Maybe, Number, OneOf, TensorView
from ferrule.runtime.values.typeinfo import type_info
from ferrule.specs import Boolean, DType, Int32, Int64, Numeric, params
from ferrule.specs.copies import changed


class _Marker(Enum):
    NOTHING = "nothing"


NOTHING: Final = _Marker.NOTHING
"""The value of a name on a path where it is never read."""

_ROOT: Final = "ffi.Object"


class Unlike(Exception):
    """Two values have no common kind."""


def common(low: Lowering, left: Any, right: Any) -> Any:
    """The common template of two values; of one if the other is `NOTHING`.  Raises Unlike."""
    if low.kind != "host" or low.elementwise:
        raise Unlike
    left, right = coercion.plain(left), coercion.plain(right)
    if left is NOTHING or right is NOTHING:
        left = right = right if left is NOTHING else left
    if _may_be_absent(left, right):
        inner = common(low, _item(left), _item(right))
        return Maybe(Number(ops.Value(Boolean)), inner, "")
    if isinstance(left, OneOf) and isinstance(right, OneOf):
        return _common_union(low, left, right)
    if structures.alike(left, right):
        pairs = zip(structures.parts(left) or (), structures.parts(right) or (), strict=True)
        return structures.rebuild(left, [common(low, a, b) for (_, a), (_, b) in pairs])
    if isinstance(left, TensorView) and isinstance(right, TensorView):
        return _common_tensor(low, left, right)
    if _is_number(left) and _is_number(right):
        return _common_number(left, right)
    return _common_handle(left, right)


def _may_be_absent(left: Any, right: Any) -> bool:
    if isinstance(left, Maybe) or isinstance(right, Maybe):
        return True
    return (left is None) != (right is None)


def _item(value: Any) -> Any:
    if value is None:
        return NOTHING
    return value.item if isinstance(value, Maybe) else value


def _common_union(low: Lowering, left: OneOf, right: OneOf) -> OneOf:
    """Two unions with the same members."""
    if left.members.keys() != right.members.keys():
        raise Unlike
    members = {}
    for position, (spec, value) in left.members.items():
        other, theirs = right.members[position]
        if _nameless(spec) != _nameless(other):
            raise Unlike
        members[position] = spec, common(low, value, theirs)
    return OneOf(ops.Value(Int32), members, "")


def _common_tensor(low: Lowering, left: TensorView, right: TensorView) -> TensorView:
    """Two tensors of one type; the result is owned if both are."""
    ours, theirs, state = left.type, right.type, low.state
    type_ = replace(ours, align=math.gcd(ours.align, theirs.align))
    if replace(theirs, align=type_.align) != type_ or left.nested != right.nested:
        raise Unlike
    value = ops.Value(type_)
    owners.join(state, value, left.value, right.value)
    return TensorView(value, "", left.nested, left.whole and right.whole)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) or coercion.is_python_number(value)


def _common_number(left: Any, right: Any) -> Number:
    dtypes = {_dtype(left, right), _dtype(right, left)}
    if len(dtypes) > 1:
        raise Unlike
    return Number(ops.Value(dtypes.pop()))


def _dtype(value: Any, other: Any) -> DType:
    if isinstance(value, Number):
        return value.dtype
    if isinstance(value, Numeric):
        return type(value)
    near = other.dtype if isinstance(other, Number) else None
    return weak(value, type(other) if isinstance(other, Numeric) else near)


def _common_handle(left: Any, right: Any) -> Handle:
    ours, theirs = _spec(left, right), _spec(right, left)
    if ours is None or theirs is None or type(ours) is not type(theirs):
        raise Unlike
    if ours != theirs:
        ours = _wider(ours, theirs)
    given = left if isinstance(left, Handle) else right
    types = _TEXT if isinstance(ours, _TEXTS) else tuple(leaf.type for leaf in given.leaves)
    return Handle(ours, tuple(map(ops.Value, types)), "")


_TEXTS: Final = (params.String, params.Bytes)
_TEXT: Final = (HandleType("bytes"), Int64)


def _spec(value: Any, other: Any) -> params.Param | None:
    """The spec of a handle, or of a value that can be made a handle."""
    match value:
        case Handle(param=param):
            return _nameless(param)
        case str():
            return params.String("value")
        case bytes():
            return params.Bytes("value")
        case DType() if isinstance(other, Handle):
            return params.DataType("value")
    return None


def _nameless(param: params.Param) -> params.Param:
    """A spec without names, so that it equals those of the same kind under other names."""
    match param:
        case params.Array(item=item) | params.List(item=item):
            inner = None if item is None else _nameless(item)
            return type(param)("value", inner)
        case params.Map(key=key, value=value) | params.Dict(key=key, value=value):
            parts = [None if part is None else _nameless(part) for part in (key, value)]
            return type(param)("value", *parts)
        case params.EnvStream():
            return changed(param, name="value")
    return changed(param, name="value", default=params.REQUIRED)


def _wider(left: params.Param, right: params.Param) -> params.Param:
    """The common supertype: a container of anything, an object of a common base type."""
    match left, right:
        case params.Elements() | params.Pairs(), _:
            return type(left)("value")
        case params.Object(type_key=ours), params.Object(type_key=theirs):
            shared = [key for key in _ancestry(ours) if key in _ancestry(theirs)]
            return params.Object("value", shared[0] if shared else _ROOT)
    raise Unlike


def _ancestry(key: str) -> list[str]:
    """A type and its ancestors, the nearest first."""
    from ferrule.language.lowering.objects.schemas import known_index

    if known_index(key) is None:
        return [key, _ROOT]
    return [key, *reversed(type_info(key).ancestors)]


def key(template: Any) -> Any:
    """A key that is equal for templates of the same kind."""
    match template:
        case Number(dtype=dtype):
            return dtype
        case TensorView(value=value, nested=nested, whole=whole):
            return value.type, nested, whole
        case Handle(param=param):
            return param
        case Maybe(item=item):
            return "maybe", key(item)
        case OneOf(members=members):
            return tuple((i, spec, key(value)) for i, (spec, value) in members.items())
    return type(template), tuple(key(part) for _, part in structures.parts(template) or ())


# ---- to values and back ----


def types(template: Any) -> tuple[Type, ...]:
    """The types of the IR values of a value of this kind."""
    match template:
        case Number(value=value) | TensorView(value=value):
            return (value.type,)
        case Handle(leaves=leaves):
            return tuple(leaf.type for leaf in leaves)
        case Maybe(item=item):
            return (Boolean, *types(item))
        case OneOf(members=members):
            return (Int32, *(each for _, value in members.values() for each in types(value)))
    return tuple(each for _, part in structures.parts(template) or () for each in types(part))


def values(low: Lowering, value: Any, template: Any, node: ast.AST) -> list[ops.Value]:
    """The IR values of a value; for `NOTHING` placeholders that are never read."""
    if value is NOTHING:
        return [zero(low, type_) for type_ in types(template)]
    match template:
        case Number(dtype=dtype):
            return [coercion.as_number(low, value, node, dtype).value]
        case TensorView(value=like):
            # What the value is a part of is forgotten: the name may have others.
            low.require_inside(value, node)
            state = low.state
            is_same = owners.has_object(state, like) or value.value not in state.allocated
            if value.type == like.type and is_same:
                return [value.value]
            whole = owners.has_object(state, like)
            return [low.builder.view(value.value, like.tensor, whole=whole)]
        case Handle(param=param):
            return _leaves(low, value, param)
        case Maybe():
            present = value.present.value if isinstance(value, Maybe) else None
            if present is None:
                present = low.builder.constant(Boolean, value is not None)
            return [present, *values(low, _item(value), template.item, node)]
        case OneOf():
            members = zip(value.members.values(), template.members.values(), strict=True)
            parts = [values(low, ours, wanted, node) for (_, ours), (_, wanted) in members]
            return [value.tag, *(each for part in parts for each in part)]
    pairs = zip(structures.parts(value) or (), structures.parts(template) or (), strict=True)
    return [each for (_, a), (_, b) in pairs for each in values(low, a, b, node)]


def _leaves(low: Lowering, value: Any, param: params.Param) -> list[ops.Value]:
    if isinstance(value, Handle):
        return list(value.leaves)
    if isinstance(value, DType):
        bits = value.dlpack
        return [low.builder.constant(Int32, bits - (1 << 32) if bits >= 1 << 31 else bits)]
    from ferrule.language.lowering.objects import texts

    return list(texts.constant(low, value).leaves)


def zero(low: Lowering, type_: Type) -> ops.Value:
    """A placeholder for a value that is never read."""
    match type_:
        case TensorType():
            return low.builder.view(low.builder.constant(HandleType("pointer"), 0), type_)
        case DType():
            return low.builder.constant(type_, 0.0 if type_.kind == "float" else 0)
    return low.builder.constant(type_, 0)


def built(low: Lowering, template: Any, found: Iterator[ops.Value], name: str) -> Any:
    """The value of this kind with these IR values; `name` is its name in messages."""
    match template:
        case Number():
            return Number(next(found))
        case TensorView(value=value):
            result = next(found)
            owners.join(low.state, result, value, value)
            return replace(template, value=result, name=name)
        case Handle(param=param, leaves=leaves):
            return Handle(param, tuple(next(found) for _ in leaves), name)
        case Maybe(item=item):
            present = Number(next(found))
            return Maybe(present, built(low, item, found, name), name)
        case OneOf(members=members):
            tag = next(found)
            inner = {i: (s, built(low, value, found, name)) for i, (s, value) in members.items()}
            return OneOf(tag, inner, name)
    parts: Sequence[Any] = structures.parts(template) or ()
    return structures.rebuild(template, [built(low, part, found, name) for _, part in parts])

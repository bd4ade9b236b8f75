"""Containers and objects of tvm-ffi: their faces, which are annotations and examples too.

`fe.Array[fe.Int32]` describes a parameter; `fe.Array(x, y)` in a host function makes an array.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Final, get_args

from ferrule.language.faces.base import outside
from ferrule.specs import Boolean, DType, Float64, Int64, SupportsSpec, params
from ferrule.specs.deferred import dataclass

_CLASSES: Final[dict[object, DType]] = {bool: Boolean, int: Int64, float: Float64}
_TEXTS: Final[dict[object, type[params.String | params.Bytes]]] = {
    str: params.String,
    bytes: params.Bytes,
}


@dataclass(frozen=True, slots=True)
class Described:
    """The value of `fe.Array[fe.Int32]`: a spec without a name."""

    spec: params.Param

    def __ferrule_spec__(self, name: str) -> params.Param:
        return named(self.spec, name)

    def __or__(self, other: Any) -> Described:
        return _either(self.spec, other, first=self.spec)

    def __ror__(self, other: Any) -> Described:
        return _either(self.spec, other, first=None)


def _either(spec: params.Param, other: Any, first: params.Param | None) -> Described:
    """`Array[int] | None`, `Array[int] | str`; `first` is the member before the other."""
    if other is None or other is type(None):
        known = spec if isinstance(spec, params.Optional) else params.Optional(spec.name, spec)
        return Described(known)
    more = element_spec(other)
    if more is None:
        raise TypeError(f"{other!r} takes any value, so there is no union with it")
    if isinstance(spec, params.Optional):
        return Described(params.Optional(spec.name, _either(spec.item, other, first).spec))
    pair = (spec, more) if first is spec else (more, spec)
    members = [inner for each in pair for inner in _members(each)]
    return Described(params.Union(spec.name, tuple(named(each, spec.name) for each in members)))


def _members(spec: params.Param) -> tuple[params.Param, ...]:
    return spec.members if isinstance(spec, params.Union) else (spec,)


def named(spec: params.Param, name: str) -> params.Param:
    """The spec under another name, together with the inner specs of the same value."""
    from ferrule.specs.copies import changed

    match spec:
        case params.Optional(item=item):
            return changed(spec, name=name, item=named(item, name))
        case params.Union(members=members):
            return changed(spec, name=name, members=tuple(named(m, name) for m in members))
    return changed(spec, name=name)


class _Elements:
    """The base of containers of elements."""

    kind: ClassVar[Callable[..., params.Param]]

    def __new__(cls, *items: Any) -> Any:
        outside(cls.__name__)

    def __class_getitem__(cls, item: Any) -> Described:
        return Described(cls.kind(cls.__name__.lower(), element_spec(item)))


class _Pairs:
    """The base of containers of keys and values."""

    kind: ClassVar[Callable[..., params.Param]]

    def __new__(cls, items: Any = ()) -> Any:
        outside(cls.__name__)

    def __class_getitem__(cls, item: Any) -> Described:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError(f"{cls.__name__}[key, value] has two kinds, but got {item!r}")
        key, value = map(element_spec, item)
        return Described(cls.kind(cls.__name__.lower(), key, value))


class Array(_Elements):
    """An ffi.Array, which is immutable: `Array[Int32]`, or of any elements.

    In a host function `Array(x, y)` makes one; `len(x)`, `x[i]`, `for v in x` read it.
    """

    kind = params.Array


class List(_Elements):
    """An ffi.List, which is mutable; otherwise like an `Array`.  Needs apache-tvm-ffi 0.1.9."""

    kind = params.List


class Map(_Pairs):
    """An ffi.Map, which is immutable: `Map[str, Int32]`, or of any keys and values.

    In a host function `Map({key: value})` makes one; `len(m)`, `m[key]`, `key in m`, `m.get(key,
    default)`, `for key, value in m.items()` read it.
    """

    kind = params.Map


class Dict(_Pairs):
    """An ffi.Dict, which is mutable; otherwise like a `Map`.  Needs apache-tvm-ffi 0.1.9."""

    kind = params.Dict


class Object:
    """An object of a registered type, `Object["my.Type"]`, or of a derived type."""

    def __new__(cls) -> Any:
        raise TypeError("Object is an annotation; make_object makes one")

    def __class_getitem__(cls, key: Any) -> Described:
        known = key if isinstance(key, str) else type_key_of(key)
        if known is None:
            raise TypeError(
                f"Object[...] takes the key of a type or a class of tvm-ffi, but got {key!r}"
            )
        return Described(params.Object("object", known))


def make_object(type_key: str, *arguments: Any, **fields: Any) -> Any:
    """A new object of a registered type, in a host function: `make_object("my.Type", 1, x=2)`.

    The arguments are those of the type's constructor, `__ffi_init__`.  A call of the class itself,
    `Type(1, x=2)`, does the same.
    """
    outside("make_object")


def as_type(value: Any, kind: Any) -> Any:
    """A value of any kind with a checked type, in a host function: `as_type(x, str)`.

    `kind` is as for `result=` of `call`: a dtype, `str`, a fake tensor, the class of an object.
    Another type of value is a TypeError or ValueError of the call.
    """
    outside("as_type")


def type_key_of(cls: object) -> str | None:
    """The key of a class that is registered with tvm-ffi; None for any other object."""
    info = cls.__dict__.get("__tvm_ffi_type_info__") if isinstance(cls, type) else None
    key = getattr(info, "type_key", None)
    return key if isinstance(key, str) else None


def element_spec(item: Any) -> params.Param | None:
    """The spec of the elements of a container; None for any elements.  Raises TypeError and
    ValueError."""
    if item is Any or item is None or item is object:
        return None
    if isinstance(item, DType) or (isinstance(item, type) and item in _CLASSES):
        return params.Scalar("item", item if isinstance(item, DType) else _CLASSES[item])
    if isinstance(item, type) and item in _TEXTS:
        return _TEXTS[item]("item")
    if isinstance(item, get_args(params.Param)):
        return named(item, "item")
    if typing.get_origin(item) in (typing.Union, types.UnionType):
        return _optional(item)
    if isinstance(item, SupportsSpec) and not isinstance(item, type):
        return item.__ferrule_spec__("item")
    found = annotated_spec(item, "item")
    if found is None:
        raise TypeError(f"{item!r} is no kind of element: a dtype, str, a class of tvm-ffi, …")
    return found


def _optional(item: Any) -> params.Param | None:
    kinds = [each for each in get_args(item) if each is not type(None)]
    inner = element_spec(kinds[0]) if len(kinds) == 1 else None
    return None if inner is None else params.Optional("item", inner)


def annotated_spec(annotation: Any, name: str) -> params.Param | None:
    """The spec that an annotation determines without an example: `fe.Array[fe.Int32]`,
    `tvm_ffi.Array[int]`, a class."""
    if isinstance(annotation, Described):
        return annotation.__ferrule_spec__(name)
    origin = typing.get_origin(annotation)
    cls = annotation if origin is None else origin
    if annotation is Callable or cls is Callable:
        return params.Function(name)
    if not isinstance(cls, type):
        return None
    if issubclass(cls, (_Elements, _Pairs)):
        return cls.kind(name)
    key = type_key_of(cls)
    if key is None or key in _OTHERS:
        return None if key is None else _OTHERS[key](name)
    face = _FACES.get(key)
    if face is None:
        return None if key.startswith("ffi.") else params.Object(name, key)
    return _generic(face, get_args(annotation), name)


_FACES: Final[dict[str, type[_Elements | _Pairs]]] = {
    "ffi.Array": Array,
    "ffi.List": List,
    "ffi.Map": Map,
    "ffi.Dict": Dict,
}
_OTHERS: Final[dict[str, type[params.Function | params.Module]]] = {
    "ffi.Function": params.Function,
    "ffi.Module": params.Module,
}


def _generic(face: type[_Elements | _Pairs], args: tuple[Any, ...], name: str) -> params.Param:
    """A container in tvm-ffi's annotation; its elements may be anything if they are unknown
    here."""
    try:
        specs = [element_spec(each) for each in args]
    except (TypeError, ValueError):
        specs = []
    return face.kind(name, *specs)


def example_spec(name: str, example: Any) -> params.Param | None:
    """The spec of a real container or object of tvm-ffi; None for anything else."""
    if type_key_of(type(example)) is None:
        return None
    return annotated_spec(type(example), name)

"""`dataclass`: the standard library's, with methods that are made when they are first used.

`dataclasses.dataclass` writes and compiles the source of up to eight methods for each class. An
import of ferrule defines hundreds of classes, and a program uses few of them, so that this was a
quarter of the time to a process's first result. Here a `_Deferred` is in the place of each
method; it makes the method and leaves its place to it.

All else is as in the standard library: `fields`, `replace`, `is_dataclass`, patterns of `match`,
pickling, copies, `inspect.signature`, and inheritance between classes of both. What is not known
here (classes without slots, other options, `InitVar`, annotations that are not text) is left to the
standard library. To a type checker the decorator is `dataclasses.dataclass`.

All source of ferrule uses it. Two threads may be first to use a method: both make the same.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass", "names_of"]

_DEFAULTS: Final = {"init": True, "repr": True, "eq": True, "frozen": False, "slots": False}
_MISSING: Final = dataclasses.MISSING
_Field = dataclasses.Field
_Fields = dict[str, "_Field[Any]"]


@dataclasses.dataclass
class _Sample:
    field: int


# Private to the standard library, hence looked up: what tells a field from a class variable.
_FIELD_KIND: Final = getattr(dataclasses.fields(_Sample)[0], "_field_type", None)


class _Factory:
    """Stands for a default that a factory makes, in signatures."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Final = _Factory()


class _Params:
    """`__dataclass_params__`, which the standard library asks of the bases of a dataclass."""

    def __init__(self, options: Mapping[str, bool]) -> None:
        others = dict.fromkeys(("order", "unsafe_hash", "kw_only", "weakref_slot"), False)
        self.__dict__.update(others, match_args=True, **options)


class _Deferred:
    """A method that is not there yet: makes it for its class, and leaves its place to it."""

    __slots__ = ("make", "name", "owner")

    def __init__(self, name: str, make: Callable[[type[Any]], Any]) -> None:
        self.name, self.make = name, make
        self.owner: type[Any] = object

    def __get__(self, instance: object, kind: type[Any] | None = None) -> Any:
        owner, name = self.owner, self.name
        method = self.make(owner)
        method.__name__, method.__qualname__ = name, f"{owner.__qualname__}.{name}"
        method.__module__ = owner.__module__
        if owner.__dict__.get(name) is self:
            setattr(owner, name, method)
        return method.__get__(instance, kind)


class _Doc:
    """The docstring of a class that has none: its constructor, as in the standard library."""

    def __get__(self, instance: object, owner: type[Any]) -> str:
        return owner.__name__ + str(inspect.signature(owner)).replace(" -> None", "")


def _decorator(cls: type[Any] | None = None, /, **asked: bool) -> Any:
    def decorate(cls: type[Any]) -> type[Any]:
        if _is_known(cls, asked):
            return _processed(cls, {**_DEFAULTS, **asked})
        other: Callable[..., Any] = dataclasses.dataclass
        made: type[Any] = other(cls, **asked)
        return made

    return decorate if cls is None else decorate(cls)


def _is_known(cls: type[Any], asked: Mapping[str, bool]) -> bool:
    """Whether this module knows all that the class and the options say."""
    own = cls.__dict__
    if _FIELD_KIND is None or not asked.get("slots") or "__slots__" in own:
        return False
    if not asked.keys() <= _DEFAULTS.keys():
        return False
    if "__annotations__" not in own:
        return not inspect.get_annotations(cls)
    return all(map(_is_known_annotation, own["__annotations__"].items()))


def _is_known_annotation(item: tuple[str, object]) -> bool:
    name, text = item
    if not isinstance(text, str) or "InitVar" in text or "KW_ONLY" in text or name == "self":
        return False
    return "ClassVar" not in text or text.startswith("ClassVar")


def _processed(cls: type[Any], options: dict[str, bool]) -> type[Any]:
    fields = _inherited(cls, options["frozen"])
    own = _own_fields(cls)
    fields.update(own)
    ordered = _in_order(fields)
    if options["init"]:
        _check_order(ordered)
    members: dict[str, Any] = {
        "__dataclass_fields__": fields,
        "__dataclass_params__": _Params(options),
        "__match_args__": tuple(each.name for each in ordered if each.init and not each.kw_only),
        **_methods(cls, options),
    }
    made = _with_slots(cls, own, members)
    for member in members.values():
        if type(member) is _Deferred:
            member.owner = made
    return made


def _own_fields(cls: type[Any]) -> _Fields:
    annotations = cls.__dict__.get("__annotations__", {})
    for name, value in cls.__dict__.items():
        if isinstance(value, _Field) and name not in annotations:
            raise TypeError(f"{name!r} is a field but has no type annotation")
    named = ((name, text) for name, text in annotations.items() if not _is_of_class(text))
    return {name: _own_field(cls, name, text) for name, text in named}


def _is_of_class(annotation: str) -> bool:
    return annotation.startswith("ClassVar")


def _own_field(cls: type[Any], name: str, text: str) -> _Field[Any]:
    made: Any = getattr(cls, name, _MISSING)
    if not isinstance(made, _Field):
        default = _MISSING if isinstance(made, MemberDescriptorType) else made
        made = dataclasses.field(default=default)
    if made.default.__class__.__hash__ is None:
        kind = type(made.default)
        raise ValueError(
            f"mutable default {kind} for field {name} is not allowed: use default_factory"
        )
    made.name, made.type, made._field_type = name, text, _FIELD_KIND
    if made.kw_only is _MISSING:
        made.kw_only = False
    return made  # type: ignore[no-any-return]


def _inherited(cls: type[Any], frozen: bool) -> _Fields:
    found: _Fields = {}
    for base in cls.__mro__[-2:0:-1]:
        fields = base.__dict__.get("__dataclass_fields__")
        if fields is None:
            continue
        if base.__dict__["__dataclass_params__"].frozen != frozen:
            kind, of = ("frozen", "non-frozen") if frozen else ("non-frozen", "frozen")
            raise TypeError(f"cannot inherit {kind} dataclass from a {of} one")
        found.update(fields)
    return found


def _check_order(fields: Iterable[_Field[Any]]) -> None:
    """TypeError for an order of fields that no constructor can have."""
    optional = ""
    for field in fields:
        if field.kw_only or not field.init:
            continue
        if _has_default(field):
            optional = field.name
        elif optional:
            raise TypeError(
                f"non-default argument {field.name!r} follows default argument {optional!r}"
            )


def _in_order(fields: _Fields) -> list[_Field[Any]]:
    """The fields in the order of the constructor's parameters."""
    kept = [each for each in fields.values() if getattr(each, "_field_type", None) is _FIELD_KIND]
    return sorted(kept, key=attrgetter("kw_only"))


def _has_default(field: _Field[Any]) -> bool:
    return not (field.default is _MISSING and field.default_factory is _MISSING)


def _methods(cls: type[Any], options: Mapping[str, bool]) -> dict[str, Any]:
    """The methods that the options ask for, without those that the class has itself."""
    made: dict[str, Any] = {"__replace__": _replace}
    if options["init"]:
        made["__init__"] = _Deferred("__init__", _make_init)
    if options["repr"]:
        made["__repr__"] = _Deferred("__repr__", _make_repr)
    if options["eq"]:
        made["__eq__"] = _Deferred("__eq__", _make_eq)
        made["__hash__"] = _Deferred("__hash__", _make_hash) if options["frozen"] else None
    if options["frozen"]:
        for name in ("__setattr__", "__delattr__"):
            if name in cls.__dict__:
                raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
        made |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        made |= {"__getstate__": _get_state, "__setstate__": _set_state}
    return {name: each for name, each in made.items() if not _has_own(cls, name)}


def _has_own(cls: type[Any], name: str) -> bool:
    own = cls.__dict__
    # Python itself sets `__hash__` to None in a class that has an `__eq__`.
    return name in own and not (name == "__hash__" and own[name] is None and "__eq__" in own)


def _with_slots(cls: type[Any], own: _Fields, members: Mapping[str, Any]) -> type[Any]:
    """The class anew, as no class can be given slots."""
    there = {slot for base in cls.__mro__[1:-1] for slot in _slots_of(base)}
    space = {name: each for name, each in cls.__dict__.items() if name not in own}
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    if not space.get("__doc__"):
        space["__doc__"] = _Doc()
    fields = members["__dataclass_fields__"]
    slots = tuple(name for name in fields if name not in there)
    match_args = space.get("__match_args__", members["__match_args__"])
    space |= {**members, "__match_args__": match_args, "__slots__": slots}
    metaclass: Callable[..., type[Any]] = type(cls)
    made = metaclass(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


def _slots_of(base: type[Any]) -> Iterable[str]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def _make_init(cls: type[Any]) -> Callable[..., None]:
    fields = _in_order(cls.__dataclass_fields__)
    space: dict[str, Any] = {"__factory": _FACTORY, "__set": object.__setattr__}
    lines = [line for each in fields for line in _stored(cls, each, space)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    head = f"def __init__({', '.join(_parameters(fields, space))}):"
    made = _function("__init__", [head, *(lines or ["pass"])], space)
    made.__annotations__ = {each.name: each.type for each in fields if each.init}
    made.__annotations__["return"] = None
    return made


def _parameters(fields: Iterable[_Field[Any]], space: dict[str, Any]) -> Iterator[str]:
    yield "self"
    only_named = False
    for field in fields:
        if not field.init:
            continue
        if field.kw_only and not only_named:
            only_named = True
            yield "*"
        if _has_default(field):
            default = _FACTORY if field.default is _MISSING else field.default
            space[f"__default_{field.name}"] = default
            yield f"{field.name}=__default_{field.name}"
        else:
            yield field.name


def _stored(cls: type[Any], field: _Field[Any], space: dict[str, Any]) -> Iterator[str]:
    """The line of a constructor that stores a field; none for one that it leaves without value."""
    name = value = field.name
    if field.default_factory is not _MISSING:
        space[f"__make_{name}"] = field.default_factory
        value = f"__make_{name}()"
        if field.init:
            value += f" if {name} is __factory else {name}"
    elif not field.init:
        if field.default is _MISSING:
            return
        value = f"__default_{name}"
        space[value] = field.default
    if not cls.__dataclass_params__.frozen:
        yield f"self.{name} = {value}"
    elif isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
        space[f"__set_{name}"] = slot.__set__
        yield f"__set_{name}(self, {value})"
    else:
        yield f"__set(self, {name!r}, {value})"


def _make_eq(cls: type[Any]) -> Callable[[Any, Any], Any]:
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    own, other = ("".join(f"{of}.{name}, " for name in names) for of in ("self", "other"))
    lines = ["if other.__class__ is self.__class__:", f"  return ({own}) == ({other})"]
    return _function("__eq__", ["def __eq__(self, other):", *lines, "return NotImplemented"], {})


def _make_hash(cls: type[Any]) -> Callable[[Any], int]:
    fields = dataclasses.fields(cls)
    counted = [each.compare if each.hash is None else each.hash for each in fields]
    names = [each.name for each, counts in zip(fields, counted, strict=True) if counts]
    values = "".join(f"self.{name}, " for name in names)
    return _function("__hash__", ["def __hash__(self):", f"return hash(({values}))"], {})


def _function(name: str, lines: Iterable[str], space: dict[str, Any]) -> Callable[..., Any]:
    exec("\n ".join(lines), space)
    made: Callable[..., Any] = space.pop(name)
    return made


def _make_repr(cls: type[Any]) -> Callable[[Any], str]:
    shown = [each.name for each in dataclasses.fields(cls) if each.repr]

    @recursive_repr()
    def text(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return text


def _refuse_set(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(instance: Any, name: str) -> bool:
    """Whether an attribute cannot be set: attributes of a class derived by hand can be."""
    return (
        "__dataclass_fields__" in type(instance).__dict__ or name in instance.__dataclass_fields__
    )


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _replace(self: Any, /, **changes: Any) -> Any:
    return dataclasses.replace(self, **changes)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _decorator


def names_of(
    package: str, homes: Mapping[str, str], imported: Callable[[str], Any] = import_module
) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are in these modules: each is imported when one of
    its names is used."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(imported(homes[name]), name)
        # From the second look-up on Python finds it without this function.
        setattr(sys.modules[package], name, value)
        return value

    return get

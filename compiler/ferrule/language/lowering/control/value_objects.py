"""Objects of values in branches and loops: their attributes are chosen and carried like names.

Each side of a branch, and an iteration, has a copy of such an object.  Around it the attributes are
names of the function, such as `scheduler.index`, which no program can write.  Behind it the object
itself has what these names have then, so that everybody who has the object sees it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from copy import copy
from typing import Any, TypeAlias

from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control.assumptions import Assumed, Retry
from ferrule.language.lowering.control.joins import same
from ferrule.language.values import Undefined, is_run_time, is_value_object

Copies: TypeAlias = "dict[str, tuple[Any, Any]]"
"""By path: an object, and its copy in this code."""


def spread(low: Lowering) -> None:
    """Makes names of the attributes of all objects that names hold."""
    for path, owner in list(_objects(low.names)):
        for name, value in vars(owner).items():
            if not is_value_object(value):
                low.names[f"{path}.{name}"] = value


def enter(low: Lowering) -> Copies:
    """Names hold copies from here on, with what the names of the attributes have."""
    copies = {path: (owner, copy(owner)) for path, owner in _objects(low.names)}
    by_id = {id(owner): inside for owner, inside in copies.values()}
    for path, (_, inside) in copies.items():
        for name, value in list(vars(inside).items()):
            new = by_id.get(id(value), low.names.get(f"{path}.{name}", value))
            object.__setattr__(inside, name, new)
            _watch(low, new, f"{path}.{name}")
    _replace(low.names, by_id)
    return copies


def leave(low: Lowering, copies: Copies) -> None:
    """Names hold the objects again; the attributes of the copies are names."""
    for path, (_, inside) in copies.items():
        for name, value in vars(inside).items():
            if not is_value_object(value):
                low.names[f"{path}.{name}"] = value
    _replace(low.names, {id(inside): owner for owner, inside in copies.values()})
    known = {id(owner) for owner, _ in copies.values()}
    for path, owner in list(_objects(low.names)):
        if id(owner) not in known:  # the code has assigned it to the name
            _name(low, path, owner)


def renew(low: Lowering, names: Iterable[str]) -> None:
    """Makes names of the attributes of the objects that these names were assigned last."""
    for path, owner in list(_objects({name: low.names[name] for name in names})):
        _name(low, path, owner)


def settle(low: Lowering, names: Iterable[str]) -> None:
    """Gives the objects of these names, which only this code has, what the names of their
    attributes have."""
    for path, owner in list(_objects({name: low.names[name] for name in names})):
        for name, value in vars(owner).items():
            new = low.names.get(f"{path}.{name}", value)
            if not is_value_object(value) and not isinstance(new, Undefined):
                object.__setattr__(owner, name, new)


def _name(low: Lowering, path: str, owner: Any) -> None:
    """Makes names of the attributes of an object, and of no other one that was at its path."""
    for name in [each for each in low.names if _is_of(path, each)]:
        del low.names[name]
    for name, value in vars(owner).items():
        if not is_value_object(value):
            low.names[f"{path}.{name}"] = value


def store(low: Lowering) -> None:
    """Gives the objects what the names of their attributes have, and removes these names."""
    for path, owner in list(_objects(low.names)):
        for name in [each for each in low.names if _is_of(path, each)]:
            value = low.names.pop(name)
            attribute = name[len(path) + 1 :]
            if not isinstance(value, Undefined):
                object.__setattr__(owner, attribute, value)
            elif hasattr(owner, attribute) and value.error is not None:
                raise value.error
    for name in [each for each in low.names if "." in each]:
        del low.names[name]


def carried(low: Lowering, assigned: list[str], assumed: Assumed) -> list[str]:
    """The names of attributes that a loop carries: those that were seen to change, of objects
    whose names the loop does not assign."""
    found = []
    for path, owner in _objects(low.names):
        if path.partition(".")[0] in assigned:
            continue
        changing = low.state.changing.get(type(owner), set())
        found += [
            f"{path}.{name}"
            for name in vars(owner)
            if name in changing or f"{path}.{name}" in assumed.attributes
        ]
    return [name for name in found if name in low.names]


def require_carried(
    low: Lowering,
    copies: Copies,
    begins: dict[str, Any],
    carries: Collection[str],
    loop: Assumed,
) -> None:
    """Raises Retry if an iteration has changed an attribute that is not among those that the loop
    carries."""
    new = set()
    for path, (owner, inside) in copies.items():
        for name, value in vars(inside).items():
            full = f"{path}.{name}"
            if full not in begins or full in carries or is_value_object(value):
                continue
            if not same(begins[full], value):
                low.state.changing.setdefault(type(owner), set()).add(name)
                new.add(full)
    if new:
        raise Retry(Assumed(attributes=new), loop)


def _is_of(path: str, name: str) -> bool:
    """Whether this is the name of an attribute of the object itself."""
    return name.startswith(f"{path}.") and "." not in name[len(path) + 1 :]


def _objects(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The objects that names hold, and those in their attributes, each once."""
    seen: set[int] = set()
    todo = [(name, value) for name, value in names.items() if "." not in name]
    while todo:
        path, value = todo.pop(0)
        if not is_value_object(value) or id(value) in seen or not is_run_time(value):
            continue
        seen.add(id(value))
        yield path, value
        todo += [(f"{path}.{name}", each) for name, each in vars(value).items()]


def _replace(names: dict[str, Any], by_id: dict[int, Any]) -> None:
    for name, value in names.items():
        if id(value) in by_id and "." not in name:
            names[name] = by_id[id(value)]


def _watch(low: Lowering, value: Any, path: str) -> None:
    """Other objects in an attribute must not change under a run-time condition."""
    if low.state.region is not None and not is_value_object(value):
        low.state.region.found.visit(value, path)

"""The outer values that a compilation read: names, attributes, functions and their code.

A direct call of a `@jit` function checks whether all of them are unchanged, and compiles again if
not.  Each value is recorded when it is first read, and stays the same for the whole compilation.
"""

from __future__ import annotations

import abc
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from ferrule.language.dependencies.lookups import (
    ABSENT,
    HEAP_TYPE,
    MISSING,
    is_changeable,
    is_sealed,
    member,
    namespace_of,
    watch_attribute,
    watch_member,
)
from ferrule.language.dependencies.snapshots import may_change, snapshot
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.dependencies.guards import Guard

_RENEWED: Final = 16
"""After this number of comparisons without a valid guard, making a new guard pays off."""
_MOST_CALLED: Final = 2048
"""The functions that are followed from a call of ordinary Python.  Where it may run more, nothing
tells whether all is as it was."""
_LIBRARIES: Final = frozenset({"ferrule", "numpy", "torch", "tvm_ffi"})
_TOOLS: Final = frozenset({"_pytest", "pytest", "pluggy", "hypothesis", "IPython", "ipykernel"})
"""Modules that run other programs, and change on their own."""
_NOT_FOLLOWED: Final = _LIBRARIES | _TOOLS
_OURS: Final = frozenset({"ferrule", "tvm_ffi"})
"""Modules whose objects never change; objects of other libraries may contain the user's."""
_NO_NAME: Final = "\0"
"""A name that nothing has: while it is missing from a dict, no key was added."""
_STANDARD: Final = os.path.dirname(os.__file__)


def _untold(guard: Guard, value: Any) -> bool:
    """The default for values that memory words cannot decide."""
    return False


class _Note:
    """A value that was read, and how to read it again; `held`: its contents, if they can change.

    `watch` adds the condition that reading returns a value to a guard, if possible.  No dataclass,
    whose methods would be made in each process, as each compilation has notes.
    """

    __slots__ = ("held", "read", "value", "watch")

    def __init__(
        self, read: Callable[[], Any], value: Any, watch: Callable[[Guard, Any], bool] = _untold
    ) -> None:
        self.read, self.value, self.watch = read, value, watch
        self.held = snapshot(value) if may_change(value) else MISSING

    def holds(self, strict: bool = False) -> bool:
        """Whether reading it again returns a value that compiles to the same code.

        `strict`: and not an equal one that `is` tells apart.
        """
        now = self.read()
        if now is self.value and self.held is MISSING:
            return True
        if strict and now is not self.value and may_change(now):
            return False
        if now is MISSING or self.value is MISSING:
            return now is self.value
        held = snapshot(self.value) if self.held is MISSING else self.held
        return bool(snapshot(now) == held)

    def guarded(self, guard: Guard) -> bool:
        """Whether the guard can check that this stays as it is now."""
        now = self.read()
        return self.watch(guard, now) and _watch_inside(guard, now)


@dataclass(frozen=True, slots=True)
class _Fact:
    """Something that is not the value of a name, such as which attributes an object has: what
    `read` returns is compared as it is.

    `watch` as for `_Note`; by default memory words decide nothing.
    """

    read: Callable[[], object]
    value: object
    watch: Callable[[Guard], bool] | None = None

    def holds(self, strict: bool = False) -> bool:
        """Whether it is as it was."""
        return bool(self.read() == self.value)

    def guarded(self, guard: Guard) -> bool:
        """Whether the guard can check that this stays as it is now."""
        return self.watch is not None and self.watch(guard)


MOST_GUARDED: Final = 4096
"""The items of a container that a guard keeps; a larger one is compared by its snapshot."""


def _watch_inside(guard: Guard, value: Any, depth: int = 0) -> bool:
    """Add the condition that a value's contents are unchanged to a guard, if they can change."""
    if not may_change(value):
        return True
    if depth > 8 or type(value) not in (tuple, list, dict) or len(value) > MOST_GUARDED:
        return False
    if type(value) is dict:
        pairs = tuple(value.items())
        told = guard.add_dict(value, pairs)
        items = tuple(item for pair in pairs for item in pair)
    else:
        items = tuple(value)
        told = type(value) is tuple or guard.add_list(value, items)
    return told and all(_watch_inside(guard, each, depth + 1) for each in items)


class Outer(Mapping[str, Any]):
    """The outer names of a function; it records the ones that are read.

    A name that the function assigns is local, also before the assignment, as in Python.
    """

    __slots__ = ("_cells", "_function", "_globals", "_own", "names", "noted")

    def __init__(self, function: types.FunctionType) -> None:
        self._function = function
        self._globals = function.__globals__
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._cells = dict(cells)
        self._own = _own_names(function.__code__)
        self.names: dict[str, Any] = {}
        self.noted: dict[str, _Note] = {}

    def __getitem__(self, name: str) -> Any:
        found = self._note(name)
        if found is MISSING:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._note(name) is not MISSING

    def __iter__(self) -> Iterator[str]:
        return iter({**self._globals, **self._cells})

    def __len__(self) -> int:
        return len({**self._globals, **self._cells})

    def _note(self, name: str) -> Any:
        """The value, the same for the whole compilation."""
        if name in self._own:
            return MISSING
        if name in self.names:
            return self.names[name]
        value = self._read(name)
        self.names[name] = value
        if name in self._cells or may_change(value):
            self.noted[name] = _Note(lambda: self._read(name), value, partial(self._watch, name))
        return value

    def _watch(self, name: str, guard: Guard, value: Any) -> bool:
        """Add the condition that a name has this value to a guard, if possible."""
        found = ABSENT if value is MISSING else value
        if name not in self._cells:
            return guard.add_name(self._globals, name, found)
        guard.add_cell(self._cells[name], found)
        return True

    def _read(self, name: str) -> Any:
        if name not in self._cells:
            return self._globals.get(name, MISSING)
        try:
            return self._cells[name].cell_contents
        except ValueError:  # a variable that its function has not assigned yet
            return MISSING

    def is_library(self) -> bool:
        """Whether these names are a library's, which nobody changes."""
        return is_library(self._function)

    def plain(self) -> Iterator[tuple[dict[str, Any], str, Any]]:
        """The globals with immutable values."""
        return (
            (self._globals, name, value)
            for name, value in self.names.items()
            if name not in self.noted
        )


def _own_names(code: types.CodeType) -> frozenset[str]:
    """The names that a function assigns."""
    own = frozenset((*code.co_varnames, *code.co_cellvars))
    # Since CPython 3.12 variables of comprehensions are included, and can be globals elsewhere.
    return own - frozenset(code.co_names) if sys.version_info >= (3, 12) else own


@dataclass(slots=True)
class Witness:
    """The records of one compilation.

    `same` is a faster `unchanged`, which may also return False if it does not know.
    """

    _globals: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)
    _functions: dict[int, tuple[types.FunctionType, object, object]] = field(default_factory=dict)
    _followed: dict[int, types.FunctionType] = field(default_factory=dict)
    _notes: dict[object, _Note | _Fact] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)
    same: Callable[[], bool] = bool
    _told: Callable[[], bool] = bool
    _untold: tuple[_Note | _Fact, ...] = ()
    _looked: int = 0

    def unchanged(self) -> bool:
        """Whether everything is unchanged; False if reading it again raises."""
        if self._told():
            try:
                return all(note.holds() for note in self._untold)
            except Exception:
                return False
        if not self._compared():
            return False
        self._looked += 1
        if self._looked & (self._looked - 1) == 0 or self._looked % _RENEWED == 0:
            self._make_guard()
        return True

    def read_again(self) -> bool:
        """`unchanged` without a guard, which takes longer to make than many comparisons; other
        containers with the same contents are a change."""
        return self._compared(strict=True)

    def _make_guard(self) -> None:
        """Make a guard for everything that memory words can decide."""
        from ferrule.language.dependencies.guards import new_guard

        guard = new_guard()
        if guard is None:
            return
        for namespace, name, _ in self._globals:
            if not guard.add_name(namespace, name, namespace.get(name, ABSENT)):
                return
        for function, code, defaults in self._functions.values():
            guard.add_function(function, code, defaults)
        untold = tuple(note for note in self._notes.values() if not note.guarded(guard))
        told = guard.made()
        # The guard contains the values that were compared: nothing has changed meanwhile.
        if told is not None and told() and self._compared() and told():
            self._told, self._untold = told, untold
            self.same = bool if untold else told

    def _compared(self, strict: bool = False) -> bool:
        try:
            for namespace, name, value in self._globals:
                now = namespace.get(name, MISSING)
                if now is not value and not _alike(now, value):
                    return False
            for function, code, defaults in self._functions.values():
                if function.__code__ is not code or function.__defaults__ is not defaults:
                    return False
            return all(note.holds(strict) for note in self._notes.values())
        except Exception:
            return False

    def add_names(self, outer: Outer) -> None:
        """Record all outer names that a function read."""
        if outer.is_library():
            return
        self._globals += outer.plain()
        self._notes.update({(id(outer), name): note for name, note in outer.noted.items()})
        self._kept.append(outer)

    def add_function(self, function: types.FunctionType) -> None:
        """The code and the defaults of a function."""
        if id(function) in self._functions or is_library(function):
            return
        code, defaults = function.__code__, function.__defaults__
        self._functions[id(function)] = function, code, defaults
        if may_change(defaults):
            self.add_attribute(function, "__defaults__", defaults)
        if function.__kwdefaults__:
            self.add_attribute(function, "__kwdefaults__", function.__kwdefaults__)

    def add_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Record an attribute; one that returns a new object each time, such as a property, is
        ignored."""
        key = (id(owner), name)
        if key in self._notes or (is_library(owner) and self._is_of_library(owner, name)):
            return
        note = _Note(
            lambda: getattr(owner, name, MISSING), value, partial(watch_attribute, owner, name)
        )
        if note.holds():
            self._notes[key] = note
            self._kept.append(owner)

    def _is_of_library(self, owner: Any, name: str) -> bool:
        """Record what a library's module or class has under a name, where a program can set it;
        whether an attribute of this owner depends on nothing else."""
        if isinstance(owner, types.ModuleType):
            self.add_dict_item(vars(owner), name)
            return True
        if isinstance(owner, types.FunctionType):
            return False
        for cls in (owner, type(owner)) if isinstance(owner, type) else (type(owner),):
            self._note_member(cls, name, member(cls, name))
        if isinstance(owner, type):
            return True
        return is_sealed(owner, name)

    def add_libraries(self, owners: list[Any], names: frozenset[str]) -> None:
        """Record what the dicts of libraries' modules, classes and objects have under these
        names."""
        bare = [owner for owner in owners if not vars(owner)]
        objects = [each for each in owners if not isinstance(each, type | types.ModuleType)]
        known: list[tuple[dict[str, Any], dict[str, Any], frozenset[str]]] = []
        for owner in owners:
            here = namespace_of(owner) if isinstance(owner, type) else vars(owner)
            if here:
                found = {name: here[name] for name in sorted(here.keys() & names)}
                known.append((here, found, names.difference(found)))

        def watch(guard: Guard) -> bool:
            for here, found, lacking in known:
                pairs = [*found.items(), *((_NO_NAME, ABSENT) for _ in sorted(lacking)[:1])]
                if not all(guard.add_name(here, name, value) for name, value in pairs):
                    return False
            return all(guard.add_name(vars(owner), _NO_NAME, ABSENT) for owner in bare)

        def read() -> object:
            return any(map(vars, bare)) or [
                *map(id, map(vars, objects)),
                *[here.keys().isdisjoint(lacking) for here, _, lacking in known],
                *[id(here.get(name)) for here, found, _ in known for name in found],
            ]

        self.add_fact("libraries", owners, read, watch)
        self._kept.append(known)
        for value in (each for _, found, _ in known for each in found.values()):
            if may_change(value):
                self.add_fact("content", value, partial(snapshot, value))

    def add_fact(
        self,
        what: str,
        owner: Any,
        read: Callable[[], object],
        watch: Callable[[Guard], bool] | None = None,
    ) -> None:
        """Record something about an owner that is no value of a name."""
        if (id(owner), what) not in self._notes:
            self._notes[id(owner), what] = _Fact(read, read(), watch)
            self._kept.append(owner)

    def add_state(self, value: Any) -> None:
        """Record the class of an object, and which attributes it has of its own."""
        self.add_fact("state", value, lambda: (type(value), tuple(getattr(value, "__dict__", ()))))

    def add_class(self, cls: type, is_guarded: bool) -> None:
        """Record the name and the bases of a class, and which attributes it has of its own.

        `is_guarded`: whether a guard need not know the name.
        """

        def watch(guard: Guard) -> bool:
            guard.add_class(cls)
            return guard.add_name(namespace_of(cls), _NO_NAME, ABSENT) and is_guarded

        self.add_fact("class", cls, lambda: (cls.__name__, cls.__mro__, tuple(vars(cls))), watch)

    def add_registered(self) -> None:
        """Record which classes were registered with abstract ones."""
        self.add_fact("registered", abc, abc.get_cache_token)

    def add_module(self, module: types.ModuleType, names: frozenset[str]) -> None:
        """Record which of these names a module has."""
        here = vars(module)
        lacking = names.difference(here)

        def watch(guard: Guard) -> bool:
            # Any new name is seen then, which costs one comparison and not one for each name.
            return not lacking or guard.add_name(here, _NO_NAME, ABSENT)

        def read() -> object:
            return type(module), lacking.isdisjoint(here)

        self.add_fact("module", module, read, watch)

    def add_itself(self, function: types.FunctionType, is_guarded: bool) -> None:
        """Record what a function says of itself.  `is_guarded`: whether a guard need not know it,
        because no code asks for it."""

        def read() -> object:
            said = function.__name__, function.__qualname__, function.__module__, function.__doc__
            held = {k: v for k, v in vars(function).items() if k != "__wrapped__"}
            known = function.__annotations__
            return said, held and snapshot(held), known and snapshot(known)

        self.add_fact("itself", function, read, lambda guard: is_guarded)
        for name, value in vars(function).items():
            if name != "__wrapped__":
                self.add_attribute(function, name, value)

    def add_dict_item(self, namespace: dict[str, Any], name: str) -> None:
        """Record the value of a name in the dict of a module, which may be a library's."""
        value = namespace.get(name, MISSING)

        def watch(guard: Guard, now: Any) -> bool:
            return guard.add_name(namespace, name, ABSENT if now is MISSING else now)

        def read() -> Any:
            return namespace.get(name, MISSING)

        if (id(namespace), name) not in self._notes:
            self._notes[id(namespace), name] = _Note(read, value, watch)
            self._kept.append(namespace)

    def add_special(self, value: Any, *names: str) -> None:
        """Record methods that Python looks up in the class of an object, and everything that they
        can read."""
        if not type(value).__flags__ & HEAP_TYPE or is_library(type(value)):
            return
        for name in names:
            self.add_called(self.add_member(type(value), name))

    def add_member(self, cls: type, name: str) -> Any:
        """Record the definition of a name in a class or its bases, or its absence; returns it."""
        found = member(cls, name)
        if not is_library(cls):
            self._note_member(cls, name, found)
        return found

    def _note_member(self, cls: type, name: str, found: Any) -> None:
        key = (id(cls), name, "member")
        if key not in self._notes and is_changeable(cls):
            watch = partial(watch_member, cls, name)
            self._notes[key] = _Note(lambda: member(cls, name), found, watch)
            self._kept.append(cls)

    def add_returns(self, function: Any, read: Callable[[], Any], value: Any) -> None:
        """Record the annotation of a function's result, which may be a string to be evaluated."""

        def watch(guard: Guard, _: Any) -> bool:
            text = function.__annotations__.get("return")
            plain = not isinstance(text, str) or text == "None"  # other strings contain other names
            return plain and guard.add_annotation(function, "return")

        self._notes.setdefault("returns", _Note(read, value, watch))

    def add_called(self, function: Any) -> None:
        """Record everything that a Python function and its callees, as far as names show them, can
        read."""
        plain = getattr(function, "__func__", function)
        todo = [plain] if isinstance(plain, types.FunctionType) else []
        while todo:
            each = todo.pop()
            if id(each) in self._followed or is_library(each):
                continue
            if len(self._followed) == _MOST_CALLED:
                self.add_fact("called", Witness, object)  # which is another one each time
                return
            self._followed[id(each)] = each
            self.add_function(each)
            todo += self._called_by(each)

    def _called_by(self, function: types.FunctionType) -> list[types.FunctionType]:
        outer, names = Outer(function), sorted(set(_names(function.__code__)))
        found = [outer[name] for name in names if name in outer]
        seen: set[int] = set()
        for module in found:  # the list grows in the loop; modules name each other
            if isinstance(module, types.ModuleType) and id(module) not in seen:
                seen.add(id(module))
                found += self._inside_module(module, names)
        self.add_names(outer)
        return [each for each in found if isinstance(each, types.FunctionType)]

    def _inside_module(self, module: types.ModuleType, names: list[str]) -> list[Any]:
        """Record a module's attributes with these names, and return those to look into next."""
        if is_library(module):
            here = vars(module)
            known = [name for name in names if name in here]
            for name in known:
                self.add_dict_item(here, name)
            return [here[name] for name in known if isinstance(here[name], types.ModuleType)]
        known = [name for name in names if hasattr(module, name)]
        values = [getattr(module, name) for name in known]
        for name, value in zip(known, values, strict=True):
            self.add_attribute(module, name, value)
        return values


def _alike(now: Any, value: Any) -> bool:
    if now is MISSING or value is MISSING:
        return False
    return bool(snapshot(now) == snapshot(value))


def _names(code: types.CodeType) -> Iterator[str]:
    """The names of globals, closure variables and attributes in a function and its inner
    functions."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def is_library(owner: Any) -> bool:
    """Whether this belongs to a library, whose functions and constants nobody changes."""
    name = owner.__name__ if isinstance(owner, types.ModuleType) else _module_of(owner)
    root = name.partition(".")[0]
    if not isinstance(owner, (types.ModuleType, types.FunctionType, type)):
        return root in _OURS
    return root in _NOT_FOLLOWED or (root in sys.stdlib_module_names and _is_standard(root))


@cache
def _is_standard(name: str) -> bool:
    """Whether this is Python's own module, and not a user's file with such a name."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin = getattr(spec, "origin", None) or ""
    return origin in ("built-in", "frozen") or origin.startswith(_STANDARD)


def _module_of(owner: Any) -> str:
    if not isinstance(owner, (types.FunctionType, type)):
        owner = type(owner)
        if owner.__module__ == "builtins":
            return ""
    return str(getattr(owner, "__module__", ""))

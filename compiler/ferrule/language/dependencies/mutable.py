"""Finds mutable state that is reachable from a value, records it, and compares it later.

Lists and the like are compared by the identity of their items, arrays and buffers by their
contents, objects by their attributes, iterators and generators of numbers by their pickled state.
An object without visible state is `opaque`: any call of it may have changed it.  Functions are
searched for the state that they can change: the variables and globals that they name.
"""

from __future__ import annotations

import array
import dataclasses
import dis
import enum
import functools
import gc
import hashlib
import io
import itertools
import types
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from ferrule.language.dependencies.witness import is_library
from ferrule.language.marks import JitFunction, KernelFunction
from ferrule.language.values import RUN_TIME, Generated, KernelCall
from ferrule.specs import DType, Numeric
from ferrule.specs.deferred import dataclass

ATOMS: Final = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented)),
        *(range, slice, DType, types.CodeType, types.ModuleType),
        *(kind for kind in RUN_TIME if kind is not KernelCall),
    }
)
"""Immutable classes, so that a look at its class suffices for most values."""

_PLAIN: Final = (bool, int, float, complex, str, bytes)
_WRAPPERS: Final = (staticmethod, classmethod, functools.partialmethod)
_DESCRIPTORS: Final = (
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_SEQUENCES: Final = (list, tuple, deque)
_SMALL: Final = 1 << 16
_POINTER: Final = 8
_FIELDS: Final = "__dataclass_fields__"
_ABSENT: Final = object()
_STORES: Final = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL"))

Part = tuple[str, Any]
"""An inner value: the suffix of its name in messages, and the value."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A mutable value: `read` returns its contents, which were `content` before.

    `path` is its name in messages.
    """

    value: Any
    path: str
    read: Callable[[Any], list[Any]]
    content: list[Any]

    def now(self) -> list[Any]:
        """Its current contents; an object that equals nothing if they cannot be read any more."""
        try:
            return self.read(self.value)
        except Exception:
            return [object()]

    def is_same(self) -> bool:
        """Whether its contents are unchanged."""
        now = self.now()
        return len(now) == len(self.content) and all(map(_alike, now, self.content))


def _alike(now: Any, before: Any) -> bool:
    if now is before:
        return True
    if type(now) is not type(before) or not isinstance(now, _PLAIN):
        return False
    return (
        bool(now == before) if not isinstance(now, (float, complex)) else repr(now) == repr(before)
    )


@dataclass(slots=True)
class Search:
    """The mutable state of everything visited, and the opaque objects, by identity."""

    held: list[Held] = dataclasses.field(default_factory=list)
    opaque: dict[int, str] = dataclasses.field(default_factory=dict)
    seen: dict[int, Any] = dataclasses.field(default_factory=dict)
    searched: dict[int, Any] = dataclasses.field(default_factory=dict)
    """The functions whose globals were visited."""

    def visit(self, value: Any, path: str, *, function: bool = False) -> None:
        """Records a value and everything reachable from it; for a `function`, without its
        globals."""
        if not function or not isinstance(value, types.FunctionType):
            self.visit_all([(path, value)])
        elif id(value) not in self.seen:
            self.seen[id(value)] = value
            self.visit_all(self._inside(value, path, function=True))

    def visit_all(self, todo: Iterable[Part]) -> None:
        """Records values and everything reachable from them."""
        stack = list(todo)
        while stack:
            path, value = stack.pop()
            if type(value) in ATOMS or id(value) in self.seen:
                continue
            self.seen[id(value)] = value
            stack += self._inside(value, path)

    def globals_of(self, function: Any) -> None:
        """Visits the globals that a Python function names, independent of its origin."""
        if isinstance(function, types.MethodType):
            function = function.__func__
        if isinstance(function, types.FunctionType):
            self.visit_all(self._globals(function))

    # ---- inner values ----

    def _inside(self, value: Any, path: str, *, function: bool = False) -> list[Part]:
        if isinstance(value, (JitFunction, KernelFunction)):
            return self._inside(value.function, path, function=True)
        if isinstance(value, types.FunctionType):
            inside = self._of_function(value, path)
            return inside if function else inside + self._globals(value)
        if isinstance(value, type):
            return self._of_class(value)
        known = _known_parts(value, path)
        return self._of_object(value, path) if known is None else known

    def _note(self, value: Any, path: str, read: Callable[[Any], list[Any]]) -> list[Any]:
        content = read(value)
        self.held.append(Held(value, path, read, content))
        return content

    def _of_function(self, function: types.FunctionType, path: str) -> list[Part]:
        """The state that a function keeps from call to call, and its closure variables."""
        if is_library(function):
            return []
        content = self._note(function, path, _function_state)
        names = itertools.chain(function.__code__.co_freevars, itertools.repeat(path))
        return list(zip(names, content, strict=False))

    def _globals(self, function: types.FunctionType) -> list[Part]:
        if id(function) in self.searched or is_library(function):
            return []
        self.searched[id(function)] = function
        names, stored = _names_of(function.__code__)
        if stored:
            read = functools.partial(_named, stored)
            self._note(function.__globals__, ", ".join(stored), read)
        found = [(n, function.__globals__[n]) for n in names if n in function.__globals__]
        # The list grows in the loop.
        for name, module in list(found):
            if isinstance(module, types.ModuleType) and not is_library(module):
                inner = vars(module)
                found += [(f"{name}.{n}", inner[n]) for n in names if n in inner]
        return found

    def _of_class(self, cls: type) -> list[Part]:
        if isinstance(cls, (DType, enum.EnumMeta)) or is_library(cls) or _is_builtin(cls):
            return []
        self._note(cls, cls.__name__, _class_state)
        made = [field.default_factory for field in vars(cls).get(_FIELDS, {}).values()]
        inside = [(name, inner) for name, inner in vars(cls).items() if _is_own(name, inner)]
        return [
            *((f"{cls.__name__}.{name}", inner) for name, inner in inside),
            *((cls.__name__, inner) for inner in (*made, *cls.__bases__)),
        ]

    def _of_object(self, value: Any, path: str) -> list[Part]:
        """The attributes, items and other state of a value."""
        cls = type(value)
        parts: list[Part] = [(cls.__name__, cls)]
        if _has_attributes(value):
            self._note(value, path, _attributes)
            parts += [(f"{path}.{name}", inner) for name, inner in _named_attributes(value)]
        if _is_pure_python(cls) or cls is types.SimpleNamespace:
            return parts
        read = _reader(value)
        if read is not None and isinstance(value, (tuple, frozenset)):
            content = read(value)
        elif read is not None:
            content = self._note(value, path, read)
        elif _has_value_hash(cls):
            return parts
        else:
            content = self._by_pickle(value, path)
        return parts + list(_labelled(value, content, path))

    def _by_pickle(self, value: Any, path: str) -> list[Any]:
        """The pickled state of a C object; it is opaque if it has none."""
        try:
            return self._note(value, path, _pickled)
        except Exception:
            self.opaque[id(value)] = path
            return []


def _labelled(value: Any, content: list[Any], path: str) -> Iterator[Part]:
    if isinstance(value, (dict, types.MappingProxyType)):
        for key, inner in zip(content[::2], content[1::2], strict=True):
            yield path, key
            yield f"{path}[{key!r}]" if isinstance(key, _PLAIN) else path, inner
    elif isinstance(value, _SEQUENCES):
        names = getattr(value, "_fields", None) or ()
        for at, inner in enumerate(content):
            yield f"{path}.{names[at]}" if at < len(names) else f"{path}[{at}]", inner
    else:
        for inner in content:
            yield path, inner


def _known_parts(value: Any, path: str) -> list[Part] | None:
    """The inner values of an immutable value; None for other values."""
    match value:
        case types.MethodType():
            return [(path, value.__func__), (_owner(path), value.__self__)]
        case types.BuiltinFunctionType() | types.MethodWrapperType():
            return [(_owner(path), value.__self__)]
        case Generated():
            return None
        case functools.partial():
            return [(path, x) for x in (value.func, *value.args, *value.keywords.values())]
        case property():
            return [(path, x) for x in (value.fget, value.fset, value.fdel)]
        case super():
            return [(_owner(path), getattr(value, "__self__", None))]
        case types.CellType():
            return [(path, _cell(value))]
        case KernelCall():
            return list(value.arguments.items())
        case Numeric() | enum.Enum() | np.generic() | np.dtype():
            return []
    if isinstance(value, _WRAPPERS):
        return [(path, getattr(value, "__func__", None) or getattr(value, "func", None))]
    if isinstance(value, _DESCRIPTORS) or type(value).__module__ == "typing":
        return []
    reached = getattr(type(value), "reached", None)
    if reached is not None and type(value).__module__.startswith("ferrule."):
        return list(reached(value))
    return [] if type(value).__module__.startswith(("ferrule.", "_abc")) else None


def _owner(path: str) -> str:
    return path.rpartition(".")[0] or path


# ---- contents of values ----


def _reader(value: Any) -> Callable[[Any], list[Any]] | None:
    """The function that reads the items or contents of a value of a known C class."""
    match value:
        case OrderedDict():
            return _ordered
        case defaultdict():
            return _defaulted
        case dict() | types.MappingProxyType():
            return _pairs
        case list() | tuple() | deque():
            return list
        case set() | frozenset():
            return _members
        case np.ndarray():
            return _array
        case bytearray() | array.array() | memoryview():
            return _buffer
        case Generated():
            return _rest
        case io.StringIO() | io.BytesIO():
            return _text
        case types.GeneratorType():
            return _generator
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "_version"):
        return _version
    return _nothing if isinstance(value, functools._lru_cache_wrapper) else None


def _nothing(_: Any) -> list[Any]:
    return []


def _pairs(value: Any) -> list[Any]:
    return [part for pair in value.items() for part in pair]


def _ordered(value: OrderedDict[Any, Any]) -> list[Any]:
    return [part for pair in OrderedDict.items(value) for part in pair]


def _defaulted(value: defaultdict[Any, Any]) -> list[Any]:
    return [part for pair in dict.items(value) for part in pair]


def _members(value: Any) -> list[Any]:
    return sorted(value, key=id)


def _array(value: Any) -> list[Any]:
    if value.dtype.hasobject:
        return [value.shape, *value.flat]
    return [str(value.dtype), *value.shape, _digest(np.ascontiguousarray(value).view(np.ndarray))]


def _digest(buffer: Any) -> bytes:
    """Short contents unchanged, a digest of long ones."""
    data = buffer.tobytes()
    return data if len(data) <= _SMALL else hashlib.blake2b(data).digest()


def _buffer(value: Any) -> list[Any]:
    return [_digest(memoryview(value))]


def _text(value: Any) -> list[Any]:
    return [value.closed] if value.closed else [value.getvalue(), value.tell()]


def _generator(value: types.GeneratorType[Any, Any, Any]) -> list[Any]:
    frame = value.gi_frame
    return [None] if frame is None else [frame.f_lasti, *_referents(value)]


def _referents(value: Any) -> list[Any]:
    return [each for each in gc.get_referents(value) if not isinstance(each, dict)]


def _rest(value: Generated) -> list[Any]:
    return list(value.rest)


def _version(value: Any) -> list[Any]:
    return [value._version, value.data_ptr()]


def _pickled(value: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pickling of iterators is deprecated
        reduced = value.__reduce_ex__(2)
    return list(_flat(reduced, 0))


def _flat(data: Any, depth: int) -> Iterator[Any]:
    """The leaves of Python containers, which pickling makes anew each time."""
    if depth > 6 or not isinstance(data, (tuple, list, dict, np.ndarray)):
        yield data
    elif isinstance(data, np.ndarray):
        yield from _array(data)
    else:
        for inner in _pairs(data) if isinstance(data, dict) else data:
            yield from _flat(inner, depth + 1)


# ---- objects, classes, functions ----


def _has_attributes(value: Any) -> bool:
    return hasattr(value, "__dict__") or any(_slots(type(value)))


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        if "__slots__" in vars(base):
            members = vars(base).items()
            yield from (n for n, m in members if isinstance(m, types.MemberDescriptorType))


def _named_attributes(value: Any) -> Iterator[Part]:
    """The attributes of the object itself; the value of a cached property does not count as a
    change."""
    cls, unset = type(value), object()
    for name, inner in list(getattr(value, "__dict__", {}).items()):
        if not isinstance(getattr(cls, name, None), functools.cached_property):
            yield name, inner
    for name in _slots(cls):
        inner = getattr(value, name, unset)
        if inner is not unset:
            yield name, inner


def _attributes(value: Any) -> list[Any]:
    return [part for pair in _named_attributes(value) for part in pair]


def _is_pure_python(cls: type) -> bool:
    """Whether instances have only attributes and slots, judged by their size."""
    offsets = (cls.__dictoffset__, cls.__weakrefoffset__)
    words = sum(offset > 0 for offset in offsets) + sum(1 for _ in _slots(cls))
    return not cls.__itemsize__ and cls.__basicsize__ == object.__basicsize__ + _POINTER * words


def _has_value_hash(cls: type) -> bool:
    """Whether instances are hashed by their contents, so that these never change."""
    own: Any = cls.__hash__
    return own is not None and own is not object.__hash__


def _is_builtin(cls: type) -> bool:
    return cls.__module__ == "builtins"


def _is_own(name: str, inner: Any) -> bool:
    """Whether this is code or data of a class, and not Python's own bookkeeping."""
    return name[:2] != "__" or isinstance(inner, (types.FunctionType, *_WRAPPERS))


def _class_state(cls: type) -> list[Any]:
    pairs = ((name, inner) for name, inner in vars(cls).items() if name[:2] != "__")
    return [part for pair in pairs for part in pair]


def _function_state(function: types.FunctionType) -> list[Any]:
    cells = [_cell(cell) for cell in function.__closure__ or ()]
    kept = vars(function)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return [*cells, *defaults, *(part for pair in kept.items() for part in pair)]


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that its function has not assigned yet
        return None


@functools.lru_cache(maxsize=1024)
def _names_of(code: types.CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names in a function and its inner functions; and the globals that it assigns.

    pytest puts names with an @, which are impossible in source code, into functions that assert:
    they lead to its whole session.
    """
    names, stored = {name for name in code.co_names if not name.startswith("@")}, set()
    if not _STORES.isdisjoint(code.co_code[::2]):
        found = dis.get_instructions(code)
        stored = {each.argval for each in found if each.opcode in _STORES}
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more, written = _names_of(inner)
            names.update(more)
            stored.update(written)
    return tuple(sorted(names)), tuple(sorted(stored))


def _named(names: tuple[str, ...], namespace: dict[str, Any]) -> list[Any]:
    return [namespace.get(name, _ABSENT) for name in names]

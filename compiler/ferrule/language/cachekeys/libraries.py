"""What of libraries a compilation may use and still have a key.

A compilation may call anything of Python while it runs, and a key holds what that returns only if
it depends on its arguments alone.  So nothing of a library is allowed but what stands here.

A library's own functions and classes are told by their names, as its version is in the key.  But a
program can set an attribute there, and code can read it: so of each class, module, function and
object of a library that a text may reach, the attributes that a text names are told.
"""

from __future__ import annotations

import builtins
import enum
import functools
import sys
import types
from abc import ABCMeta
from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

import numpy as np

from ferrule.compiler.cache.encoding import named
from ferrule.language.dependencies.lookups import HEAP_TYPE, is_changeable, is_sealed
from ferrule.language.dependencies.witness import Witness, is_library
from ferrule.language.marks import Marked

_BUILTINS: Final = (
    "ArithmeticError AssertionError AttributeError BufferError Ellipsis EOFError Exception "
    "FloatingPointError IndexError KeyError LookupError MemoryError NameError NotImplemented "
    "NotImplementedError OSError OverflowError RecursionError ReferenceError RuntimeError "
    "StopIteration SyntaxError SystemError TimeoutError TypeError UnicodeError ValueError "
    "ZeroDivisionError FileNotFoundError PermissionError "
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod "
    "enumerate filter float format frozenset hex int isinstance issubclass iter len list map max "
    "min next oct ord pow property range repr reversed round set slice sorted staticmethod str sum "
    "super tuple type zip object"
)
BUILTINS: Final = {id(getattr(builtins, name)): name for name in _BUILTINS.split()}
"""Builtin functions and classes whose result depends on their arguments alone."""

REFLECTION: Final = {id(getattr): "getattr", id(hasattr): "hasattr"}
"""Builtins that read attributes by names that no text has."""

REFLECTING: Final = frozenset({"__dict__", "__getattribute__"})
"""Attributes through which others are read by names that no text has."""
HIDDEN: Final = frozenset(
    {
        *("__globals__", "__builtins__", "__subclasses__", "__wrapped__", "__dir__", "__sizeof__"),
        *("co_filename", "f_back", "f_builtins", "f_globals", "f_locals"),
    }
)
"""Attributes that give what no key has."""
_NOT_PURE: Final = frozenset(
    {
        *("operator.attrgetter", "operator.methodcaller"),
        *("_operator.attrgetter", "_operator.methodcaller"),
        *("typing.get_type_hints", "typing.get_overloads", "typing.evaluate_forward_ref"),
        *("typing_extensions.get_type_hints", "typing_extensions.get_overloads"),
        *("typing_extensions.evaluate_forward_ref",),
    }
)
"""What of pure modules reads attributes and names that no text has."""
_OPEN: Final = frozenset({name.partition(".")[0] for name in _NOT_PURE})

PURE: Final = frozenset(
    {
        *("math", "cmath", "operator", "_operator", "itertools", "numbers", "fractions"),
        *("typing", "typing_extensions", "dataclasses", "enum", "abc", "collections"),
        *("collections.abc", "_collections", "_collections_abc", "_abc"),
    }
)
"""Modules of Python whose functions depend on their arguments alone."""

_FUNCTOOLS: Final = frozenset({"partial", "reduce", "wraps", "cmp_to_key"})
_TYPES: Final = frozenset({"SimpleNamespace", "MappingProxyType", "NoneType", "EllipsisType"})
_NUMPY: Final = frozenset(
    "zeros ones full eye identity array asarray arange linspace prod sum cumsum cumprod iinfo "
    "finfo dtype ndarray stack concatenate array_equal allclose isscalar promote_types result_type "
    "can_cast broadcast_shapes ndim shape size".split()
)
_PACKAGES: Final = frozenset({"numpy", "ml_dtypes", "torch", "tvm_ffi"})
"""Packages of which at most parts may be used; their versions are in a key."""
_OURS: Final = ("ferrule.language.", "ferrule.specs.")
_NOT_OURS: Final = frozenset({"ferrule.language.compilation"})
_FACADE: Final = frozenset({"ferrule", "ferrule.specs", "ferrule.language.faces.arch"})
_NEVER: Final = frozenset(
    "cache compile compile_all cuda emulated_gpu export_library frontends from_dlpack "
    "get_global_func like overload register_global_func runtime torch_op type_info".split()
)
"""Names of the facade that do something, or look at what a process has."""


def is_ours(module: str) -> bool:
    """Whether a module of ferrule has what compiled code may name."""
    return module.startswith(_OURS) and module not in _NOT_OURS


def is_user_module(value: types.ModuleType) -> bool:
    """Whether a module is none of a library."""
    return not is_library(value) and value.__name__.partition(".")[0] not in _PACKAGES


def is_pure(module: str) -> bool:
    """Whether all that a module has depends on its arguments alone."""
    return module in PURE and module not in _OPEN


def is_builtin(value: Any) -> bool:
    """Whether this is a function of a library that is written in C, and no method of an object."""
    kind = type(value)
    if kind is types.BuiltinFunctionType:
        if not isinstance(value.__self__, types.ModuleType | None):
            return False
    elif not isinstance(value, np.ufunc) and kind.__module__ != "numpy":
        return False
    root = str(getattr(value, "__module__", None)).partition(".")[0]
    return hasattr(value, "__name__") and root in sys.stdlib_module_names | _PACKAGES


def has_registered(value: ABCMeta) -> bool:
    """Whether classes of the user's were registered with an abstract class, whose `isinstance`
    says yes to them."""
    try:
        from _abc import _get_dump  # type: ignore[import-not-found]
    except ImportError:
        return True
    known = (each() for each in _get_dump(value)[0])
    return any(each is not None and not is_library(each) for each in known)


def reads_by_name(value: Any) -> bool:
    """Whether this function or class of a pure module reads names that no text has."""
    where, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    return f"{where}.{name}" in _NOT_PURE


def is_told_by_name(value: type) -> bool:
    """Whether the name of a class, and the version of its package, tell all that it does."""
    where = str(getattr(value, "__module__", ""))
    if where in PURE or is_ours(where) or where in ("builtins", "types"):
        return not reads_by_name(value)
    if where == "numpy" or where.startswith("numpy."):
        return issubclass(value, np.generic | np.ndarray | np.dtype)
    return where.partition(".")[0] == "ml_dtypes"


def allowed_of(module: types.ModuleType, name: str) -> bool:
    """Whether an attribute of a library's module may be used."""
    where, value = module.__name__, getattr(module, name, None)
    if where in _FACADE or is_ours(where):
        return name not in _NEVER
    if where in PURE:
        if isinstance(value, types.ModuleType):
            return is_pure(value.__name__)
        return f"{where}.{name}" not in _NOT_PURE
    if where == "functools":
        return name in _FUNCTOOLS
    if where == "types":
        return name in _TYPES
    if where == "numpy":
        return name in _NUMPY or _is_of_numpy(value)
    if where == "torch":
        return type(value).__name__ == "dtype" and type(value).__module__ == "torch"
    if where == "ml_dtypes":
        return isinstance(value, type)
    return False


def _is_of_numpy(value: Any) -> bool:
    if isinstance(value, type):
        return issubclass(value, np.generic)
    return value is None or isinstance(value, np.ufunc | float | int | bool)


def allowed_function(value: Any) -> bool:
    """Whether a function that was imported from a library may be used."""
    where = str(getattr(value, "__module__", None) or "")
    name = str(getattr(value, "__name__", ""))
    if reads_by_name(value):
        return False
    if id(value) in BUILTINS or where in PURE or is_ours(where):
        return True
    if where in ("functools", "_functools"):
        return name in _FUNCTOOLS
    module = sys.modules.get(where)
    return module is not None and where == "numpy" and allowed_of(module, name)


# ---- what a program may have put into a library ----

_TELLING: Final = (Marked, types.SimpleNamespace, functools.partial)
"""Classes whose objects are told with all their attributes."""
_MADE_LATER: Final = frozenset({"__init__", "__repr__", "__eq__", "__hash__"})
"""Methods that a dataclass of ferrule gets when they are first used."""
_LAZY: Final = "ferrule"
"""The module that has names of its own only from their first use on."""


class _Space:
    """Where attributes can be set, which of them are told, and the number of names that it was
    asked for, which only grow in a walk.  No dataclass, whose methods each process would make."""

    __slots__ = ("asked", "label", "owner", "told")

    def __init__(self, label: str, owner: Any) -> None:
        self.label, self.owner, self.asked = label, owner, 0
        self.told: set[str] = set()


class Additions:
    """The places of libraries whose attributes a text may read."""

    def __init__(self) -> None:
        self._spaces: Final[dict[int, _Space]] = {}
        self._classes: Final[set[type]] = set()

    def reach(self, value: Any) -> None:
        """Note that a text may read attributes of a value, as far as they are a library's."""
        if isinstance(value, type):
            self._reach_class(value)
            return
        kind = type(value)
        if kind.__flags__ & HEAP_TYPE:
            self._reach_class(kind)
        if kind.__dictoffset__ and _has_space(value, kind):
            self._add(value)

    def _reach_class(self, cls: type) -> None:
        if cls in self._classes:
            return
        self._classes.add(cls)
        kind: type = type(cls)
        for base in (*cls.__mro__, *kind.__mro__):
            if is_changeable(base) and (is_library(base) or is_told_by_name(base)):
                self._add(base)

    def _add(self, owner: Any) -> None:
        if id(owner) not in self._spaces:
            self._spaces[id(owner)] = _Space(f"{named(owner)} [{len(self._spaces)}]", owner)

    def named_by(self, attributes: Set[str]) -> Iterator[tuple[str, Any, bool]]:
        """Those of these attributes that are there and were not given before: a name for the
        part, the value, and whether its place may get it later."""
        for space in list(self._spaces.values()):
            if space.asked == len(attributes):
                continue
            space.asked, here = len(attributes), vars(space.owner)
            for name in sorted(attributes & here.keys() - space.told - _MADE_LATER):
                space.told.add(name)
                if not _is_told(space.owner, name):
                    is_lazy = getattr(space.owner, "__name__", None) == _LAZY
                    value = _members(space.owner).get(name, here[name])
                    yield f"{space.label}.{name}", value, is_lazy

    def watch(self, witness: Witness, names: frozenset[str]) -> None:
        """Record what these places have under these names."""
        witness.add_libraries([space.owner for space in self._spaces.values()], names - _MADE_LATER)


def own_name(value: Any) -> str | None:
    """What tells a function, a class or a module of a library; None for all other values."""
    if isinstance(value, types.FunctionType):
        found = f"{named(value)} {value.__code__.co_firstlineno}"
        return found if is_library(value) else None
    if isinstance(value, types.ModuleType | type):
        return named(value) if is_library(value) else None
    return named(value) if is_builtin(value) else None


def _has_space(value: Any, kind: type) -> bool:
    """Whether a program can set attributes of this object, and nothing else tells them."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] == _LAZY or is_pure(value.__name__)
    if isinstance(value, types.FunctionType):
        return is_library(value)
    return (is_library(kind) or kind.__module__ == "builtins") and not isinstance(value, _TELLING)


def _members(owner: Any) -> Mapping[str, Any]:
    return owner.__members__ if isinstance(owner, enum.EnumMeta) else {}


def _is_told(owner: Any, name: str) -> bool:
    """Whether the class and the fields of an object tell what it has under a name."""
    return not isinstance(owner, type | types.ModuleType) and is_sealed(owner, name)

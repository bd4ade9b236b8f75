"""What of libraries a compilation may use and still have a key.

A compilation may call anything of Python while it runs, and a key holds what that returns only if
it depends on its arguments alone.  So nothing of a library is allowed but what stands here.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any, Final

import numpy as np

from ferrule.language.witness import is_library

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

PURE: Final = frozenset(
    {
        *("math", "cmath", "operator", "_operator", "itertools", "numbers", "fractions"),
        *("typing", "typing_extensions", "dataclasses", "enum", "abc", "collections"),
        *("collections.abc", "_collections", "_collections_abc", "builtins", "_abc"),
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
_NOT_OURS: Final = frozenset({"ferrule.language.compilation", "ferrule.language.overloads"})
_FACADE: Final = frozenset({"ferrule", "ferrule.specs", "ferrule.language.arch"})
_NEVER: Final = frozenset(
    "cache compile compile_all cuda emulated_gpu export_library frontends from_dlpack "
    "get_global_func like overload register_global_func runtime type_info".split()
)
"""Names of the facade that do something, or look at what a process has."""


def is_ours(module: str) -> bool:
    """Whether a module of ferrule has what compiled code may name."""
    return module.startswith(_OURS) and module not in _NOT_OURS


def is_user_module(value: types.ModuleType) -> bool:
    """Whether a module is none of a library."""
    return not is_library(value) and value.__name__.partition(".")[0] not in _PACKAGES


def is_told_by_name(value: type) -> bool:
    """Whether the name of a class, and the version of its package, tell all that it does."""
    where = str(getattr(value, "__module__", ""))
    if where in PURE or is_ours(where) or where == "types":
        return True
    if where == "numpy" or where.startswith("numpy."):
        return issubclass(value, np.generic | np.ndarray | np.dtype)
    return where.partition(".")[0] == "ml_dtypes"


def allowed_of(module: types.ModuleType, name: str) -> bool:
    """Whether an attribute of a library's module may be used."""
    where, value = module.__name__, getattr(module, name, None)
    if where in _FACADE or is_ours(where):
        return name not in _NEVER
    if where in PURE:
        return not isinstance(value, types.ModuleType) or value.__name__ in PURE
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
    if id(value) in BUILTINS or where in PURE or is_ours(where):
        return True
    if where in ("functools", "_functools"):
        return name in _FUNCTOOLS
    module = sys.modules.get(where)
    return module is not None and where == "numpy" and allowed_of(module, name)

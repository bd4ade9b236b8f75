"""The values that a kernel reads in addition to its arguments: globals, closure variables, and
attributes of modules, by their names, in the kernel and in the functions that it calls.

Other systems compile these values in as constants.  A name counts as read if the code may read it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ferrule.frontends.given import brief
from ferrule.frontends.surroundings import contents, names_in

_FUNCTIONS: Final = ("py_func", "func", "fn", "_pyfunc")
"""The attributes in which decorated functions of Numba, Warp, Triton and cuTile hold the Python
function."""
_LIBRARIES: Final = frozenset(
    {*"numpy torch numba warp triton cuda tilelang ferrule".split(), *sys.stdlib_module_names}
) - {"__main__"}
"""Packages whose values are not the user's, and whose functions are not searched."""
_SHOWN: Final = 8


def captured(function: Any) -> Iterator[tuple[str, str, Any]]:
    """For each outer value that a function, or a function that it calls, refers to: the function,
    the name, and the value."""
    yield from _captured(function, set())


def own_values(function: Any) -> Iterator[tuple[str, Any]]:
    """The outer values that a function itself refers to, by their names."""
    plain = _plain(function)
    if plain is not None:
        yield from _named(plain)


def compiled_in(function: Any) -> tuple[str, ...]:
    """The remark for callers on numbers, texts and arrays that a kernel reads in addition to its
    arguments: their values are compiled in.  Empty if there are none."""
    texts = {name: _text(value) for _, name, value in captured(function)}
    found = [f"{name} = {text}" for name, text in texts.items() if text is not None]
    if not found:
        return ()
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    listed = ", ".join(found[:_SHOWN])
    return (f"what it reads beside its arguments is as it was when compiled: {listed}{more}",)


def _captured(function: Any, seen: set[int]) -> Iterator[tuple[str, str, Any]]:
    plain = _plain(function)
    if plain is None or id(plain) in seen or _is_library(plain.__module__):
        return
    seen.add(id(plain))
    for name, value in _named(plain):
        yield plain.__name__, name, value
        yield from _captured(value, seen)


def _plain(function: Any) -> FunctionType | None:
    """The Python function that this is, or that it wraps; None for anything else."""
    if isinstance(function, type):
        return None
    parts = (function, *(_attribute(function, each) for each in _FUNCTIONS))
    return next((each for each in parts if isinstance(each, FunctionType)), None)


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The outer values whose names a function's code contains."""
    names = list(names_in(function.__code__))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        for value in contents(cell):
            yield from _inside(name, value, names, set())
    for name in dict.fromkeys(_globals(function.__code__)):
        if name in function.__globals__:
            yield from _inside(name, function.__globals__[name], names, set())


def _inside(path: str, value: Any, names: list[str], seen: set[int]) -> Iterator[tuple[str, Any]]:
    """A value; for a module, also those of its attributes whose names the code contains."""
    yield path, value
    if not isinstance(value, ModuleType) or _is_library(value.__name__) or id(value) in seen:
        return
    seen.add(id(value))
    for name in names:
        if name in vars(value):
            yield from _inside(f"{path}.{name}", vars(value)[name], names, seen)


def _globals(code: CodeType) -> Iterator[str]:
    """The globals that a code object reads, and the code objects nested in it."""
    for each in get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield each.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _text(value: Any) -> str | None:
    """A value as text; None for a value that is not data, such as a function or a module."""
    if type(value).__name__ == "constexpr":  # A number of Triton's.
        return _text(_attribute(value, "value"))
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    if isinstance(value, tuple | list):
        texts = [_text(each) for each in value]
        return None if None in texts else f"({', '.join(map(str, texts))})"
    known = isinstance(value, bool | int | float | complex | str | np.generic)
    return brief(value) if known or hasattr(type(value), "_wp_scalar_type_") else None

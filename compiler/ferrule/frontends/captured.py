"""What a kernel reads beside its arguments: globals, closures, and values of modules, by their
names, also of the functions that it calls.

Other systems compile such values in as they were.  A name that only might be read counts as read.
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
"""Where decorated functions of Numba, Warp, Triton and cuTile have the Python function."""
_LIBRARIES: Final = frozenset(
    {*"numpy torch numba warp triton cuda tilelang ferrule".split(), *sys.stdlib_module_names}
) - {"__main__"}
"""Packages of which no value is the user's, and no function is looked into."""
_SHOWN: Final = 8


def captured(function: Any) -> Iterator[tuple[str, str, Any]]:
    """For each value that a function, or one that it calls, names outside of itself: the function,
    the name, and the value."""
    yield from _captured(function, set())


def own_values(function: Any) -> Iterator[tuple[str, Any]]:
    """The values that a function itself names outside of itself, by these names."""
    plain = _plain(function)
    if plain is not None:
        yield from _named(plain)


def compiled_in(function: Any) -> tuple[str, ...]:
    """What callers are to know of numbers, texts and arrays that a kernel reads beside its
    arguments: that they are as they were; nothing where there are none."""
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
    """The Python function that this is, or was made of; None for anything else."""
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
    """The values that a function's code names, outside of itself."""
    names = list(names_in(function.__code__))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        for value in contents(cell):
            yield from _inside(name, value, names, set())
    for name in dict.fromkeys(_globals(function.__code__)):
        if name in function.__globals__:
            yield from _inside(name, function.__globals__[name], names, set())


def _inside(path: str, value: Any, names: list[str], seen: set[int]) -> Iterator[tuple[str, Any]]:
    """A value, and of a module those in it of which the code has the name."""
    yield path, value
    if not isinstance(value, ModuleType) or _is_library(value.__name__) or id(value) in seen:
        return
    seen.add(id(value))
    for name in names:
        if name in vars(value):
            yield from _inside(f"{path}.{name}", vars(value)[name], names, seen)


def _globals(code: CodeType) -> Iterator[str]:
    """The globals that code reads, and code inside of it."""
    for each in get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield each.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _text(value: Any) -> str | None:
    """A value as it is shown; None for what is no data, as a function and a module are."""
    if type(value).__name__ == "constexpr":  # A number of Triton's.
        return _text(_attribute(value, "value"))
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    if isinstance(value, tuple | list):
        texts = [_text(each) for each in value]
        return None if None in texts else f"({', '.join(map(str, texts))})"
    known = isinstance(value, bool | int | float | complex | str | np.generic)
    return brief(value) if known or hasattr(type(value), "_wp_scalar_type_") else None

"""A function of the user's with the numbers of its surroundings marked: which it takes shows in
what it computes.

Closures, globals, defaults, arguments of a partial and the object of a method are replaced; the
function itself stays as it is.  What is computed so is only looked at, and used for nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import getattr_static
from numbers import Integral
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from ferrule.frontends.told import Told

_AS_IT_IS: Final = (type(None), bool, str, bytes, float, ModuleType, Told)


def watched(function: Any) -> Any:
    """A function that computes the same, of ints that remember the variables they are from."""
    match function:
        case partial():
            given = [_marked(f"#{i}", each) for i, each in enumerate(function.args)]
            return partial(watched(function.func), *given, **_each(function.keywords))
        case MethodType():
            return MethodType(watched(function.__func__), _Watched("self", function.__self__))
        case FunctionType():
            return _rebuilt(function)
    call = getattr_static(type(function), "__call__", None)
    if isinstance(call, FunctionType):
        return MethodType(_rebuilt(call), _Watched("self", function))
    return function


def _rebuilt(function: FunctionType) -> FunctionType:
    code, known = function.__code__, function.__globals__
    read = _each({name: known[name] for name in names_in(code) if name in known})
    pairs = zip(code.co_freevars, function.__closure__ or (), strict=True)
    cells = tuple(_cell(name, each) for name, each in pairs)
    made = FunctionType(code, {**known, **read}, function.__name__, None, cells)
    if function.__defaults__:
        names = code.co_varnames[: code.co_argcount][-len(function.__defaults__) :]
        defaults = zip(names, function.__defaults__, strict=True)
        made.__defaults__ = tuple(_marked(name, each) for name, each in defaults)
    made.__kwdefaults__ = _each(function.__kwdefaults__ or {})
    return made


def _cell(name: str, cell: CellType) -> CellType:
    return next((CellType(_marked(name, each)) for each in contents(cell)), cell)


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside of it read beside its own."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)


def _each(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _marked(name, each) for name, each in given.items()}


def _marked(name: str, value: Any) -> Any:
    """A value of the surroundings; what is no data as it is."""
    if isinstance(value, _AS_IT_IS) or callable(value) or _is_ours(value):
        return value
    if isinstance(value, Integral):
        return Told(int(value), name)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_marked(f"{name}.{f}", getattr(value, f)) for f in value._fields))
    if isinstance(value, tuple | list):
        items = [_marked(f"{name}[{i}]", each) for i, each in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _marked(f"{name}[{key!r}]", each) for key, each in value.items()}
    return _Watched(name, value)


def _is_ours(value: object) -> bool:
    """Whether it is a size or a spec, which a call tells."""
    return type(value).__module__.partition(".")[0] == "ferrule"


class _Watched:
    """An object whose numbers are marked: a tensor, an object with fields, what has methods."""

    def __init__(self, name: str, value: Any) -> None:
        self.__dict__["_told"] = name, value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.__dict__["_told"][1])

    def __getattr__(self, key: str) -> Any:
        name, value = self.__dict__["_told"]
        found = getattr(value, key)
        made = _Watched if callable(found) else _marked
        return made(f"{name}.{key}", found)

    def __getitem__(self, key: Any) -> Any:
        name, value = self.__dict__["_told"]
        return _marked(f"{name}[{key!r}]", value[key])

    def __len__(self) -> int:
        return len(self.__dict__["_told"][1])

    def __call__(self, *given: Any, **more: Any) -> Any:
        name, value = self.__dict__["_told"]
        return _marked(f"{name}(…)", value(*given, **more))


def state(function: Any, depth: int = 4) -> Any:
    """What a function's surroundings hold, to compare with what they hold later: closures,
    globals that it reads, its object, and those of functions that it calls."""
    match function:
        case partial():
            return state(function.func, depth), _held([*function.args, function.keywords], depth)
        case MethodType():
            return state(function.__func__, depth), _held(function.__self__, depth)
        case FunctionType():
            return tuple(_held(each, depth - 1) for each in _around(function))
    return _held(getattr(function, "__dict__", None), depth)


def _around(function: FunctionType) -> Iterator[Any]:
    known = function.__globals__
    yield from (known.get(name) for name in dict.fromkeys(names_in(function.__code__)))
    yield from (each for cell in function.__closure__ or () for each in contents(cell))
    yield function.__defaults__
    yield function.__kwdefaults__


def contents(cell: CellType) -> Iterator[Any]:
    """What a cell holds; nothing where nothing has been put into it yet."""
    try:
        yield cell.cell_contents
    except ValueError:
        return


def _held(value: Any, depth: int) -> Any:
    """A value as it is now: what can change is taken apart, anything else is that object."""
    if depth and isinstance(value, FunctionType | MethodType | partial):
        return state(value, depth - 1)
    if depth and isinstance(value, dict):
        return [(key, _held(each, depth - 1)) for key, each in value.items()]
    if depth and isinstance(value, list | tuple | set | frozenset | deque):
        return [_held(each, depth - 1) for each in value]
    if isinstance(value, bool | int | float | str | bytes | bytearray):
        return type(value), bytes(value) if isinstance(value, bytearray) else repr(value)
    if depth and not isinstance(value, type | ModuleType) and hasattr(value, "__dict__"):
        return id(value), _held(vars(value), depth - 1)
    return id(value)


def probed(function: Callable[..., Any], *given: Any) -> Any:
    """What a function gives with its surroundings marked; () where that cannot be told."""
    try:
        return watched(function)(*given)
    except Exception:
        return ()

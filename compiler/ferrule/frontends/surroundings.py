"""A user's function in which the integers that it reads from outside are marked: they show in its
result.

Closures, globals, defaults, arguments of a partial and the object of a method are replaced in a
copy; the function itself is not changed.  The result is only examined for marks, and not used for
anything else.
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


Mark = Callable[[int, str], int]
"""What an outer integer becomes, by its value and its name."""


def watched(function: Any, mark: Mark = Told) -> Any:
    """A function that computes the same from ints that record the variables from which they
    come, or from what another `mark` makes of them."""
    match function:
        case partial():
            given = [_marked(f"#{i}", each, mark) for i, each in enumerate(function.args)]
            inner = watched(function.func, mark)
            return partial(inner, *given, **_each(function.keywords, mark))
        case MethodType():
            object_ = _Watched("self", function.__self__, mark)
            return MethodType(watched(function.__func__, mark), object_)
        case FunctionType():
            return _rebuilt(function, mark)
    call = getattr_static(type(function), "__call__", None)
    if isinstance(call, FunctionType):
        return MethodType(_rebuilt(call, mark), _Watched("self", function, mark))
    return function


def _rebuilt(function: FunctionType, mark: Mark) -> FunctionType:
    code, known = function.__code__, function.__globals__
    read = _each({name: known[name] for name in names_in(code) if name in known}, mark)
    pairs = zip(code.co_freevars, function.__closure__ or (), strict=True)
    cells = tuple(_cell(name, each, mark) for name, each in pairs)
    made = FunctionType(code, {**known, **read}, function.__name__, None, cells)
    if function.__defaults__:
        names = code.co_varnames[: code.co_argcount][-len(function.__defaults__) :]
        defaults = zip(names, function.__defaults__, strict=True)
        made.__defaults__ = tuple(_marked(name, each, mark) for name, each in defaults)
    made.__kwdefaults__ = _each(function.__kwdefaults__ or {}, mark)
    return made


def _cell(name: str, cell: CellType, mark: Mark) -> CellType:
    return next((CellType(_marked(name, each, mark)) for each in contents(cell)), cell)


def names_in(code: CodeType) -> Iterator[str]:
    """The names that a function and the functions nested in it read from outside."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from names_in(each)


def _each(given: Mapping[str, Any], mark: Mark) -> dict[str, Any]:
    return {name: _marked(name, each, mark) for name, each in given.items()}


def _marked(name: str, value: Any, mark: Mark) -> Any:
    """A value from outside with its integers marked; a value that is not data is unchanged."""
    if isinstance(value, _AS_IT_IS) or callable(value) or _is_ours(value):
        return value
    if isinstance(value, Integral):
        return mark(int(value), name)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = ((f"{name}.{each}", getattr(value, each)) for each in value._fields)
        return type(value)(*(_marked(*each, mark) for each in fields))
    if isinstance(value, tuple | list):
        items = [_marked(f"{name}[{i}]", each, mark) for i, each in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: _marked(f"{name}[{key!r}]", each, mark) for key, each in value.items()}
    return _Watched(name, value, mark)


def _is_ours(value: object) -> bool:
    """Whether it is a size or a spec, whose value a call gives."""
    return type(value).__module__.partition(".")[0] == "ferrule"


class _Watched:
    """An object whose integers are marked: a tensor, an object with fields, or one with methods."""

    def __init__(self, name: str, value: Any, mark: Mark) -> None:
        self.__dict__["_told"] = name, value, mark

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.__dict__["_told"][1])

    def __getattr__(self, key: str) -> Any:
        name, value, mark = self.__dict__["_told"]
        found = getattr(value, key)
        made = _Watched if callable(found) else _marked
        return made(f"{name}.{key}", found, mark)

    def __getitem__(self, key: Any) -> Any:
        name, value, mark = self.__dict__["_told"]
        return _marked(f"{name}[{key!r}]", value[key], mark)

    def __len__(self) -> int:
        name, value, mark = self.__dict__["_told"]
        return int(mark(len(value), name))

    def __call__(self, *given: Any, **more: Any) -> Any:
        name, value, mark = self.__dict__["_told"]
        return _marked(f"{name}(…)", value(*given, **more), mark)


def state(function: Any, depth: int = 4) -> Any:
    """A snapshot of the values that a function reads from outside, to compare with a later one:
    closures, globals, its object, and the same for functions that it calls."""
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
    """The contents of a cell; nothing if the cell is still empty."""
    try:
        yield cell.cell_contents
    except ValueError:
        return


def _held(value: Any, depth: int) -> Any:
    """A snapshot of a value: mutable values are taken apart, any other value is the object
    itself."""
    if depth and isinstance(value, FunctionType | MethodType | partial):
        return state(value, depth - 1)
    if depth and isinstance(value, dict):
        return [(key, _held(each, depth - 1)) for key, each in value.items()]
    if depth and isinstance(value, list | tuple | set | frozenset | deque):
        return [_held(each, depth - 1) for each in value]
    if isinstance(value, bool | int | float | str | bytes | bytearray):
        # By `repr`, so that NaN equals itself and 0.0 is not -0.0; with the type, since True == 1.
        return type(value), bytes(value) if isinstance(value, bytearray) else repr(value)
    if depth and not isinstance(value, type | ModuleType) and hasattr(value, "__dict__"):
        return id(value), _held(vars(value), depth - 1)
    return id(value)


def probed(function: Callable[..., Any], *given: Any, mark: Mark = Told) -> Any:
    """The result of a function whose outer integers are marked; () if that is not possible."""
    try:
        return watched(function, mark)(*given)
    except Exception:
        return ()


def moved(value: int, _: str) -> int:
    """Another value of an outer integer: what stays the same with it does not follow from it."""
    return value * 128 + 127

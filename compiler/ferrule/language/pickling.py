"""Pickles of functions that are marked with `@jit` and `@kernel`.

A function of a module is pickled by its name, as Python's functions are.  Any other, of `__main__`,
a notebook or another function, is pickled with the text of its file and the values of its outer
names, so that another process has the same function: its helpers and kernels that have no module
go with it.  Code is made from the text, so the other process may run another version of Python.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ferrule.language.dependencies.edited import codes_of, is_same
from ferrule.language.source import outer_names, read_source, text_of
from ferrule.language.sourcetexts import HELD, text_file
from ferrule.specs.deferred import dataclass

_Mark: TypeAlias = "type[Any] | None"
"""The class of a marked function; None for one without a mark."""

_OWN: Final = ("__main__", "__mp_main__")
"""Modules that another process does not have, or has in a version of its own."""


def reduced(marked: Any) -> str | tuple[Any, ...]:
    """The result of `__reduce__` of a marked function."""
    if _is_importable(marked, marked.function):
        return str(marked.function.__qualname__)
    return _Pack()._reduced(marked.function, type(marked))


def _is_importable(value: Any, function: types.FunctionType) -> bool:
    """Whether another process finds a value by the name of a function."""
    if function.__module__ in _OWN:
        return False
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


@dataclass(frozen=True, slots=True, eq=False)
class _Carrier:
    """A value that is pickled as a call that makes it again."""

    parts: Callable[[], tuple[Any, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        return self.parts()


class _Pack:
    """One pickle: its functions and texts, each of them once."""

    def __init__(self) -> None:
        self._functions: dict[tuple[int, _Mark], _Carrier] = {}
        self._texts: dict[str, str] = {}

    def _reduced(self, function: types.FunctionType, mark: _Mark) -> tuple[Any, ...]:
        code = function.__code__
        source = read_source(function, helper=True)
        text = self._texts.setdefault(code.co_filename, text_of(function))
        names = _names(source.node)
        known = outer_names(function)
        outer = {name: known[name] for name in sorted(names) if name in known}
        outer["__name__"] = function.__module__
        identity = (code.co_name, code.co_firstlineno)
        every = codes_of(text, code.co_filename, *identity)
        place = next(i for i, each in enumerate(every) if is_same(each, code))
        state = {
            "outer": outer,
            "__defaults__": function.__defaults__,
            "__kwdefaults__": function.__kwdefaults__,
            "__annotations__": dict(source.annotations),
            "__qualname__": function.__qualname__,
            "__module__": function.__module__,
            "__dict__": vars(function),
        }
        made = (mark, text, code.co_filename, *identity, place)
        return _made, made, self._packed(state), None, None, _fill

    def _packed(self, value: Any) -> Any:
        """A value with carriers for what Python cannot pickle: modules, and functions without
        one."""
        if isinstance(value, types.ModuleType):
            return _Carrier(lambda: (importlib.import_module, (value.__name__,)))
        if type(value) in (list, tuple):
            return type(value)(map(self._packed, value))
        if type(value) is dict:
            return {self._packed(k): self._packed(v) for k, v in value.items()}
        if type(value) is functools.partial:
            parts = functools.partial, (value.func, *value.args), value.keywords
            return self._call(*map(self._packed, parts))
        mark, function = _mark_of(value)
        if function is None or _is_importable(value, function):
            return value
        return self._functions.setdefault(
            (id(function), mark), _Carrier(lambda: self._reduced(function, mark))
        )

    def _call(self, function: Any, args: Any, kwargs: Any) -> _Carrier:
        return _Carrier(lambda: (_called, (function, args, kwargs)))


def _called(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _mark_of(value: Any) -> tuple[_Mark, types.FunctionType | None]:
    from ferrule.language.marks import JitFunction, KernelFunction

    match value:
        case types.FunctionType():
            return None, value
        case JitFunction() | KernelFunction() if isinstance(value.function, types.FunctionType):
            return type(value), value.function
    return None, None


def _names(node: ast.AST) -> set[str]:
    """The names in a function's text, and in annotations that are strings."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    for text in _annotations(node):
        try:
            found |= _names(ast.parse(text, mode="eval"))
        except SyntaxError:  # the error of the compilation says more
            continue
    return found


def _annotations(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        written = getattr(each, "annotation", None)
        if isinstance(written, ast.Constant) and isinstance(written.value, str):
            yield written.value


def _made(mark: _Mark, text: str, file: str, name: str, line: int, place: int) -> Any:
    """The function of a text, with no values yet; marked, if there is a mark."""
    path, held = text_file(text, file)
    code = codes_of(text, path, name, line)[place]
    names: dict[str, Any] = {HELD: [held]}
    cells = tuple(types.CellType() for _ in code.co_freevars)
    function = types.FunctionType(code, names, name, None, cells)
    return function if mark is None else mark(function)


def _fill(made: Any, state: dict[str, Any]) -> None:
    """Give a function its values."""
    function = made if isinstance(made, types.FunctionType) else made.function
    outer = state.pop("outer")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in outer:
            cell.cell_contents = outer.pop(name)
    function.__globals__.update(outer)
    vars(function).update(state.pop("__dict__"))
    for name, value in state.items():
        setattr(function, name, value)
    if function is not made:
        functools.update_wrapper(made, function)

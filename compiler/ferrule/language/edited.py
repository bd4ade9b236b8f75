"""Whether a function's text is still the one that it was made from.

Python keeps code and no text: a file that was edited and not imported again would be compiled as it
is now, while the function runs as it was.  A decorated function remembers when its file was written
last, any other one when it is read first.  If that is another time now, the file is compiled by
Python, and must have the same code in the same place.  Where this cannot be said (a cell of a
notebook, a module whose loader changes its text), the function passes.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

from ferrule.compiler.errors import CompileError, Diagnostic, Span

_Stamp: TypeAlias = "tuple[int, int]"

_OF_FUNCTIONS: Final[WeakKeyDictionary[types.FunctionType, _Stamp]] = WeakKeyDictionary()
_OF_FILES: Final[dict[str, _Stamp]] = {}
"""When the decorators of a file ran last."""


def remember(function: types.FunctionType) -> None:
    """Called where a function is decorated, which is when its file is imported."""
    stamp = _stamp(function)
    if stamp is not None:
        _OF_FUNCTIONS[function] = _OF_FILES[function.__code__.co_filename] = stamp


def check_unedited(function: types.FunctionType, place: Span, lines: list[str]) -> None:
    """CompileError if the lines of its file are not those that the function was made from."""
    stamp = _stamp(function)
    if stamp is None:
        return
    at_first = _OF_FILES.get(function.__code__.co_filename, stamp)
    if _OF_FUNCTIONS.setdefault(function, at_first) != stamp and not _is_there(function, lines):
        raise CompileError(
            Diagnostic(
                f"{place.file} was edited after {function.__name__} was made from it",
                place,
                expected="the text that the function was made from",
                hint="import the module again: importlib.reload, or a new process",
            )
        )


def _stamp(function: types.FunctionType) -> _Stamp | None:
    """Time and size of the file that a function is in."""
    try:
        found = os.stat(function.__code__.co_filename)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _is_there(function: types.FunctionType, lines: list[str]) -> bool:
    """Whether the code of a function is what Python makes of these lines; True in doubt."""
    own = function.__code__
    if type(function.__globals__.get("__loader__")) is not SourceFileLoader:
        return True
    try:
        module = compile("".join(lines), own.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(
        code.co_firstlineno == own.co_firstlineno and _traits(code) == _traits(own)
        for code in _codes(module)
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and all inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _traits(code: types.CodeType) -> list[object]:
    """What a function does, wherever it stands; 1, 1.0 and True are not the same."""
    return [
        part
        for each in _codes(code)
        for part in (
            each.co_code,
            each.co_names,
            each.co_varnames,
            each.co_freevars,
            [repr(item) for item in each.co_consts if not isinstance(item, types.CodeType)],
        )
    ]

"""Checks that a function's source file still has the text from which Python made the function.

Python keeps the code and not the text: if a file is edited and not imported again, ferrule would
compile the new text while Python runs the old code.  For a decorated function the file's time and
size are recorded at import, for other functions when their source is first read.  If they are
different now, Python compiles the file, which must give the same code at the same place.  If this
cannot be decided (a cell of a notebook, a module whose loader changes its text), the function
passes.
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
"""The time and size of a file when its decorators last ran."""


def remember(function: types.FunctionType) -> None:
    """Called when a function is decorated, at the import of its file."""
    stamp = _stamp(function)
    if stamp is not None:
        _OF_FUNCTIONS[function] = _OF_FILES[function.__code__.co_filename] = stamp


def check_unedited(function: types.FunctionType, place: Span, lines: list[str]) -> None:
    """Raise CompileError if the lines of its file are not those from which the function was
    made."""
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
    """Time and size of the file that contains a function."""
    try:
        found = os.stat(function.__code__.co_filename)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _is_there(function: types.FunctionType, lines: list[str]) -> bool:
    """Whether Python compiles these lines to the code of a function; True in doubt."""
    if type(function.__globals__.get("__loader__")) is not SourceFileLoader:
        return True
    try:
        return is_code_of("".join(lines), function)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


def is_code_of(text: str, function: types.FunctionType) -> bool:
    """Whether Python compiles a text to the code of a function.

    Raises what `compile` raises.
    """
    own = function.__code__
    every = codes_of(text, own.co_filename, own.co_name, own.co_firstlineno)
    return any(is_same(code, own) for code in every)


def codes_of(text: str, file: str, name: str, line: int) -> list[types.CodeType]:
    """The code of the functions of a text that have this name and begin in this line.

    Raises what `compile` raises.
    """
    module = compile(text, file, "exec", dont_inherit=True)
    begin = name, line
    return [code for code in _codes(module) if (code.co_name, code.co_firstlineno) == begin]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and all inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def is_same(code: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same, wherever they stand."""
    return _traits(code) == _traits(other)


def _traits(code: types.CodeType) -> list[object]:
    """The code of a function, independent of its position; 1, 1.0 and True are different."""
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

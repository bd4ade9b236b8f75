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

"""From a Python function to its AST, with the values of its names and the positions of its
lines."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import lru_cache
from importlib.machinery import BYTECODE_SUFFIXES, SOURCE_SUFFIXES
from typing import Any, Final

from ferrule.compiler.artefacts import Location
from ferrule.compiler.errors import CompileError, Diagnostic, Span
from ferrule.language.dependencies.edited import check_unedited, is_code_of
from ferrule.language.dependencies.witness import Outer
from ferrule.language.marks import fast_math_of, fmad_of
from ferrule.language.sourcetexts import lines_of
from ferrule.specs.deferred import dataclass

_LAMBDA: Final = "<lambda>"

_KEEPS_NONE: Final = "exec(), python - and the plain prompt keep no source"

SPLIT: Final = (
    "split long expressions and chains of elif, and write recursion as a loop: one that a value of "
    "the call ends has no end while compiling"
)
"""The hint for code that is nested too deeply."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A function's AST, with the line numbers of its file.

    `outer` has its outer names (closure, globals), `defaults` the parameters' defaults, evaluated
    where the function was defined, and `annotations` the annotations that Python has already
    evaluated.  `lines` begin with `first_line`.  `fast_math`: its flags, see `fastmath`;
    `fmad`: what it says of that.
    """

    name: str
    node: ast.FunctionDef | ast.Lambda
    outer: Mapping[str, Any]
    defaults: Mapping[str, Any]
    file: str
    lines: tuple[str, ...]
    first_line: int
    annotations: Mapping[str, Any] = field(default_factory=dict)
    fast_math: tuple[str, ...] = ()
    fmad: bool | None = None

    def span(self, node: ast.AST) -> Span:
        """The place of a node, cut to its first line."""
        line = getattr(node, "lineno", self.first_line)
        index = line - self.first_line
        text = self.lines[index] if 0 <= index < len(self.lines) else ""
        column = _characters(text, getattr(node, "col_offset", 0))
        same_line = getattr(node, "end_lineno", line) == line
        end = _characters(text, getattr(node, "end_col_offset", None)) if same_line else len(text)
        return Span(self.file, self.name, line, column, end, text)

    def location(self, node: ast.AST) -> Location:
        """The place of a node, for faults."""
        return Location(self.file, self.name, getattr(node, "lineno", self.first_line))

    def nested(
        self,
        node: ast.FunctionDef | ast.Lambda,
        outer: Mapping[str, Any],
        defaults: Mapping[str, Any],
    ) -> Source:
        """A function that is defined inside this one."""
        name = getattr(node, "name", "<lambda>")
        return Source(name, node, outer, defaults, self.file, self.lines, self.first_line)


def _characters(text: str, column: int | None) -> int:
    """A column of the AST, which counts UTF-8 bytes, in characters."""
    if column is None:
        return len(text)
    return len(text.encode()[:column].decode(errors="ignore"))


def read_source(function: Callable[..., Any], *, helper: bool = False) -> Source:
    """The source of a Python function; for a decorated one, of the function that the decorator
    returned.

    Raises CompileError if it is not a Python function, its source cannot be found, or it is a
    coroutine or, unless it is a `helper` of another function, a generator or a lambda.
    """
    if not isinstance(function, types.FunctionType):
        raise CompileError(f"{function!r} is no Python function, so it has no source to compile")
    if helper and function.__code__.co_name == _LAMBDA:
        return _read_lambda(function)
    rest, first_line = _lines(function)
    place = _place(function, rest, first_line)
    refuse_kinds(function, place, helper=helper)
    check_unedited(function, place, _all_lines(function))
    try:
        lines, node = _statement(rest, first_line)
    except SyntaxError:
        raise _no_source(function) from None
    except (RecursionError, MemoryError):  # Python's parser reports deep nesting like this
        raise too_deep(place) from None
    # Python may have other text for a function made by `exec`: since 3.13 that of `python -c`.
    if not isinstance(node, ast.FunctionDef) or node.name != function.__code__.co_name:
        raise _no_source(function)
    return Source(
        function.__name__,
        node,
        Outer(function),
        default_values(function),
        place.file,
        tuple(line.rstrip("\r\n") for line in lines),
        first_line,
        evaluated_annotations(function),
        fast_math_of(function),
        fmad_of(function),
    )


def _read_lambda(function: types.FunctionType) -> Source:
    """A lambda of a module: the one on its line, or the only one there with the same code."""
    lines, first_line = _all_lines(function), function.__code__.co_firstlineno
    place = _place(function, lines[first_line - 1 :], first_line)
    check_unedited(function, place, lines)
    try:
        every = _lambdas("".join(lines))
    except SyntaxError:
        raise _no_source(function) from None
    except (RecursionError, MemoryError):
        raise too_deep(place) from None
    found = [node for node in every if node.lineno == first_line and _may_be(node, function)]
    if len({ast.dump(node) for node in found}) != 1:  # of equal ones it may be any
        wanted = "one lambda in a line" if found else "a lambda as it stands in its file"
        raise CompileError(
            Diagnostic(
                f"a line has {len(found)} lambdas that this one may be",
                place,
                expected=wanted,
                hint="write a def statement",
            )
        )
    return Source(
        function.__name__,
        found[0],
        Outer(function),
        default_values(function),
        place.file,
        tuple(line.rstrip("\r\n") for line in lines[first_line - 1 : found[0].end_lineno]),
        first_line,
    )


@lru_cache(maxsize=4)
def _lambdas(text: str) -> tuple[ast.Lambda, ...]:
    """All lambdas of a file, which a program asks for one after the other: to parse the file takes
    longer than to compile one."""
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda))


def _may_be(node: ast.Lambda, function: types.FunctionType) -> bool:
    """Whether a lambda has the parameters, names, constants and columns of a function.

    The code of its defaults comes before its own.
    """
    outer = compile(ast.Expression(node), _LAMBDA, "eval", dont_inherit=True)
    *_, code = (each for each in outer.co_consts if isinstance(each, types.CodeType))
    return _traits(code) == _traits(function.__code__)


def _traits(code: types.CodeType) -> tuple[object, ...]:
    """The properties of a function's code that depend only on its text.

    Constants are compared as strings: 1, 1.0 and True are different.  Columns exist since Python
    3.11, unless they were disabled.
    """
    plain = [repr(each) for each in code.co_consts if not isinstance(each, types.CodeType)]
    positions: Iterable[tuple[int | None, ...]] = getattr(code, "co_positions", tuple)()
    places = {place for place in positions if None not in place and place[2:] != (0, 0)}
    return code.co_varnames, {*code.co_names, *code.co_freevars}, plain, places


def too_deep(place: Span) -> CompileError:
    """The error for code that is nested deeper than Python's stack."""
    return CompileError(
        Diagnostic("the function is nested too deeply to be compiled", place, hint=SPLIT)
    )


def place_of(function: Callable[..., Any]) -> Span:
    """The place where a function begins, decorators included.  Raises CompileError without one."""
    assert isinstance(function, types.FunctionType)
    return _place(function, *_lines(function))


def definition_of(function: Callable[..., Any]) -> Location:
    """The place of a function's definition, as the errors of its calls show it."""
    place = place_of(function)
    return Location(place.file, function.__name__, place.line)


def _place(function: types.FunctionType, lines: list[str], first_line: int) -> Span:
    file = display_path(_source_file(function.__code__))
    return Span(file, function.__name__, first_line, 0, len(lines[0].rstrip()), lines[0])


def _lines(function: types.FunctionType) -> tuple[list[str], int]:
    """The lines of a file from a function on, decorators included, and the number of the first."""
    first_line = function.__code__.co_firstlineno
    return _all_lines(function)[first_line - 1 :], first_line


def _all_lines(function: types.FunctionType) -> list[str]:
    """The lines of the file of a function, which include its first line.

    `inspect` would find the same, but searches all modules for a file that is not on disk.
    """
    code = function.__code__
    lines = lines_of(code.co_filename)
    if lines is None:
        file = _source_file(code)
        linecache.checkcache(file)
        lines = linecache.getlines(file, function.__globals__) or _of_command_line(function)
    if len(lines) < code.co_firstlineno:
        raise _no_source(function)
    return lines


def text_of(function: types.FunctionType) -> str:
    """The text of the file of a function.  Raises CompileError if there is none."""
    return "".join(_all_lines(function))


def _of_command_line(function: types.FunctionType) -> list[str]:
    """The lines of the text after `python -c`, if the function is one of it.

    Since Python 3.13 `linecache` has them.
    """
    arguments = sys.orig_argv
    if function.__code__.co_filename != "<string>" or "-c" not in arguments[:-1]:
        return []
    text = arguments[arguments.index("-c") + 1]
    return text.splitlines(keepends=True) if is_code_of(text, function) else []


def _source_file(code: types.CodeType) -> str:
    """The file of a function, which may not exist; for bytecode, its source."""
    stem, suffix = os.path.splitext(code.co_filename)
    return stem + SOURCE_SUFFIXES[0] if suffix in BYTECODE_SUFFIXES else code.co_filename


def _no_source(function: types.FunctionType) -> CompileError:
    return CompileError(
        Diagnostic(
            f"the source of {function.__qualname__!r} cannot be found",
            expected="a function that is defined in a file",
            hint=f"{_KEEPS_NONE}: write the function into a module or a notebook, put its text "
            "into linecache, or make it of its text, ferrule.from_source(text)",
        )
    )


def _statement(lines: list[str], first_line: int) -> tuple[list[str], ast.stmt]:
    """The lines of the function at the start of these, and its AST."""
    block = _block(lines)
    try:
        return block, _parse(block, first_line)
    except SyntaxError:  # cut off too early, inside a multi-line string: then by tokens
        block = inspect.getblock(lines)
        return block, _parse(block, first_line)


def _block(lines: list[str]) -> list[str]:
    """The lines of a function by their indentation, which is much faster than by tokens."""
    margin = _margin(lines[0])
    inside, end = False, 0
    for number, line in enumerate(lines):
        text = line.lstrip()
        if text[:1] in _GOES_ON:
            continue
        if _margin(line) <= margin and inside:
            break
        inside = inside or text.startswith(_HEADS)
        end = number
    return lines[: end + 1]


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


_HEADS: Final = ("def ", "async ")
_GOES_ON: Final = ("", "#", ")", "]", "}")
"""Starts of lines that do not end a block at any indentation; "" is an empty line."""


def _parse(lines: list[str], first_line: int) -> ast.stmt:
    """The first statement of these lines, with its indentation and its file's line numbers.

    An indented one is parsed inside an `if`; dedenting the text would change strings in it.
    """
    text = "".join(lines)
    found = _parsed(text, first_line, indented=lines[0][:1].isspace())
    if "match" in text:
        from ferrule.language.matching import has_match, without_match

        if has_match(found):
            rewritten: ast.stmt = without_match(found)
            return rewritten
    return found


def _parsed(text: str, first_line: int, *, indented: bool) -> ast.stmt:
    if not indented:
        return ast.parse("\n" * (first_line - 1) + text).body[0]
    block = ast.parse("\n" * (first_line - 2) + f"if True:\n{text}").body[0]
    assert isinstance(block, ast.If)
    return block.body[0]


def default_values(function: types.FunctionType) -> dict[str, Any]:
    """The defaults of a function's parameters, by name, as evaluated at its definition."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


def evaluated_annotations(function: types.FunctionType) -> dict[str, Any]:
    """The annotations of a function that are not strings."""
    try:
        known = function.__annotations__
    except Exception:  # since Python 3.14 they are evaluated here, and may raise
        return {}
    return {name: value for name, value in known.items() if not isinstance(value, str)}


def is_hashable(value: object) -> bool:
    """Whether it is hashable; unhashable values, such as lists, are not annotations of ours."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def refuse_kinds(function: Callable[..., Any], place: Span, *, helper: bool = False) -> None:
    """Raise CompileError for a function that cannot be compiled: a lambda; a generator that is no
    `helper` of another function."""
    assert isinstance(function, types.FunctionType)
    if function.__code__.co_name == _LAMBDA:
        raise CompileError(
            Diagnostic("a lambda cannot be compiled by itself", place, hint="write a def statement")
        )
    asynchronous = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if function.__code__.co_flags & (asynchronous | (0 if helper else inspect.CO_GENERATOR)):
        raise CompileError(
            Diagnostic(
                f"{function.__qualname__!r} is a generator or a coroutine, "
                f"which cannot be compiled",
                place,
                hint="write results to a tensor, and leave yield and await away",
            )
        )


def is_generator(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function has a `yield` of its own."""
    if isinstance(node, ast.Lambda):
        return False
    todo: list[ast.AST] = list(node.body)
    while todo:
        each = todo.pop()
        if isinstance(each, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(each)
    return False


def outer_names(function: types.FunctionType) -> dict[str, Any]:
    """Globals and closure variables of a function, by name."""
    names = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # a variable that its function has not assigned yet
            names.pop(name, None)
    return names


def display_path(path: str) -> str:
    """A source path in messages: relative to the working directory if it is inside.

    Invalid UTF-8 in it is shown as `\\udcff`: messages are valid text, also in machine code.
    """
    shown = path.encode("utf-8", "backslashreplace").decode()
    try:
        relative = os.path.relpath(shown)
    except (ValueError, OSError):  # another drive; a working directory that was removed
        return shown
    return shown if relative.startswith("..") else relative

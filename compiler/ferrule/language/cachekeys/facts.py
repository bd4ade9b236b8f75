"""Facts about the text of a function: a digest of it, and the names that it can read.

They are the same while the function's code and its file are, so they are made once.  Where a
function has no text (made by `exec`, or edited since), its bytecode is all there is, and the names
in it are taken to be anything: that only adds to a key.
"""

from __future__ import annotations

import ast
import os
import re
import struct
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Final
from weakref import WeakKeyDictionary

from ferrule.compiler.cache.encoding import has_order
from ferrule.compiler.cache.keys import Uncacheable
from ferrule.compiler.errors import CompileError
from ferrule.language.source import Source, read_source
from ferrule.specs.deferred import dataclass

_IMPORTS: Final = ("IMPORT_NAME", "IMPORT_FROM")
READS_ATTRIBUTES: Final = re.compile(r"\{[^{}\s]*\.\w")
"""A text for `format` with a field such as `{0.width}`."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a function's text says.

    `text`: everything of it that code can depend on, but the path of its file.  `names` are
    read from around it, `attributes` are read of anything, `pairs` are attributes of names, and
    `bare` are names that are used in another way than for an attribute.  `formats`: whether it has
    a text for `format` that reads attributes.
    """

    text: bytes
    names: frozenset[str]
    attributes: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    bare: frozenset[str]
    formats: bool


_KNOWN: Final[WeakKeyDictionary[types.FunctionType, tuple[object, ...]]] = WeakKeyDictionary()


def facts_of(function: types.FunctionType) -> Facts:
    """The facts of a function.  Uncacheable if it imports, whose effects nobody knows."""
    stamp = _stamp(function.__code__.co_filename)
    known = _KNOWN.get(function)
    if known is not None and stamp is not None and known[0] is function.__code__:
        if known[1] == stamp and isinstance(known[2], Facts):
            return known[2]
    made = _made(function)
    _KNOWN[function] = function.__code__, stamp, made
    return made


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _made(function: types.FunctionType) -> Facts:
    code = function.__code__
    try:
        source = read_source(function, helper=True)
    except CompileError:
        return _of_code(code)
    found = _Names()
    found.visit_function(source.node)
    _check_imports(found.imports, code)
    local = set(_locals(code))
    known = {name for each in _codes(code) for name in (*each.co_names, *each.co_freevars)}
    names = {name for name in found.names if name not in local or name in known}
    private = frozenset(_mangled(found.names | found.attributes, function, known))
    return Facts(
        b"\n".join(_lines(source)) + b"\0" + code_bytes(code),
        private.union(names, code.co_freevars),
        private.union(found.attributes),
        frozenset(found.pairs),
        frozenset(found.bare),
        any(map(READS_ATTRIBUTES.search, _texts(code))),
    )


def _mangled(names: Iterable[str], function: types.FunctionType, known: set[str]) -> Iterator[str]:
    """What Python makes of private names, `__x`, in the body of a class: `_Class__x`."""
    private = [name for name in names if name[:2] == "__" != name[-2:]]
    if not private:
        return
    classes = {part.lstrip("_") for part in function.__qualname__.split(".")}
    yield from (f"_{each}{name}" for each in classes for name in private)
    yield from (each for each in known if each[:1] == "_" and each.endswith(tuple(private)))


def _texts(code: types.CodeType) -> Iterator[str]:
    for each in _codes(code):
        yield from (found for found in each.co_consts if type(found) is str)


def _lines(source: Source) -> Iterator[bytes]:
    yield str(source.first_line).encode()
    for line in source.lines:
        yield line.encode("utf-8", "surrogatepass")


def _of_code(code: types.CodeType) -> Facts:
    """The facts of bytecode without a text."""
    _check_imports(False, code)
    names = {name for each in _codes(code) for name in (*each.co_names, *each.co_freevars)}
    every = frozenset(names)
    formats = any(map(READS_ATTRIBUTES.search, _texts(code)))
    text = b"%d\0" % code.co_firstlineno + code_bytes(code)
    return Facts(text, every, every, frozenset(), every, formats)


def _check_imports(found: bool, code: types.CodeType) -> None:
    if not found:
        from opcode import opmap

        imports = [opmap[name] for name in _IMPORTS]
        found = any(each.co_code[::2].count(bytes([op])) for each in _codes(code) for op in imports)
    if found:
        raise Uncacheable(f"{code.co_name} imports something when it runs")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object, and all inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _locals(code: types.CodeType) -> Iterator[str]:
    for each in _codes(code):
        yield from each.co_varnames
        yield from each.co_cellvars


def code_bytes(code: types.CodeType) -> bytes:
    """Everything of a code object that tells what it does, without its place in a file."""
    own: tuple[object, ...] = (
        code.co_name,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        getattr(code, "co_exceptiontable", b""),
        [_constant(each) for each in code.co_consts],
    )
    return repr(own).encode("utf-8", "surrogatepass")


def _constant(value: object) -> object:
    if isinstance(value, types.CodeType):
        return code_bytes(value)
    if isinstance(value, frozenset):
        inner = [repr(_constant(each)) for each in value]
        return "frozenset", inner if has_order(value) else sorted(inner)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    if type(value) is int:
        return "int", hex(value)  # Python limits the decimal digits that it writes
    if type(value) is float:
        return "float", struct.pack("<d", value)  # with the sign of a NaN
    return value


class _Names:
    """Collects names and attributes of a syntax tree."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.bare: set[str] = set()
        self.imports = False

    def visit_function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """What runs when the function is called or compiled: not its decorators and defaults."""
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        self._annotations(each.annotation for each in every)
        if isinstance(node, ast.Lambda):
            self._visit(node.body)
            return
        self._annotations([node.returns])
        for statement in node.body:
            self._visit(statement)

    def _annotations(self, nodes: Iterable[ast.expr | None]) -> None:
        """Names in annotations, also in those that are strings."""
        for node in nodes:
            if node is None:
                continue
            self._visit(node)
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    self._text(each.value)

    def _text(self, text: str) -> None:
        try:
            node = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        if not isinstance(node, ast.Constant):
            self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        todo = [node]
        while todo:
            each = todo.pop()
            kind = type(each)
            if kind is ast.Name:
                self.names.add(each.id)  # type: ignore[attr-defined]
                self.bare.add(each.id)  # type: ignore[attr-defined]
                continue
            if kind is ast.Attribute:
                self.attributes.add(each.attr)  # type: ignore[attr-defined]
                if isinstance(each.value, ast.Name):  # type: ignore[attr-defined]
                    self.names.add(each.value.id)  # type: ignore[attr-defined]
                    self.pairs.add((each.value.id, each.attr))  # type: ignore[attr-defined]
                    continue
            elif kind is ast.MatchClass:
                self.attributes.update(each.kwd_attrs)  # type: ignore[attr-defined]
            elif kind is ast.Import or kind is ast.ImportFrom:
                self.imports = True
            elif kind is ast.AnnAssign:
                self._annotations([each.annotation])  # type: ignore[attr-defined]
            elif kind is ast.arg:
                self._annotations([each.annotation])  # type: ignore[attr-defined]
            for name in each._fields:
                value = getattr(each, name, None)
                if isinstance(value, ast.AST):
                    todo.append(value)
                elif isinstance(value, list):
                    todo += [item for item in value if isinstance(item, ast.AST)]


def is_optimized() -> bool:
    """Whether Python drops parts of functions, `assert`, whose names are then not known."""
    return bool(sys.flags.optimize)

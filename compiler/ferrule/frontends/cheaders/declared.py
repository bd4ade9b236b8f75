"""The functions that a C header declares, with the types of their parameters.

The installed C compiler resolves the header's macros and includes, pycparser reads the rest.  A
text that has nothing to resolve needs no compiler.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.spelledtypes import DTYPES
from ferrule.frontends.cheaders.enums import dtype_of, enum_dtypes
from ferrule.frontends.cheaders.pieces import Read, read_pieces
from ferrule.frontends.packages import load
from ferrule.frontends.sources import Source, SourceLike, hint_for_headers, is_text, read_source
from ferrule.specs.deferred import dataclass

_STANDARD: Final = "#include <stddef.h>\n#include <stdint.h>\n#include <stdbool.h>\n"
_DIRECTIVE: Final = re.compile(r"^\s*#", re.MULTILINE)
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WITHOUT: Final = tuple(
    f"-D{each}"
    for each in (
        *("__attribute__(x)=", "__asm__(x)=", "__asm(x)=", "__extension__=", "__inline=inline"),
        *("__inline__=inline", "__restrict=restrict", "__restrict__=restrict", "__const=const"),
        *("__signed__=signed", "__volatile__=volatile"),
    )
)
"""Macros that remove from a header what the C standard does not have."""

_OTHERS: Final = "".join(
    f"typedef struct ferrule_{each.strip('_')} {each};\n"
    for each in ("__builtin_va_list", "__float128", "_Float128", "_Float64x")
)
"""Declares the compiler's own types, which are passed by value to nothing."""

_SIZES: Final = "".join(
    f"typedef {kind} {name};\n"
    for name, kind in {
        **{f"int{bits}_t": f"{kind}" for bits, kind in ((8, "signed char"), (16, "short"))},
        **{f"uint{bits}_t": f"unsigned {kind}" for bits, kind in ((8, "char"), (16, "short"))},
        "int32_t": "int",
        "uint32_t": "unsigned",
        "int64_t": "long",
        "bool": "_Bool",
        **dict.fromkeys(("uint64_t", "size_t", "uintptr_t"), "unsigned long"),
        **dict.fromkeys(("intptr_t", "ptrdiff_t", "ssize_t"), "long"),
    }.items()
)
"""The types of C's own headers, for a text without a compiler."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number with this dtype; `enum` is the type in C's words if it is an enum."""

    dtype: str
    enum: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """An array, the element of another one: `double[2]`; its length is a number, or the name of a
    parameter."""

    of: Kind
    length: int | str


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer; `length` is what `T x[length]` says: a number, or the name of a parameter."""

    to: Kind
    is_const: bool
    length: int | str | None = None
    text: str = field(default="void*", compare=False)
    """The pointer in C's words."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that no dtype is: a struct, a union, void; `is_number` if it is a number
    that no dtype is, or an array of such a length."""

    text: str
    is_number: bool = False


HINT_FOR_WORDS: Final = "defines={…} replaces a word that is not C's own: {'API(x)': 'x'}"


@dataclass(frozen=True, slots=True)
class Called:
    """A function that C calls: what it takes, and what it returns."""

    parameters: tuple[Kind, ...]
    result: Kind
    is_open: bool


_NAMELESS: Final = (Opaque("struct"), Opaque("union"))
_ANY_ARRAY: Final = Opaque("an array", is_number=True)
"""An array whose length is no number and no name."""

Kind: TypeAlias = "Number | Row | Address | Opaque | Called"


@dataclass(frozen=True, slots=True)
class Declared:
    """A function: its parameters by name, its result; `is_open` if it has `...`, or does not
    declare what it takes."""

    name: str
    parameters: Mapping[str, Kind]
    result: Kind
    is_open: bool


@dataclass(frozen=True, slots=True)
class Header:
    """The functions of a header, and a source that declares them, for the compiler."""

    name: str
    functions: Mapping[str, Declared]
    source: Source | None
    """None if the header was read without a compiler."""
    others: Mapping[str, Declared]
    """The functions of the headers that it includes."""
    odd: Mapping[str, str]
    """Why functions of the header cannot be read, by name."""
    others_odd: Mapping[str, str]
    """The same of the headers that it includes."""


def read_header(header: SourceLike, command: Sequence[str] | None, search: Sequence[str]) -> Header:
    """The functions of a header.

    `command` are the words of the C compiler, None if there is none; `search` are those for folders
    and macros.  Raises CompileError for a header that the compiler or pycparser rejects, and for
    one with directives if there is no compiler; OSError and ValueError as `read_source` does;
    ImportError without pycparser.
    """
    name, source = _included(header)
    if command is None:
        return _read_plain(name, source)
    text = _preprocessed(name, source, command, search)
    read = _parsed(_OTHERS + text, name)
    found = _Functions(read.trees)
    own: dict[str, Declared] = {}
    others: dict[str, Declared] = {}
    for node in read.trees:
        declared = found.declared(node)
        if declared is not None:
            mine = _is_of(name, str(node.coord.file))
            (own if mine else others)[declared.name] = declared
    odd: tuple[dict[str, str], dict[str, str]] = {}, {}
    for function, (reason, file) in read.odd.items():
        odd[not _is_of(name, file)][function] = reason
    return Header(name, own, source, others, *odd)


def _included(header: SourceLike) -> tuple[str, Source]:
    """The name of the header in line markers, and a source that includes it."""
    if is_text(header):
        text = f'{_STANDARD}#line 1 "header.h"\n{header}\n'
        return "header.h", Source(text, "header.h")
    name = os.fspath(header)
    if isinstance(name, str) and name and not os.path.isabs(name) and not Path(name).exists():
        return name, Source(f"{_STANDARD}#include <{name}>\n", name)
    read = read_source(header, "header.h")
    path = str(Path(read.name).resolve())
    return path, Source(f'{_STANDARD}#include "{path}"\n', path, read.folder)


def _is_of(name: str, file: str) -> bool:
    """Whether a line marker names this header; one of the search path has its folder in it."""
    return file == name or (not name.startswith("/") and file.endswith(f"/{name}"))


def _preprocessed(name: str, source: Source, command: Sequence[str], search: Sequence[str]) -> str:
    words = [*command, "-E", *_WITHOUT, *search, "-x", "c", "-"]
    done = subprocess.run(words, input=source.data, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    said = done.stderr.decode("utf-8", "replace").strip()
    message = f"the C compiler cannot read the header {name}:\n{said}"
    raise CompileError(Diagnostic(message, hint=hint_for_headers(said)))


def _read_plain(name: str, source: Source) -> Header:
    """The functions of a text without directives."""
    text = source.text.removeprefix(_STANDARD).removeprefix('#line 1 "header.h"\n')
    if source.folder is not None:
        text = Path(name).read_text(errors="replace")
    text = _COMMENT.sub(" ", text)
    if _DIRECTIVE.search(text):
        raise CompileError(
            Diagnostic(
                f"the header {name} has directives (#include, #define …), which a C compiler "
                "resolves, and there is none",
                hint="install clang or gcc, or hand over the text of the declarations alone",
            )
        )
    read = _parsed(_SIZES + _OTHERS + text, name)
    found = _Functions(read.trees)
    listed = [each for each in map(found.declared, read.trees) if each is not None]
    odd = {function: reason for function, (reason, _) in read.odd.items()}
    return Header(name, {each.name: each for each in listed}, None, {}, odd, {})


def _parsed(text: str, name: str) -> Read:
    """The declarations.  Raises CompileError for a header of which no function can be read."""
    parser = load("pycparser.c_parser", "c", "c")
    try:
        return Read(parser.CParser().parse(text, name).ext)
    except parser.ParseError as error:
        read, message = read_pieces(text, name, parser), str(error)
    if any(type(getattr(each, "type", None)).__name__ == "FuncDecl" for each in read.trees):
        return read
    raise CompileError(
        Diagnostic(f"the header {name} cannot be read: {message}", hint=HINT_FOR_WORDS)
    )


class _Functions:
    """Reads declarations of a syntax tree, whose typedefs and enums it knows."""

    def __init__(self, nodes: list[Any]) -> None:
        self._typedefs = {
            each.name: each.type for each in nodes if type(each).__name__ == "Typedef"
        }
        self._enums = enum_dtypes(nodes)

    def declared(self, node: Any) -> Declared | None:
        """The function that a node declares; None for anything else, and for static ones."""
        if type(node).__name__ == "FuncDef":
            node = node.decl
        kind: Any = getattr(node, "type", None)
        is_function = type(node).__name__ == "Decl" and type(kind).__name__ == "FuncDecl"
        if not is_function or "static" in node.storage or node.name is None:
            return None
        parameters, is_open = self._parameters(kind)
        return Declared(node.name, parameters, self._kind(kind.type)[0], is_open)

    def _parameters(self, function: Any) -> tuple[dict[str, Kind], bool]:
        """The parameters of a function by name, and whether there are others."""
        listed = [] if function.args is None else function.args.params
        is_open = function.args is None
        parameters: dict[str, Kind] = {}
        for i, each in enumerate(listed):
            if type(each).__name__ == "EllipsisParam" or type(each).__name__ == "ID":
                is_open = True
                continue
            found = self._parameter(each.type)
            if found != Opaque("void"):
                parameters[each.name or f"arg{i}"] = found
        return parameters, is_open

    def _parameter(self, node: Any) -> Kind:
        """The type of a parameter: arrays and functions are addresses there."""
        found, _ = self._kind(node)
        if isinstance(found, Row) or found == _ANY_ARRAY:
            inner = self._resolved(node)
            kind, is_const = self._kind(inner.type)
            length = None if isinstance(found, Opaque) else found.length or None
            return Address(kind, is_const, length, f"{_spelled(inner.type)}*")
        return Address(found, False) if isinstance(found, Called) else found

    def _resolved(self, node: Any) -> Any:
        """The type behind typedefs."""
        while type(node).__name__ == "TypeDecl":
            names: Sequence[str] = getattr(node.type, "names", ())
            if len(names) != 1 or names[0] not in self._typedefs:
                return node
            node = self._typedefs[names[0]]
        return node

    def _kind(self, node: Any) -> tuple[Kind, bool]:
        """A type, and whether it is const."""
        match type(node).__name__:
            case "TypeDecl":
                kind, is_const = self._kind(node.type)
                return kind, is_const or "const" in (node.quals or ())
            case "PtrDecl":
                kind, is_const = self._kind(node.type)
                found = Address(kind, is_const, text=f"{_spelled(node.type)}*")
                return found, "const" in (node.quals or ())
            case "ArrayDecl":
                kind, is_const = self._kind(node.type)
                length = _length(node.dim)
                return (_ANY_ARRAY if length is None else Row(kind, length)), is_const
            case "FuncDecl":
                parameters, is_open = self._parameters(node)
                result, _ = self._kind(node.type)
                return Called(tuple(parameters.values()), result, is_open), False
            case "Enum":
                dtype = dtype_of(node) if node.values else self._enums.get(node.name, "int32")
                return Number(dtype, f"enum {node.name}" if node.name else "int"), False
            case "Struct" | "Union" as word:
                return Opaque(f"{word.lower()} {node.name or ''}".strip()), False
            case "Typename":
                return self._kind(node.type)
            case _:
                return self._named(node)

    def _named(self, node: Any) -> tuple[Kind, bool]:
        names = tuple(getattr(node, "names", ()))
        if len(names) == 1 and names[0] in self._typedefs:
            kind, is_const = self._kind(self._typedefs[names[0]])
            # A struct or enum without a name of its own has that of its typedef.
            if isinstance(kind, Number) and kind.enum == "int":
                kind = Number(kind.dtype, names[0])
            return Opaque(names[0]) if kind in _NAMELESS else kind, is_const
        text = _in_order(names)
        if text in DTYPES:
            return Number(DTYPES[text]), False
        return Opaque(text, is_number=text != "void"), False


def _spelled(node: Any) -> str:
    """A type in C's words; `void` for those that no pointer to pointers needs."""
    quals = " ".join(getattr(node, "quals", None) or ())
    match type(node).__name__:
        case "PtrDecl":
            return f"{_spelled(node.type)}* {quals}".strip()
        case "TypeDecl":
            return f"{quals} {_spelled(node.type)}".strip()
        case "IdentifierType":
            return " ".join(node.names)
        case "Struct" | "Union" | "Enum" as word if node.name:
            return f"{word.lower()} {node.name}"
        case _:
            return "void"


def _length(node: Any) -> int | str | None:
    """The length of an array, if it is written as a number or a name."""
    name = getattr(node, "name", None)
    if isinstance(name, str):
        return name
    value = getattr(node, "value", None)
    text = value.rstrip("uUlL") if isinstance(value, str) else ""
    return int(text) if text.isdigit() else None


def _in_order(names: Sequence[str]) -> str:
    """The words of a type in the order of C's own list: "long unsigned int" is "unsigned long"."""
    words = list(names)
    if "_Complex" in words:
        words.remove("_Complex")
        return " ".join(["_Complex", *words])
    if {"double", "float"} & {*words} or words in (["void"], ["int"]):
        return " ".join(words)
    signs = [each for each in words if each == "unsigned"]
    if "char" in words:
        signs = [each for each in words if each in ("unsigned", "signed")]
    sizes = [each for each in words if each not in ("int", "unsigned", "signed")]
    known = {"int", "unsigned", "signed"}
    rest = sizes or (["int"] if known & {*words} else [])
    return " ".join([*signs, *rest])

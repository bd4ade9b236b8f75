"""Facts about kernels from their source: types, `__restrict__`, the variables that they use.

The mangled symbol of a C++ function contains the types of its parameters.  For an `extern "C"`
kernel, and for symbols that cannot be read, the compiler is asked; it is also asked for facts that
only it knows: the members of structs and the alignment of types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ferrule.compiler.cuda.kernelfacts import KernelFacts, Member
from ferrule.compiler.mangled import spoken_name
from ferrule.compiler.mangledtypes import parameter_types
from ferrule.compiler.spelledtypes import Spelled, natural_alignment, read_type, split_list
from ferrule.frontends.cuda.queries import Ask, Struct, ask_alignments, ask_members, ask_types
from ferrule.frontends.cuda.requests import Made, Request

_SKIPPED: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*)$", re.MULTILINE)
_SCOPES: Final = re.compile(
    r'\b(?:inline\s+)?namespace\b(?P<namespace>[\w:\s]*)\{|\bextern\s*""(?P<extern>\s*)\{'
    r"|(?P<declared>\w+)\s*\(|[{}]"
)
"""Matches the start of a namespace, of an `extern "C"` block or of another block, a function, and
the end of a block."""
_ALIGNS: Final = re.compile(r"align|\bpack", re.IGNORECASE)
_OWN_HEADER: Final = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"", re.MULTILINE)
_SPLICED: Final = re.compile(r"\\\r?\n")
_DEFINED: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([\w\s,.]*)\))?", re.MULTILINE)
_GLOBAL: Final = re.compile(r"\b__global__\b")
_PASTED: Final = re.compile(r"\w+(?:\s*##\s*\w+)*$")
_RESTRICT: Final = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_USING: Final = re.compile(r"\busing\s+(\w+)\s*=([^;{}]*);")
_TYPEDEF: Final = re.compile(r"\btypedef\b([^;{}]*?)\b(\w+)\s*;")
_WORD: Final = re.compile(r"\w+")
_CALLED: Final = re.compile(r"(?<=[\s*&>])\w+\s*$")
_BEHIND: Final = re.compile(r"\s*\{")


def facts_of(
    request: Request, made: Made, kernels: Sequence[str], ask: Ask
) -> tuple[KernelFacts, ...]:
    """The facts about the kernels with these symbols; `ask` compiles a request that shows them."""
    from ferrule.compiler.cuda.binaries.ptx_text import facts_of_ptx

    types, written = _types(request, made, kernels, ask)
    members = _members(request, [each for listed in types.values() for each in listed or ()], ask)
    pointers = dict.fromkeys(
        each for listed in written.values() for each in listed if _is_asked(read_type(each))
    )
    found, structs = ask_alignments(request, [*pointers], members, ask)
    aligned = dict.fromkeys(pointers, 0) | found
    text = _text(request)
    known = {each.kernel: each for each in facts_of_ptx(made.ptx)} if made.ptx else {}
    return tuple(
        replace(
            known.get(symbol, KernelFacts(symbol)),
            types=types[symbol],
            members=tuple(_of_struct(text, structs.get(each)) for each in types[symbol] or ()),
            aligned=tuple(aligned.get(each, 1) for each in written[symbol]),
            restricted=restricted(request, symbol, types[symbol]),
            is_read=True,
        )
        for symbol in kernels
    )


def _types(
    request: Request, made: Made, kernels: Sequence[str], ask: Ask
) -> tuple[dict[str, tuple[str, ...] | None], dict[str, tuple[str, ...]]]:
    """The types of each kernel's parameters, None for a kernel whose types are not known; and the
    types as written, with typedefs, where a typedef may change the alignment."""
    expressions = {symbol: name for name, symbol in made.names.items()}
    types = {symbol: parameter_types(symbol) for symbol in kernels}
    text = _text(request)
    asked = [symbol for symbol, found in types.items() if found is None or _says_more(text, found)]
    names = [expressions.get(symbol, scoped(text, spoken_name(symbol))) for symbol in asked]
    shown = ask_types(request, names, ask)
    written = {symbol: found or () for symbol, found in types.items()}
    for i, symbol in enumerate(asked):
        own, plain = shown.get(i, ((), None))
        known = types[symbol]
        if known is None:
            types[symbol] = plain
        if known is None or len(own) == len(known):
            written[symbol] = own
    return types, written


def _says_more(text: str, types: Sequence[str]) -> bool:
    """Whether parameters of these types may have another alignment than the names of the types
    imply."""
    reads = (read_type(each) for each in types)
    is_named = bool(_ALIGNS.search(text) or _OWN_HEADER.search(text))
    return is_named and any("*" in each for each in types) or any(map(_is_asked, reads))


def _is_asked(pointer: Spelled) -> bool:
    """Whether the memory behind a pointer may have another alignment than the name of its type
    implies."""
    is_plain = pointer.name in ("void", "char") or natural_alignment(pointer) > 1
    is_byte = pointer.dtype is not None
    return pointer.stars == 1 and not pointer.is_function and not (is_plain or is_byte)


def _members(request: Request, types: Sequence[str], ask: Ask) -> dict[str, tuple[str, ...]]:
    """The types of the members of the structs among the parameters' types."""
    reads = {each: read_type(each) for each in types}
    structs = [each for each, kind in reads.items() if not kind.stars and kind.dtype is None]
    return ask_members(request, structs, ask) if structs else {}


def _of_struct(text: str, struct: Struct | None) -> tuple[Member, ...] | None:
    """The members of a struct; None if their offsets may differ from those that their types
    imply."""
    if struct is None or not (struct.is_whole or not _ALIGNS.search(text)):
        return None
    return struct.members


def scoped(text: str, name: str) -> str:
    """The name of a function, qualified by the namespaces around its declaration, which the symbol
    of an `extern "C"` function lacks; the name itself if no such function is found outside a
    class."""
    around: list[str | None] = []
    for found in _SCOPES.finditer(text):
        opened = found["namespace"] if found["extern"] is None else ""
        if found["declared"] is not None:
            if found["declared"] == name and None not in around:
                return "::".join([*filter(None, around), name])
        elif found[0] == "}":
            del around[-1:]
        else:
            around.append(None if opened is None else opened.strip())
    return name


# ---- __restrict__ ----


def restricted(
    request: Request, symbol: str, types: Sequence[str] | None
) -> tuple[bool, ...] | None:
    """For each parameter of a kernel whether the source declares it `__restrict__`; None if no
    definition is found.  If there are several definitions, all are combined; if none has the
    kernel's name, all kernels whose names are made by macros are."""
    if types is None:
        return None
    text = _text(request)
    names = standing_for(_RESTRICT, request, text)
    name = spoken_name(symbol).partition("<")[0].rpartition("::")[2]
    for listed in (_definitions(text, name), _named_by_macros(request, text)):
        found = [
            tuple(_is_restricted(each, names) for each in declared)
            for declared in listed
            if len(declared) == len(types)
        ]
        if found:
            return tuple(map(any, zip(*found, strict=True))) if types else ()
    return None


def _text(request: Request) -> str:
    """The source without comments and without the contents of string literals, with continued lines
    joined."""
    text = _SPLICED.sub(" ", request.source.text)
    return _SKIPPED.sub(lambda found: '""' if found[0][0] == '"' else " ", text)


def standing_for(words: re.Pattern[str], request: Request, text: str) -> frozenset[str]:
    """The names of macros and types that stand for one of the words, directly or through one
    another."""
    said = [*_MACRO.findall(text), *_USING.findall(text)]
    said += [(name, value) for value, name in _TYPEDEF.findall(text)]
    said += [
        word.removeprefix("-D").partition("=")[::2]
        for word in request.search
        if word.startswith("-D")
    ]
    names: frozenset[str] = frozenset()
    while found := {name for name, value in said if _says(words, value, names)} - names:
        names |= found
    return names


def _says(words: re.Pattern[str], text: str, names: frozenset[str]) -> bool:
    return bool(words.search(text) or names & set(_WORD.findall(text)))


def _is_restricted(declaration: str, names: frozenset[str]) -> bool:
    """Whether a parameter is restrict; the parameter's own name is ignored."""
    said = _CALLED.sub(" ", declaration)
    return bool(_RESTRICT.search(declaration)) or _says(_RESTRICT, said, names)


def _definitions(text: str, name: str) -> Iterator[list[str]]:
    """The parameters of each definition of a function of this name, as written."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        end = _closing(text, found.end() - 1)
        if end and _BEHIND.match(text, end):
            yield _listed(text[found.end() : end - 1])


def _named_by_macros(request: Request, text: str) -> Iterator[list[str]]:
    """The parameters of each kernel whose name is a macro, is pasted together by a macro, or is an
    argument of a macro."""
    words = (_GLOBAL.pattern, *map(re.escape, standing_for(_GLOBAL, request, text)))
    made = {each for found in _DEFINED.findall(text) for part in found for each in part.split(",")}
    names = frozenset(each.strip() for each in made)
    for found in re.finditer(rf"\b(?:{'|'.join(words)})\b", text):
        line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        ends = "{};\n" if _DEFINED.match(line) else "{};"
        before, start, end = _last_list(text, found.end(), ends)
        word = _PASTED.search(before)
        if end and (before.endswith(")") or word is not None and _is_made(word[0], names)):
            yield _listed(text[start + 1 : end - 1])


def _is_made(name: str, names: frozenset[str]) -> bool:
    return "#" in name or name in names


def _last_list(text: str, at: int, ends: str) -> tuple[str, int, int]:
    """The last parenthesised list before the body of the declaration that begins at `at`, or before
    the end of the line if the newline is one of `ends`: the text before the list, and the list's
    start and end; "", 0, 0 if there is none or no body."""
    begin, start, end = at, 0, 0
    while at < len(text) and text[at] not in ends:
        if text[at] == "(":
            start, end = at, _closing(text, at)
            at = end or len(text)
        else:
            at += 1
    is_body = at < len(text) and text[at] in "{\n"
    return (text[begin:start].rstrip(), start, end) if is_body and end else ("", 0, 0)


def _closing(text: str, at: int) -> int:
    """The position after the parenthesis that closes the one at `at`; 0 if it is not closed."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place + 1
    return 0


def _listed(inner: str) -> list[str]:
    """The parameters in the text between parentheses, as written."""
    return list(split_list(inner.strip())) if inner.strip() not in ("", "void") else []

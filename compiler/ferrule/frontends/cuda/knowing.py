"""What the source of kernels says of them: types, `__restrict__`, the variables that they use.

The symbol of a C++ function says the types of its parameters.  For one that is `extern "C"`, and
for what is not read of symbols, the compiler is asked: behind the source the size is taken of a
type that has none, which is an error that shows the kernel's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from ferrule.compiler.cuda.code import KernelFacts
from ferrule.compiler.errors import CompileError
from ferrule.compiler.mangled import spoken_name
from ferrule.compiler.mangledtypes import parameter_types
from ferrule.compiler.spelledtypes import parameter_list, split_list
from ferrule.frontends.cuda.requests import Made, Request
from ferrule.frontends.cuda.structs import members_of
from ferrule.frontends.sources import Source

_FILE: Final = "ferrule_types"
_ASKED: Final = "ferrule_type"
_SHOWN: Final = re.compile(rf'^{_FILE}\((\d+)\).*?"{_ASKED}<(.*)>"', re.MULTILINE)
_SKIPPED: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_MACRO: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*)$", re.MULTILINE)
_SCOPES: Final = re.compile(
    r'\b(?:inline\s+)?namespace\b(?P<namespace>[\w:\s]*)\{|\bextern\s*""(?P<extern>\s*)\{'
    r"|(?P<declared>\w+)\s*\(|[{}]"
)
"""Where a namespace, a block of `extern "C"` or another block begins, a function, and an end."""
_RESTRICT: Final = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_USING: Final = re.compile(r"\busing\s+(\w+)\s*=([^;{}]*);")
_TYPEDEF: Final = re.compile(r"\btypedef\b([^;{}]*?)\b(\w+)\s*;")
_WORD: Final = re.compile(r"\w+")
_CALLED: Final = re.compile(r"(?<=[\s*&>])\w+\s*$")
_BEHIND: Final = re.compile(r"\s*\{")


def facts_of(
    request: Request,
    made: Made,
    kernels: Sequence[str],
    ask: Callable[[Request], object],
) -> tuple[KernelFacts, ...]:
    """What is known of the kernels with these symbols; `ask` compiles a request for this."""
    from ferrule.compiler.cuda.ptxtext import facts_of_ptx

    expressions = {symbol: name for name, symbol in made.names.items()}
    types = {symbol: parameter_types(symbol) for symbol in kernels}
    unknown = [symbol for symbol, found in types.items() if found is None]
    text = _text(request)
    names = [expressions.get(symbol, scoped(text, spoken_name(symbol))) for symbol in unknown]
    shown = _shown(request, names, ask) if unknown else {}
    types |= {symbol: shown.get(i) for i, symbol in enumerate(unknown)}
    known = {each.kernel: each for each in facts_of_ptx(made.ptx)} if made.ptx else {}
    return tuple(
        replace(
            known.get(symbol, KernelFacts(symbol)),
            types=types[symbol],
            members=tuple(members_of(text, each) for each in types[symbol] or ()),
            restricted=restricted(request, symbol, types[symbol]),
        )
        for symbol in kernels
    )


def scoped(text: str, name: str) -> str:
    """A name with the namespaces around the function that is declared so, as `extern "C"` has a
    name without them; as it is where no such function is found outside of a class."""
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


def _shown(
    request: Request, names: Sequence[str], ask: Callable[[Request], object]
) -> dict[int, tuple[str, ...]]:
    """The types of the parameters of kernels with these names, by their positions."""
    lines = [f'#line 1 "{_FILE}"', f"template <class> struct {_ASKED};"]
    lines += [f'static_assert(sizeof({_ASKED}<decltype(&{name})>), "");' for name in names]
    source = request.source
    text = "\n".join([source.text, *lines, ""])
    asked = replace(request, source=Source(text, source.name, source.folder), kernels=())
    try:
        ask(asked)
    except CompileError as error:
        found = _SHOWN.findall(str(error))
        listed = {int(line) - 2: parameter_list(kind) for line, kind in found}
        return {at: () if types is None else types for at, types in listed.items()}
    return {}


# ---- __restrict__ ----


def restricted(
    request: Request, symbol: str, types: Sequence[str] | None
) -> tuple[bool, ...] | None:
    """Of each parameter of a kernel whether the source declares it `__restrict__`; None where its
    definition is not found.  Of several definitions all are taken together."""
    if types is None:
        return None
    text = _text(request)
    names = _standing_for_restrict(request, text)
    name = spoken_name(symbol).partition("<")[0].rpartition("::")[2]
    found = [
        tuple(_is_restricted(each, names) for each in listed)
        for listed in _definitions(text, name)
        if len(listed) == len(types)
    ]
    if not found:
        return None
    return tuple(map(any, zip(*found, strict=True))) if types else ()


def _text(request: Request) -> str:
    """The source without its comments and what is in its texts."""
    return _SKIPPED.sub(lambda found: '""' if found[0][0] == '"' else " ", request.source.text)


def _standing_for_restrict(request: Request, text: str) -> frozenset[str]:
    """The names of macros and types that stand for `__restrict__`, by others of them too."""
    said = [*_MACRO.findall(text), *_USING.findall(text)]
    said += [(name, value) for value, name in _TYPEDEF.findall(text)]
    said += [
        word.removeprefix("-D").partition("=")[::2]
        for word in request.search
        if word.startswith("-D")
    ]
    names: frozenset[str] = frozenset()
    while found := {name for name, value in said if _says(value, names)} - names:
        names |= found
    return names


def _says(text: str, names: frozenset[str]) -> bool:
    return bool(_RESTRICT.search(text) or names & set(_WORD.findall(text)))


def _is_restricted(declaration: str, names: frozenset[str]) -> bool:
    """Whether a parameter is restrict; what it is called itself says nothing."""
    return bool(_RESTRICT.search(declaration)) or _says(_CALLED.sub(" ", declaration), names)


def _definitions(text: str, name: str) -> Iterator[list[str]]:
    """The parameters of each definition of a function of this name, as they are written."""
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", text):
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += (text[at] == "(") - (text[at] == ")")
            at += 1
        if not depth and _BEHIND.match(text, at):
            inner = text[found.end() : at - 1].strip()
            yield list(split_list(inner)) if inner not in ("", "void") else []

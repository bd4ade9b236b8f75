"""The parts of a `.cu` file that run on the host: NVRTC compiles none of them.

Functions at namespace scope without `__global__`, `__device__` or `constexpr` are left out:
`main`, launchers with `<<<…>>>`, also their declarations.  Their lines become empty, so that
messages name the right lines.  What a kernel needs nevertheless is then an identifier that the
compiler does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ferrule.frontends.cuda.knowing import standing_for
from ferrule.frontends.cuda.requests import Request
from ferrule.specs.deferred import dataclass

_KEPT: Final = re.compile(r"\b(?:__global__|__device__|constexpr|consteval)\b")
_IGNORED: Final = re.compile(
    r"//(?:\\\r?\n|[^\n])*|/\*.*?\*/|^[ \t]*#(?:\\\r?\n|[^\n])*"
    r'|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL | re.MULTILINE,
)
"""Matches comments, directives and literals, in which braces mean nothing."""
_DEFINED: Final = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\r?\n|[^\n])*)", re.MULTILINE)
_BRANCH: Final = re.compile(r"[ \t]*#[ \t]*(if\w*|elif\w*|else|endif)\b")
_SCOPE: Final = re.compile(r"\s*(?:inline\s+)?namespace\b[\w:\s]*|\s*extern\s*@+\s*")
_CLASS: Final = re.compile(r"(?:\s|typedef\b|template\s*<[^{}]*>)*(?:struct|class|union|enum)\b")
_ALIGNED: Final = re.compile(r"\b(?:__align__|alignas|__attribute__|__declspec)\s*\([^{}]*?\)+")
_OPERATOR: Final = re.compile(r"\boperator\s*[^\s\w(]+")
_BEHIND: Final = re.compile(r"\)\s*(?:const|noexcept|override|final|->[^(){};]*|\s)*$")
_TEMPLATE: Final = re.compile(r"\btemplate\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>")
_OTHER: Final = re.compile(r"\s*(?:typedef|using|static_assert|asm|__asm__)\b")
_ENDS: Final = re.compile(r"[{};]")
_WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"(\boperator\s*[^\s\w(]+|[\w:~]+(?:<[^()]*>)?)\s*\(")


@dataclass(frozen=True, slots=True)
class Left:
    """A request without the functions of the host, and the names of these."""

    request: Request
    names: tuple[str, ...]


def without_host(request: Request) -> Left:
    """The request without the functions of the host; the request itself if there are none, and if
    its braces do not match, as those in branches of `#if` may not."""
    text = request.source.text
    found = list(_functions(request, text))
    # From behind, so that the positions before stay right.
    for _, start, end in reversed(found):
        # The lines behind keep their numbers, for the compiler's messages.
        lines = "\n" * text.count("\n", start, end)
        text = text[:start] + lines + text[end:]
    source = replace(request.source, text=text)
    return Left(replace(request, source=source), tuple(name for name, _, _ in found))


def _functions(request: Request, text: str) -> Iterator[tuple[str, int, int]]:
    """The host functions: their names, starts and ends."""
    plain = _IGNORED.sub(_blank, _first_branches(text))
    kept = standing_for(_KEPT, request, text) | _made_by_macros(text)
    head, at = 0, 0
    while found := _ENDS.search(plain, at):
        said, at = plain[head : found.start()], found.end()
        if found[0] == "{" and not _SCOPE.fullmatch(said):
            at = _closing(plain, found.start())
            if at == 0:
                return
            if not _is_called(said):  # a class or a value, which ends behind its brace
                continue
        start, head = head + len(said) - len(said.lstrip()), at
        if found[0] != "}" and _is_function(said) and not _is_kept(said, kept):
            yield _name(said), start, at


def _is_kept(head: str, kept: frozenset[str]) -> bool:
    return _KEPT.search(head) is not None or bool(kept & set(_WORD.findall(head)))


def _first_branches(text: str) -> str:
    """The text with only the first branch of each `#if` whose branch opens more braces than it
    closes; the others become spaces."""
    lines, stack = text.splitlines(keepends=True), list[tuple[int, bool]]()
    for number, line in enumerate(lines):
        found = _BRANCH.match(line)
        if found is None:
            lines[number] = re.sub(r"[^\n]", " ", line) if any(on for _, on in stack) else line
        elif found[1].startswith("if"):
            stack.append((number, False))
        elif stack:
            start, is_off = stack.pop()
            inner = _IGNORED.sub(_blank, "".join(lines[start + 1 : number]))
            if found[1] != "endif":
                is_unbalanced = inner.count("{") != inner.count("}")
                stack.append((start, is_off or is_unbalanced))
    return "".join(lines)


def _blank(found: re.Match[str]) -> str:
    """As many characters without a meaning; the text of a literal is `@`."""
    mark = "@" if found[0][0] in "\"'R" else " "
    return "".join(each if each == "\n" else mark for each in found[0])


def _made_by_macros(text: str) -> frozenset[str]:
    """The names of macros, also of those with parameters, that say `__global__` and the like."""
    said = dict(_DEFINED.findall(text))
    names: frozenset[str] = frozenset()
    while True:
        found = {
            name
            for name, value in said.items()
            if _KEPT.search(value) or names & set(_WORD.findall(value))
        }
        if found <= names:
            return names
        names |= found


def _is_function(head: str) -> bool:
    """Whether what stands before a brace or a semicolon declares a function: a type, a name and
    parameters.  A name alone is that of a macro."""
    before = _flat(head).partition("(")[0]
    return _is_called(head) and not _OTHER.match(head) and len(_WORD.findall(before)) > 1


def _is_called(head: str) -> bool:
    """Whether it ends as a function does, with parameters."""
    said = _OPERATOR.sub("operator", _TEMPLATE.sub(" ", head))
    flat = _flat(said)
    if "=" in flat or "(" not in flat:
        return False
    if _CLASS.match(said) and "(" not in _flat(_ALIGNED.sub(" ", said)):
        return False
    return _BEHIND.search(said) is not None or ":" in flat.rpartition(")")[2]


def _flat(text: str) -> str:
    """The text without what is in parentheses, which remain."""
    found, depth = [], 0
    for letter in text:
        depth -= letter == ")"
        if depth == 0:
            found.append(letter)
        depth += letter == "("
    return "".join(found)


def _name(head: str) -> str:
    found = _NAME.search(_flat(_ALIGNED.sub(" ", _TEMPLATE.sub(" ", head))))
    return head.strip() if found is None else found[1]


def _closing(text: str, at: int) -> int:
    """The position after the brace that closes the one at `at`; 0 if it is not closed."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if not depth:
            return place + 1
    return 0

"""Foreign LLVM IR, as LLVM prints it: checks that it can be a part of a body, and transforms it.

COMDAT groups, of which a linker would choose one, are dissolved: the names belong only to this
code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from llvmlite import ir

from ferrule.compiler import targets
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode.pruning import Unusable, pruned

_COMDAT: Final = re.compile(r"^\$.* = comdat .*\n", re.M)
_NAME: Final = r'(?:"[^"]*"|[\w.$-]+)'
_IN_FUNCTION: Final = re.compile(rf"^(define .*\)[^\n]*?) comdat(?:\(\${_NAME}\))?(?= )", re.M)
_IN_VARIABLE: Final = re.compile(rf"^(@.*), comdat(?:\(\${_NAME}\))?(?=,[^\"\n]*$|$)", re.M)
_WHOLE: Final = (
    Unusable(
        re.compile(r"^@llvm\.global_[cd]tors = ", re.M), "it has code that runs when it is loaded"
    ),
    Unusable(re.compile(r"^module asm ", re.M), "it has assembly of a whole module"),
)
"""What refuses a whole module."""
_PARTS: Final = (
    Unusable(re.compile(r"^define .* personality ", re.M), "it throws or catches exceptions"),
    Unusable(
        re.compile(r"^declare .* @__cxa_(?:re)?throw\(", re.M), "it throws or catches exceptions"
    ),
    Unusable(re.compile(r"^@.* = .*\bthread_local\b", re.M), "it has thread-local data"),
    Unusable(
        re.compile(r"^@.* = (?:[a-z_]+ )*(?:alias|ifunc) ", re.M), "it has aliases of functions"
    ),
)
"""What refuses the functions that reach it."""
_LINK: Final = "link it to a shared library and name that"


def usable(tried: Mapping[str, Any], names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The text of codes that `child` compiled, without the functions that cannot be embedded, and
    for each of these the reason.

    Raises CompileError if no function is left, and for a whole module that cannot be embedded.
    """
    text: str = tried["text"]
    what = ", ".join(names)
    found = next((each for each in _WHOLE if each.pattern.search(text)), None)
    if found is not None:
        raise cannot(what, found.reason)
    if not any(each.pattern.search(text) for each in _PARTS):
        return text, {}
    text, refused = pruned(text, _PARTS)
    if not re.search(r"^define ", text, re.M):
        raise cannot(what, next(iter(refused.values())))
    return text, refused


def cannot(what: str, reason: str) -> CompileError:
    """The error of code that needs a linker or loader."""
    return CompileError(Diagnostic(f"{what} cannot be embedded: {reason}", hint=_LINK))


def embeddable(text: str) -> str:
    """The text as a part of a body: no linker chooses among its definitions."""
    text = _COMDAT.sub("", text)
    return _IN_VARIABLE.sub(r"\1", _IN_FUNCTION.sub(r"\1", text))


def check_platforms(tried: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise CompileError if one of the codes that `child` compiled is for another platform."""
    for (triple, layout), each in zip(tried["said"], names, strict=True):
        _check_platform(triple, layout, tried, each)


def _check_platform(triple: str, layout: str, tried: Mapping[str, Any], what: str) -> None:
    here = tried["target"]
    if triple and _platform(triple) != _platform(here):
        raise CompileError(f"{what} is for {triple}, and the code that calls it for {here}")
    said, wanted = _layout(layout), _layout(tried["target_layout"])
    for key in sorted(said.keys() & wanted.keys()):
        if said[key] != wanted[key]:
            raise CompileError(
                f"{what} has a data layout with {key}{said[key]}, and the code that calls it "
                f"{key}{wanted[key]}: write it for {here}"
            )


def _platform(triple: str) -> tuple[str, str]:
    system = next((name for name in ("linux", "apple", "windows") if name in triple), "other")
    return targets.architecture(triple), system


def _layout(text: str) -> dict[str, str]:
    """The parts of a data layout, by the letter and number that each begins with."""
    found: dict[str, str] = {}
    for part in filter(None, text.split("-")):
        if part in ("e", "E"):
            found["byte order "] = part
            continue
        head = re.match(r"[a-zA-Z]+\d*:?", part)
        key = head[0] if head else part
        found[key] = part[len(key) :]
    return found


def require_type(symbol: str, found: str, wanted: ir.FunctionType, what: str) -> None:
    """Raise CompileError if the type of a function in the IR does not match the call.

    In the IR a flag may be i1, which is a byte in a call, and a 2-byte float `half` or `bfloat`.  A
    call that ignores the result matches any result.
    """
    has, given = _split(found), _split(str(wanted))
    if has == given or _same(has, given):
        return
    raise CompileError(
        Diagnostic(
            f"{what}: the function {symbol} of the code does not take what the call gives it",
            expected=found,
            notes=(f"the call is {_plain(str(wanted))}",),
        )
    )


def require_c(name: str, text: str, what: str) -> None:
    """Raise CompileError if a function of the IR does not have the plain C calling convention: LLVM
    would silently drop the call, or pass wrong values."""
    head = re.search(rf'^define ([^@\n]*)@"?{re.escape(name)}"?(\(.*)$', text, re.M)
    if head is None:
        return
    convention, passed = _CONVENTION.search(head[1]), _PASSED.search(head[2])
    if convention is not None:
        said = f"is called by {convention[0]}"
    elif passed is not None:
        said = f"has a parameter with {passed[0]}"
    else:
        return
    hint = "call it from a function of the code that has C's convention and plain parameters"
    raise CompileError(Diagnostic(f"{what} {said}, which is not how it would be called", hint=hint))


_CONVENTION: Final = re.compile(
    r"(?<![\w%.\"])(?:\w+cc|cc ?\d+|\w+_cc\(\d+\)|\w+_pcs|(?:ptx|amdgpu|spir)_\w+)(?![\w.\"])"
)
"""The names of calling conventions other than C's (LLVM language reference)."""

_PASSED: Final = re.compile(
    r'(?<![\w%.$"])(?:byval|sret|inalloca|preallocated|inreg|nest|swiftself|swifterror|swiftasync)'
    r'(?![\w.$"])'
)
"""Attributes of parameters that change how they are passed."""

_FITTED: Final = {"i1": "i8", "half": "i16", "bfloat": "i16"}
"""Types of LLVM IR, and the types of a call that correspond."""


def _same(has: list[str], given: list[str]) -> bool:
    if given[0] == "void":
        has = ["void", *has[1:]]
    pairs = zip(has, given, strict=False)
    return len(has) == len(given) and all(a == b or _FITTED.get(a) == b for a, b in pairs)


def parameter_types(found: str) -> list[str]:
    """The LLVM types of the parameters of a function type."""
    return _split(found)[1:]


def result_type(found: str) -> str:
    """The LLVM type of a function type's result."""
    return _split(found)[0]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _split(text: str) -> list[str]:
    """The result and the parameters of a function type, without spaces."""
    items: list[str] = []
    depth, current = 0, ""
    for letter in text:
        if letter in "([{<":
            depth += 1
            if depth == 1 and letter == "(" and not items:
                items.append(current)
                current = ""
                continue
        elif letter in ")]}>":
            depth -= 1
            if depth == 0 and letter == ")":
                break
        elif letter == "," and depth == 1 and items:
            items.append(current)
            current = ""
            continue
        current += letter
    if current.strip():
        items.append(current)
    return [re.sub(r"\s", "", item) for item in items]
